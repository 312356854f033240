//! The coordinator of the work of a workflow, which ends when the work of its next version begins.

use toolgate_gate::ports::ledger::{Coordination, WorkflowWork};
use toolgate_model::id::{CoordinatorId, IntentId};
use toolgate_model::principal::TenantId;

use super::{coordinator_rows, number};
use crate::sql::Failure;
use crate::transaction::{Transaction, values};

/// The coordinator of this work, unless there is none or it has ended.
pub async fn coordination<T: Transaction>(
    transaction: &mut T,
    tenant: &TenantId,
    work: &WorkflowWork,
) -> Result<Option<Coordination>, Failure> {
    let Some(Ok(id)) = work.coordinator.as_deref().map(CoordinatorId::parse) else { return Ok(None) };
    let sql = format!(
        "SELECT {} FROM coordinators WHERE id = $1 AND tenant = $2 AND ended_at IS NULL",
        coordinator_rows::COLUMNS
    );
    let Some(row) = transaction.query_optional(&sql, values![id, tenant]).await? else { return Ok(None) };
    let found = coordinator_rows::read(&row)?;
    let open = "SELECT COUNT(*) FROM tasks WHERE intent = $1 \
         AND status IN ('pending', 'ready', 'claimed', 'running', 'blocked')";
    Ok(Some(Coordination {
        coordinator: id,
        intent: found.intent,
        agent: found.agent,
        is_limited: !found.guardrails.is_unlimited(),
        open_tasks: number(transaction, open, values![found.intent]).await?,
    }))
}

/// Locks the intent of a coordinator, before credentials and grants in the global order.
pub async fn hold_coordination<T: Transaction>(
    transaction: &mut T,
    tenant: &TenantId,
    intent: IntentId,
) -> Result<(), Failure> {
    let sql = format!("SELECT id FROM intents WHERE id = $1 AND tenant = $2{}", T::FOR_UPDATE);
    transaction.query(&sql, values![intent, tenant]).await?;
    Ok(())
}
