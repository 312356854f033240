//! Tasks: bounded units of work with what they require.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::requirement::ToolRequirement;
use super::task_status::TaskStatus;
use super::text_choice::choices;
use crate::context::{ContextId, GrantContext};
use crate::id::{IntentId, LeaseId, PlanId, TaskId};
use crate::principal::{PrincipalId, TenantId};
use crate::time::Timestamp;

choices! {
    TaskPriority {
        Low = "low",
        Normal = "normal",
        High = "high",
        Critical = "critical",
    }
}

/// The parts of a task that no rule of the gate depends on, except its requirements, which never change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskDetails {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub priority: TaskPriority,
    #[serde(default)]
    pub input: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Map<String, Value>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities_required: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requires_tools: Vec<ToolRequirement>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_task_id: Option<TaskId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

impl TaskDetails {
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: None,
            priority: TaskPriority::Normal,
            input: Map::new(),
            output: None,
            artifacts: Vec::new(),
            capabilities_required: Vec::new(),
            requires_tools: Vec::new(),
            parent_task_id: None,
            blocked_reason: None,
            error: None,
            metadata: Map::new(),
        }
    }
}

/// A task. Its intent, requirements, dependencies and limits never change.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    pub id: TaskId,
    pub tenant: TenantId,
    pub intent: IntentId,
    pub plan: Option<PlanId>,
    pub version: u64,
    pub status: TaskStatus,
    pub assigned_agent: Option<PrincipalId>,
    /// The lease under which it was claimed.
    pub lease: Option<LeaseId>,
    pub depends_on: Vec<TaskId>,
    /// The tasks that depend on it.
    pub blocks: Vec<TaskId>,
    pub attempt: u32,
    pub max_attempts: u32,
    /// How long it may run.
    pub timeout_seconds: Option<u64>,
    /// When it must have ended.
    pub deadline: Option<Timestamp>,
    pub details: TaskDetails,
    pub created_by: PrincipalId,
    pub created_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub completed_at: Option<Timestamp>,
    /// When the agent that has it loses it: the end of its lease, its timeout or its deadline, whichever is first.
    pub due: Option<Timestamp>,
}

impl Task {
    /// The context that grants are bound to and calls are made in while an agent works on it.
    pub fn context(&self) -> GrantContext {
        GrantContext {
            intent_id: ContextId::parse(&self.intent.to_string()).ok(),
            plan_id: self.plan.and_then(|plan| ContextId::parse(&plan.to_string()).ok()),
            task_id: ContextId::parse(&self.id.to_string()).ok(),
        }
    }

    /// When an agent that has it now loses it, with the end of its lease.
    pub fn due_with(&self, lease_end: Option<Timestamp>) -> Option<Timestamp> {
        if !self.status.is_taken() {
            return None;
        }
        let timeout = self.timeout_seconds.zip(self.started_at);
        let timeout = timeout.map(|(seconds, started)| started.plus(std::time::Duration::from_secs(seconds)));
        [lease_end, timeout, self.deadline].into_iter().flatten().min()
    }

    /// Whether its deadline or its timeout is past.
    pub fn is_overdue(&self, now: Timestamp) -> bool {
        self.due_with(None).is_some_and(|due| due <= now)
    }
}
