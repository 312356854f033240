//! Claims: an agent takes a task that is ready, if it holds what the task requires (RFC-0014 §4.2).

use toolgate_gate::ports::ledger::{ClaimTask, Mandate, TaskChanged};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::id::LeaseId;
use toolgate_model::principal::PrincipalId;
use toolgate_model::time::Timestamp;
use toolgate_model::work::{PlanState, RequirementReport, Task, TaskStatus, match_requirements};

use super::access::{HeldIntent, hold, participates};
use super::endings::{Leaving, move_task};
use super::{agent_access, governing, number, require_version, task_rows};
use crate::operation::administration::{Administration, Entitled};
use crate::operation::principals;
use crate::sql::Failure;
use crate::transaction::{Transaction, values};

impl Administration for ClaimTask {
    type Output = TaskChanged;

    fn mandate(&self) -> &Mandate {
        &self.audit
    }

    async fn perform<T: Transaction>(&self, transaction: &mut T, by: &Entitled<'_>) -> Result<TaskChanged, Failure> {
        principals::share_grantee(transaction, &by.tenant, &self.agent).await?;
        let (held, mut task) = hold_task(transaction, by, self.id).await?;
        if let Some(expected) = self.expected_version {
            require_version(&format!("task {}", task.id), task.version, expected)?;
        }
        let report = claim(transaction, by, &held, &mut task, &self.agent, None).await?;
        Ok(changed(task, report))
    }
}

/// A task after a change that delegated nothing.
pub fn changed(task: Task, report: RequirementReport) -> TaskChanged {
    TaskChanged {
        task,
        optional_missing: report.optional_missing,
        delegated: Vec::new(),
        undelegated: Vec::new(),
        revoked_grants: 0,
    }
}

/// Locks the intent of a task that the actor takes part in, and reads the task.
pub async fn hold_task<T: Transaction>(
    transaction: &mut T,
    by: &Entitled<'_>,
    id: toolgate_model::id::TaskId,
) -> Result<(HeldIntent, Task), Failure> {
    let missing = |failure| match failure {
        Failure::Refused(refusal) if refusal.code() == Code::IntentNotFound => Failure::from(Refusal::no_task(id)),
        other => other,
    };
    let intent = task_rows::intent_of(transaction, &by.tenant, id).await?;
    let held = hold(transaction, by, intent).await.map_err(missing)?;
    let task = task_rows::one(transaction, intent, id).await?.ok_or_else(|| Refusal::no_task(id))?;
    Ok((held, task))
}

/// Gives the task to the agent.
pub async fn claim<T: Transaction>(
    transaction: &mut T,
    by: &Entitled<'_>,
    held: &HeldIntent,
    task: &mut Task,
    agent: &PrincipalId,
    lease: Option<(LeaseId, Timestamp)>,
) -> Result<RequirementReport, Failure> {
    held.require_open()?;
    task.status.require(TaskStatus::Claimed).map_err(|error| invalid(task, error.to_string()))?;
    if task.assigned_agent.as_ref().is_some_and(|assigned| assigned != agent) {
        return Err(invalid(task, format!("task {} is assigned to another agent", task.id)).into());
    }
    let is_own = task.assigned_agent.is_some() || held.directs();
    if !is_own && !participates(transaction, by, held.intent.id, agent).await? {
        return Err(Refusal::no_task(task.id).into());
    }
    if task.deadline.is_some_and(|deadline| deadline <= by.time) {
        return Err(invalid(task, format!("the deadline of task {} has passed", task.id)).into());
    }
    require_plan(transaction, task).await?;
    require_room(transaction, held).await?;
    let access = agent_access::for_task(transaction, agent, task, by.time).await?;
    let report = match_requirements(&task.details.requires_tools, &access, &task.context());
    if !report.is_sufficient() {
        let services: Vec<_> = report.missing.iter().map(|missing| format!("`{}`", missing.service)).collect();
        let reason =
            format!("`{agent}` does not hold the access to {} that task {} requires", services.join(", "), task.id);
        return Err(Refusal::new(Code::InsufficientToolAccess, reason)
            .with("task_id", task.id)
            .with("missing", &report.missing)
            .into());
    }
    task.assigned_agent = Some(agent.clone());
    task.lease = lease.map(|(id, _)| id);
    task.due = [lease.map(|(_, end)| end), task.deadline].into_iter().flatten().min();
    move_task(transaction, by, task, TaskStatus::Claimed, Leaving::default()).await?;
    Ok(report)
}

fn invalid(task: &Task, reason: String) -> Refusal {
    Refusal::new(Code::TaskStateInvalid, reason).with("task_id", task.id).with("status", task.status)
}

/// Tasks of a plan that is paused or has ended are not taken.
async fn require_plan<T: Transaction>(transaction: &mut T, task: &Task) -> Result<(), Failure> {
    let Some(plan) = task.plan else { return Ok(()) };
    let row = transaction.query_optional("SELECT state FROM plans WHERE id = $1", values![plan]).await?;
    let state = row.ok_or_else(|| Refusal::no_plan(plan))?.parsed(0, PlanState::parse)?;
    match state {
        PlanState::Draft | PlanState::Active => Ok(()),
        state => {
            let reason = format!("plan {plan} is {state}; its tasks cannot be claimed");
            Err(Refusal::new(Code::PlanStateInvalid, reason).with("plan_id", plan).with("state", state).into())
        }
    }
}

/// Checks the limits of coordinators on tasks at the same time.
async fn require_room<T: Transaction>(transaction: &mut T, held: &HeldIntent) -> Result<(), Failure> {
    let Some((most, coordinator)) = held.smallest(|one| one.guardrails.max_concurrent_tasks) else { return Ok(()) };
    let taken = "SELECT COUNT(*) FROM tasks WHERE intent = $1 AND status IN ('claimed', 'running', 'blocked')";
    let taken = number(transaction, taken, values![held.intent.id]).await?;
    if taken < u64::from(most) {
        return Ok(());
    }
    let reason = format!(
        "agents have {taken} tasks of the intent, and coordinator {} allows {most} at the same time",
        coordinator.id
    );
    Err(governing::denied(coordinator, reason, "max_concurrent_tasks").into())
}
