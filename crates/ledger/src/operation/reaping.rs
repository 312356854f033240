//! Reaping: ends approvals that have expired or whose process has stopped, returns ended ones to their waiters, and
//! deletes the arguments some time later.

use std::time::Duration;

use toolgate_gate::ports::ledger::AuditContext;
use toolgate_model::approval::{Approval, ApprovalStatus, TIMED_OUT};
use toolgate_model::event::EventPayload;
use toolgate_model::id::ProcessId;
use toolgate_model::principal::PrincipalId;
use toolgate_model::time::Timestamp;

use super::approvals::{COLUMNS, UPDATE, entry, read, row};
use super::processes::ALIVE_FOR;
use super::record::{Recorded, record_each};
use super::sweeping::{Readable, Swept};
use super::{Operation, detached};
use crate::sql::{Failure, Row, SqlError, Value, json_text};
use crate::transaction::{Transaction, values};

/// The maximum number ended in one transaction.
pub const BATCH: u32 = 100;
/// How long after its end an approval still shows the arguments, and a decision can be repeated under its idempotency
/// key.
const KEPT_FOR: Duration = Duration::from_secs(24 * 3600);
/// The reason for a call whose process has stopped.
pub const ORPHANED: &str = "the gate process that held the call has stopped; the call was not made, and can be made \
    again";
/// The reason for one that was approved before, and neither admitted nor refused.
const ABANDONED: &str =
    "approved, but the gate process that held the call has stopped; the call was not made, and can be made again";
/// How long an approved call of a live process may take to its admission. Older ones were examined before, unless no
/// process was alive then.
const ON_ITS_WAY: Duration = Duration::from_secs(600);

/// Ends a batch of expired approvals.
pub struct EndOverdue {
    pub now: Timestamp,
    /// The number of rows to skip.
    pub passed_over: u32,
}

impl Operation for EndOverdue {
    type Output = Swept;

    const CHANGES_AUTHORITY: bool = false;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Swept, Failure> {
        let skip = T::FOR_UPDATE_SKIPPING;
        let sql = format!(
            "SELECT {COLUMNS} FROM approvals WHERE status = 'pending' AND expires_at <= $1 ORDER BY expires_at, id \
             LIMIT $2 OFFSET $3{skip}"
        );
        let rows = transaction.query(&sql, values![self.now, BATCH, self.passed_over]).await?;
        let timed_out = |approval: &Approval| approval.ended(ApprovalStatus::TimedOut, TIMED_OUT, self.now);
        end(transaction, &rows, timed_out, self.now).await
    }
}

/// Ends a batch of approvals that calls of dead processes waited for.
pub struct EndOrphans {
    /// Which processes are dead.
    pub dead: DeadProcesses,
    pub now: Timestamp,
    /// The number of rows to skip.
    pub passed_over: u32,
}

impl Operation for EndOrphans {
    type Output = Swept;

    const CHANGES_AUTHORITY: bool = false;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Swept, Failure> {
        let (dead, skip) = (self.dead.condition(), T::FOR_UPDATE_SKIPPING);
        let sql = format!(
            "SELECT {COLUMNS} FROM approvals WHERE status = 'pending' AND {dead} ORDER BY process, created_at, id \
             LIMIT $3 OFFSET $4{skip}"
        );
        let [process, alive_since] = self.dead.parameters(self.now);
        let parameters = values![process, alive_since, BATCH, self.passed_over];
        let rows = transaction.query(&sql, parameters).await?;
        let orphaned = |approval: &Approval| approval.ended(ApprovalStatus::Orphaned, ORPHANED, self.now);
        end(transaction, &rows, orphaned, self.now).await
    }
}

/// Orphans a batch of granted approvals whose calls ended with their process before they were admitted or refused.
pub struct EndAbandoned {
    /// Which processes are dead.
    pub dead: DeadProcesses,
    pub now: Timestamp,
    /// Whether to examine everything that still has its arguments, and not only what ended recently.
    pub all: bool,
    /// The number of rows to skip.
    pub passed_over: u32,
}

impl Operation for EndAbandoned {
    type Output = Swept;

    const CHANGES_AUTHORITY: bool = false;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Swept, Failure> {
        let (dead, skip) = (self.dead.condition(), T::FOR_UPDATE_SKIPPING);
        // Parameters appear in order, as SQLite counts them; `arguments_kept` matches the index of those with
        // arguments.
        let sql = format!(
            "SELECT {COLUMNS} FROM approvals WHERE {dead} AND arguments_kept = 1 AND resolved_at IS NOT NULL \
             AND resolved_at > $3 AND status = 'approved' AND used_by IS NULL AND NOT EXISTS (SELECT 1 FROM invocations \
             WHERE invocations.tenant = approvals.tenant AND invocations.id = approvals.invocation) \
             AND NOT EXISTS (SELECT 1 FROM calls_in_flight WHERE calls_in_flight.id = approvals.invocation) \
             ORDER BY resolved_at, id LIMIT $4 OFFSET $5{skip}"
        );
        let [process, alive_since] = self.dead.parameters(self.now);
        let since = if self.all { Value::Integer(i64::MIN) } else { Value::from(self.now.minus(ON_ITS_WAY)) };
        let rows = transaction.query(&sql, values![process, alive_since, since, BATCH, self.passed_over]).await?;
        end(transaction, &rows, |approval| approval.abandoned(ABANDONED, self.now), self.now).await
    }
}

