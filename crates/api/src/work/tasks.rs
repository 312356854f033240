//! Tasks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolgate_model::id::{GrantId, IntentId, LeaseId, PlanId, TaskId};
use toolgate_model::principal::PrincipalId;
use toolgate_model::text::{Label, Line, MultilineText};
use toolgate_model::time::Timestamp;
use toolgate_model::work::{TaskPriority, TaskStatus, ToolRequirement};

use super::describe_required_version;
use super::objects::{MissingTool, Offset, UndelegatedTool};
use crate::endpoint::{RequestBody, endpoints};
use crate::parameters::Limit;
use crate::reading::{Object, present};
use crate::reply::constants;

endpoints! {
    tag "tasks" = "Units of work of an intent, with the tools that each one needs.";

    /// Create a task
    ///
    /// Ready at once, unless it depends on others.
    CreateTask = POST "/api/v1/tasks" as "create_task" {
        body: TaskRequest,
        reply: CREATED Task = "The task.",
        errors: [NotFound, TooMany],
    }

    /// Show a task
    ShowTask = GET "/api/v1/tasks/{task_id}" as "show_task" {
        path: TaskId,
        reply: OK Task = "The task.",
    }

    /// Change a task
    ///
    /// Its assignee changes `status`, `output`, `error`, `blocked_reason` and `artifacts`; who coordinates the intent
    /// changes everything. `status: claimed` claims it. Assigning it delegates the grants that it needs, if a coordinator
    /// with `auto_delegate` assigns it. Absent members stay as they are.
    UpdateTask = PATCH "/api/v1/tasks/{task_id}" as "update_task" {
        path: TaskId,
        body: TaskChanges = {"status": "completed", "output": {"pages": 3}},
        reply: OK Task = "The task as it is now.",
        amend: describe_required_version,
    }

    /// Claim a task
    ///
    /// An agent that lacks a required tool is refused with `INSUFFICIENT_TOOL_ACCESS`, which names what
    /// is missing.
    ClaimTask = POST "/api/v1/tasks/{task_id}/claim" as "claim_task" {
        path: TaskId,
        body: ClaimRequest,
        reply: OK Task = "The task.",
    }

    /// Check whether an agent could claim a task
    CheckTask = POST "/api/v1/tasks/{task_id}/check" as "check_task" {
        path: TaskId,
        body: TaskCheckRequest,
        reply: OK TaskCheck = "What it meets and what is missing.",
    }

    /// List the tasks of an intent
    ///
    /// An array, as the Python client of OpenIntent reads it.
    ListTasks = GET "/api/v1/intents/{intent_id}/tasks" as "list_tasks" {
        path: IntentId,
        query: TaskQuery,
        reply: OK Vec<Task> = "The tasks, in the order of creation.",
    }
}

constants! {
    TaskPermissions = "inherit";
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskRequest {
    // A text that is not an id names no intent.
    #[schemars(with = "IntentId")]
    pub intent_id: String,
    pub name: Line,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<PlanId>")]
    pub plan_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<MultilineText>,
    /// Default: `normal`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<TaskPriority>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Map<String, Value>>,
    /// For the agents: the gate does not evaluate them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities_required: Vec<Label>,
    /// Tasks of the same intent that must end before it is ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<TaskId>")]
    pub depends_on: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<TaskId>")]
    pub parent_task_id: Option<String>,
    /// Assigns it, as a change would.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assigned_agent: Option<PrincipalId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requires_tools: Vec<Object<ToolRequirement>>,
    /// From its start; a task that takes longer fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 31_536_000))]
    pub timeout_seconds: Option<u64>,
    /// A task that is not completed by then fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// Default: 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub max_attempts: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permissions: Option<TaskPermissions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
}

impl RequestBody for TaskRequest {}

/// Absent members stay as they are; `null` removes an optional value.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskChanges {
    /// The current one changes nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<TaskStatus>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<PrincipalId>")]
    pub assigned_agent: Option<Option<PrincipalId>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<MultilineText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked_reason: Option<MultilineText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifacts: Option<Vec<Line>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Line>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<MultilineText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<TaskPriority>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Timestamp>")]
    pub deadline: Option<Option<Timestamp>>,
}

impl RequestBody for TaskChanges {}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskQuery {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<TaskStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assigned_agent: Option<PrincipalId>,
    /// A text that is not an id matches nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<Offset>,
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClaimRequest {
    /// The caller where absent; another principal needs `agents.act_as`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<PrincipalId>,
}

impl RequestBody for ClaimRequest {
    fn absent() -> Option<Self> {
        Some(Self::default())
    }
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskCheckRequest {
    /// The caller where absent. Another one that the task is not assigned to needs `agents.act_as`, `tools.manage` or
    /// `audit.read`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<PrincipalId>,
}

impl RequestBody for TaskCheckRequest {
    fn absent() -> Option<Self> {
        Some(Self::default())
    }
}

/// A unit of work.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Task {
    pub id: TaskId,
    pub intent_id: IntentId,
    pub plan_id: Option<PlanId>,
    pub name: String,
    pub description: Option<String>,
    /// For `If-Match`; every change of the task raises it.
    pub version: u64,
    pub status: TaskStatus,
    pub priority: TaskPriority,
    pub input: Map<String, Value>,
    pub output: Option<Map<String, Value>>,
    pub artifacts: Vec<String>,
    pub assigned_agent: Option<PrincipalId>,
    /// The lease that claims it.
    pub lease_id: Option<LeaseId>,
    pub capabilities_required: Vec<String>,
    pub depends_on: Vec<TaskId>,
    /// The tasks that depend on it.
    pub blocks: Vec<TaskId>,
    pub parent_task_id: Option<TaskId>,
    pub requires_tools: Vec<ToolRequirement>,
    /// Missing optional requirements: those that its agent does not meet. Only in the reply to a claim.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub optional_missing: Vec<MissingTool>,
    /// The grants that its assignment delegated. Only in the reply to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delegated_grants: Vec<GrantId>,
    /// What its assignment could not delegate. Only in the reply to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undelegated: Vec<UndelegatedTool>,
    /// The number of grants that ended with the change. Only in the reply to it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub revoked_grants: u64,
    pub timeout_seconds: Option<u64>,
    pub deadline: Option<Timestamp>,
    pub attempt: u32,
    pub max_attempts: u32,
    pub permissions: TaskPermissions,
    pub blocked_reason: Option<String>,
    pub error: Option<String>,
    pub metadata: Map<String, Value>,
    pub created_by: PrincipalId,
    pub created_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub completed_at: Option<Timestamp>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Whether an agent could claim a task.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct TaskCheck {
    pub task_id: TaskId,
    pub agent_id: PrincipalId,
    /// Whether no required tool is missing.
    pub allowed: bool,
    pub missing: Vec<MissingTool>,
    pub optional_missing: Vec<MissingTool>,
}
