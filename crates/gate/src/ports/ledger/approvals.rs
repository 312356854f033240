//! Approvals.

use async_trait::async_trait;
use toolgate_model::approval::{Approval, ApprovalStatus, StandingApproval, Vote};
use toolgate_model::id::{ApprovalId, GrantId, InvocationId, ProcessId, StandingApprovalId};
use toolgate_model::invocation::IdempotencyKey;
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::time::Timestamp;

use super::{AuditContext, Mandate, Page, PageRequest, ParkCall};
use crate::refusal::Refusal;

/// Approvals, and the processes in which calls wait for them.
#[async_trait]
pub trait Approvals: Send + Sync {
    /// Stores a pending approval. Refused if too many are already pending.
    async fn request_approval(&self, command: RequestApproval) -> Result<(), Refusal>;
    /// Records a vote and returns the approval after it.
    async fn decide_approval(&self, command: DecideApproval) -> Result<Approval, Refusal>;
    /// Ends an approval if it is pending; returns it after that.
    async fn end_approval(&self, command: EndApproval) -> Result<Approval, Refusal>;
    async fn approval(&self, tenant: &TenantId, id: ApprovalId) -> Result<Option<Approval>, Refusal>;
    /// Returns approvals, newest first.
    async fn approvals(
        &self,
        tenant: &TenantId,
        filter: ApprovalFilter,
        page: PageRequest,
    ) -> Result<Page<Approval>, Refusal>;
    /// Returns the approvals that calls of this process waited for and that ended, each once.
    async fn collect_approvals(&self, process: ProcessId) -> Result<Vec<Approval>, Refusal>;
    /// Whether other processes may end approvals that this one waits for.
    fn shares_approvals(&self) -> bool;
    /// Ends approvals that have expired or whose process has stopped, and deletes the arguments of those that ended
    /// long ago. Returns how many ended.
    async fn reap_approvals(&self, process: ProcessId, now: Timestamp) -> Result<u64, Refusal>;
    /// Stores the heartbeat of a process.
    async fn heartbeat(&self, command: Heartbeat) -> Result<(), Refusal>;
    /// Whether a live process has an approver for this tenant.
    async fn is_attended(&self, tenant: &TenantId, now: Timestamp) -> Result<bool, Refusal>;
}

/// Stores a pending approval. From then on it can be decided.
#[derive(Debug, Clone)]
pub struct RequestApproval {
    pub audit: AuditContext,
    pub approval: Approval,
    pub process: ProcessId,
    /// The grants that the call may use, in order of preference; empty for a tool that needs none. Waiting calls count
    /// against the rate of a grant, and one of these grants must have capacity for this call too.
    pub grants: Vec<GrantRates>,
    /// The maximum number of open approvals per agent.
    pub most_of_agent: u32,
    /// Set if the call is detached: it waits from then on.
    pub parks: Option<ParkCall>,
}

/// A grant with its hourly limit and those of all grants that it was delegated from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantRates {
    pub grant: GrantId,
    /// The whole lineage.
    pub lineage: Vec<(GrantId, Option<u64>)>,
}

/// Records a vote: compare-and-set, the first end wins.
#[derive(Debug, Clone)]
pub struct DecideApproval {
    pub audit: Mandate,
    pub id: ApprovalId,
    pub vote: Vote,
    /// The standing approval to create if this vote approves; complete except for what depends on the approval.
    pub standing: Option<StandingApproval>,
    /// Why no standing approval was created although one was requested.
    pub notice: Option<String>,
    /// A repeated request with the same key gets the same result.
    pub idempotency_key: Option<IdempotencyKey>,
    /// SHA-256 of the request with that key.
    pub request_digest: String,
}

/// Ends an approval without a decision, if it is still pending.
#[derive(Debug, Clone)]
pub struct EndApproval {
    pub audit: AuditContext,
    pub id: ApprovalId,
    /// Timed out, cancelled or orphaned.
    pub status: ApprovalStatus,
    pub reason: String,
}

/// Filters approvals. An absent member does not filter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApprovalFilter {
    pub status: Option<ApprovalStatus>,
    pub agent: Option<PrincipalId>,
    /// With its service.
    pub tool: Option<String>,
    /// The waiting call.
    pub invocation: Option<InvocationId>,
}

/// Shows that a process is alive, and which tenants have an approver connected to it.
#[derive(Debug, Clone)]
pub struct Heartbeat {
    pub process: ProcessId,
    pub time: Timestamp,
    pub attended: Vec<TenantId>,
}

/// The approvals that an admission is based on and consumes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Consent {
    /// The decision on this very call.
    pub approval: Option<ApprovalId>,
    /// The standing approvals that cover it, all of them needed.
    pub standing: Vec<StandingApprovalId>,
    /// The answer, if the tool is a question.
    pub answer: Option<String>,
}

impl Consent {
    /// Whether no approval was needed.
    pub fn is_empty(&self) -> bool {
        self.approval.is_none() && self.standing.is_empty()
    }
}
