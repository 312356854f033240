//! Tasks: creation and lists.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use toolgate_gate::ports::ledger::{
    ChangeTask, CheckTask, ClaimTask, CreateTask, Mandate, Page, PageRequest, TaskChanged, TaskFilter, Tasks, Viewer,
};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::event::{EventPayload, WorkTaskCreated};
use toolgate_model::id::{IntentId, PlanId, TaskId};
use toolgate_model::permission::Permission;
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::scope::Scope;
use toolgate_model::time::Timestamp;
use toolgate_model::work::limits::TASKS;
use toolgate_model::work::{
    DependencyError, IntentEventDetails, IntentEventKind, RequirementReport, Task, TaskStatus, check_dependencies,
    match_requirements,
};

use super::access::{HeldIntent, hold, sees};
use super::task_changes::assign;
use super::{Noted, agent_access, governing, number, plans, task_rows};
use crate::ledger::{Engine, SqlLedger};
use crate::operation::administration::{Administration, Entitled};
use crate::operation::listing::Conditions;
use crate::operation::{Operation, principals};
use crate::sql::{Failure, Value};
use crate::transaction::{Transaction, values};

#[async_trait]
impl<E: Engine> Tasks for SqlLedger<E> {
    async fn create_tasks(&self, command: CreateTask) -> Result<Vec<TaskChanged>, Refusal> {
        self.engine.write(command).await
    }

    async fn task(&self, tenant: &TenantId, id: TaskId, viewer: &Viewer) -> Result<Option<Task>, Refusal> {
        self.engine.read(ReadTask { tenant: tenant.clone(), id, viewer: viewer.clone() }).await
    }

    async fn tasks(
        &self,
        tenant: &TenantId,
        intent: IntentId,
        viewer: &Viewer,
        filter: TaskFilter,
        page: PageRequest,
    ) -> Result<Option<Page<Task>>, Refusal> {
        let (tenant, viewer) = (tenant.clone(), viewer.clone());
        self.engine.read(ListTasks { tenant, intent, viewer, filter, page }).await
    }

    async fn change_task(&self, command: ChangeTask) -> Result<TaskChanged, Refusal> {
        self.engine.write(command).await
    }

    async fn claim_task(&self, command: ClaimTask) -> Result<TaskChanged, Refusal> {
        self.engine.write(command).await
    }

    async fn check_task(&self, query: CheckTask) -> Result<Option<RequirementReport>, Refusal> {
        self.engine.read(ReadRequirements(query)).await
    }

    async fn sweep_work(&self, now: Timestamp) -> Result<u64, Refusal> {
        self.sweep_work_in_batches(now).await
    }
}

impl Administration for CreateTask {
    type Output = Vec<TaskChanged>;

    fn mandate(&self) -> &Mandate {
        &self.audit
    }

    async fn perform<T: Transaction>(
        &self,
        transaction: &mut T,
        by: &Entitled<'_>,
    ) -> Result<Vec<TaskChanged>, Failure> {
        let assigned: BTreeSet<&PrincipalId> =
            self.tasks.iter().filter_map(|task| task.assigned_agent.as_ref()).collect();
        for agent in assigned {
            principals::share_grantee(transaction, &by.tenant, agent).await?;
        }
        let held = hold(transaction, by, self.intent).await?;
        held.require_directed()?;
        held.require_open()?;
        let existing = check_new(transaction, self).await?;
        check_plans(transaction, self, &held).await?;
        let mut created = Vec::with_capacity(self.tasks.len());
        for task in &self.tasks {
            let agent = task.assigned_agent.clone();
            let mut task = Task { intent: self.intent, assigned_agent: None, ..task.clone() };
            let is_done = |other: &TaskId| existing.get(other).is_some_and(|status| status.satisfies());
            let is_ready = task.depends_on.iter().all(is_done);
            task.status = if is_ready { TaskStatus::Ready } else { TaskStatus::Pending };
            task_rows::insert(transaction, &task).await?;
            note_created(transaction, by, &task).await?;
            created.push((task, agent));
        }
        let rows: Vec<Vec<Value<'_>>> = self
            .tasks
            .iter()
            .flat_map(|task| task.depends_on.iter().map(|other| values![task.id, *other].to_vec()))
            .collect();
        if !rows.is_empty() {
            transaction.insert_many("task_dependencies (task, depends_on)", &rows).await?;
        }
        let mut changed = Vec::with_capacity(created.len());
        for (task, agent) in created {
            let mut one = super::claims::changed(task, RequirementReport::default());
            if let Some(agent) = agent {
                assign(transaction, by, &held, &mut one, Some(agent)).await?;
            }
            changed.push(one);
        }
        let mut tasks: Vec<Task> = changed.iter().map(|one| one.task.clone()).collect();
        task_rows::with_dependencies(transaction, &mut tasks).await?;
        for (one, task) in changed.iter_mut().zip(tasks) {
            one.task = task;
        }
        Ok(changed)
    }
}

