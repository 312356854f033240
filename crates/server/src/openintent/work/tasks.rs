//! Tasks.

use toolgate_api::reading::Object;
use toolgate_api::work::tasks::{
    CheckTask, ClaimTask, CreateTask, ListTasks, ShowTask, Task, TaskCheck, TaskPermissions, TaskRequest, UpdateTask,
};
use toolgate_gate::authority::work::NewTask;
use toolgate_gate::ports::ledger::{TaskChanged, TaskChanges, TaskFilter};
use toolgate_gate::refusal::Refusal;
use toolgate_model::id::PlanId;
use toolgate_model::work::{self, TaskDetails, TaskPriority};

use super::{Window, ids, missing, required_version, undelegated};
use crate::mount::TypedRequest;
use crate::openintent::error::Denied;
use crate::parameters::id;

/// As the Python client of OpenIntent has it.
const USUAL_ATTEMPTS: u32 = 3;

pub(super) async fn create(request: TypedRequest<CreateTask>) -> Result<Task, Denied> {
    let TypedRequest { app, caller, body, .. } = request;
    let intent = id(&body.intent_id)?;
    let new = new_task(body)?;
    Ok(changed(app.gate.work.create_task(&caller, intent, new).await?))
}

pub(super) async fn show(request: TypedRequest<ShowTask>) -> Result<Task, Denied> {
    let TypedRequest { app, caller, path, .. } = request;
    Ok(shown(app.gate.work.task(&caller, path).await?))
}

pub(super) async fn update(request: TypedRequest<UpdateTask>) -> Result<Task, Denied> {
    let TypedRequest { app, caller, path, body, headers, .. } = request;
    let version = required_version(&headers)?;
    let changes = TaskChanges {
        status: body.status,
        assigned_agent: body.assigned_agent,
        output: body.output,
        artifacts: body.artifacts.map(|artifacts| artifacts.iter().map(|line| line.as_str().to_owned()).collect()),
        error: body.error.map(String::from),
        blocked_reason: body.blocked_reason.map(String::from),
        name: body.name.map(|name| name.as_str().to_owned()),
        description: body.description.map(String::from),
        priority: body.priority,
        metadata: body.metadata,
        deadline: body.deadline,
    };
    Ok(changed(app.gate.work.change_task(&caller, path, version, changes).await?))
}

pub(super) async fn claim(request: TypedRequest<ClaimTask>) -> Result<Task, Denied> {
    let TypedRequest { app, caller, path, body, .. } = request;
    Ok(changed(app.gate.work.claim_task(&caller, path, body.agent_id, None).await?))
}

pub(super) async fn check(request: TypedRequest<CheckTask>) -> Result<TaskCheck, Denied> {
    let TypedRequest { app, caller, path, body, .. } = request;
    let agent_id = body.agent_id.clone().unwrap_or_else(|| caller.id().clone());
    let report = app.gate.work.check_task(&caller, path, body.agent_id).await?;
    Ok(TaskCheck {
        task_id: path,
        agent_id,
        allowed: report.is_sufficient(),
        missing: missing(report.missing),
        optional_missing: missing(report.optional_missing),
    })
}

pub(super) async fn list(request: TypedRequest<ListTasks>) -> Result<Vec<Task>, Denied> {
    let TypedRequest { app, caller, path, query, .. } = request;
    let window = Window::new(query.limit, None, query.offset)?;
    // A text that is not an id matches no task.
    let Ok(plan) = query.plan_id.as_deref().map(PlanId::parse).transpose() else { return Ok(Vec::new()) };
    let filter = TaskFilter { status: query.status, plan, assigned_agent: query.assigned_agent };
    let found = window.read(|page| app.gate.work.tasks(&caller, path, filter.clone(), page)).await?;
    Ok(found.items.into_iter().map(shown).collect())
}

fn new_task(body: TaskRequest) -> Result<NewTask, Refusal> {
    let details = TaskDetails {
        description: body.description.map(String::from).filter(|description| !description.is_empty()),
        priority: body.priority.unwrap_or(TaskPriority::Normal),
        input: body.input.unwrap_or_default(),
        capabilities_required: body.capabilities_required.iter().map(ToString::to_string).collect(),
        requires_tools: body.requires_tools.into_iter().map(|Object(requirement)| requirement).collect(),
        parent_task_id: body.parent_task_id.as_deref().map(id).transpose()?,
        metadata: body.metadata.unwrap_or_default(),
        ..TaskDetails::named(body.name.as_str())
    };
    Ok(NewTask {
        plan: body.plan_id.as_deref().map(id).transpose()?,
        details,
        depends_on: ids(&body.depends_on)?,
        depends_on_new: Vec::new(),
        assigned_agent: body.assigned_agent,
        timeout_seconds: body.timeout_seconds,
        deadline: body.deadline,
        max_attempts: body.max_attempts.unwrap_or(USUAL_ATTEMPTS),
    })
}

fn changed(changed: TaskChanged) -> Task {
    Task {
        optional_missing: missing(changed.optional_missing),
        delegated_grants: changed.delegated.iter().map(|grant| grant.id).collect(),
        undelegated: undelegated(changed.undelegated),
        revoked_grants: changed.revoked_grants,
        ..shown(changed.task)
    }
}

fn shown(task: work::Task) -> Task {
    let details = task.details;
    Task {
        id: task.id,
        intent_id: task.intent,
        plan_id: task.plan,
        name: details.name,
        description: details.description,
        version: task.version,
        status: task.status,
        priority: details.priority,
        input: details.input,
        output: details.output,
        artifacts: details.artifacts,
        assigned_agent: task.assigned_agent,
        lease_id: task.lease,
        capabilities_required: details.capabilities_required,
        depends_on: task.depends_on,
        blocks: task.blocks,
        parent_task_id: details.parent_task_id,
        requires_tools: details.requires_tools,
        optional_missing: Vec::new(),
        delegated_grants: Vec::new(),
        undelegated: Vec::new(),
        revoked_grants: 0,
        timeout_seconds: task.timeout_seconds,
        deadline: task.deadline,
        attempt: task.attempt,
        max_attempts: task.max_attempts,
        permissions: TaskPermissions::Value,
        blocked_reason: details.blocked_reason,
        error: details.error,
        metadata: details.metadata,
        created_by: task.created_by,
        created_at: task.created_at,
        started_at: task.started_at,
        completed_at: task.completed_at,
    }
}
