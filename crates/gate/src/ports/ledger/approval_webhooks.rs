//! The progress of webhook deliveries, and the process that delivers them.

use async_trait::async_trait;
use toolgate_model::id::ProcessId;
use toolgate_model::principal::TenantId;
use toolgate_model::time::Timestamp;

use crate::refusal::Refusal;

#[async_trait]
pub trait ApprovalWebhooks: Send + Sync {
    /// Starts at the end of every log, unless webhooks were started before.
    async fn begin_webhooks(&self) -> Result<(), Refusal>;
    /// Returns the tenants whose logs have events that were not sent yet.
    async fn webhook_backlog(&self) -> Result<Vec<WebhookBacklog>, Refusal>;
    /// Leases the webhook of a tenant; returns how many events of its log are done, or `None` where another process
    /// holds the lease.
    async fn lease_webhook(&self, command: LeaseWebhook) -> Result<Option<u64>, Refusal>;
    /// Stores how far events were sent; returns false where another process holds the lease now.
    async fn advance_webhook(&self, command: AdvanceWebhook) -> Result<bool, Refusal>;
}

/// A tenant whose log has events that were not delivered yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookBacklog {
    pub tenant: TenantId,
    /// The number of its events that are done.
    pub position: u64,
    /// The size of its log.
    pub size: u64,
    /// The process that holds the lease, and until when.
    pub lease: Option<(ProcessId, Timestamp)>,
}

/// Takes or renews the lease for the webhook deliveries of a tenant: one process at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseWebhook {
    pub tenant: TenantId,
    pub process: ProcessId,
    pub now: Timestamp,
    /// The end of the lease.
    pub until: Timestamp,
}

/// Stores the progress of deliveries, by the process that holds the lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdvanceWebhook {
    pub tenant: TenantId,
    pub process: ProcessId,
    /// The number of events that are done; never decreases.
    pub position: u64,
    /// The end of the lease; `None` releases it.
    pub until: Option<Timestamp>,
}
