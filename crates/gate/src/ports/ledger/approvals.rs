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
    /// Stores a pending approval. Refused where too many are pending already.
    async fn request_approval(&self, command: RequestApproval) -> Result<(), Refusal>;
    /// Counts a vote; returns the approval after it.
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
    /// Ends approvals that have expired or whose process has died, and deletes the arguments of those that ended long
    /// ago. Returns how many ended.
    async fn reap_approvals(&self, process: ProcessId, now: Timestamp) -> Result<u64, Refusal>;
    /// Stores the heartbeat of a process.
    async fn heartbeat(&self, command: Heartbeat) -> Result<(), Refusal>;
    /// Whether a live process has an approver for this tenant.
    async fn is_attended(&self, tenant: &TenantId, now: Timestamp) -> Result<bool, Refusal>;
}

/// Writes down that a person is asked. From then on it can be answered.
#[derive(Debug, Clone)]
pub struct RequestApproval {
    /// Who and when.
    pub audit: AuditContext,
    /// What is asked, as pending.
    pub approval: Approval,
    /// The process in which the call waits.
    pub process: ProcessId,
    /// The grants that the call may go through, in the order of preference; none for a tool that needs none. Calls that
    /// wait count against the rate of a grant, and one of these must have room for this one too.
    pub grants: Vec<GrantRates>,
    /// How many approvals of one agent may be open at a time.
    pub most_of_agent: u32,
    /// Where the call is detached: it waits from then on.
    pub parks: Option<ParkCall>,
}

/// A grant with how often it, and each that it was delegated from, may be used in an hour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantRates {
    /// The grant itself.
    pub grant: GrantId,
    /// The whole lineage.
    pub lineage: Vec<(GrantId, Option<u64>)>,
}

/// Counts somebody's word: compare-and-set, the first end wins.
#[derive(Debug, Clone)]
pub struct DecideApproval {
    /// Who and when, and by which right.
    pub audit: Mandate,
    /// Which.
    pub id: ApprovalId,
    /// What is said.
    pub vote: Vote,
    /// What covers later calls if this word approves it; its `id` and all but what depends on the approval is made
    /// beforehand.
    pub standing: Option<StandingApproval>,
    /// Why no standing approval was given, where one was requested.
    pub notice: Option<String>,
    /// The caller's name for this word: the same one again gets the same answer.
    pub idempotency_key: Option<IdempotencyKey>,
    /// SHA-256 of what was sent with that name.
    pub request_digest: String,
}

/// Ends an approval without an answer, if it still waits.
#[derive(Debug, Clone)]
pub struct EndApproval {
    /// Who and when.
    pub audit: AuditContext,
    /// Which.
    pub id: ApprovalId,
    /// How: timed out, cancelled or orphaned.
    pub status: ApprovalStatus,
    /// Why.
    pub reason: String,
}

/// Which approvals to list, newest first. What is absent does not filter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApprovalFilter {
    /// By how they stand.
    pub status: Option<ApprovalStatus>,
    /// By agent.
    pub agent: Option<PrincipalId>,
    /// By tool, with its service.
    pub tool: Option<String>,
    /// By the call that waits.
    pub invocation: Option<InvocationId>,
}

/// Shows that a process lives, and for whom it has somebody who can answer.
#[derive(Debug, Clone)]
pub struct Heartbeat {
    /// Which process.
    pub process: ProcessId,
    /// When.
    pub time: Timestamp,
    /// The tenants that have an approver connected to it.
    pub attended: Vec<TenantId>,
}

/// What an admission takes of the approvals that it rests on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Consent {
    /// The answer to this very call.
    pub approval: Option<ApprovalId>,
    /// The standing approvals that cover it, all of them needed.
    pub standing: Vec<StandingApprovalId>,
    /// What was answered, where the tool is a question.
    pub answer: Option<String>,
}

impl Consent {
    /// Whether nothing was needed.
    pub fn is_empty(&self) -> bool {
        self.approval.is_none() && self.standing.is_empty()
    }
}
