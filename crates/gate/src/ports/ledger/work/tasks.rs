//! Tasks: creation, claims, changes, and what comes with them: requirements are matched, access is delegated, and what
//! was delegated for a task ends with it.

use async_trait::async_trait;
use serde_json::{Map, Value};
use toolgate_model::grant::Grant;
use toolgate_model::id::{IntentId, PlanId, TaskId};
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::time::Timestamp;
use toolgate_model::work::{MissingAccess, RequirementReport, Task, TaskPriority, TaskStatus};

use super::Viewer;
use crate::ports::ledger::{Mandate, Page, PageRequest};
use crate::refusal::Refusal;

#[async_trait]
pub trait Tasks: Send + Sync {
    /// Creates tasks of one intent, all or none. They may depend on each other.
    async fn create_tasks(&self, command: CreateTask) -> Result<Vec<TaskChanged>, Refusal>;
    async fn task(&self, tenant: &TenantId, id: TaskId, viewer: &Viewer) -> Result<Option<Task>, Refusal>;
    /// Returns the tasks of an intent, oldest first; `None` if the viewer does not see the intent.
    async fn tasks(
        &self,
        tenant: &TenantId,
        intent: IntentId,
        viewer: &Viewer,
        filter: TaskFilter,
        page: PageRequest,
    ) -> Result<Option<Page<Task>>, Refusal>;
    /// Changes a task, with everything that follows from it in the same transaction.
    async fn change_task(&self, command: ChangeTask) -> Result<TaskChanged, Refusal>;
    /// Claims a task that is ready: refused with `INSUFFICIENT_TOOL_ACCESS` if the agent does not meet what it requires.
    async fn claim_task(&self, command: ClaimTask) -> Result<TaskChanged, Refusal>;
    /// Returns which requirements of a task an agent meets now; `None` if the viewer does not see the task.
    async fn check_task(&self, query: CheckTask) -> Result<Option<RequirementReport>, Refusal>;
    /// Fails running tasks that are overdue, gives back claimed tasks whose lease expired, ends expired leases and
    /// coordinators, and records missed heartbeats. Returns the number of changes.
    async fn sweep_work(&self, now: Timestamp) -> Result<u64, Refusal>;
}

#[derive(Debug, Clone, PartialEq)]
pub struct CreateTask {
    pub audit: Mandate,
    pub intent: IntentId,
    /// Their status, `blocks` and `due` are set by the ledger.
    pub tasks: Vec<Task>,
}

/// Filters tasks. An absent member does not filter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskFilter {
    pub status: Option<TaskStatus>,
    pub plan: Option<PlanId>,
    pub assigned_agent: Option<PrincipalId>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ChangeTask {
    pub audit: Mandate,
    pub id: TaskId,
    /// Any other present version is a conflict.
    pub expected_version: u64,
    pub changes: TaskChanges,
}

/// Changes of a task. An absent member stays as it is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TaskChanges {
    /// The present status is no transition. `claimed` claims it for `assigned_agent`, or for the caller.
    pub status: Option<TaskStatus>,
    /// `Some(None)` takes the assignment back.
    pub assigned_agent: Option<Option<PrincipalId>>,
    pub output: Option<Map<String, Value>>,
    pub artifacts: Option<Vec<String>>,
    pub error: Option<String>,
    pub blocked_reason: Option<String>,
    pub name: Option<String>,
    pub description: Option<String>,
    pub priority: Option<TaskPriority>,
    pub metadata: Option<Map<String, Value>>,
    pub deadline: Option<Option<Timestamp>>,
}

impl TaskChanges {
    /// Whether only the agent's own report on its work changes.
    pub fn is_report(&self) -> bool {
        let Self { assigned_agent, name, description, priority, metadata, deadline, .. } = self;
        assigned_agent.is_none()
            && name.is_none()
            && description.is_none()
            && priority.is_none()
            && metadata.is_none()
            && deadline.is_none()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimTask {
    pub audit: Mandate,
    pub id: TaskId,
    /// The caller, or an agent that it may act for.
    pub agent: PrincipalId,
    pub expected_version: Option<u64>,
}

/// A task after a change.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskChanged {
    pub task: Task,
    /// Requirements that the agent does not meet and that are not required.
    pub optional_missing: Vec<MissingAccess>,
    /// The grants that were delegated for the task by an assignment.
    pub delegated: Vec<Grant>,
    /// What the coordinator could not delegate.
    pub undelegated: Vec<Undelegated>,
    /// The number of grants that ended with the assignment.
    pub revoked_grants: u64,
}

/// A requirement that an assignment could not provide.
#[derive(Debug, Clone, PartialEq)]
pub struct Undelegated {
    pub missing: MissingAccess,
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckTask {
    pub tenant: TenantId,
    pub viewer: Viewer,
    pub id: TaskId,
    pub agent: PrincipalId,
    pub now: Timestamp,
}
