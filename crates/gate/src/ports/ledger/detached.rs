//! Detached calls: calls that wait in the ledger instead of on a connection.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use toolgate_model::id::{ApprovalId, InvocationId, KeyId, ProcessId};
use toolgate_model::invocation::IdempotencyKey;
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::time::Timestamp;

use super::{AuditContext, Page, PageRequest, SealedVersion};
use crate::ports::sealer::SealedMaterial;
use crate::refusal::Refusal;

#[async_trait]
pub trait DetachedCalls: Send + Sync {
    /// Stores a call, claimed by the process that accepts it. Refused if the agent already has too many.
    async fn detach_call(&self, command: DetachCall) -> Result<Detached, Refusal>;
    /// Claims calls that are ready to run and that no live process has claimed, oldest first.
    async fn claim_detached(&self, command: ClaimDetached) -> Result<Vec<ClaimedCall>, Refusal>;
    /// Whether the approval of a detached call is open although it has expired: no timer waits for it.
    async fn has_overdue_detached(&self, now: Timestamp) -> Result<bool, Refusal>;
    /// Releases a claim, so that the call is run again, here or elsewhere.
    async fn release_detached(&self, tenant: &TenantId, id: InvocationId, process: ProcessId) -> Result<(), Refusal>;
    /// Returns a call, with its outcome if that is stored.
    async fn detached_call(&self, tenant: &TenantId, id: InvocationId) -> Result<Option<StoredCall>, Refusal>;
    /// The calls of an agent, or of all agents, newest first.
    async fn detached_calls(
        &self,
        tenant: &TenantId,
        agent: Option<&PrincipalId>,
        page: PageRequest,
    ) -> Result<Page<DetachedCall>, Refusal>;
    /// The states of these calls: one query for all followers in a process.
    async fn detached_states(&self, calls: &[InvocationId]) -> Result<Vec<(InvocationId, DetachedState)>, Refusal>;
    /// Marks a call as cancelled. The next run ends it; an admitted call is not affected.
    async fn cancel_detached(&self, tenant: &TenantId, id: InvocationId) -> Result<Option<DetachedCall>, Refusal>;
    /// Stores the outcome of a call that was neither settled nor refused by this run.
    async fn finish_detached(
        &self,
        tenant: &TenantId,
        id: InvocationId,
        command: FinishDetached,
    ) -> Result<(), Refusal>;
    /// Deletes the outcome of an ended call; false if there is none.
    async fn forget_outcome(&self, tenant: &TenantId, id: InvocationId) -> Result<bool, Refusal>;
    /// Notes that the caller has the outcome of an ended call: it is kept until another call needs its place.
    async fn note_fetched(&self, tenant: &TenantId, id: InvocationId) -> Result<(), Refusal>;
    /// Ends calls whose process stopped after their admission, and deletes expired ones.
    async fn sweep_detached(&self, now: Timestamp, kept_until: Timestamp) -> Result<u64, Refusal>;
}

#[derive(Clone)]
pub struct DetachCall {
    pub audit: AuditContext,
    /// The call, as ready.
    pub call: DetachedCall,
    /// The caller's request.
    pub sealed: SealedMaterial,
    /// SHA-256 of the canonical parameters, for the log.
    pub arguments_hash: String,
    /// SHA-256 of the canonical request, for the idempotency key.
    pub request_digest: Option<String>,
    /// What the idempotency keys of this and all repetitions of it begin with: if one of them is stored, that is the call.
    pub repeats: Option<String>,
    /// The process that runs it first.
    pub process: ProcessId,
    pub limits: DetachedLimits,
}

/// The storage limits of one agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DetachedLimits {
    /// Waiting calls and those whose outcome is stored.
    pub calls: u32,
    /// Bytes of their sealed requests and outcomes.
    pub bytes: u64,
}

/// The outcome of storing a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Detached {
    Accepted,
    /// The same call was stored before, under the same idempotency key or as one that this repeats.
    Known(InvocationId),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DetachedCall {
    /// The id of its invocation.
    pub id: InvocationId,
    pub tenant: TenantId,
    pub agent: PrincipalId,
    pub actor: PrincipalId,
    /// The key that was presented.
    pub key: KeyId,
    /// As the caller names it.
    pub tool: String,
    pub idempotency_key: Option<IdempotencyKey>,
    pub state: DetachedState,
    /// The approvals requested so far, in order.
    pub asked: Vec<AskedApproval>,
    /// Whether the caller has cancelled it.
    pub cancelled: bool,
    /// How often it was started without ending.
    pub attempts: u32,
    pub created_at: Timestamp,
    pub finished_at: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DetachedState {
    /// To be run, or in the stages before the admission.
    Ready,
    /// Waits for an approval.
    Waiting,
    /// Admitted, and in flight.
    Running,
    Finished,
}

impl DetachedState {
    pub const ALL: [Self; 4] = [Self::Ready, Self::Waiting, Self::Running, Self::Finished];

    /// The stored form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Finished => "finished",
        }
    }

    /// Parses [`DetachedState::as_str`].
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

/// An approval that a detached call requested.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedApproval {
    pub approval: ApprovalId,
    /// Whether it is about the preferred action of the call.
    pub first: bool,
}

#[derive(Debug, Clone)]
pub struct ClaimDetached {
    pub process: ProcessId,
    pub now: Timestamp,
    pub limit: u32,
    /// The calls that the process already runs.
    pub running: Vec<InvocationId>,
}

/// A call to run, with the caller's request.
#[derive(Clone)]
pub struct ClaimedCall {
    pub call: DetachedCall,
    /// The caller's request.
    pub request: SealedVersion,
}

#[derive(Clone)]
pub struct StoredCall {
    pub call: DetachedCall,
    /// `None` while it has not ended, and if it is not stored.
    pub outcome: Option<SealedVersion>,
}

/// The end of a detached call, written together with its settlement or refusal.
#[derive(Clone)]
pub struct FinishDetached {
    /// The process that has claimed it.
    pub process: ProcessId,
    /// The outcome for the caller; `None` if it could not be sealed.
    pub sealed: Option<SealedMaterial>,
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
    /// The approvals requested before, in order.
    pub asked: Vec<AskedApproval>,
    /// Whether the new one is about the preferred action of the call.
    pub first: bool,
}
