//! Calls in flight: admitted, and not settled. A call moves from here to `invocations` when its outcome is known.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::constraint::Cost;
use toolgate_model::id::InvocationId;
use toolgate_model::invocation::Invocation;
use toolgate_model::principal::TenantId;
use toolgate_model::spending::CostBasis;
use toolgate_model::time::Timestamp;

use super::invocations::{INTO, INTO_IN_FLIGHT, row_in_flight};
use super::listing::padded;
use super::spending::Adjustments;
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
    ("cost_basis", ColumnType::Text),
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
        Value::from(invocation.cost_basis.map(CostBasis::as_str)),
    ]
}

/// The columns of a call with its outcome. All but the outcome is as it was admitted.
const SETTLED: &str = "outcomes.id, outcomes.tenant, grant_id, agent, actor, service, tool, version, outcomes.status, \
     outcomes.error_code, outcomes.error_reason, parameters, arguments_hash, fingerprint, outcomes.http_status, \
     outcomes.cost, outcomes.duration_ms, idempotency_key, intent, plan, task, reported, created_at, run, by_agent, \
     transport, session, out_of_order, outcomes.cost_basis";

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
         duration_ms = outcomes.duration_ms, cost_basis = outcomes.cost_basis FROM outcomes WHERE invocations.tenant = outcomes.tenant \
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

/// The accounts that running calls were charged to. The calls are held until the transaction ends.
pub async fn accounts<'a, T: Transaction>(
    transaction: &mut T,
    calls: impl Iterator<Item = &'a Invocation>,
) -> Result<BTreeMap<InvocationId, String>, Failure> {
    let ids: BTreeSet<InvocationId> = calls.map(|call| call.id).collect();
    let (places, ids) = padded(ids.into_iter().map(Value::from).collect());
    let sql = format!(
        "SELECT id, accounts FROM calls_in_flight WHERE id IN ({places}) AND status = 'running' \
         AND accounts IS NOT NULL ORDER BY id{}",
        T::FOR_UPDATE
    );
    let rows = transaction.query(&sql, &ids).await?;
    rows.iter().map(|row| Ok((row.parsed(0, InvocationId::parse)?, row.text(1)?.to_owned()))).collect()
}

/// Whether a call was closed as cut off.
pub async fn is_closed<T: Transaction>(
    transaction: &mut T,
    tenant: &TenantId,
    call: InvocationId,
) -> Result<bool, SqlError> {
    let sql = "SELECT id FROM invocations WHERE tenant = $1 AND id = $2 AND status = 'unknown'";
    Ok(transaction.query_optional(sql, values![tenant, call]).await?.is_some())
}

/// Takes back what a call was charged.
pub fn release(adjustments: &mut Adjustments, tenant: &TenantId, accounts: &str, reserved: Option<Cost>) {
    adjustments.add(tenant, accounts, -1, millionths(reserved).saturating_neg());
}

/// A cost as a change of an account.
pub fn millionths(cost: Option<Cost>) -> i64 {
    i64::try_from(cost.map_or(0, Cost::micros)).unwrap_or(i64::MAX)
}

/// Withdraws the admission of a call that is denied because its admission was not confirmed, and takes back what it was
/// charged. Returns whether it was made nevertheless. If it was not, it cannot be made later either: the row of the denied call takes its place.
pub async fn withdraw<T: Transaction>(
    transaction: &mut T,
    denied: &Invocation,
    now: Timestamp,
) -> Result<bool, Failure> {
    let until = now.plus(LATE);
    let sql = "UPDATE calls_in_flight SET status = $1, deadline = $2 WHERE id = $3 AND status = 'running'";
    if transaction.execute(sql, values![denied.status.as_str(), until, denied.id]).await? == 1 {
        let sql = "SELECT accounts, cost FROM calls_in_flight WHERE id = $1 AND accounts IS NOT NULL";
        if let Some(row) = transaction.query_optional(sql, values![denied.id]).await? {
            let mut adjustments = Adjustments::default();
            let cost = row.optional_integer(1)?.and_then(|cost| Cost::from_micros(u64::try_from(cost).ok()?));
            release(&mut adjustments, &denied.tenant, row.text(0)?, cost);
            adjustments.store(transaction).await?;
        }
        return Ok(true);
    }
    transaction.insert(Rows::new(INTO_IN_FLIGHT, &[row_in_flight(denied, until, None)?])).await?;
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
