//! What follows from a change of a task's status: what was delegated for it ends with the agent's work on it, its lease
//! ends, and tasks that depended on it become ready.

use toolgate_gate::ports::ledger::AuditContext;
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::event::{EventPayload, WorkLeaseEnded, WorkTaskChanged};
use toolgate_model::id::{IntentId, LeaseId, TaskId};
use toolgate_model::work::{
    Coordinator, CoordinatorStatus, Intent, IntentEventDetails, IntentEventKind, LeaseStatus, Task, TaskStatus,
};

use super::{Noted, coordinators, task_rows};
use crate::operation::cascade::{Cascade, revoke_below};
use crate::sql::Failure;
use crate::transaction::{Transaction, values};

/// Revokes every grant that is bound to the task, with all that was delegated from it; returns their number.
///
/// INVARIANT: the caller holds the row of the task, which every transaction shares that creates a grant bound to it.
pub async fn revoke_for<T: Transaction>(
    transaction: &mut T,
    by: &AuditContext,
    task: TaskId,
    reason: &str,
) -> Result<u64, Failure> {
    let lock = format!("SELECT id FROM tasks WHERE id = $1{}", T::FOR_UPDATE);
    transaction.query(&lock, values![task]).await?;
    // In the global lock order: credentials before grants.
    let share = format!(
        "SELECT id FROM credentials WHERE id IN (SELECT credential FROM grants WHERE task = $1 AND revoked_at IS NULL) \
         ORDER BY id{}",
        T::FOR_SHARE
    );
    if transaction.query(&share, values![task]).await?.is_empty() {
        return Ok(0);
    }
    revoke_below(transaction, by, Cascade::Task(task), reason).await
}

/// How a lease of a task ends with the agent's work on it.
#[derive(Clone, Copy)]
pub struct Leaving<'a> {
    pub reason: Option<&'a str>,
    pub lease: LeaseStatus,
}

impl Default for Leaving<'_> {
    fn default() -> Self {
        Self { reason: None, lease: LeaseStatus::Released }
    }
}

/// Changes the status of a task by the table, with everything that follows; returns the number of grants that ended.
pub async fn move_task<T: Transaction>(
    transaction: &mut T,
    by: &AuditContext,
    task: &mut Task,
    to: TaskStatus,
    leaving: Leaving<'_>,
) -> Result<u64, Failure> {
    let from = task.status;
    from.require(to).map_err(|error| {
        Refusal::new(Code::TaskStateInvalid, error.to_string())
            .with("task_id", task.id)
            .with("status", from)
            .with("allowed", from.next())
    })?;
    if from == TaskStatus::Failed {
        if task.attempt >= task.max_attempts {
            let reason = format!("task {} has failed in all of its {} attempts", task.id, task.max_attempts);
            return Err(Refusal::new(Code::TaskStateInvalid, reason).with("task_id", task.id).into());
        }
        task.attempt += 1;
    }
    let agent = task.assigned_agent.clone();
    task.status = to;
    let ends_work = to.has_ended() || (to == TaskStatus::Ready && from != TaskStatus::Pending);
    let mut revoked = 0;
    if ends_work {
        let reason = leaving.reason.map_or_else(|| format!("task {} is {to}", task.id), str::to_owned);
        revoked = revoke_for(transaction, by, task.id, &reason).await?;
        if let Some(lease) = task.lease.take() {
            end_lease(transaction, by, task.intent, lease, leaving.lease).await?;
        }
    }
    match to {
        TaskStatus::Ready if from != TaskStatus::Pending => {
            task.assigned_agent = None;
            task.started_at = None;
            task.completed_at = None;
            task.details.blocked_reason = None;
        }
        TaskStatus::Running => {
            task.started_at.get_or_insert(by.time);
            task.details.blocked_reason = None;
            let lease_end = match task.lease {
                Some(lease) => lease_end(transaction, lease).await?,
                None => None,
            };
            task.due = task.due_with(lease_end);
        }
        _ => {}
    }
    if to.has_ended() {
        task.completed_at = Some(by.time);
    }
    if !to.is_taken() {
        task.due = None;
    }
    task_rows::update(transaction, task).await?;
    note(transaction, by, task, from, agent, leaving.reason, revoked).await?;
    if to.satisfies() {
        release_dependents(transaction, by, task).await?;
    }
    Ok(revoked)
}

async fn note<T: Transaction>(
    transaction: &mut T,
    by: &AuditContext,
    task: &Task,
    from: TaskStatus,
    agent: Option<toolgate_model::principal::PrincipalId>,
    reason: Option<&str>,
    revoked_grants: u64,
) -> Result<(), Failure> {
    let agent = agent.or_else(|| task.assigned_agent.clone());
    let payload = EventPayload::WorkTaskChanged(WorkTaskChanged {
        agent_id: agent.clone(),
        attempt: task.attempt,
        from,
        reason: reason.map(str::to_owned),
        revoked_grants,
        task_id: task.id,
        to: task.status,
        version: task.version,
    });
    let details = IntentEventDetails {
        agent_id: agent,
        attempt: Some(task.attempt),
        from: Some(from.to_string()),
        plan_id: task.plan,
        reason: reason.map(str::to_owned),
        task_id: Some(task.id),
        to: Some(task.status.to_string()),
        version: Some(task.version),
        ..IntentEventDetails::default()
    };
    Noted::new(payload, kind_of(from, task.status), details).record(transaction, by, task.intent).await
}

