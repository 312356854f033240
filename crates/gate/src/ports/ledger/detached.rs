//! Commands on detached calls: calls that wait in the ledger instead of on a connection.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use toolgate_model::id::{ApprovalId, InvocationId, KeyId, ProcessId};
use toolgate_model::invocation::IdempotencyKey;
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::time::Timestamp;

use super::{AuditContext, Page, PageRequest, SealedVersion};
use crate::ports::sealer::SealedMaterial;
use crate::refusal::Refusal;

/// Detached calls.
#[async_trait]
pub trait DetachedCalls: Send + Sync {
    /// Stores a call, claimed by the process that accepts it. Refused where the agent has too many already.
    async fn detach_call(&self, command: DetachCall) -> Result<Detached, Refusal>;
    /// Claims calls that are ready to run and that no live process has claimed, oldest first.
    async fn claim_detached(&self, command: ClaimDetached) -> Result<Vec<ClaimedCall>, Refusal>;
    /// Whether the approval of a detached call is open although its time is over: nothing waits with a timer for it.
    async fn has_overdue_detached(&self, now: Timestamp) -> Result<bool, Refusal>;
    /// Gives up a claim, so that the call is run again, here or elsewhere.
    async fn release_detached(&self, tenant: &TenantId, id: InvocationId, process: ProcessId) -> Result<(), Refusal>;
    /// One call, with its outcome where that is kept.
    async fn detached_call(&self, tenant: &TenantId, id: InvocationId) -> Result<Option<StoredCall>, Refusal>;
    /// The calls of an agent, or of everybody, newest first.
    async fn detached_calls(
        &self,
        tenant: &TenantId,
        agent: Option<&PrincipalId>,
        page: PageRequest,
    ) -> Result<Page<DetachedCall>, Refusal>;
    /// Which of these calls are in which state: one question for everybody who follows calls in a process.
    async fn detached_states(&self, calls: &[InvocationId]) -> Result<Vec<(InvocationId, DetachedState)>, Refusal>;
    /// Marks a call as cancelled. It is ended by whoever runs it next; one that was admitted is not touched.
    async fn cancel_detached(&self, tenant: &TenantId, id: InvocationId) -> Result<Option<DetachedCall>, Refusal>;
    /// Stores the outcome of a call that was neither settled nor refused by this run.
    async fn finish_detached(
        &self,
        tenant: &TenantId,
        id: InvocationId,
        command: FinishDetached,
    ) -> Result<(), Refusal>;
    /// Forgets the outcome of a call that has ended; false where there is none.
    async fn forget_outcome(&self, tenant: &TenantId, id: InvocationId) -> Result<bool, Refusal>;
    /// Ends calls whose process died after their admission, and deletes those whose outcome was kept long enough.
    async fn sweep_detached(&self, now: Timestamp, kept_until: Timestamp) -> Result<u64, Refusal>;
}

/// Stores a call that is to outlive its connection.
#[derive(Clone)]
pub struct DetachCall {
    /// Who calls, and when.
    pub audit: AuditContext,
    /// The call, as ready.
    pub call: DetachedCall,
    /// What the caller sent.
    pub sealed: SealedMaterial,
    /// SHA-256 of the canonical parameters, for the log.
    pub arguments_hash: String,
    /// SHA-256 of the canonical request, under the caller's key for it.
    pub request_digest: Option<String>,
    /// The process that runs it first.
    pub process: ProcessId,
    /// How much of one agent is stored.
    pub limits: DetachedLimits,
}

/// How much is stored for one agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DetachedLimits {
    /// Calls, waiting ones and those whose outcome is kept.
    pub calls: u32,
    /// Bytes of their requests and outcomes, sealed.
    pub bytes: u64,
}

/// What became of a call that was to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Detached {
    /// It is stored.
    Accepted,
    /// The same call was stored before, under the same idempotency key.
    Known(InvocationId),
}

/// A detached call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DetachedCall {
    /// Its id, which is that of its invocation.
    pub id: InvocationId,
    /// The tenant.
    pub tenant: TenantId,
    /// For whom it is made.
    pub agent: PrincipalId,
    /// Who made it.
    pub actor: PrincipalId,
    /// The key that was shown.
    pub key: KeyId,
    /// The tool, as the caller names it.
    pub tool: String,
    /// The caller's name for it.
    pub idempotency_key: Option<IdempotencyKey>,
    /// How far it has come.
    pub state: DetachedState,
    /// The approvals that were asked for so far, in order.
    pub asked: Vec<AskedApproval>,
    /// Whether the caller has taken it back.
    pub cancelled: bool,
    /// How often it was begun without coming to an end.
    pub attempts: u32,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
}

/// How far a detached call has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DetachedState {
    /// To be run, or being checked.
    Ready,
    /// Waits for an approval.
    Waiting,
    /// Admitted, and in flight.
    Running,
    /// Over.
    Finished,
}

impl DetachedState {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Ready, Self::Waiting, Self::Running, Self::Finished];

    /// As it is stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Finished => "finished",
        }
    }

    /// Reads [`DetachedState::as_str`] back.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

/// An approval that a detached call asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedApproval {
    /// Which.
    pub approval: ApprovalId,
    /// Whether it is about the preferred action of the call.
    pub first: bool,
}

/// Claims calls for a process.
#[derive(Debug, Clone)]
pub struct ClaimDetached {
    /// Which process.
    pub process: ProcessId,
    /// Now.
    pub now: Timestamp,
    /// How many at most.
    pub limit: u32,
    /// What the process runs already.
    pub running: Vec<InvocationId>,
}

/// A call that is to be run, with what its caller sent.
#[derive(Clone)]
pub struct ClaimedCall {
    /// The call.
    pub call: DetachedCall,
    /// What the caller sent.
    pub request: SealedVersion,
}

/// A call as it is stored.
#[derive(Clone)]
pub struct StoredCall {
    /// The call.
    pub call: DetachedCall,
    /// What the caller gets; `None` while it has not ended, and where it is not kept.
    pub outcome: Option<SealedVersion>,
}

/// The end of a detached call, written together with its settlement or its refusal.
#[derive(Clone)]
pub struct FinishDetached {
    /// The process that has claimed it.
    pub process: ProcessId,
    /// What the caller gets; `None` where it could not be sealed.
    pub sealed: Option<SealedMaterial>,
    /// When.
    pub time: Timestamp,
}

impl std::fmt::Debug for FinishDetached {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("FinishDetached").field("process", &self.process).finish_non_exhaustive()
    }
}

/// A detached call that begins to wait, written together with the approval that it waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParkCall {
    /// The process that has claimed it.
    pub process: ProcessId,
    /// The approvals that were asked for before, in order.
    pub asked: Vec<AskedApproval>,
    /// Whether the new one is about the preferred action of the call.
    pub first: bool,
}
