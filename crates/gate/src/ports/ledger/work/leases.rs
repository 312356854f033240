//! Leases. A lease whose scope is a task claims the task, and the task is given back or fails with it.

use async_trait::async_trait;
use toolgate_model::id::{IntentId, LeaseId};
use toolgate_model::principal::TenantId;
use toolgate_model::time::Timestamp;
use toolgate_model::work::Lease;

use super::Viewer;
use crate::ports::ledger::Mandate;
use crate::refusal::Refusal;

#[async_trait]
pub trait Leases: Send + Sync {
    /// Acquires a lease: refused with `LEASE_HELD` and the present lease while another holder has the scope. The holder
    /// itself renews its lease with it.
    async fn acquire_lease(&self, command: AcquireLease) -> Result<Lease, Refusal>;
    async fn renew_lease(&self, command: RenewLease) -> Result<Lease, Refusal>;
    /// Releases a lease; by another principal than its holder it is revoked.
    async fn end_lease(&self, command: EndLease) -> Result<Lease, Refusal>;
    /// Returns the leases of an intent that have not ended at this time, oldest first; `None` if the viewer does not see
    /// the intent.
    async fn leases(
        &self,
        tenant: &TenantId,
        intent: IntentId,
        viewer: &Viewer,
        now: Timestamp,
    ) -> Result<Option<Vec<Lease>>, Refusal>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcquireLease {
    pub audit: Mandate,
    /// As it is to be stored: its agent is the caller, or one that it may act for.
    pub lease: Lease,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenewLease {
    pub audit: Mandate,
    pub intent: IntentId,
    pub id: LeaseId,
    pub expires_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndLease {
    pub audit: Mandate,
    pub intent: IntentId,
    pub id: LeaseId,
}
