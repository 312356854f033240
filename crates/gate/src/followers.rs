//! Event streams. No stream reads the ledger until there is something for it: one poll for all streams of the process
//! reads the headings of new events in the followed logs, and wakes the streams whose filter they match.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use toolgate_model::event::EventKind;
use toolgate_model::id::KeyId;
use toolgate_model::permission::Permission;
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::time::Timestamp;

use crate::authority::approvals::visible_agent;
use crate::gate::{Ports, Shared};
use crate::identify::{Authenticator, Caller};
use crate::ports::clock::Clock;
use crate::ports::ledger::{AuditLog, EventFilter, LogNews};
use crate::refusal::{Code, Refusal};

#[cfg(test)]
mod tests;

/// The default maximum number of open streams per principal.
pub const STREAMS_OF_PRINCIPAL: usize = 64;
/// How long idle streams of one key share a check of it. Before an event is sent, the key is always checked.
const KEY_CHECK_SHARED: Duration = Duration::from_secs(10);

/// All streams of one process.
struct Followers {
    most: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next: u64,
    logs: HashMap<TenantId, Log>,
    of_principal: HashMap<(TenantId, PrincipalId), usize>,
    checked: HashMap<KeyId, (Timestamp, Caller)>,
}

/// A followed log.
#[derive(Default)]
struct Log {
    /// The position up to which it was polled; `None` before the first poll.
    seen: Option<u64>,
    streams: HashMap<u64, (EventFilter, Arc<Notify>)>,
}

/// A stream that is woken when there may be events for it; it counts for its principal until it is dropped.
pub struct Follower {
    followers: Arc<Followers>,
    tenant: TenantId,
    principal: PrincipalId,
    number: u64,
    news: Arc<Notify>,
}

impl Follower {
    /// Waits until the log has events that may be for this stream, since it was opened or since this last returned.
    pub async fn news(&self) {
        self.news.notified().await;
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let mut state = self.followers.state();
        let of_principal = (self.tenant.clone(), self.principal.clone());
        if let Some(count) = state.of_principal.get_mut(&of_principal) {
            *count -= 1;
            if *count == 0 {
                state.of_principal.remove(&of_principal);
            }
        }
        if let Some(log) = state.logs.get_mut(&self.tenant) {
            log.streams.remove(&self.number);
            if log.streams.is_empty() {
                state.logs.remove(&self.tenant);
            }
        }
    }
}

impl Followers {
    fn new(most: usize) -> Self {
        Self { most, state: Mutex::default() }
    }

    /// INVARIANT: a stream is registered before it first reads the log, so that whatever it does not find then is new
    /// at a later poll.
    fn follow(
        self: &Arc<Self>,
        tenant: &TenantId,
        principal: &PrincipalId,
        filter: EventFilter,
    ) -> Result<Follower, Refusal> {
        let (tenant, principal) = (tenant.clone(), principal.clone());
        let mut state = self.state();
        let count = state.of_principal.entry((tenant.clone(), principal.clone())).or_default();
        if *count >= self.most {
            let reason = format!(
                "`{principal}` has {} event streams open, the maximum; close some of them, or raise \
                server.max_streams_per_principal",
                self.most
            );
            return Err(Refusal::new(Code::TooManyStreams, reason).with("limit", self.most));
        }
        *count += 1;
        let number = state.next;
        state.next += 1;
        let news = Arc::new(Notify::new());
        state.logs.entry(tenant.clone()).or_default().streams.insert(number, (filter, Arc::clone(&news)));
        drop(state);
        Ok(Follower { followers: Arc::clone(self), tenant, principal, number, news })
    }

    /// The followed logs, each with the position up to which it was polled.
    fn followed(&self, now: Timestamp) -> Vec<(TenantId, Option<u64>)> {
        let mut state = self.state();
        state.checked.retain(|_, (at, _)| is_recent(*at, now));
        state.logs.iter().map(|(tenant, log)| (tenant.clone(), log.seen)).collect()
    }

    fn deliver(&self, news: Vec<LogNews>) {
        let mut state = self.state();
        for LogNews { tenant, size, headings } in news {
            let Some(log) = state.logs.get_mut(&tenant) else { continue };
            log.seen = Some(size);
            for (filter, stream) in log.streams.values() {
                let concerns = |headings: &Vec<_>| headings.iter().any(|heading| filter.may_have(heading));
                if headings.as_ref().is_none_or(concerns) {
                    stream.notify_one();
                }
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The event streams that callers follow.
pub struct EventStreams {
    log: Arc<dyn AuditLog>,
    clock: Arc<dyn Clock>,
    authenticator: Arc<Authenticator>,
    followers: Arc<Followers>,
}

impl EventStreams {
    pub(crate) fn new(ports: &Ports, shared: &Shared) -> Self {
        Self {
            log: ports.ledger.clone(),
            clock: Arc::clone(&ports.clock),
            authenticator: Arc::clone(&shared.authenticator),
            followers: Arc::new(Followers::new(shared.settings.streams_of_principal)),
        }
    }

    /// Follows the approvals that the caller may see.
    pub fn follow_approvals(&self, caller: &Caller) -> Result<Follower, Refusal> {
        let agent = visible_agent(caller, None)?;
        let filter = EventFilter { agent, ..EventFilter::of_kinds(EventKind::about_approvals()) };
        self.followers.follow(caller.tenant(), caller.id(), filter)
    }

    /// Follows what the tools depend on that the caller may call. The events themselves are not revealed.
    pub fn follow_catalog(&self, caller: &Caller) -> Result<Follower, Refusal> {
        self.followers.follow(caller.tenant(), caller.id(), EventFilter::of_kinds(EventKind::CATALOG))
    }

    /// Follows the events that match this filter and that the caller may see.
    pub fn follow_events(&self, caller: &Caller, mut filter: EventFilter) -> Result<Follower, Refusal> {
        if !caller.may(Permission::ReadAudit) {
            filter.agent = Some(caller.id().clone());
        }
        self.followers.follow(caller.tenant(), caller.id(), filter)
    }

    /// Polls the followed logs and wakes the streams that new events may be for.
    pub async fn look_for_news(&self) -> Result<(), Refusal> {
        let followed = self.followers.followed(self.clock.now());
        if followed.is_empty() {
            return Ok(());
        }
        self.followers.deliver(self.log.log_news(followed).await?);
        Ok(())
    }

    /// The caller of an idle stream, as of a few seconds ago. Refused once its key has ended.
    pub async fn identify_follower(&self, caller: &Caller) -> Result<Caller, Refusal> {
        let now = self.clock.now();
        let checked = self.followers.state().checked.get(&caller.key()).cloned();
        if let Some((_, known)) = checked.filter(|(at, _)| is_recent(*at, now)) {
            return Ok(known);
        }
        let known = self.authenticator.identify_again(caller).await?;
        self.followers.state().checked.insert(caller.key(), (now, known.clone()));
        Ok(known)
    }
}

fn is_recent(at: Timestamp, now: Timestamp) -> bool {
    at <= now && now < at.plus(KEY_CHECK_SHARED)
}
