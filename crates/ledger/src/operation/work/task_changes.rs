//! Changes of a task: its status, its assignment, and what its agent reports.

use toolgate_gate::ports::ledger::{ChangeTask, Mandate, TaskChanged, TaskChanges};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::event::{EventPayload, WorkTaskAssigned};
use toolgate_model::principal::PrincipalId;
use toolgate_model::work::{IntentEventDetails, IntentEventKind, LeaseStatus, RequirementReport, Task, TaskStatus};

use super::access::HeldIntent;
use super::auto_delegation::delegate_for;
use super::claims::{changed, claim, hold_task};
use super::endings::{Leaving, move_task, revoke_for};
use super::{Noted, require_version, task_rows};
use crate::operation::administration::{Administration, Entitled};
use crate::operation::principals;
use crate::sql::Failure;
use crate::transaction::Transaction;

impl Administration for ChangeTask {
    type Output = TaskChanged;

    fn mandate(&self) -> &Mandate {
        &self.audit
    }

    async fn perform<T: Transaction>(&self, transaction: &mut T, by: &Entitled<'_>) -> Result<TaskChanged, Failure> {
        let TaskChanges { status, assigned_agent, .. } = &self.changes;
        let claimant = assigned_agent.clone().flatten().unwrap_or_else(|| by.actor.clone());
        principals::share_grantee(transaction, &by.tenant, &claimant).await?;
        let (held, task) = hold_task(transaction, by, self.id).await?;
        require_version(&format!("task {}", task.id), task.version, self.expected_version)?;
        held.require_open()?;
        let is_claim = *status == Some(TaskStatus::Claimed) && task.status != TaskStatus::Claimed;
        require_allowed(by, &held, &task, &self.changes, is_claim)?;
        let mut one = changed(task, RequirementReport::default());
        let is_changed = apply(&mut one.task, &self.changes);
        if is_claim {
            let report = claim(transaction, by, &held, &mut one.task, &claimant, None).await?;
            one.optional_missing = report.optional_missing;
            return Ok(one);
        }
        let is_moved = status.is_some_and(|status| status != one.task.status);
        if let Some(agent) = assigned_agent
            && *agent != one.task.assigned_agent
        {
            assign(transaction, by, &held, &mut one, agent.clone()).await?;
        } else if is_changed && !is_moved {
            task_rows::update(transaction, &mut one.task).await?;
        }
        if let Some(status) = status.filter(|status| *status != one.task.status) {
            if status == TaskStatus::Ready && one.task.status == TaskStatus::Pending {
                let reason = format!("task {} becomes ready when everything that it depends on has ended", one.task.id);
                return Err(Refusal::new(Code::TaskStateInvalid, reason).with("task_id", one.task.id).into());
            }
            let reason = self.changes.error.as_deref().or(self.changes.blocked_reason.as_deref());
            let leaving = Leaving { reason, lease: lease_status(by, &one.task) };
            one.revoked_grants += move_task(transaction, by, &mut one.task, status, leaving).await?;
        }
        Ok(one)
    }
}

/// How the lease of a task ends when this actor ends the work on it.
fn lease_status(by: &Entitled<'_>, task: &Task) -> LeaseStatus {
    if task.assigned_agent.as_ref() == Some(&by.actor) { LeaseStatus::Released } else { LeaseStatus::Revoked }
}

/// The assignee reports on its work; everything else takes the right to direct the intent.
fn require_allowed(
    by: &Entitled<'_>,
    held: &HeldIntent,
    task: &Task,
    changes: &TaskChanges,
    is_claim: bool,
) -> Result<(), Failure> {
    if held.directs() {
        return Ok(());
    }
    if is_claim {
        let own = TaskChanges { assigned_agent: None, ..changes.clone() };
        return if own.is_report() { Ok(()) } else { Ok(held.require_directed()?) };
    }
    let is_own = task.assigned_agent.as_ref() == Some(&by.actor);
    let may_become = matches!(
        changes.status,
        None | Some(
            TaskStatus::Ready | TaskStatus::Running | TaskStatus::Blocked | TaskStatus::Completed | TaskStatus::Failed
        )
    ) || changes.status == Some(task.status);
    let is_retry = task.status == TaskStatus::Failed && changes.status == Some(TaskStatus::Ready);
    let stays = changes.assigned_agent.as_ref().is_none_or(|agent| *agent == task.assigned_agent);
    let report = TaskChanges { assigned_agent: None, ..changes.clone() };
    if is_own && stays && report.is_report() && may_become && !is_retry {
        return Ok(());
    }
    Ok(held.require_directed()?)
}

