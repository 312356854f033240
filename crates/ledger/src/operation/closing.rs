//! Closes calls that were cut off: their gate process has stopped, and nothing will settle them. They are recorded as
//! unknown and never retried automatically.

use std::time::Duration;

use toolgate_gate::ports::ledger::AuditContext;
use toolgate_model::hook::ToolReturned;
use toolgate_model::invocation::{Invocation, InvocationError, InvocationStatus};
use toolgate_model::principal::PrincipalId;
use toolgate_model::time::Timestamp;

use super::invocations::{COLUMNS, invoked, read};
use super::record::{Recorded, record_each};
use super::spending::Adjustments;
use super::sweeping::{Readable, Swept};
use super::{Operation, in_flight};
use crate::sql::{Failure, Row, Value};
use crate::transaction::{Transaction, values};

/// Where the accounts of a call are behind [`COLUMNS`].
const ACCOUNTS: usize = 29;
/// The maximum number closed in one transaction.
pub const BATCH: u32 = 200;
/// How long a call can be repeated under its idempotency key with the same result.
pub const REMEMBERED_FOR: Duration = Duration::from_secs(24 * 3600);

/// Closes a batch of calls that were cut off.
pub struct CloseCalls {
    pub now: Timestamp,
    /// Only those past their deadline; `false` if no other process can be executing any.
    pub only_overdue: bool,
    /// The number of rows to skip.
    pub passed_over: u32,
}

impl Operation for CloseCalls {
    type Output = Swept;

    const CHANGES_AUTHORITY: bool = false;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Swept, Failure> {
        let before = if self.only_overdue { self.now.as_millis() } else { i64::MAX };
        let skip = T::FOR_UPDATE_SKIPPING;
        let sql = format!(
            "SELECT {COLUMNS}, accounts FROM calls_in_flight WHERE status = 'running' AND deadline < $1 ORDER BY deadline, id \
             LIMIT $2 OFFSET $3{skip}"
        );
        let rows = transaction.query(&sql, values![Value::Integer(before), BATCH, self.passed_over]).await?;
        let read = |row: &Row| Ok((read(row)?, row.optional_text(ACCOUNTS)?.map(str::to_owned)));
        let Readable { items: cut_off, unreadable } = Readable::of(&rows, read);
        let (mut cut_off, accounts): (Vec<Invocation>, Vec<Option<String>>) = cut_off.into_iter().unzip();
        let mut adjustments = Adjustments::default();
        let error = InvocationError {
            code: "OUTCOME_UNKNOWN".to_owned(),
            reason: "the gate stopped while the call was in flight".to_owned(),
        };
        for (invocation, accounts) in cut_off.iter_mut().zip(&accounts) {
            if let Some(accounts) = accounts {
                in_flight::release(&mut adjustments, &invocation.tenant, accounts, invocation.cost);
            }
            // Nobody knows what it has cost.
            invocation.cost = None;
            invocation.status = InvocationStatus::Unknown;
            invocation.error = Some(error.clone());
        }
        let outcomes: Vec<_> = cut_off.iter().map(in_flight::outcome).collect();
        transaction.change_each(&in_flight::settling(&outcomes, &in_flight::settle::<T>())).await?;
        in_flight::forget_denied(transaction, before).await?;
        let by_the_clock: Vec<AuditContext> = cut_off
            .iter()
            .map(|invocation| AuditContext {
                tenant: invocation.tenant.clone(),
                actor: PrincipalId::system(),
                time: self.now,
            })
            .collect();
        let returned = |invocation: &Invocation| {
            let sentence = "the gate stopped while the call was in flight".to_owned();
            invoked(invocation, Some(ToolReturned::error(invocation, &error.code, sentence, None)))
        };
        let each = by_the_clock.iter().zip(&cut_off);
        let events = each.map(|(audit, invocation)| Recorded::new(audit, [returned(invocation)]));
        record_each(transaction, &events.collect::<Result<Vec<_>, _>>()?).await?;
        adjustments.store(transaction).await?;
        Ok(Swept { done: count(cut_off.len()), full: count(rows.len()) >= BATCH, unreadable })
    }
}

fn count(rows: usize) -> u32 {
    u32::try_from(rows).unwrap_or(u32::MAX)
}

/// Forgets a batch of idempotency keys that are old enough.
pub struct ForgetKeys {
    pub now: Timestamp,
}

impl Operation for ForgetKeys {
    type Output = u64;

    const CHANGES_AUTHORITY: bool = false;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<u64, Failure> {
        let sql = "DELETE FROM idempotency_keys WHERE (tenant, agent, key) IN (SELECT tenant, agent, key \
             FROM idempotency_keys WHERE created_at < $1 ORDER BY created_at LIMIT $2)";
        Ok(transaction.execute(sql, values![self.now.minus(REMEMBERED_FOR), BATCH]).await?)
    }
}
