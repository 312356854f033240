//! Refused calls that are counted instead of recorded one by one. The counts are rows until they are summed up in one
//! event for each principal, so that none is lost with the process.

use std::collections::BTreeMap;

use toolgate_gate::ports::ledger::{AuditContext, DenialCount};
use toolgate_model::event::{EventPayload, ToolDenialsCounted};
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::time::Timestamp;

use super::Operation;
use super::record::{Entry, record};
use super::sweeping::Readable;
use crate::sql::{Failure, Value};
use crate::transaction::{Transaction, values};

/// The number of principals per query.
const BATCH: u32 = 100;

pub struct CountDenials {
    /// Each principal and code once, in order: concurrent transactions lock the rows in the same order.
    pub counts: Vec<DenialCount>,
}

impl Operation for CountDenials {
    type Output = ();

    const CHANGES_AUTHORITY: bool = false;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<(), Failure> {
        let sql = "INSERT INTO denial_counts (tenant, principal, code, count, first_at, last_at) \
             VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (tenant, principal, code) DO UPDATE \
             SET count = denial_counts.count + excluded.count, last_at = excluded.last_at";
        let rows = self.counts.iter().map(|DenialCount { tenant, principal, code, count, first, last }| {
            values![tenant, principal, *code, *count, *first, *last].to_vec()
        });
        let rows: Vec<Vec<Value<'_>>> = rows.collect();
        transaction.execute_many(sql, &rows).await?;
        Ok(())
    }
}

/// Reads the principals whose refused calls were counted from before this time.
pub struct ListDenialCounts {
    pub before: Timestamp,
}

impl Operation for ListDenialCounts {
    type Output = Vec<(TenantId, PrincipalId)>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Vec<(TenantId, PrincipalId)>, Failure> {
        let sql = "SELECT DISTINCT tenant, principal FROM denial_counts WHERE first_at < $1 LIMIT $2";
        let rows = transaction.query(sql, values![self.before, BATCH]).await?;
        let read = Readable::of(&rows, |row| Ok((row.parsed(0, TenantId::parse)?, row.parsed(1, PrincipalId::parse)?)));
        Ok(read.logged())
    }
}

/// Records the counts of a principal in one event; returns the number of calls.
pub struct SumUpDenials {
    pub tenant: TenantId,
    pub principal: PrincipalId,
    pub now: Timestamp,
}

impl Operation for SumUpDenials {
    type Output = u64;

    const CHANGES_AUTHORITY: bool = false;
    const CAN_WAIT: bool = true;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<u64, Failure> {
        let sql =
            "DELETE FROM denial_counts WHERE tenant = $1 AND principal = $2 RETURNING code, count, first_at, last_at";
        let rows = transaction.query(sql, values![&self.tenant, &self.principal]).await?;
        let (mut codes, mut times) = (BTreeMap::new(), Vec::new());
        for row in &rows {
            codes.insert(row.text(0)?.to_owned(), row.count(1)?);
            times.extend([row.time(2)?, row.time(3)?]);
        }
        // None where another replica was first.
        let (Some(first), Some(last)) = (times.iter().min().copied(), times.iter().max().copied()) else {
            return Ok(0);
        };
        let denials = ToolDenialsCounted::new(self.principal.clone(), codes, first, last);
        let count = denials.count;
        let audit = AuditContext { tenant: self.tenant.clone(), actor: self.principal.clone(), time: self.now };
        let entry = Entry::about(EventPayload::ToolDenialsCounted(denials), &self.principal);
        record(transaction, &audit, entry).await?;
        Ok(count)
    }
}
