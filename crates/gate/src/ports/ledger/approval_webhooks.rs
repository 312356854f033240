//! How far the events of approvals were sent to webhooks, and by which process.

use async_trait::async_trait;
use toolgate_model::id::ProcessId;
use toolgate_model::principal::TenantId;
use toolgate_model::time::Timestamp;

use crate::refusal::Refusal;

/// How far the events of approvals were sent to webhooks, and by which process.
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

/// How far the outside was told of a tenant's log, where the log goes on behind that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookBacklog {
    /// Whose log.
    pub tenant: TenantId,
    /// How many of its events are dealt with.
    pub position: u64,
    /// How many it has.
    pub size: u64,
    /// Which process tells it just now, and until when.
    pub lease: Option<(ProcessId, Timestamp)>,
}

/// Takes over to tell the outside of a tenant's approvals, or goes on with it: one process at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseWebhook {
    /// Whose.
    pub tenant: TenantId,
    /// Which process.
    pub process: ProcessId,
    /// Now.
    pub now: Timestamp,
    /// Until when nobody else does.
    pub until: Timestamp,
}

/// Notes how far the outside was told, by the process that holds the lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdvanceWebhook {
    /// Whose.
    pub tenant: TenantId,
    /// Which process.
    pub process: ProcessId,
    /// How many events are dealt with now; never fewer than before.
    pub position: u64,
    /// Until when it holds the lease; `None` gives it back.
    pub until: Option<Timestamp>,
}
