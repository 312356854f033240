//! What agents have called and spent: policies read it, and the admission compares it, so that concurrent calls, on any
//! replica, cannot all be decided on the same counts.
//!
//! A row is created when counts are first read in an admission, from the existing calls, and is updated by every later
//! admission that policies decide. Without rules that read counts there is no row, and nothing is written.

use std::collections::{BTreeMap, BTreeSet};

use toolgate_gate::ports::ledger::{Admit, CountedRun, Counts, beginning_of_day};
use toolgate_model::constraint::Cost;
use toolgate_model::id::InvocationId;
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::time::Timestamp;

use crate::sql::{Failure, Row, SqlError, Value};
use crate::transaction::{Transaction, values};

/// The calls of an agent since some time. The ids are found first: on its own, SQLite would read those of all agents.
const OF_THE_DAY: &str = "SELECT COUNT(*), CAST(COALESCE(SUM(cost), 0) AS BIGINT) FROM (SELECT cost FROM invocations \
     WHERE tenant = $1 AND id IN (SELECT id FROM invocations WHERE tenant = $1 AND agent = $2 AND id >= $3) \
     AND created_at >= $4 AND status <> 'denied' \
     UNION ALL SELECT cost FROM calls_in_flight WHERE tenant = $1 AND agent = $2 AND id >= $3 AND created_at >= $4 \
     AND status = 'running') AS calls";
/// The calls of a run that this principal named, whichever agents made them.
const OF_THE_RUN: &str = "SELECT COUNT(*), CAST(COALESCE(SUM(cost), 0) AS BIGINT) FROM (SELECT cost FROM invocations \
     WHERE tenant = $1 AND id IN (SELECT id FROM invocations WHERE tenant = $1 AND run = $2) AND actor = $3 \
     AND agent <> $3 AND status <> 'denied' \
     UNION ALL SELECT cost FROM calls_in_flight WHERE tenant = $1 AND run = $2 AND actor = $3 AND agent <> $3 \
     AND status = 'running') AS calls";
const ROW: &str =
    "SELECT day, calls, cost FROM call_counts WHERE tenant = $1 AND agent = $2 AND owner = $3 AND run = $4";
const KEEP: &str = "INSERT INTO call_counts (tenant, agent, owner, run, day, calls, cost, changed_at) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (tenant, agent, owner, run) \
     DO UPDATE SET day = excluded.day, calls = excluded.calls, cost = excluded.cost, changed_at = excluded.changed_at";

/// What is counted together: the calls of an agent in a day, or the calls of a run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Counted {
    Day { tenant: TenantId, agent: PrincipalId },
    Run { tenant: TenantId, run: CountedRun },
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sum {
    /// The day that it is counted for; zero for an execution, which may last longer.
    day: i64,
    calls: u64,
    cost: u64,
}

impl Counted {
    fn key(&self) -> [Value<'_>; 4] {
        let nothing = || Value::from("");
        match self {
            Self::Day { tenant, agent } => [Value::from(tenant), Value::from(agent), nothing(), nothing()],
            Self::Run { tenant, run } => {
                [Value::from(tenant), nothing(), Value::from(&run.owner), Value::from(run.run.as_str())]
            }
        }
    }

    async fn read<T: Transaction>(&self, transaction: &mut T, lock: &str) -> Result<Option<Sum>, Failure> {
        let row = transaction.query_optional(&format!("{ROW}{lock}"), &self.key()).await?;
        let read = |row: &Row| Ok(Sum { day: row.integer(0)?, calls: row.count(1)?, cost: row.count(2)? });
        Ok(row.as_ref().map(read).transpose().map_err(|error: SqlError| error)?)
    }

    /// The same from the calls themselves.
    async fn scan<T: Transaction>(&self, transaction: &mut T, day: Timestamp) -> Result<Sum, Failure> {
        let row = match self {
            Self::Day { tenant, agent } => {
                // Ids sort by time: the first possible id allows the use of the index by id.
                let first = InvocationId::new(day, [0; 10]);
                transaction.query_optional(OF_THE_DAY, values![tenant, agent, first, day]).await?
            }
            Self::Run { tenant, run } => {
                transaction.query_optional(OF_THE_RUN, values![tenant, run.run.as_str(), &run.owner]).await?
            }
        };
        let (calls, cost) = row.map_or(Ok((0, 0)), |row| Ok::<_, SqlError>((row.count(0)?, row.count(1)?)))?;
        Ok(Sum { calls, cost, ..Sum::default() }.on(self, day))
    }
}

impl Sum {
    /// The sum for this day. A sum for an earlier day has ended; a later day means that a clock is slow.
    fn on(self, counted: &Counted, day: Timestamp) -> Self {
        match counted {
            Counted::Run { .. } => self,
            Counted::Day { .. } if self.day != 0 && self.day < day.as_millis() => {
                Self { day: day.as_millis(), ..Self::default() }
            }
            Counted::Day { .. } => Self { day: self.day.max(day.as_millis()), ..self },
        }
    }
}

