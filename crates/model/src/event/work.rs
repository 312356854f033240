//! Coordinated work: intents, plans, tasks, leases, coordinators and recorded costs.

use serde::{Deserialize, Serialize};

use crate::id::{CoordinatorId, CostId, IntentId, LeaseId, PlanId, TaskId};
use crate::principal::PrincipalId;
use crate::time::Timestamp;
use crate::work::{CoordinatorStatus, Guardrails, IntentStatus, LeaseStatus, PlanState, TaskStatus};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkAgentAssigned {
    pub agent_id: PrincipalId,
    pub intent_id: IntentId,
    pub role: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkAgentUnassigned {
    pub agent_id: PrincipalId,
    pub intent_id: IntentId,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkCoordinatorChanged {
    /// The changed members, in order.
    pub changed: Vec<String>,
    pub coordinator_id: CoordinatorId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guardrails: Option<Guardrails>,
    pub intent_id: IntentId,
    pub status: CoordinatorStatus,
    pub version: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkCoordinatorCreated {
    pub agent_id: PrincipalId,
    pub coordinator_id: CoordinatorId,
    pub guardrails: Guardrails,
    pub intent_id: IntentId,
    pub supervisor_id: PrincipalId,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkCostRecorded {
    /// In millionths of the unit.
    pub amount_micros: u64,
    pub cost_id: CostId,
    pub cost_type: String,
    pub intent_id: IntentId,
    pub unit: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkIntentChanged {
    pub intent_id: IntentId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// `None` if its state changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<IntentStatus>,
    pub version: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkIntentCreated {
    pub created_by: PrincipalId,
    pub intent_id: IntentId,
    pub status: IntentStatus,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkLeaseAcquired {
    pub agent_id: PrincipalId,
    pub expires_at: Timestamp,
    pub intent_id: IntentId,
    pub lease_id: LeaseId,
    pub scope: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkLeaseEnded {
    pub intent_id: IntentId,
    pub lease_id: LeaseId,
    pub scope: String,
    pub status: LeaseStatus,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkPlanChanged {
    pub intent_id: IntentId,
    pub plan_id: PlanId,
    pub state: PlanState,
    pub tasks: u64,
    pub version: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkPlanCreated {
    pub intent_id: IntentId,
    pub plan_id: PlanId,
    pub tasks: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkTaskAssigned {
    /// `None` if nobody has it any more.
    pub agent_id: Option<PrincipalId>,
    /// The number of grants delegated for it.
    pub delegated: u64,
    pub previous_agent_id: Option<PrincipalId>,
    /// The number of grants that ended.
    pub revoked_grants: u64,
    pub task_id: TaskId,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkTaskChanged {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<PrincipalId>,
    pub attempt: u32,
    /// The same as `to` if only other members changed.
    pub from: TaskStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The number of grants that ended.
    pub revoked_grants: u64,
    pub task_id: TaskId,
    pub to: TaskStatus,
    pub version: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkTaskCreated {
    pub intent_id: IntentId,
    pub plan_id: Option<PlanId>,
    pub status: TaskStatus,
    pub task_id: TaskId,
}
