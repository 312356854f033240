//! Work by the clock: overdue tasks, expired leases, coordinators whose time or heartbeats have ended.

use std::collections::BTreeSet;

use toolgate_gate::ports::ledger::AuditContext;
use toolgate_gate::refusal::Refusal;
use toolgate_model::id::{CoordinatorId, IntentId, LeaseId, TaskId};
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::time::Timestamp;
use toolgate_model::work::{CoordinatorStatus, LeaseStatus, TaskStatus};

use super::endings::{Leaving, move_task};
use super::{coordinator_rows, coordinators, count_change, leases, task_rows};
use crate::ledger::{Engine, SqlLedger};
use crate::operation::Operation;
use crate::operation::sweeping::{Readable, Swept};
use crate::sql::{Failure, Row};
use crate::transaction::{Transaction, values};

/// The maximum number of intents that are looked at in one transaction.
const BATCH: u32 = 50;

impl<E: Engine> SqlLedger<E> {
    /// Sweeps until nothing is due.
    pub(super) async fn sweep_work_in_batches(&self, now: Timestamp) -> Result<u64, Refusal> {
        // Most of the time nothing is due, and a read keeps the cached grants of all agents.
        if !self.engine.read(IsAnythingDue { now }).await? {
            return Ok(0);
        }
        self.in_batches(|passed_over| SweepWork { now, passed_over }).await?.report()
    }
}

struct IsAnythingDue {
    now: Timestamp,
}

impl Operation for IsAnythingDue {
    type Output = bool;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<bool, Failure> {
        let sql = format!("{} LIMIT 1", DUE);
        Ok(!transaction.query(&sql, values![self.now]).await?.is_empty())
    }
}

/// The intents with something due.
const DUE: &str = "SELECT intent FROM tasks WHERE due <= $1 \
     UNION SELECT intent FROM leases WHERE ended_at IS NULL AND expires_at <= $1 \
     UNION SELECT intent FROM coordinators WHERE due <= $1";

/// Everything that is due in a batch of intents. Intents that another transaction holds are skipped: that
/// transaction, or the next sweep, will do it.
struct SweepWork {
    now: Timestamp,
    passed_over: u32,
}

impl Operation for SweepWork {
    type Output = Swept;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Swept, Failure> {
        let sql = format!(
            "SELECT id, tenant FROM intents WHERE id IN ({DUE}) ORDER BY id LIMIT $2 OFFSET $3{}",
            T::FOR_UPDATE_SKIPPING
        );
        let rows = transaction.query(&sql, values![self.now, BATCH, self.passed_over]).await?;
        let full = u32::try_from(rows.len()).unwrap_or(u32::MAX) >= BATCH;
        let intents =
            Readable::of(&rows, |row: &Row| Ok((row.parsed(0, IntentId::parse)?, row.parsed(1, TenantId::parse)?)));
        let mut unreadable = intents.unreadable;
        let (mut done, mut tenants) = (0, BTreeSet::new());
        for (intent, tenant) in intents.items {
            let by = AuditContext { tenant: tenant.clone(), actor: PrincipalId::system(), time: self.now };
            match sweep(transaction, &by, intent).await {
                Ok((changes, coordinators_changed)) => {
                    done += changes;
                    if coordinators_changed {
                        tenants.insert(tenant);
                    }
                }
                Err(Failure::Sql(crate::sql::SqlError::Corrupt(reason))) => unreadable.push(reason),
                Err(failure) => return Err(failure),
            }
        }
        for tenant in tenants {
            count_change(transaction, &tenant).await?;
        }
        Ok(Swept { done, full, unreadable })
    }
}

/// Does what is due below one intent; returns the number of changes, and whether coordinators are among them.
async fn sweep<T: Transaction>(
    transaction: &mut T,
    by: &AuditContext,
    intent: IntentId,
) -> Result<(u32, bool), Failure> {
    let mut done = 0;
    let due = "SELECT id FROM leases WHERE intent = $1 AND ended_at IS NULL AND expires_at <= $2 ORDER BY id";
    let expired = transaction.query(due, values![intent, by.time]).await?;
    for row in &expired {
        let id = row.parsed(0, LeaseId::parse)?;
        let sql = format!("SELECT {} FROM leases WHERE id = $1", leases::COLUMNS);
        if let Some(row) = transaction.query_optional(&sql, values![id]).await? {
            leases::expire(transaction, by, &leases::read(&row)?).await?;
            done += 1;
        }
    }
    let due = "SELECT id FROM tasks WHERE intent = $1 AND due <= $2 ORDER BY id";
    let overdue = transaction.query(due, values![intent, by.time]).await?;
    for row in &overdue {
        let id = row.parsed(0, TaskId::parse)?;
        if let Some(mut task) = task_rows::one(transaction, intent, id).await?
            && task.due.is_some_and(|due| due <= by.time)
        {
            let reason = match task.deadline {
                Some(deadline) if deadline <= by.time => "the deadline has passed",
                _ => "the task ran longer than its timeout",
            };
            task.details.error = Some(reason.to_owned());
            let leaving = Leaving { reason: Some(reason), lease: LeaseStatus::Revoked };
            move_task(transaction, by, &mut task, TaskStatus::Failed, leaving).await?;
            done += 1;
        }
    }
    let due =
        format!("SELECT {} FROM coordinators WHERE intent = $1 AND due <= $2 ORDER BY id", coordinator_rows::COLUMNS);
    let due = transaction.query(&due, values![intent, by.time]).await?;
    for row in &due {
        let coordinator = coordinator_rows::read(row)?;
        row.parsed(0, CoordinatorId::parse)?;
        if coordinator.expires_at.is_some_and(|end| end <= by.time) {
            coordinators::end(transaction, by, &coordinator, CoordinatorStatus::Completed).await?;
        } else {
            coordinators::lapse(transaction, by, &coordinator).await?;
        }
        done += 1;
    }
    Ok((done, !due.is_empty()))
}
