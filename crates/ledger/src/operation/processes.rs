//! Processes: which of them are alive, and which tenants have an approver connected to each.

use std::time::Duration;

use toolgate_gate::ports::ledger::Heartbeat;
use toolgate_model::principal::TenantId;
use toolgate_model::time::Timestamp;

use super::Operation;
use crate::sql::{Failure, Value, json_text};
use crate::transaction::{Transaction, values};

/// How long after its last heartbeat a process counts as alive.
pub const ALIVE_FOR: Duration = Duration::from_secs(30);
/// How long the row of a process is kept.
const KEPT_FOR: Duration = Duration::from_secs(24 * 3600);

impl Operation for Heartbeat {
    type Output = ();

    const CHANGES_AUTHORITY: bool = false;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<(), Failure> {
        let sql = "INSERT INTO processes (id, seen_at, attended) VALUES ($1, $2, $3) \
             ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at, attended = excluded.attended";
        let parameters = [Value::from(self.process), Value::from(self.time), json_text(&self.attended)?];
        transaction.execute(sql, &parameters).await?;
        Ok(())
    }
}

/// Reads whether a tenant has a connected approver.
pub struct ReadAttendance {
    pub tenant: TenantId,
    pub now: Timestamp,
}

impl Operation for ReadAttendance {
    type Output = bool;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<bool, Failure> {
        let sql = "SELECT id, attended FROM processes WHERE seen_at > $1";
        for row in transaction.query(sql, values![self.now.minus(ALIVE_FOR)]).await? {
            let attended: Vec<TenantId> = row.json(1)?;
            if attended.contains(&self.tenant) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Forgets processes that were not seen for long.
pub struct ForgetProcesses {
    pub now: Timestamp,
}

impl Operation for ForgetProcesses {
    type Output = u64;

    const CHANGES_AUTHORITY: bool = false;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<u64, Failure> {
        let sql = "DELETE FROM processes WHERE seen_at < $1";
        Ok(transaction.execute(sql, values![self.now.minus(KEPT_FOR)]).await?)
    }
}
