//! The records of calls: reading them, and reporting calls that were made without the gate.

use async_trait::async_trait;
use toolgate_model::context::ContextId;
use toolgate_model::credential::ServiceName;
use toolgate_model::id::{CredentialId, GrantId, InvocationId};
use toolgate_model::invocation::{IdempotencyKey, Invocation, InvocationStatus};
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::time::Timestamp;

use super::{Mandate, Page, PageRequest};
use crate::refusal::Refusal;

/// The records of calls.
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

/// Writes down a call that its caller made by itself and reports.
#[derive(Debug, Clone)]
pub struct ReportInvocation {
    /// Who and when, and by which right.
    pub audit: Mandate,
    /// The grants of the lineage from the top down, each with its limit per hour: all must be usable, and it counts at
    /// each.
    pub lineage: Vec<(GrantId, Option<u64>)>,
    /// The credential that it went through.
    pub credential: CredentialId,
    /// The call.
    pub invocation: Invocation,
}

/// Which invocations to list, newest first. What is absent does not filter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InvocationFilter {
    /// By agent.
    pub agent: Option<PrincipalId>,
    /// By grant.
    pub grant: Option<GrantId>,
    /// By service.
    pub service: Option<ServiceName>,
    /// By tool.
    pub tool: Option<String>,
    /// By status.
    pub status: Option<InvocationStatus>,
    /// By intent.
    pub intent: Option<ContextId>,
    /// By task.
    pub task: Option<ContextId>,
    /// By the caller's name for it.
    pub idempotency_key: Option<IdempotencyKey>,
    /// From then on.
    pub since: Option<Timestamp>,
    /// Until before then.
    pub until: Option<Timestamp>,
    /// Only through grants on credentials in vaults of this owner.
    pub vault_owner: Option<PrincipalId>,
}
