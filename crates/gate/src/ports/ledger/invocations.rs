//! Invocation records: reading them, and reporting calls that were made without the gate.

use async_trait::async_trait;
use toolgate_model::context::ContextId;
use toolgate_model::credential::ServiceName;
use toolgate_model::id::{CredentialId, GrantId, InvocationId};
use toolgate_model::invocation::{IdempotencyKey, Invocation, InvocationStatus};
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::time::Timestamp;

use super::{Mandate, Page, PageRequest};
use crate::refusal::Refusal;

#[async_trait]
pub trait Invocations: Send + Sync {
    /// Records a call that its caller made without the gate.
    async fn report_invocation(&self, command: ReportInvocation) -> Result<(), Refusal>;
    async fn invocation(&self, tenant: &TenantId, id: InvocationId) -> Result<Option<Invocation>, Refusal>;
    /// Returns invocations, newest first.
    async fn invocations(
        &self,
        tenant: &TenantId,
        filter: InvocationFilter,
        page: PageRequest,
    ) -> Result<Page<Invocation>, Refusal>;
}

/// Records a call that its caller made itself.
#[derive(Debug, Clone)]
pub struct ReportInvocation {
    pub audit: Mandate,
    /// The grants of the lineage from the top down, each with its hourly limit: all must be usable, and the call counts
    /// for each.
    pub lineage: Vec<(GrantId, Option<u64>)>,
    pub credential: CredentialId,
    pub invocation: Invocation,
}

/// Filters invocations. An absent member does not filter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InvocationFilter {
    pub agent: Option<PrincipalId>,
    pub grant: Option<GrantId>,
    pub service: Option<ServiceName>,
    pub tool: Option<String>,
    pub status: Option<InvocationStatus>,
    pub intent: Option<ContextId>,
    pub task: Option<ContextId>,
    pub idempotency_key: Option<IdempotencyKey>,
    /// Inclusive.
    pub since: Option<Timestamp>,
    /// Exclusive.
    pub until: Option<Timestamp>,
    /// Only through grants on credentials in vaults of this owner.
    pub vault_owner: Option<PrincipalId>,
}
