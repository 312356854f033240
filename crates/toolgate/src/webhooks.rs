//! Webhook deliveries: the approval events of each tenant go to the operator's webhook, in the order of the log, each
//! at least once. The progress is in the ledger, so deliveries continue after a restart; with several gates, a lease
//! selects one of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use toolgate_egress::notice::Notifier;
use toolgate_gate::Refusal;
use toolgate_gate::ports::approver::Approver;
use toolgate_gate::ports::clock::Clock;
use toolgate_gate::ports::ledger::{
    ApprovalLinks, ApprovalWebhooks, Approvals, AuditLog, EventFilter, LoggedEvent, PageRequest, WebhookBacklog,
};
use toolgate_model::event::EventKind;
use toolgate_model::id::ProcessId;
use toolgate_model::principal::TenantId;

pub use self::message::Details;
use self::round::Round;

mod message;
mod round;

/// The interval of polls for new events.
pub const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// The maximum number of concurrent deliveries, of all tenants together.
const AT_A_TIME: usize = 16;

pub struct Webhooks {
    /// The progress of deliveries.
    pub webhooks: Arc<dyn ApprovalWebhooks>,
    pub links: Arc<dyn ApprovalLinks>,
    pub approvals: Arc<dyn Approvals>,
    pub log: Arc<dyn AuditLog>,
    pub clock: Arc<dyn Clock>,
    pub approver: Arc<dyn Approver>,
    pub process: ProcessId,
    pub notifier: Notifier,
    /// How much of a call is sent.
    pub details: Details,
    /// Where people reach this gate; without it no links are sent.
    pub public_url: Option<String>,
}

/// The deliveries in progress, one for each tenant that has events to deliver.
pub struct WebhookDeliveries {
    webhooks: Arc<Webhooks>,
    stopped: watch::Receiver<bool>,
    sending: Arc<Semaphore>,
    in_flight: BTreeMap<TenantId, JoinHandle<()>>,
    /// Up to where in its log a tenant has nothing to deliver. Not stored: most events are about something else.
    quiet: BTreeMap<TenantId, u64>,
}

impl WebhookDeliveries {
    pub fn new(webhooks: Arc<Webhooks>, stopped: watch::Receiver<bool>) -> Self {
        Self {
            webhooks,
            stopped,
            sending: Arc::new(Semaphore::new(AT_A_TIME)),
            in_flight: BTreeMap::new(),
            quiet: BTreeMap::new(),
        }
    }

    /// Starts a delivery for each tenant that has events to deliver.
    pub async fn look(&mut self) -> Result<(), Refusal> {
        let webhooks = &self.webhooks;
        self.in_flight.retain(|_, delivery| !delivery.is_finished());
        let mut failure = None;
        for backlog in webhooks.webhooks.webhook_backlog().await? {
            if self.in_flight.contains_key(&backlog.tenant) || webhooks.is_delivered_elsewhere(&backlog) {
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
                // The events of other tenants are delivered all the same.
                Err(refusal) => {
                    failure.get_or_insert(refusal);
                    continue;
                }
            }
            let (webhooks, tenant) = (Arc::clone(webhooks), backlog.tenant.clone());
            let (sending, stopped) = (Arc::clone(&self.sending), self.stopped.clone());
            let delivery = tokio::spawn(async move { Round::new(&webhooks, &sending, tenant).run(stopped).await });
            self.in_flight.insert(backlog.tenant, delivery);
        }
        failure.map_or(Ok(()), Err)
    }

    /// Waits until all have ended, which they do at shutdown.
    pub async fn finish(self) {
        for delivery in self.in_flight.into_values() {
            // An error is a delivery that broke off: the next process continues it.
            let _ = delivery.await;
        }
    }
}

impl Webhooks {
    /// Starts, the first time, with the next event.
    pub async fn begin(&self) -> Result<(), Refusal> {
        self.webhooks.begin_webhooks().await
    }

    /// Events about approvals from a position in the log, in order.
    async fn events(&self, tenant: &TenantId, position: u64, limit: u32) -> Result<Vec<LoggedEvent>, Refusal> {
        let filter = EventFilter::of_kinds(EventKind::APPROVAL);
        let after = position.checked_sub(1).map(|last| last.to_string());
        Ok(self.log.events(tenant, filter, PageRequest { after, limit }).await?.items)
    }

    /// Whether another process that may be alive delivers them.
    fn is_delivered_elsewhere(&self, backlog: &WebhookBacklog) -> bool {
        let now = self.clock.now();
        let by_another = backlog.lease.is_some_and(|(process, until)| process != self.process && until > now);
        by_another && self.approvals.shares_approvals()
    }
}
