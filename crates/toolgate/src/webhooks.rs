//! Telling the outside of approvals: each tenant's events go to the operator's webhook, in the order of the log, each at
//! least once. How far that is stands in the ledger, so it goes on after a restart; a lease sees to it that of several
//! gates one does it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use toolgate_egress::notice::Notifier;
use toolgate_gate::Refusal;
use toolgate_gate::ports::approver::Approver;
use toolgate_gate::ports::clock::Clock;
use toolgate_gate::ports::ledger::{EventFilter, Ledger, LoggedEvent, PageRequest, WebhookBacklog};
use toolgate_model::event::EventKind;
use toolgate_model::id::ProcessId;
use toolgate_model::principal::TenantId;

pub use self::message::Details;
use self::round::Round;

mod message;
mod round;

/// How often it is looked whether there is something to tell.
pub const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How many messages are on their way at a time, of all tenants together.
const AT_A_TIME: usize = 16;

/// Whom to tell, what, and from where that is known.
pub struct Webhooks {
    /// Where events and positions are kept.
    pub ledger: Arc<dyn Ledger>,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Knows how risky a call is.
    pub approver: Arc<dyn Approver>,
    /// This process.
    pub process: ProcessId,
    /// The way out.
    pub notifier: Notifier,
    /// How much of a call is told.
    pub details: Details,
    /// Where people reach this gate; without it no links are sent.
    pub public_url: Option<String>,
}

/// The tellings under way, one for each tenant that has something to be told.
pub struct Tellings {
    webhooks: Arc<Webhooks>,
    stopped: watch::Receiver<bool>,
    sending: Arc<Semaphore>,
    under_way: BTreeMap<TenantId, JoinHandle<()>>,
    /// Up to where in its log a tenant has nothing to tell. Not stored: most events are about something else.
    quiet: BTreeMap<TenantId, u64>,
}

impl Tellings {
    /// None yet.
    pub fn new(webhooks: Arc<Webhooks>, stopped: watch::Receiver<bool>) -> Self {
        Self {
            webhooks,
            stopped,
            sending: Arc::new(Semaphore::new(AT_A_TIME)),
            under_way: BTreeMap::new(),
            quiet: BTreeMap::new(),
        }
    }

    /// Looks which tenants have something to tell, and begins.
    pub async fn look(&mut self) -> Result<(), Refusal> {
        let webhooks = &self.webhooks;
        self.under_way.retain(|_, telling| !telling.is_finished());
        let mut failure = None;
        for backlog in webhooks.ledger.webhook_backlog().await? {
            if self.under_way.contains_key(&backlog.tenant) || webhooks.is_told_elsewhere(&backlog) {
                continue;
            }
            let quiet = self.quiet.get(&backlog.tenant).copied().unwrap_or_default().max(backlog.position);
            if backlog.size <= quiet {
                continue;
            }
            match webhooks.events(&backlog.tenant, quiet, 1).await {
                Ok(events) if events.is_empty() => {
                    self.quiet.insert(backlog.tenant, backlog.size);
                    continue;
                }
                Ok(_) => {}
                // The approvals of other tenants are told all the same.
                Err(refusal) => {
                    failure.get_or_insert(refusal);
                    continue;
                }
            }
            let (webhooks, tenant) = (Arc::clone(webhooks), backlog.tenant.clone());
            let (sending, stopped) = (Arc::clone(&self.sending), self.stopped.clone());
            let telling = tokio::spawn(async move { Round::new(&webhooks, &sending, tenant).run(stopped).await });
            self.under_way.insert(backlog.tenant, telling);
        }
        failure.map_or(Ok(()), Err)
    }

    /// Waits until all have ended, which they do when the program is asked to end.
    pub async fn finish(self) {
        for telling in self.under_way.into_values() {
            // An error is a telling that broke: the next life goes on with it.
            let _ = telling.await;
        }
    }
}

impl Webhooks {
    /// Begins, the first time, with what happens from now on.
    pub async fn begin(&self) -> Result<(), Refusal> {
        self.ledger.begin_webhooks().await
    }

    /// Events about approvals from a place in the log on, in order.
    async fn events(&self, tenant: &TenantId, position: u64, limit: u32) -> Result<Vec<LoggedEvent>, Refusal> {
        let filter = EventFilter::of_kinds(EventKind::APPROVAL);
        let after = position.checked_sub(1).map(|last| last.to_string());
        Ok(self.ledger.events(tenant, filter, PageRequest { after, limit }).await?.items)
    }

    /// Whether another process that may be alive tells it.
    fn is_told_elsewhere(&self, backlog: &WebhookBacklog) -> bool {
        let now = self.clock.now();
        let by_another = backlog.lease.is_some_and(|(process, until)| process != self.process && until > now);
        by_another && self.ledger.shares_approvals()
    }
}