/// Applies everything except status and assignment; true if anything changed.
fn apply(task: &mut Task, changes: &TaskChanges) -> bool {
    let before = (task.details.clone(), task.deadline);
    let TaskChanges {
        status: _,
        assigned_agent: _,
        output,
        artifacts,
        error,
        blocked_reason,
        name,
        description,
        priority,
        metadata,
        deadline,
    } = changes.clone();
    let details = &mut task.details;
    details.output = output.or(details.output.take());
    details.error = error.or(details.error.take());
    details.blocked_reason = blocked_reason.or(details.blocked_reason.take());
    details.description = description.or(details.description.take());
    details.artifacts = artifacts.unwrap_or_else(|| std::mem::take(&mut details.artifacts));
    details.name = name.unwrap_or_else(|| std::mem::take(&mut details.name));
    details.priority = priority.unwrap_or(details.priority);
    details.metadata = metadata.unwrap_or_else(|| std::mem::take(&mut details.metadata));
    if let Some(deadline) = deadline {
        task.deadline = deadline;
        // The end of a lease stays the end of the work: it is never later than the present one.
        if task.status.is_taken() {
            task.due = [task.due, task.due_with(None)].into_iter().flatten().min();
        }
    }
    before != (task.details.clone(), task.deadline)
}

/// Gives the task to another agent, or to none. What was delegated for it ends, an agent that worked on it loses it, and a
/// coordinator that acts delegates what the new one lacks.
pub async fn assign<T: Transaction>(
    transaction: &mut T,
    by: &Entitled<'_>,
    held: &HeldIntent,
    one: &mut TaskChanged,
    agent: Option<PrincipalId>,
) -> Result<(), Failure> {
    let task = &mut one.task;
    if task.status.has_ended() {
        let reason = format!("task {} is {} and cannot be assigned", task.id, task.status);
        return Err(Refusal::new(Code::TaskStateInvalid, reason).with("task_id", task.id).into());
    }
    let previous = task.assigned_agent.clone();
    let reason = format!("task {} was assigned anew", task.id);
    if task.status == TaskStatus::Claimed {
        let leaving = Leaving { reason: Some(&reason), lease: LeaseStatus::Revoked };
        one.revoked_grants += move_task(transaction, by, task, TaskStatus::Ready, leaving).await?;
    } else if task.status.is_taken() {
        let reason = format!(
            "task {} is {}; only a task that is not started can be assigned; let it fail or cancel it first",
            task.id, task.status
        );
        return Err(Refusal::new(Code::TaskStateInvalid, reason).with("task_id", task.id).into());
    } else if previous.is_some() {
        one.revoked_grants += revoke_for(transaction, by, task.id, &reason).await?;
    }
    task.assigned_agent.clone_from(&agent);
    task_rows::update(transaction, task).await?;
    let mut grant_ids = Vec::new();
    if let Some(agent) = &agent {
        let (delegated, undelegated) = delegate_for(transaction, by, held, task, agent).await?;
        grant_ids.extend(delegated.iter().map(|grant| grant.id));
        one.delegated = delegated;
        one.undelegated = undelegated;
    }
    let payload = EventPayload::WorkTaskAssigned(WorkTaskAssigned {
        agent_id: agent.clone(),
        delegated: u64::try_from(grant_ids.len()).unwrap_or(u64::MAX),
        previous_agent_id: previous,
        revoked_grants: one.revoked_grants,
        task_id: task.id,
    });
    let details = IntentEventDetails {
        agent_id: agent,
        grant_ids,
        plan_id: task.plan,
        task_id: Some(task.id),
        version: Some(task.version),
        ..IntentEventDetails::default()
    };
    Noted::new(payload, IntentEventKind::TaskDelegated, details).record(transaction, by, task.intent).await
}
