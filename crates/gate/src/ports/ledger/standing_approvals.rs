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

/// Which standing approvals to list, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StandingFilter {
    /// By agent.
    pub agent: Option<PrincipalId>,
    /// By tool, with its service.
    pub tool: Option<String>,
    /// Only those that still cover something.
    pub active_at: Option<Timestamp>,
}

/// Takes a standing approval back: no later admission rests on it.
#[derive(Debug, Clone)]
pub struct RevokeStanding {
    /// Who and when, and by which right.
    pub audit: Mandate,
    /// Which.
    pub id: StandingApprovalId,
}
