//! What calls leave on the conversations that they belong to, and what an agent has done so far.

use std::collections::BTreeMap;
use std::time::Duration;

use toolgate_gate::ports::ledger::{Admit, History, HistoryQuery, MarkScope};
use toolgate_model::hook::RunId;
use toolgate_model::id::InvocationId;
use toolgate_model::principal::TenantId;
use toolgate_model::time::Timestamp;

use super::Operation;
use crate::sql::{Failure, Row, SqlError, Value};
use crate::transaction::{Transaction, values};

/// How many are forgotten in one transaction.
pub const BATCH: u32 = 500;
/// How long a mark is kept after it was last made.
const KEPT_FOR: Duration = Duration::from_secs(30 * 24 * 3600);

/// The calls of an agent since some time. The ids are found first: by itself, SQLite would look at those of all agents.
const OF_THE_DAY: &str = "SELECT COUNT(*), CAST(COALESCE(SUM(cost), 0) AS BIGINT) FROM invocations \
     WHERE tenant = $1 AND id IN (SELECT id FROM invocations WHERE tenant = $1 AND agent = $2 AND id >= $3) \
     AND created_at >= $4 AND status <> 'denied'";
/// The calls of an execution, whoever made them.
const OF_THE_RUN: &str = "SELECT COUNT(*), CAST(COALESCE(SUM(cost), 0) AS BIGINT) FROM invocations \
     WHERE tenant = $1 AND id IN (SELECT id FROM invocations WHERE tenant = $1 AND run = $2) AND status <> 'denied'";

/// Writes down what these calls leave on their conversations.
pub async fn leave<T: Transaction>(transaction: &mut T, calls: &[(usize, &Admit)]) -> Result<(), Failure> {
    // In order, as everybody writes them, and each once.
    let mut marks: BTreeMap<(&TenantId, &MarkScope, &str), Timestamp> = BTreeMap::new();
    for (_, admit) in calls {
        let Some(left) = &admit.marks else { continue };
        for label in &left.labels {
            let time = admit.stamp.time;
            let last = marks.entry((&admit.stamp.tenant, &left.scope, label)).or_insert(time);
            *last = time.max(*last);
        }
    }
    if marks.is_empty() {
        return Ok(());
    }
    let rows: Vec<Vec<Value>> = marks
        .into_iter()
        .map(|((tenant, scope, label), time)| {
            values![tenant, &scope.agent, scope.session.as_str(), label, time].to_vec()
        })
        .collect();
    // A mark grows no older because somebody's clock is slow.
    let sql = "INSERT INTO session_marks (tenant, agent, session, label, marked_at) VALUES ($1, $2, $3, $4, $5) \
         ON CONFLICT (tenant, agent, session, label) DO UPDATE SET marked_at = excluded.marked_at \
         WHERE excluded.marked_at > session_marks.marked_at";
    transaction.execute_many(sql, &rows).await?;
    Ok(())
}

/// Reads what an agent has done so far.
pub struct ReadHistory {
    /// What is asked.
    pub query: HistoryQuery,
}

impl Operation for ReadHistory {
    type Output = History;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<History, Failure> {
        let HistoryQuery { tenant, scope, run, marks_since, since } = &self.query;
        let sql = "SELECT label FROM session_marks WHERE tenant = $1 AND agent = $2 AND session = $3 \
             AND marked_at >= $4";
        let marks = transaction.query(sql, values![tenant, &scope.agent, scope.session.as_str(), *marks_since]).await?;
        let today = match *since {
            Some(since) => {
                // Ids sort by the time of arrival: the first that can be meant lets the index by id be used.
                let first = InvocationId::new(since, [0; 10]);
                transaction.query_optional(OF_THE_DAY, values![tenant, &scope.agent, first, since]).await?
            }
            None => None,
        };
        let (calls_today, cost_today) = sums(today.as_ref())?;
        let in_run = match run {
            Some(run) if since.is_some() => {
                transaction.query_optional(OF_THE_RUN, values![tenant, RunId::as_str(run)]).await?
            }
            _ => None,
        };
        let (calls_in_run, cost_in_run) = sums(in_run.as_ref())?;
        Ok(History {
            marks: marks.iter().map(|row| row.text(0).map(str::to_owned)).collect::<Result<_, _>>()?,
            calls_today,
            cost_today,
            calls_in_run,
            cost_in_run,
        })
    }
}

/// How many calls, and what they cost.
fn sums(row: Option<&Row>) -> Result<(u64, u64), SqlError> {
    row.map_or(Ok((0, 0)), |row| Ok((row.count(0)?, row.count(1)?)))
}

/// Forgets a batch of marks that are old enough.
pub struct ForgetMarks {
    /// Now.
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
        Ok(transaction.execute(&sql, values![self.now.minus(KEPT_FOR), BATCH]).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::migration::SQLITE;

    #[test]
    fn what_an_agent_did_is_found_without_looking_at_what_others_did() {
        let connection = rusqlite::Connection::open_in_memory().unwrap();
        for migration in SQLITE {
            connection.execute_batch(migration.sql).unwrap();
        }
        for (sql, index) in [
            (OF_THE_DAY, "invocations_of_agent (tenant=? AND agent=? AND id>?)"),
            (OF_THE_RUN, "invocations_of_run (tenant=? AND run=?)"),
        ] {
            let mut plan = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let values = vec![None::<String>; plan.parameter_count()];
            let steps = plan.query_map(rusqlite::params_from_iter(values), |row| row.get(3)).unwrap();
            let steps: Vec<String> = steps.collect::<Result<_, _>>().unwrap();
            assert!(steps.iter().any(|step| step.ends_with(&format!("INDEX {index}"))), "{steps:?}");
            assert!(steps.iter().any(|step| step.ends_with("PRIMARY KEY (tenant=? AND id=?)")), "{steps:?}");
        }
    }
}
