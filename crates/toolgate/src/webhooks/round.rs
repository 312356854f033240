//! One delivery round for one tenant: takes the lease, delivers event by event, each until it arrives or is too old,
//! and releases the lease.

use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use toolgate_egress::notice::{Notice, NoticeError};
use toolgate_gate::Refusal;
use toolgate_gate::ports::clock::pause;
use toolgate_gate::ports::entropy::random;
use toolgate_gate::ports::ledger::{AdvanceWebhook, CreateApprovalLink, LeaseWebhook, LoggedEvent};
use toolgate_model::approval::{Approval, ApprovalStatus, LinkToken};
use toolgate_model::event::Event;
use toolgate_model::principal::TenantId;
use toolgate_model::time::Timestamp;

use super::Webhooks;
use super::message::Message;

/// The duration of the lease; longer than one exchange may take.
const LEASE: Duration = Duration::from_secs(30);
/// The lease is extended when less than this is left.
const MIN_OF_LEASE: Duration = Duration::from_secs(20);
/// The maximum uninterrupted wait, so that the lease can be extended in between.
const MAX_WAIT: Duration = Duration::from_secs(5);
/// The number of events per read.
const PAGE: u32 = 50;
/// The maximum delay between two attempts.
const MAX_PAUSE: Duration = Duration::from_secs(60);
/// The delay if the ledger refuses.
const AFTER_REFUSAL: Duration = Duration::from_secs(1);

/// One round for one tenant.
pub(super) struct Round<'a> {
    webhooks: &'a Webhooks,
    sending: &'a Semaphore,
    tenant: TenantId,
    /// The number of events that are done.
    position: u64,
    /// The end of the lease of this process.
    held_until: Option<Timestamp>,
}

enum Fate {
    /// It is dealt with.
    Done,
    /// Another process has taken over.
    Lost,
}

impl<'a> Round<'a> {
    pub(super) fn new(webhooks: &'a Webhooks, sending: &'a Semaphore, tenant: TenantId) -> Self {
        Self { webhooks, sending, tenant, position: 0, held_until: None }
    }

    /// Delivers all pending events, or until shutdown. A message in flight then may be sent again after the restart:
    /// the receiver recognizes it by its id.
    pub(super) async fn run(mut self, mut stopped: watch::Receiver<bool>) {
        let outcome = tokio::select! {
            biased;
            _ = stopped.wait_for(|stopped| *stopped) => Ok(()),
            outcome = self.deliver() => outcome,
        };
        if let Err(refusal) = outcome.and(self.give_back().await) {
            tracing::warn!(tenant = %self.tenant, code = refusal.code().as_str(), "could not deliver approval events \
                to the webhook; retrying later");
            tokio::select! {
                _ = stopped.wait_for(|stopped| *stopped) => {}
                () = pause(AFTER_REFUSAL) => {}
            }
        }
    }

    async fn deliver(&mut self) -> Result<(), Refusal> {
        if !self.hold().await? {
            return Ok(());
        }
        loop {
            let events = self.webhooks.events(&self.tenant, self.position, PAGE).await?;
            if events.is_empty() {
                return Ok(());
            }
            for event in &events {
                let Fate::Done = self.deal_with(event).await? else { return Ok(()) };
                if !self.advance(event.sequence.saturating_add(1)).await? {
                    return Ok(());
                }
            }
        }
    }

    async fn deal_with(&mut self, event: &LoggedEvent) -> Result<Fate, Refusal> {
        let Some(message) = self.message(event).await? else {
            tracing::error!(tenant = %self.tenant, sequence = event.sequence, "skipping an event that cannot be read: \
                the webhook is not notified");
            return Ok(Fate::Done);
        };
        let body = message.body();
        let mut failures: u32 = 0;
        loop {
            let now = self.webhooks.clock.now();
            if let Some(reason) = message.is_too_old(now) {
                tracing::warn!(tenant = %self.tenant, sequence = event.sequence, reason, "dropping an approval event \
                    that is too old for the webhook");
                return Ok(Fate::Done);
            }
            match self.send(&message.id(), &body).await? {
                None => return Ok(Fate::Lost),
                Some(Ok(())) if failures > 0 => {
                    tracing::info!(tenant = %self.tenant, "the webhook accepts deliveries again");
                    return Ok(Fate::Done);
                }
                Some(Ok(())) => return Ok(Fate::Done),
                Some(Err(error)) if failures == 0 => {
                    tracing::warn!(tenant = %self.tenant, %error, "a webhook delivery failed; retrying");
                }
                Some(Err(_)) => {}
            }
            failures = failures.saturating_add(1);
            if !self.wait(pause_after(failures)).await? {
                return Ok(Fate::Lost);
            }
        }
    }

