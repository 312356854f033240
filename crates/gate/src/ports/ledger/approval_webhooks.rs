//! Commands on what the outside is told of approvals: how far it was told, by which process, and the one-time links that
//! lead back.

use toolgate_model::approval::LinkDigest;
use toolgate_model::id::{ApprovalId, ProcessId};
use toolgate_model::principal::TenantId;
use toolgate_model::time::Timestamp;

use super::Mandate;

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

/// Makes a link to an approval.
#[derive(Debug, Clone)]
pub struct CreateApprovalLink {
    /// Whose.
    pub tenant: TenantId,
    /// To which.
    pub approval: ApprovalId,
    /// The digest of its token.
    pub digest: LinkDigest,
    /// Until when it can be used.
    pub expires_at: Timestamp,
    /// Now.
    pub now: Timestamp,
}

/// Uses a link up: compare-and-set, the first use wins.
#[derive(Debug, Clone)]
pub struct RedeemApprovalLink {
    /// Who and when, and by which right.
    pub stamp: Mandate,
    /// The digest of the token that was shown.
    pub digest: LinkDigest,
}