fn kind_of(from: TaskStatus, to: TaskStatus) -> IntentEventKind {
    match (from, to) {
        (TaskStatus::Failed, TaskStatus::Ready) => IntentEventKind::TaskRetrying,
        (_, TaskStatus::Ready | TaskStatus::Pending) => IntentEventKind::TaskReady,
        (_, TaskStatus::Claimed) => IntentEventKind::TaskClaimed,
        (TaskStatus::Blocked, TaskStatus::Running) => IntentEventKind::TaskUnblocked,
        (_, TaskStatus::Running) => IntentEventKind::TaskStarted,
        (_, TaskStatus::Blocked) => IntentEventKind::TaskBlocked,
        (_, TaskStatus::Completed) => IntentEventKind::TaskCompleted,
        (_, TaskStatus::Failed) => IntentEventKind::TaskFailed,
        (_, TaskStatus::Cancelled) => IntentEventKind::TaskCancelled,
        (_, TaskStatus::Skipped) => IntentEventKind::TaskSkipped,
    }
}

/// Makes the tasks ready that depended on nothing else than this one and others that have ended well.
async fn release_dependents<T: Transaction>(
    transaction: &mut T,
    by: &AuditContext,
    task: &Task,
) -> Result<(), Failure> {
    let condition = "status = 'pending' AND id IN (SELECT task FROM task_dependencies WHERE depends_on = $1) \
         AND NOT EXISTS (SELECT 1 FROM task_dependencies AS needed JOIN tasks AS other ON other.id = needed.depends_on \
         WHERE needed.task = tasks.id AND other.status <> 'completed' AND other.status <> 'skipped')";
    for mut dependent in task_rows::matching(transaction, condition, values![task.id]).await? {
        dependent.status = TaskStatus::Ready;
        task_rows::update(transaction, &mut dependent).await?;
        note(transaction, by, &dependent, TaskStatus::Pending, None, None, 0).await?;
    }
    Ok(())
}

/// Records that a lease has ended, if it has not already.
pub async fn end_lease<T: Transaction>(
    transaction: &mut T,
    by: &AuditContext,
    intent: IntentId,
    lease: LeaseId,
    status: LeaseStatus,
) -> Result<(), Failure> {
    let sql = "UPDATE leases SET status = $1, ended_at = $2 WHERE id = $3 AND ended_at IS NULL RETURNING id, scope";
    let row = transaction.query_optional(sql, values![status.as_str(), by.time, lease]).await?;
    let Some(row) = row else { return Ok(()) };
    let scope = row.text(1)?.to_owned();
    let payload = EventPayload::WorkLeaseEnded(WorkLeaseEnded {
        intent_id: intent,
        lease_id: lease,
        scope: scope.clone(),
        status,
    });
    let details = IntentEventDetails {
        lease_id: Some(lease),
        scope: Some(scope),
        to: Some(status.to_string()),
        ..IntentEventDetails::default()
    };
    Noted::new(payload, IntentEventKind::LeaseReleased, details).record(transaction, by, intent).await
}

async fn lease_end<T: Transaction>(
    transaction: &mut T,
    lease: LeaseId,
) -> Result<Option<toolgate_model::time::Timestamp>, Failure> {
    let sql = "SELECT id, expires_at FROM leases WHERE id = $1 AND ended_at IS NULL";
    let row = transaction.query_optional(sql, values![lease]).await?;
    Ok(row.map(|row| row.time(1)).transpose()?)
}

/// Ends everything below an intent that has ended.
pub async fn end_below<T: Transaction>(
    transaction: &mut T,
    by: &AuditContext,
    intent: &Intent,
    coordinators: &[Coordinator],
) -> Result<(), Failure> {
    let reason = format!("intent {} is {}", intent.id, intent.status);
    let open = "intent = $1 AND status <> 'completed' AND status <> 'cancelled' AND status <> 'skipped'";
    for mut task in task_rows::matching(transaction, open, values![intent.id]).await? {
        // A failed task has no way to go but another attempt, which an ended intent does not give it.
        if task.status != TaskStatus::Failed {
            let leaving = Leaving { reason: Some(&reason), lease: LeaseStatus::Revoked };
            move_task(transaction, by, &mut task, TaskStatus::Cancelled, leaving).await?;
        }
    }
    let left = "SELECT id FROM leases WHERE intent = $1 AND ended_at IS NULL ORDER BY id";
    for row in &transaction.query(left, values![intent.id]).await? {
        let lease = row.parsed(0, LeaseId::parse)?;
        end_lease(transaction, by, intent.id, lease, LeaseStatus::Revoked).await?;
    }
    let plans = "UPDATE plans SET state = 'cancelled', version = version + 1, updated_at = $1 \
         WHERE intent = $2 AND state IN ('draft', 'active', 'paused')";
    transaction.execute(plans, values![by.time, intent.id]).await?;
    for coordinator in coordinators {
        coordinators::end(transaction, by, coordinator, CoordinatorStatus::Completed).await?;
    }
    Ok(())
}