/// Checks that the agents of new tasks can claim them. Who does not see every grant learns only what could not be
/// delegated.
pub async fn require_claimable<T: Transaction>(
    transaction: &mut T,
    by: &Entitled<'_>,
    created: &[TaskChanged],
) -> Result<(), Failure> {
    for TaskChanged { task, undelegated, .. } in created {
        let Some(agent) = &task.assigned_agent else { continue };
        let access = agent_access::for_task(transaction, agent, task, by.time).await?;
        let missing = match_requirements(&task.details.requires_tools, &access, &task.context()).missing;
        for one in missing {
            let why = undelegated.iter().find(|refused| refused.missing.service == one.service);
            if why.is_none() && !by.may(Permission::ManageTools) {
                continue;
            }
            let scopes: Vec<&str> = one.scopes.iter().map(Scope::as_str).collect();
            let name = &task.details.name;
            let why = why.map_or_else(String::new, |refused| format!(": {}", refused.reason));
            let reason = format!(
                "`{agent}` would not hold [{}] of `{}`, which the task `{name}` requires{why}",
                scopes.join(", "),
                one.service
            );
            return Err(Refusal::new(Code::InsufficientToolAccess, reason)
                .with("task", name)
                .with("service", &one.service)
                .with("missing", [one])
                .into());
        }
    }
    Ok(())
}

/// Checks the new tasks against those of the intent; returns the status of each of these.
async fn check_new<T: Transaction>(
    transaction: &mut T,
    command: &CreateTask,
) -> Result<BTreeMap<TaskId, TaskStatus>, Failure> {
    let sql = "SELECT id, status FROM tasks WHERE intent = $1";
    let rows = transaction.query(sql, values![command.intent]).await?;
    let existing = rows.iter().map(|row| Ok((row.parsed(0, TaskId::parse)?, row.parsed(1, TaskStatus::parse)?)));
    let existing: BTreeMap<TaskId, TaskStatus> = existing.collect::<Result<_, Failure>>()?;
    let count = existing.len() + command.tasks.len();
    if u32::try_from(count).map_or(true, |count| count > TASKS) {
        let reason = format!("the intent would have {count} tasks, and at most {TASKS} are kept");
        return Err(Refusal::new(Code::WorkLimitReached, reason).with("limit", TASKS).into());
    }
    let known: BTreeSet<TaskId> = existing.keys().copied().collect();
    let new = command.tasks.iter().map(|task| (task.id, task.depends_on.clone())).collect();
    check_dependencies(&known, &new).map_err(|error| {
        let refusal = Refusal::new(Code::InvalidField, error.to_string()).with("path", "depends_on");
        match error {
            DependencyError::Unknown(task) | DependencyError::Cycle(task) => refusal.with("task_id", task),
            DependencyError::TooMany => refusal,
        }
    })?;
    for parent in command.tasks.iter().filter_map(|task| task.details.parent_task_id) {
        if !existing.contains_key(&parent) && !new_contains(command, parent) {
            return Err(Refusal::no_task(parent).with("path", "parent_task_id").into());
        }
    }
    Ok(existing)
}

fn new_contains(command: &CreateTask, id: TaskId) -> bool {
    command.tasks.iter().any(|task| task.id == id)
}