/// What an agent has called and spent, today and in a run.
pub async fn read<T: Transaction>(
    transaction: &mut T,
    tenant: &TenantId,
    agent: &PrincipalId,
    run: Option<&CountedRun>,
    day: Timestamp,
) -> Result<Counts, Failure> {
    let today = Counted::Day { tenant: tenant.clone(), agent: agent.clone() };
    let run = run.map(|run| Counted::Run { tenant: tenant.clone(), run: run.clone() });
    let mut sums = Vec::new();
    for counted in std::iter::once(&today).chain(&run) {
        sums.push(match counted.read(transaction, "").await? {
            Some(sum) => sum.on(counted, day),
            None => counted.scan(transaction, day).await?,
        });
    }
    Ok(counts_of(&sums))
}

/// The counts of the day, and of the run if there is one.
fn counts_of(sums: &[Sum]) -> Counts {
    let today = sums.first().copied().unwrap_or_default();
    let run = sums.get(1).copied().unwrap_or(today);
    Counts { calls_today: today.calls, cost_today: today.cost, calls_in_run: run.calls, cost_in_run: run.cost }
}

/// The counts of some calls, held by the transaction.
#[derive(Default)]
pub struct HeldCounts {
    sums: BTreeMap<Counted, Sum>,
    changed: BTreeMap<Counted, Timestamp>,
}

impl HeldCounts {
    /// Locks the counts of these calls. If policies decide none of them, no statement is run.
    ///
    /// INVARIANT: if a call was decided on counts, the transaction holds its principals exclusively, so that no other
    /// admission comes between its call and its count.
    pub async fn hold<'a, T: Transaction>(
        transaction: &mut T,
        calls: impl Iterator<Item = &'a Admit> + Clone,
    ) -> Result<Self, Failure> {
        let all: BTreeSet<Counted> = calls.clone().filter(|admit| admit.policies > 0).flat_map(counted).collect();
        let judged: BTreeMap<Counted, Timestamp> = calls
            .filter(|admit| admit.counts.is_some())
            .flat_map(|admit| counted(admit).into_iter().map(|counted| (counted, day(admit))))
            .collect();
        let mut held = Self::default();
        // In the global lock order.
        for counted in all {
            let sum = match (counted.read(transaction, T::FOR_UPDATE).await?, judged.get(&counted)) {
                (Some(sum), _) => sum,
                (None, Some(day)) => counted.scan(transaction, *day).await?,
                (None, None) => continue,
            };
            held.sums.insert(counted, sum);
        }
        Ok(held)
    }

    /// Whether the counts are still those that the call was decided on.
    pub fn agree(&self, admit: &Admit) -> bool {
        let Some(judged) = admit.counts else { return true };
        let sums: Vec<Sum> = counted(admit)
            .iter()
            .map(|counted| self.sums.get(counted).copied().unwrap_or_default().on(counted, day(admit)))
            .collect();
        judged == counts_of(&sums)
    }

    /// Counts a call that is admitted.
    pub fn take(&mut self, admit: &Admit) {
        for counted in counted(admit) {
            let Some(sum) = self.sums.get_mut(&counted) else { continue };
            let before = sum.on(&counted, day(admit));
            let cost = admit.invocation.cost.map_or(0, Cost::micros);
            *sum = Sum { calls: before.calls.saturating_add(1), cost: before.cost.saturating_add(cost), ..before };
            self.changed.insert(counted, admit.audit.time);
        }
    }

    /// Stores the new counts.
    pub async fn keep<T: Transaction>(self, transaction: &mut T) -> Result<(), Failure> {
        if self.changed.is_empty() {
            return Ok(());
        }
        let rows: Vec<Vec<Value<'_>>> = self
            .changed
            .iter()
            .filter_map(|(counted, time)| {
                let Sum { day, calls, cost } = *self.sums.get(counted)?;
                let [tenant, agent, owner, run] = counted.key();
                Some(vec![
                    tenant,
                    agent,
                    owner,
                    run,
                    Value::Integer(day),
                    Value::from(Some(calls)),
                    Value::from(Some(cost)),
                    Value::from(*time),
                ])
            })
            .collect();
        transaction.execute_many(KEEP, &rows).await?;
        Ok(())
    }
}

/// What a call is counted in.
fn counted(admit: &Admit) -> Vec<Counted> {
    let tenant = || admit.audit.tenant.clone();
    let day = Counted::Day { tenant: tenant(), agent: admit.invocation.agent.clone() };
    let run = admit.run.as_ref().map(|run| Counted::Run { tenant: tenant(), run: run.clone() });
    std::iter::once(day).chain(run).collect()
}

fn day(admit: &Admit) -> Timestamp {
    beginning_of_day(admit.audit.time)
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
