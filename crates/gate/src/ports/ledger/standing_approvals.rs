//! Standing approvals.

use async_trait::async_trait;
use toolgate_model::approval::StandingApproval;
use toolgate_model::id::StandingApprovalId;
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::time::Timestamp;

use super::{Mandate, Page, PageRequest};
use crate::refusal::Refusal;

#[async_trait]
pub trait StandingApprovals: Send + Sync {
    /// Returns the active standing approvals for calls of a tool by an agent.
    async fn standing_for(
        &self,
        tenant: &TenantId,
        agent: &PrincipalId,
        tool: &str,
        now: Timestamp,
    ) -> Result<Vec<StandingApproval>, Refusal>;
    async fn standing(&self, tenant: &TenantId, id: StandingApprovalId) -> Result<Option<StandingApproval>, Refusal>;
    /// Returns standing approvals, newest first.
    async fn standings(
        &self,
        tenant: &TenantId,
        filter: StandingFilter,
        page: PageRequest,
    ) -> Result<Page<StandingApproval>, Refusal>;
    /// Returns the standing approval after the change.
    async fn revoke_standing(&self, command: RevokeStanding) -> Result<StandingApproval, Refusal>;
}

/// Filters standing approvals, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StandingFilter {
    pub agent: Option<PrincipalId>,
    /// With its service.
    pub tool: Option<String>,
    /// Only those that are active at this time.
    pub active_at: Option<Timestamp>,
}

/// Revokes a standing approval: no later admission can use it.
#[derive(Debug, Clone)]
pub struct RevokeStanding {
    pub audit: Mandate,
    pub id: StandingApprovalId,
}
