//! Events of an intent as its agents read them: only types that the official client knows, because it cannot read a list
//! with any other.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::text_choice::choices;
use crate::id::{CoordinatorId, CostId, EventId, GrantId, IntentId, LeaseId, PlanId, TaskId};
use crate::principal::{PrincipalId, TenantId};
use crate::time::Timestamp;

choices! {
    IntentEventKind {
        IntentCreated = "intent_created",
        StatePatched = "state_patched",
        StatusChanged = "status_changed",
        AgentAssigned = "agent_assigned",
        AgentUnassigned = "agent_unassigned",
        ConstraintAdded = "constraint_added",
        ConstraintRemoved = "constraint_removed",
        DependencyAdded = "dependency_added",
        DependencyRemoved = "dependency_removed",
        LeaseAcquired = "lease_acquired",
        LeaseReleased = "lease_released",
        ArbitrationRequested = "arbitration_requested",
        DecisionRecorded = "decision_recorded",
        AttachmentAdded = "attachment_added",
        FailureRecorded = "failure_recorded",
        Comment = "comment",
        ToolCallStarted = "tool_call_started",
        ToolCallCompleted = "tool_call_completed",
        ToolCallFailed = "tool_call_failed",
        LlmRequestStarted = "llm_request_started",
        LlmRequestCompleted = "llm_request_completed",
        LlmRequestFailed = "llm_request_failed",
        StreamStarted = "stream_started",
        StreamChunk = "stream_chunk",
        StreamCompleted = "stream_completed",
        StreamCancelled = "stream_cancelled",
        TaskCreated = "task.created",
        TaskReady = "task.ready",
        TaskClaimed = "task.claimed",
        TaskStarted = "task.started",
        TaskProgress = "task.progress",
        TaskCompleted = "task.completed",
        TaskFailed = "task.failed",
        TaskRetrying = "task.retrying",
        TaskBlocked = "task.blocked",
        TaskUnblocked = "task.unblocked",
        TaskDelegated = "task.delegated",
        TaskEscalated = "task.escalated",
        TaskCancelled = "task.cancelled",
        TaskSkipped = "task.skipped",
        PlanCreated = "plan.created",
        PlanActivated = "plan.activated",
        PlanPaused = "plan.paused",
        PlanResumed = "plan.resumed",
        PlanCompleted = "plan.completed",
        PlanFailed = "plan.failed",
        CoordinatorDecision = "coordinator.decision",
        CoordinatorHeartbeat = "coordinator.heartbeat",
        CoordinatorPaused = "coordinator.paused",
        CoordinatorResumed = "coordinator.resumed",
        CoordinatorReplaced = "coordinator.replaced",
        CoordinatorUnresponsive = "coordinator.unresponsive",
        CoordinatorFailedOver = "coordinator.failed_over",
        CoordinatorHandoff = "coordinator.handoff",
        CoordinatorGuardrailsUpdated = "coordinator.guardrails_updated",
        /// From here on as in the audit log, which alone has them.
        ToolInvoked = "tool.invoked",
        ToolDenied = "tool.denied",
        GrantCreated = "grant.created",
        GrantDelegated = "grant.delegated",
        GrantRevoked = "grant.revoked",
        GrantExpired = "grant.expired",
        GrantSuspended = "grant.suspended",
        GrantResumed = "grant.resumed",
    }
}

impl IntentEventKind {
    /// Whether callers may log it. The others state what the gate did, so only the gate writes them.
    pub fn may_be_logged(self) -> bool {
        matches!(
            self,
            Self::ConstraintAdded
                | Self::ConstraintRemoved
                | Self::ArbitrationRequested
                | Self::DecisionRecorded
                | Self::AttachmentAdded
                | Self::FailureRecorded
                | Self::Comment
                | Self::ToolCallStarted
                | Self::ToolCallCompleted
                | Self::ToolCallFailed
                | Self::LlmRequestStarted
                | Self::LlmRequestCompleted
                | Self::LlmRequestFailed
                | Self::StreamStarted
                | Self::StreamChunk
                | Self::StreamCompleted
                | Self::StreamCancelled
                | Self::TaskProgress
                | Self::TaskEscalated
                | Self::CoordinatorDecision
                | Self::CoordinatorHandoff
        )
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct IntentEvent {
    pub id: EventId,
    pub tenant: TenantId,
    pub intent: IntentId,
    pub kind: IntentEventKind,
    pub actor: PrincipalId,
    pub payload: Map<String, Value>,
    pub created_at: Timestamp,
}

/// The payload of the events that the gate writes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct IntentEventDetails {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<PrincipalId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coordinator_id: Option<CoordinatorId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_id: Option<CostId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grant_ids: Vec<GrantId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_id: Option<LeaseId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_id: Option<PlanId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
}
