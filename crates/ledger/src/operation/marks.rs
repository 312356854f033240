//! The marks that calls leave on their conversations, and the history of an agent.

use std::collections::BTreeMap;
use std::time::Duration;

use toolgate_gate::ports::ledger::{Admit, Counts, History, HistoryQuery, MarkScope};
use toolgate_model::principal::TenantId;
use toolgate_model::time::Timestamp;

use super::{Operation, spending};
use crate::sql::{Failure, Value};
use crate::transaction::{Transaction, values};

/// The maximum number deleted in one transaction.
pub const BATCH: u32 = 500;
/// How long a mark is kept after it was last made.
const KEPT_FOR: Duration = Duration::from_secs(30 * 24 * 3600);

/// Stores the marks of these calls on their conversations.
pub async fn leave<T: Transaction>(transaction: &mut T, calls: &[(usize, &Admit)]) -> Result<(), Failure> {
    // Each once, in the global lock order.
    let mut marks: BTreeMap<(&TenantId, &MarkScope, &str), Timestamp> = BTreeMap::new();
    for (_, admit) in calls {
        let Some(left) = &admit.marks else { continue };
        for label in &left.labels {
            let time = admit.audit.time;
            let last = marks.entry((&admit.audit.tenant, &left.scope, label)).or_insert(time);
            *last = time.max(*last);
        }
    }
    if marks.is_empty() {
        return Ok(());
    }
    write(transaction, marks.into_iter().map(|((tenant, scope, label), time)| (tenant, scope, label, time))).await
}

/// Stores marks, which must be in their global order.
pub async fn write<'a, T: Transaction>(
    transaction: &mut T,
    marks: impl Iterator<Item = (&'a TenantId, &'a MarkScope, &'a str, Timestamp)> + Send,
) -> Result<(), Failure> {
    let rows: Vec<Vec<Value<'_>>> = marks
        .map(|(tenant, scope, label, time)| values![tenant, &scope.agent, scope.session.as_str(), label, time].to_vec())
        .collect();
    // A slow clock must not make a mark older.
    let sql = "INSERT INTO session_marks (tenant, agent, session, label, marked_at) VALUES ($1, $2, $3, $4, $5) \
         ON CONFLICT (tenant, agent, session, label) DO UPDATE SET marked_at = excluded.marked_at \
         WHERE excluded.marked_at > session_marks.marked_at";
    transaction.execute_many(sql, &rows).await?;
    Ok(())
}

/// Reads the history of an agent.
pub struct ReadHistory {
    pub query: HistoryQuery,
}

impl Operation for ReadHistory {
    type Output = History;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<History, Failure> {
        let HistoryQuery { tenant, scope, run, marks_since, since } = &self.query;
        let sql = "SELECT label FROM session_marks WHERE tenant = $1 AND agent = $2 AND session = $3 \
             AND marked_at >= $4";
        let marks = transaction.query(sql, values![tenant, &scope.agent, scope.session.as_str(), *marks_since]).await?;
        let counts = match *since {
            Some(since) => spending::read(transaction, tenant, &scope.agent, run.as_ref(), since).await?,
            None => Counts::default(),
        };
        Ok(History { marks: marks.iter().map(|row| row.text(0).map(str::to_owned)).collect::<Result<_, _>>()?, counts })
    }
}

/// Forgets a batch of marks and counts that are old enough.
pub struct ForgetMarks {
    pub now: Timestamp,
}

impl Operation for ForgetMarks {
    type Output = u64;

    const CHANGES_AUTHORITY: bool = false;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<u64, Failure> {
        let skip = T::FOR_UPDATE_SKIPPING;
        let sql = format!(
            "DELETE FROM session_marks WHERE (tenant, agent, session, label) IN (SELECT tenant, agent, session, label \
             FROM session_marks WHERE marked_at < $1 ORDER BY marked_at LIMIT $2{skip})"
        );
        let forgotten = transaction.execute(&sql, values![self.now.minus(KEPT_FOR), BATCH]).await?;
        // Rebuilt from the calls themselves if they are counted again.
        let sql = format!(
            "DELETE FROM spending WHERE (tenant, account) IN (SELECT tenant, account FROM spending \
             WHERE changed_at < $1 AND (day > 0 OR account LIKE 'run/%') ORDER BY changed_at LIMIT $2{skip})"
        );
        Ok(forgotten + transaction.execute(&sql, values![self.now.minus(KEPT_FOR), BATCH]).await?)
    }
}