/// Checks that the plans of new tasks are open plans of the intent, and the limit of the coordinators that create them.
async fn check_plans<T: Transaction>(
    transaction: &mut T,
    command: &CreateTask,
    held: &HeldIntent,
) -> Result<(), Failure> {
    let mut new: BTreeMap<PlanId, u64> = BTreeMap::new();
    for plan in command.tasks.iter().filter_map(|task| task.plan) {
        *new.entry(plan).or_default() += 1;
    }
    for (plan, count) in new {
        let found = plans::one(transaction, command.intent, plan).await?.ok_or_else(|| Refusal::no_plan(plan))?;
        plans::require_open(&found)?;
        let before = number(transaction, "SELECT COUNT(*) FROM tasks WHERE plan = $1", values![plan]).await?;
        require_plan_size(held, plan, before + count)?;
    }
    Ok(())
}

/// Checks the limit of the acting coordinators on the tasks of a plan.
pub fn require_plan_size(held: &HeldIntent, plan: PlanId, tasks: u64) -> Result<(), Refusal> {
    for coordinator in held.acting() {
        if let Some(most) = coordinator.guardrails.max_tasks_per_plan.filter(|most| tasks > u64::from(*most)) {
            let reason =
                format!("plan {plan} would have {tasks} tasks, and coordinator {} allows {most}", coordinator.id);
            return Err(governing::denied(coordinator, reason, "max_tasks_per_plan"));
        }
    }
    Ok(())
}

async fn note_created<T: Transaction>(transaction: &mut T, by: &Entitled<'_>, task: &Task) -> Result<(), Failure> {
    let payload = EventPayload::WorkTaskCreated(WorkTaskCreated {
        intent_id: task.intent,
        plan_id: task.plan,
        status: task.status,
        task_id: task.id,
    });
    let details = IntentEventDetails {
        name: Some(task.details.name.clone()),
        plan_id: task.plan,
        task_id: Some(task.id),
        to: Some(task.status.to_string()),
        ..IntentEventDetails::default()
    };
    Noted::new(payload, IntentEventKind::TaskCreated, details).record(transaction, by, task.intent).await
}

struct ReadTask {
    tenant: TenantId,
    id: TaskId,
    viewer: Viewer,
}

impl Operation for ReadTask {
    type Output = Option<Task>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Option<Task>, Failure> {
        let sql = "SELECT intent FROM tasks WHERE id = $1 AND tenant = $2";
        let row = transaction.query_optional(sql, values![self.id, &self.tenant]).await?;
        let Some(row) = row else { return Ok(None) };
        let intent = row.parsed(0, IntentId::parse)?;
        if !sees(transaction, &self.tenant, intent, &self.viewer).await? {
            return Ok(None);
        }
        task_rows::one(transaction, intent, self.id).await
    }
}

struct ReadRequirements(CheckTask);

impl Operation for ReadRequirements {
    type Output = Option<RequirementReport>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Self::Output, Failure> {
        let CheckTask { tenant, viewer, id, agent, now } = &self.0;
        let read = ReadTask { tenant: tenant.clone(), id: *id, viewer: viewer.clone() };
        let Some(task) = read.run(transaction).await? else { return Ok(None) };
        let held = agent_access::for_task(transaction, agent, &task, *now).await?;
        Ok(Some(match_requirements(&task.details.requires_tools, &held, &task.context())))
    }
}

struct ListTasks {
    tenant: TenantId,
    intent: IntentId,
    viewer: Viewer,
    filter: TaskFilter,
    page: PageRequest,
}

impl Operation for ListTasks {
    type Output = Option<Page<Task>>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Self::Output, Failure> {
        if !sees(transaction, &self.tenant, self.intent, &self.viewer).await? {
            return Ok(None);
        }
        let mut conditions = Conditions::default();
        conditions.and("intent =", self.intent);
        conditions.and_if("status =", self.filter.status.map(TaskStatus::as_str));
        conditions.and_if("plan =", self.filter.plan);
        conditions.and_if("assigned_agent =", self.filter.assigned_agent.as_ref());
        conditions.and_if("id >", self.page.after.as_deref());
        let (from, size) = ((task_rows::COLUMNS, "tasks", "id"), "OCTET_LENGTH(details)");
        let mut page = conditions
            .page_within(transaction, from, size, &self.page, task_rows::read, |task| task.id.to_string())
            .await?;
        task_rows::with_dependencies(transaction, &mut page.items).await?;
        Ok(Some(page))
    }
}
