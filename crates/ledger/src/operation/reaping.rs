//! Reaping: approvals whose time is over or whose process died are ended, those that ended are told to whoever waits, and
//! what was asked is forgotten some time later.

use std::time::Duration;

use toolgate_gate::ports::ledger::Stamp;
use toolgate_model::approval::{Approval, ApprovalHappening, ApprovalStatus, TIMED_OUT};
use toolgate_model::id::ProcessId;
use toolgate_model::principal::PrincipalId;
use toolgate_model::time::Timestamp;

use super::Operation;
use super::approvals::{COLUMNS, UPDATE, entry, read, row};
use super::processes::ALIVE_FOR;
use super::record::{event_row, record_rows};
use crate::sql::{Failure, Row, SqlError, Value, json_text};
use crate::transaction::{Transaction, values};

/// How many are ended in one transaction.
pub const BATCH: u32 = 100;
/// How long after its end an approval still shows the arguments, and an answer can be sent again under its idempotency
/// key.
const KEPT_FOR: Duration = Duration::from_secs(24 * 3600);
/// What is said of a call whose process died.
const ORPHANED: &str = "the process in which the call waited is gone; the call was not made, and can be made again";

/// Ends a batch of approvals whose time is over.
pub struct EndOverdue {
    /// Now.
    pub now: Timestamp,
}

impl Operation for EndOverdue {
    /// How many.
    type Output = u32;

    const CHANGES_AUTHORITY: bool = false;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<u32, Failure> {
        let skip = T::FOR_UPDATE_SKIPPING;
        let sql = format!(
            "SELECT {COLUMNS} FROM approvals WHERE status = 'pending' AND expires_at <= $1 ORDER BY expires_at \
             LIMIT $2{skip}"
        );
        let rows = transaction.query(&sql, values![self.now, BATCH]).await?;
        end(transaction, &rows, (ApprovalStatus::TimedOut, TIMED_OUT), self.now).await
    }
}

/// Ends a batch of approvals that calls of dead processes waited for.
pub struct EndOrphans {
    /// The process that looks; its own are never orphans.
    pub process: ProcessId,
    /// Now.
    pub now: Timestamp,
    /// Whether other processes may be alive: then only those are orphans whose process was not seen for a while.
    pub shared: bool,
}

impl Operation for EndOrphans {
    /// How many.
    type Output = u32;

    const CHANGES_AUTHORITY: bool = false;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<u32, Failure> {
        // To have asked is a sign of life too.
        let silent = "AND created_at <= $2 AND NOT EXISTS (SELECT 1 FROM processes \
             WHERE processes.id = approvals.process AND processes.seen_at > $2)";
        let (silent, alive_since) = match self.shared {
            true => (silent, self.now.minus(ALIVE_FOR).as_millis()),
            false => ("AND created_at <= $2", i64::MAX),
        };
        let skip = T::FOR_UPDATE_SKIPPING;
        let sql = format!(
            "SELECT {COLUMNS} FROM approvals WHERE status = 'pending' AND process <> $1 {silent} \
             ORDER BY process, created_at LIMIT $3{skip}"
        );
        let parameters = values![self.process, Value::Integer(alive_since), BATCH];
        let rows = transaction.query(&sql, parameters).await?;
        end(transaction, &rows, (ApprovalStatus::Orphaned, ORPHANED), self.now).await
    }
}

/// Looks whether there is something to collect, so that nothing is written where there is not.
pub struct HasEnded {
    /// For which process.
    pub process: ProcessId,
}

impl Operation for HasEnded {
    type Output = bool;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<bool, Failure> {
        let sql = "SELECT id FROM approvals WHERE process = $1 AND status <> 'pending' AND collected = 0 LIMIT 1";
        Ok(transaction.query_optional(sql, values![self.process]).await?.is_some())
    }
}

/// Answers the approvals of a process that ended, each once.
pub struct CollectApprovals {
    /// Of which process.
    pub process: ProcessId,
}

impl Operation for CollectApprovals {
    type Output = Vec<Approval>;

    const CHANGES_AUTHORITY: bool = false;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Vec<Approval>, Failure> {
        let sql = format!(
            "UPDATE approvals SET collected = 1 WHERE process = $1 AND status <> 'pending' AND collected = 0 \
             RETURNING {COLUMNS}"
        );
        let rows = transaction.query(&sql, values![self.process]).await?;
        Ok(rows.iter().map(read).collect::<Result<_, _>>()?)
    }
}

/// Forgets the arguments of a batch of approvals that ended long ago.
pub struct ForgetArguments {
    /// Now.
    pub now: Timestamp,
}

impl Operation for ForgetArguments {
    /// How many.
    type Output = u32;

    const CHANGES_AUTHORITY: bool = false;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<u32, Failure> {
        let skip = T::FOR_UPDATE_SKIPPING;
        let sql = format!(
            "SELECT {COLUMNS} FROM approvals WHERE arguments_kept = 1 AND resolved_at <= $1 ORDER BY resolved_at \
             LIMIT $2{skip}"
        );
        let rows = transaction.query(&sql, values![self.now.minus(KEPT_FOR), BATCH]).await?;
        let (mut bodies, mut names) = (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
        for row in &rows {
            let approval = Approval { arguments: None, original_arguments: None, ..read(row)? };
            let name = values![&approval.tenant, approval.id];
            bodies.push([&[json_text(&approval)?], name].concat());
            names.push(name.to_vec());
        }
        // A process that has not asked for its end by now never will.
        let sql = "UPDATE approvals SET body = $1, arguments_kept = 0, collected = 1 WHERE tenant = $2 AND id = $3";
        transaction.execute_many(sql, &bodies).await?;
        let sql = "DELETE FROM approval_votes WHERE tenant = $1 AND approval = $2";
        transaction.execute_many(sql, &names).await?;
        Ok(count(rows.len()))
    }
}

/// Ends these, all of them held, and records it.
async fn end<T: Transaction>(
    transaction: &mut T,
    rows: &[Row],
    (status, reason): (ApprovalStatus, &str),
    now: Timestamp,
) -> Result<u32, Failure> {
    let (mut updates, mut events) = (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
    for held in rows {
        let approval = read(held)?;
        let ended = approval.ended(status, reason, now);
        let ended = ended.ok_or_else(|| SqlError::Corrupt(format!("status of {}", approval.id)))?;
        let stamp = Stamp { tenant: ended.tenant.clone(), actor: PrincipalId::system(), time: now };
        updates.push(row(&ended)?);
        events.push(event_row(&stamp, entry(&ended, ApprovalHappening::Ended))?);
    }
    transaction.execute_many(UPDATE, &updates).await?;
    record_rows(transaction, &events).await?;
    Ok(count(rows.len()))
}

fn count(rows: usize) -> u32 {
    u32::try_from(rows).unwrap_or(u32::MAX)
}
