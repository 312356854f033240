//! Calls in flight: admitted, and not settled. A call moves from here to `invocations` when its outcome is known.

use std::time::Duration;

use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::constraint::Cost;
use toolgate_model::id::InvocationId;
use toolgate_model::invocation::Invocation;
use toolgate_model::time::Timestamp;

use super::invocations::{INTO, INTO_IN_FLIGHT, row_in_flight};
use crate::sql::{Failure, SqlError, Value};
use crate::transaction::{Change, ColumnType, Rows, Table, Transaction, values};

/// How long an admission may arrive after its caller has disconnected.
const LATE: Duration = Duration::from_secs(24 * 3600);

/// The columns that settlement adds, and the call.
const OUTCOME: &[(&str, ColumnType)] = &[
    ("id", ColumnType::Text),
    ("tenant", ColumnType::Text),
    ("status", ColumnType::Text),
    ("error_code", ColumnType::Text),
    ("error_reason", ColumnType::Text),
    ("http_status", ColumnType::Integer),
    ("cost", ColumnType::Integer),
    ("duration_ms", ColumnType::Integer),
];

/// The row of `OUTCOME`.
pub fn outcome(invocation: &Invocation) -> Vec<Value<'_>> {
    let error = invocation.error.as_ref();
    vec![
        Value::from(invocation.id),
        Value::from(&invocation.tenant),
        Value::from(invocation.status.as_str()),
        Value::from(error.map(|error| error.code.as_str())),
        Value::from(error.map(|error| error.reason.as_str())),
        Value::from(invocation.http_status.map(u32::from)),
        Value::from(invocation.cost.map(Cost::micros)),
        Value::from(invocation.duration_ms),
    ]
}

/// The columns of a call with its outcome. All but the outcome is as it was admitted.
const SETTLED: &str = "outcomes.id, outcomes.tenant, grant_id, agent, actor, service, tool, version, outcomes.status, \
     outcomes.error_code, outcomes.error_reason, parameters, arguments_hash, fingerprint, outcomes.http_status, \
     outcomes.cost, outcomes.duration_ms, idempotency_key, intent, plan, task, reported, created_at, run, by_agent, \
     transport, session, out_of_order";

/// The statement that writes calls with their outcomes into `invocations`.
pub fn settle<T: Transaction>() -> String {
    let insert = T::INSERT;
    let lock = if T::FOR_UPDATE.is_empty() { "" } else { " FOR UPDATE OF calls" };
    format!(
        "{insert} {INTO} SELECT {SETTLED} FROM outcomes CROSS JOIN calls_in_flight AS calls \
         WHERE calls.id = outcomes.id AND calls.tenant = outcomes.tenant AND calls.status = 'running'{lock}"
    )
}

/// Moves the calls of these outcomes to `invocations`, by the statement of [`settle`].
pub fn settling<'a>(outcomes: &'a [Vec<Value<'a>>], settle: &'a str) -> [Change<'a>; 2] {
    let table = Table { name: "outcomes", columns: OUTCOME, rows: outcomes };
    let remove = "DELETE FROM calls_in_flight WHERE id IN (SELECT id FROM outcomes) AND status = 'running'";
    [Change::With(table, settle), Change::With(table, remove)]
}

/// Settles those of the calls that were closed as cut off in the meantime: now their outcome is known. All others must
/// have been in flight, and their number must match.
pub async fn settle_unknown<T: Transaction>(
    transaction: &mut T,
    outcomes: &[Vec<Value<'_>>],
    in_flight: u64,
) -> Result<(), Failure> {
    let sql = "UPDATE invocations SET status = outcomes.status, error_code = outcomes.error_code, \
         error_reason = outcomes.error_reason, http_status = outcomes.http_status, cost = outcomes.cost, \
         duration_ms = outcomes.duration_ms FROM outcomes WHERE invocations.tenant = outcomes.tenant \
         AND invocations.id = outcomes.id AND invocations.status = 'unknown'";
    let table = Table { name: "outcomes", columns: OUTCOME, rows: outcomes };
    let settled = transaction.execute_with(table, sql).await?;
    if usize::try_from(settled.saturating_add(in_flight)).is_ok_and(|settled| settled == outcomes.len()) {
        return Ok(());
    }
    Err(Refusal::new(Code::Internal, "a call was to be settled that was not running").into())
}

/// Whether a call is running.
pub async fn contains<T: Transaction>(transaction: &mut T, call: InvocationId) -> Result<bool, SqlError> {
    let sql = "SELECT id FROM calls_in_flight WHERE id = $1 AND status = 'running'";
    Ok(transaction.query_optional(sql, values![call]).await?.is_some())
}

/// Withdraws the admission of a call that is denied because its admission was not confirmed. Returns whether it was
/// made nevertheless. If it was not, it cannot be made later either: the row of the denied call takes its place.
pub async fn withdraw<T: Transaction>(
    transaction: &mut T,
    denied: &Invocation,
    now: Timestamp,
) -> Result<bool, Failure> {
    let until = now.plus(LATE);
    let sql = "UPDATE calls_in_flight SET status = $1, deadline = $2 WHERE id = $3 AND status = 'running'";
    if transaction.execute(sql, values![denied.status.as_str(), until, denied.id]).await? == 1 {
        return Ok(true);
    }
    transaction.insert(Rows::new(INTO_IN_FLIGHT, &[row_in_flight(denied, until)?])).await?;
    Ok(false)
}

/// Deletes the rows of denied calls whose deadline is before this time.
pub async fn forget_denied<T: Transaction>(transaction: &mut T, before: i64) -> Result<(), SqlError> {
    let sql = "DELETE FROM calls_in_flight WHERE status = 'denied' AND deadline < $1";
    transaction.execute(sql, values![Value::Integer(before)]).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::invocations::COLUMNS;

    #[test]
    fn a_settled_call_has_the_columns_of_an_invocation() {
        let columns: Vec<&str> = SETTLED.split(", ").map(|column| column.trim_start_matches("outcomes.")).collect();
        assert_eq!(columns, COLUMNS.split(", ").collect::<Vec<_>>());
        let of_outcome: Vec<&str> = SETTLED.split(", ").filter_map(|column| column.strip_prefix("outcomes.")).collect();
        assert_eq!(of_outcome, OUTCOME.iter().map(|(column, _)| *column).collect::<Vec<_>>());
    }
}
