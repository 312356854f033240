//! Contexts that name objects of this ledger: completed when a grant is bound to them, and checked again when a call is
//! admitted.

use std::collections::BTreeSet;

use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::context::{ContextId, GrantContext};
use toolgate_model::id::{IntentId, PlanId, TaskId};
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::work::TaskStatus;

use crate::operation::listing::padded;
use crate::sql::{Failure, Row, Value};
use crate::transaction::{Query, Transaction, values};

/// Completes the context of a new grant: a task implies its plan and its intent. The task is shared until the transaction
/// ends, so that it does not end while a grant is bound to it.
pub async fn complete_context<T: Transaction>(
    transaction: &mut T,
    tenant: &TenantId,
    context: &GrantContext,
) -> Result<GrantContext, Failure> {
    let whole = if let Some(task) = context.task() {
        of_task(transaction, tenant, task).await?
    } else if let Some(plan) = context.plan() {
        let sql = "SELECT intent FROM plans WHERE id = $1 AND tenant = $2";
        let row = transaction.query_optional(sql, values![plan, tenant]).await?;
        let intent = row.ok_or_else(|| Refusal::no_plan(plan))?.parsed(0, ContextId::parse)?;
        GrantContext { intent_id: Some(intent), ..GrantContext::default() }
    } else if let Some(intent) = context.intent() {
        let sql = "SELECT id FROM intents WHERE id = $1 AND tenant = $2";
        transaction.query_optional(sql, values![intent, tenant]).await?.ok_or_else(|| Refusal::no_intent(intent))?;
        GrantContext::default()
    } else {
        GrantContext::default()
    };
    if let Some(part) = context.first_widening(&whole) {
        let reason = format!("`context.{part}` is not that of the rest of the context");
        let refusal = Refusal::new(Code::GrantContextMismatch, reason);
        return Err(refusal.with("path", format!("context.{part}")).into());
    }
    Ok(context.within(&whole))
}

async fn of_task<T: Transaction>(
    transaction: &mut T,
    tenant: &TenantId,
    task: TaskId,
) -> Result<GrantContext, Failure> {
    let sql = format!("SELECT intent, plan, status FROM tasks WHERE id = $1 AND tenant = $2{}", T::FOR_SHARE);
    let row = transaction.query_optional(&sql, values![task, tenant]).await?.ok_or_else(|| Refusal::no_task(task))?;
    let status = row.parsed(2, TaskStatus::parse)?;
    if status.has_ended() {
        let reason = format!("task {task} is {status}; nothing can be granted for it");
        return Err(Refusal::new(Code::TaskStateInvalid, reason).with("task_id", task).with("status", status).into());
    }
    row.parsed(0, IntentId::parse)?;
    row.optional_parsed(1, PlanId::parse)?;
    Ok(GrantContext {
        intent_id: Some(row.parsed(0, ContextId::parse)?),
        plan_id: row.optional_parsed(1, ContextId::parse)?,
        task_id: ContextId::parse(&task.to_string()).ok(),
    })
}

/// Queries which of these tasks are running, and who works on them; they are shared until the transaction ends.
pub fn share_tasks<T: Transaction>(tasks: &BTreeSet<TaskId>) -> Query<'static> {
    let (places, ids) = padded(tasks.iter().map(Value::from).collect());
    let share = T::FOR_SHARE;
    let sql = format!(
        "SELECT id, assigned_agent FROM tasks WHERE id IN ({places}) AND status = 'running' ORDER BY id{share}"
    );
    (sql, ids)
}

/// Reads a row of that query.
pub fn read_shared(row: &Row) -> Result<(TaskId, Option<PrincipalId>), Failure> {
    Ok((row.parsed(0, TaskId::parse)?, row.optional_parsed(1, PrincipalId::parse)?))
}
