//! Coordinators as rows.

use toolgate_model::id::{CoordinatorId, IntentId};
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::work::{Coordinator, CoordinatorKind, CoordinatorStatus};

use crate::sql::{Failure, Row, SqlError};
use crate::transaction::{Transaction, values};

pub const COLUMNS: &str = "id, tenant, intent, agent, supervisor, version, status, role, kind, guardrails, \
     heartbeat_seconds, last_heartbeat, granted_at, expires_at, metadata";

/// Reads a row of [`COLUMNS`]. Guardrails that cannot be read make the coordinator unreadable, and with it every call that
/// it governs.
pub fn read(row: &Row) -> Result<Coordinator, SqlError> {
    Ok(Coordinator {
        id: row.parsed(0, CoordinatorId::parse)?,
        tenant: row.parsed(1, TenantId::parse)?,
        intent: row.parsed(2, IntentId::parse)?,
        agent: row.parsed(3, PrincipalId::parse)?,
        supervisor: row.parsed(4, PrincipalId::parse)?,
        version: row.count(5)?,
        status: row.parsed(6, CoordinatorStatus::parse)?,
        role: row.text(7)?.to_owned(),
        kind: row.parsed(8, CoordinatorKind::parse)?,
        guardrails: row.json(9)?,
        heartbeat_seconds: row.count(10)?,
        last_heartbeat: row.optional_time(11)?,
        granted_at: row.time(12)?,
        expires_at: row.optional_time(13)?,
        metadata: row.json(14)?,
    })
}

/// The coordinators of an intent that have not ended.
pub async fn live_of_intent<T: Transaction>(
    transaction: &mut T,
    intent: IntentId,
) -> Result<Vec<Coordinator>, Failure> {
    let sql = format!("SELECT {COLUMNS} FROM coordinators WHERE intent = $1 AND ended_at IS NULL ORDER BY id");
    let rows = transaction.query(&sql, values![intent]).await?;
    Ok(rows.iter().map(read).collect::<Result<_, _>>()?)
}