    /// The message of an event; `None` if the event cannot be read.
    async fn message(&self, event: &LoggedEvent) -> Result<Option<Message>, Refusal> {
        let Ok(read) = Event::read(&event.canonical) else { return Ok(None) };
        let Some(id) = read.payload.approval_id() else { return Ok(None) };
        let Some(approval) = self.webhooks.approvals.approval(&self.tenant, id).await? else { return Ok(None) };
        let risk = self.webhooks.approver.present(&approval, &[]).risk.level;
        let mut message = Message::new(event.sequence, read, approval, risk, self.webhooks.details);
        if message.asks() {
            message.link = self.link(message.approval()).await?;
        }
        Ok(Some(message))
    }

    /// A new link to an approval that can still be decided.
    async fn link(&self, approval: &Approval) -> Result<Option<String>, Refusal> {
        let now = self.webhooks.clock.now();
        let waits = approval.status == ApprovalStatus::Pending && approval.expires_at > now;
        let Some(public) = self.webhooks.public_url.as_deref().filter(|_| waits) else { return Ok(None) };
        let token = LinkToken::from_entropy(random()?);
        let command = CreateApprovalLink {
            tenant: self.tenant.clone(),
            approval: approval.id,
            digest: token.digest(),
            expires_at: approval.expires_at,
            now,
        };
        self.webhooks.links.create_approval_link(command).await?;
        Ok(Some(format!("{public}/approvals/open/{}", token.expose())))
    }

    /// Sends once; `None` if another process has taken over.
    async fn send(&mut self, id: &str, body: &str) -> Result<Option<Result<(), NoticeError>>, Refusal> {
        // Never closed, so an error cannot be; without a permit it would only be sent at the same time as others.
        let _permit = self.sending.acquire().await.ok();
        // After the wait for the permit, which may have been long.
        if !self.hold().await? {
            return Ok(None);
        }
        let notice = Notice { id, now: self.webhooks.clock.now(), body };
        Ok(Some(self.webhooks.notifier.send(notice).await))
    }

    /// Waits; false if another process has taken over.
    async fn wait(&mut self, mut left: Duration) -> Result<bool, Refusal> {
        while !left.is_zero() {
            let part = left.min(MAX_WAIT);
            pause(part).await;
            left = left.saturating_sub(part);
            if !self.hold().await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Takes or extends the lease if needed; false if another process holds it.
    async fn hold(&mut self) -> Result<bool, Refusal> {
        let now = self.webhooks.clock.now();
        if self.held_until.is_some_and(|until| until > now.plus(MIN_OF_LEASE)) {
            return Ok(true);
        }
        let until = now.plus(LEASE);
        let process = self.webhooks.process;
        let command = LeaseWebhook { tenant: self.tenant.clone(), process, now, until };
        let position = self.webhooks.webhooks.lease_webhook(command).await?;
        // Another process that held it in between has delivered some of the events.
        let goes_on = position.filter(|position| self.held_until.is_none() || *position == self.position);
        self.held_until = position.map(|_| until);
        self.position = position.unwrap_or_default();
        Ok(goes_on.is_some())
    }

    /// Stores that this many events are done; false if another process has taken over.
    async fn advance(&mut self, position: u64) -> Result<bool, Refusal> {
        let until = self.webhooks.clock.now().plus(LEASE);
        let advanced = self.note(position, Some(until)).await?;
        self.held_until = advanced.then_some(until);
        self.position = position;
        Ok(advanced)
    }

    async fn give_back(&mut self) -> Result<(), Refusal> {
        if self.held_until.take().is_some() {
            self.note(self.position, None).await?;
        }
        Ok(())
    }

    async fn note(&self, position: u64, until: Option<Timestamp>) -> Result<bool, Refusal> {
        let process = self.webhooks.process;
        let command = AdvanceWebhook { tenant: self.tenant.clone(), process, position, until };
        self.webhooks.webhooks.advance_webhook(command).await
    }
}

/// One second, two, four and so on, plus up to a quarter at random, so that several gates do not retry at once.
fn pause_after(failures: u32) -> Duration {
    let doublings = failures.saturating_sub(1).min(6);
    let pause = Duration::from_secs(1 << doublings).min(MAX_PAUSE);
    let chance = random::<1>().map_or(0, |[byte]| u32::from(byte));
    pause + pause * chance / 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_minute_and_vary_by_a_quarter() {
        for (failures, seconds) in [(1, 1), (2, 2), (3, 4), (6, 32), (7, 60), (8, 60), (u32::MAX, 60)] {
            let least = Duration::from_secs(seconds);
            for _ in 0..50 {
                let pause = pause_after(failures);
                assert!(least <= pause && pause < least + least / 4, "{failures}: {pause:?}");
            }
        }
    }
}