/// Which processes are dead, as one of them sees it.
#[derive(Clone, Copy)]
pub struct DeadProcesses {
    /// The process that runs this; it is alive.
    pub process: ProcessId,
    /// Whether other processes may be alive: then only those are dead that were not seen for a while.
    pub shared: bool,
}

impl DeadProcesses {
    /// The condition on a row of `approvals`, over [`Self::parameters`] as `$1` and `$2`.
    fn condition(self) -> String {
        let silent = if self.shared { SILENT } else { "created_at <= $2 AND detached = 0" };
        format!("process <> $1 AND {silent}")
    }

    fn parameters(self, now: Timestamp) -> [Value<'static>; 2] {
        let alive_since = if self.shared { now.minus(ALIVE_FOR).as_millis() } else { i64::MAX };
        [Value::from(self.process), Value::Integer(alive_since)]
    }
}

/// True if the process of an approval had no heartbeat since `$2`. A request counts as a heartbeat. A detached call
/// waits in no process.
const SILENT: &str = "created_at <= $2 AND detached = 0 AND NOT EXISTS (SELECT 1 FROM processes \
     WHERE processes.id = approvals.process AND processes.seen_at > $2)";

/// Whether the process in which the call of this approval waits gave no sign of life for so long that it is dead.
pub async fn waits_in_dead_process<T: Transaction>(
    transaction: &mut T,
    approval: &Approval,
    now: Timestamp,
) -> Result<bool, Failure> {
    let sql = format!("SELECT id FROM approvals WHERE tenant = $1 AND {SILENT} AND id = $3");
    let parameters = values![&approval.tenant, now.minus(ALIVE_FOR), approval.id];
    Ok(transaction.query_optional(&sql, parameters).await?.is_some())
}

/// Whether there is something to collect, so that nothing is written otherwise.
pub struct HasEnded {
    pub process: ProcessId,
}

impl Operation for HasEnded {
    type Output = bool;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<bool, Failure> {
        let sql = "SELECT id FROM approvals WHERE process = $1 AND status <> 'pending' AND collected = 0 LIMIT 1";
        Ok(transaction.query_optional(sql, values![self.process]).await?.is_some())
    }
}

/// Returns the ended approvals of a process, each once.
pub struct CollectApprovals {
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
        Ok(Readable::of(&rows, read).logged())
    }
}

/// Forgets the arguments of a batch of approvals that ended long ago.
pub struct ForgetArguments {
    pub now: Timestamp,
    /// The number of rows to skip.
    pub passed_over: u32,
}

impl Operation for ForgetArguments {
    type Output = Swept;

    const CHANGES_AUTHORITY: bool = false;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Swept, Failure> {
        let skip = T::FOR_UPDATE_SKIPPING;
        let sql = format!(
            "SELECT {COLUMNS} FROM approvals WHERE arguments_kept = 1 AND resolved_at <= $1 ORDER BY resolved_at, id \
             LIMIT $2 OFFSET $3{skip}"
        );
        let rows = transaction.query(&sql, values![self.now.minus(KEPT_FOR), BATCH, self.passed_over]).await?;
        let Readable { items, unreadable } = Readable::of(&rows, read);
        let (mut bodies, mut names) = (Vec::with_capacity(items.len()), Vec::with_capacity(items.len()));
        let forget = |approval| Approval { arguments: None, original_arguments: None, ..approval };
        let items: Vec<Approval> = items.into_iter().map(forget).collect();
        for approval in &items {
            let name = values![&approval.tenant, approval.id];
            bodies.push([&[json_text(approval)?], name].concat());
            names.push(name.to_vec());
        }
        // A process that has not collected it by now never will.
        let sql = "UPDATE approvals SET body = $1, arguments_kept = 0, collected = 1 WHERE tenant = $2 AND id = $3";
        transaction.execute_many(sql, &bodies).await?;
        let sql = "DELETE FROM approval_votes WHERE tenant = $1 AND approval = $2";
        transaction.execute_many(sql, &names).await?;
        Ok(Swept { done: count(names.len()), full: count(rows.len()) >= BATCH, unreadable })
    }
}

/// Ends these, all of them held, and records it.
async fn end<T: Transaction>(
    transaction: &mut T,
    rows: &[Row],
    ended: impl Fn(&Approval) -> Option<Approval> + Send,
    now: Timestamp,
) -> Result<Swept, Failure> {
    let Readable { items, unreadable } = Readable::of(rows, |row| {
        let approval = read(row)?;
        ended(&approval).ok_or_else(|| SqlError::Corrupt(format!("status of {}", approval.id)))
    });
    let (mut updates, mut events) = (Vec::with_capacity(items.len()), Vec::with_capacity(items.len()));
    detached::wake(transaction, items.iter()).await?;
    for ended in &items {
        let audit = AuditContext { tenant: ended.tenant.clone(), actor: PrincipalId::system(), time: now };
        updates.push(row(ended)?);
        events.push(Recorded::new(&audit, [entry(ended, EventPayload::approval_ended(ended))])?);
    }
    transaction.execute_many(UPDATE, &updates).await?;
    record_each(transaction, &events).await?;
    Ok(Swept { done: count(updates.len()), full: count(rows.len()) >= BATCH, unreadable })
}

fn count(rows: usize) -> u32 {
    u32::try_from(rows).unwrap_or(u32::MAX)
}
