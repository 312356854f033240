//! What accounts have called and spent: budgets limit it, policies read it, and the admission compares and reserves it, so
//! that concurrent calls, on any replica, cannot exceed a limit together or all be decided on the same counts.
//!
//! A row is created when a budget is set, or when an admission first needs it, from the existing calls. Every later
//! admission that the account concerns updates it; settlements write the difference to what a call has really cost, and
//! calls that were never made are taken back. Without budgets and rules that read counts there is no row, and nothing is
//! written.

use std::collections::BTreeMap;

use toolgate_gate::ports::ledger::{CountedRun, Counts, beginning_of_day};
use toolgate_model::id::InvocationId;
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::spending::{Account, Used};
use toolgate_model::time::Timestamp;

use super::listing::padded;
use crate::sql::{Failure, Row, SqlError, Value};
use crate::transaction::{Transaction, values};

pub use self::adjustments::Adjustments;
pub use self::held::{Charge, HeldSpending, Taken};

mod adjustments;
pub mod budgets;
mod held;
pub mod stops;

/// The calls of an agent since some time. The ids are found first: on its own, SQLite would read those of all agents.
const OF_AGENT: &str = "SELECT COUNT(*), CAST(COALESCE(SUM(cost), 0) AS BIGINT) FROM (SELECT cost FROM invocations \
     WHERE tenant = $1 AND id IN (SELECT id FROM invocations WHERE tenant = $1 AND agent = $2 AND id >= $3) \
     AND created_at >= $4 AND status <> 'denied' AND status <> 'unknown' \
     UNION ALL SELECT cost FROM calls_in_flight WHERE tenant = $1 AND agent = $2 AND id >= $3 AND created_at >= $4 \
     AND status = 'running') AS calls";
/// The calls of all agents since some time.
const OF_TENANT: &str = "SELECT COUNT(*), CAST(COALESCE(SUM(cost), 0) AS BIGINT) FROM (SELECT cost FROM invocations \
     WHERE tenant = $1 AND id >= $2 AND created_at >= $3 AND status <> 'denied' AND status <> 'unknown' \
     UNION ALL SELECT cost FROM calls_in_flight WHERE tenant = $1 AND id >= $2 AND created_at >= $3 \
     AND status = 'running') AS calls";
/// The calls of a run that this principal named, whichever agents made them.
const OF_RUN: &str = "SELECT COUNT(*), CAST(COALESCE(SUM(cost), 0) AS BIGINT) FROM (SELECT cost FROM invocations \
     WHERE tenant = $1 AND id IN (SELECT id FROM invocations WHERE tenant = $1 AND run = $2) AND actor = $3 \
     AND agent <> $3 AND status <> 'denied' AND status <> 'unknown' \
     UNION ALL SELECT cost FROM calls_in_flight WHERE tenant = $1 AND run = $2 AND actor = $3 AND agent <> $3 \
     AND status = 'running') AS calls";
const COLUMNS: &str = "account, day, calls, cost, noted, since";

/// What an account has used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sum {
    /// The day that it is counted for; zero for an account that has no end.
    day: i64,
    used: Used,
    /// The events that were recorded in this period.
    noted: i64,
}

impl Sum {
    /// A row of [`COLUMNS`].
    fn read(row: &Row) -> Result<Self, SqlError> {
        let used = Used { calls: row.count(2)?, cost: row.count(3)? };
        Ok(Self { day: row.integer(1)?, used, noted: row.integer(4)? })
    }

    /// The sum for this day. A sum for an earlier day has ended; a later day means that a clock is slow.
    fn on(self, account: &Account, day: Timestamp) -> Self {
        let day = day.as_millis();
        match account.is_daily() {
            false => self,
            true if self.day != 0 && self.day < day => Self { day, ..Self::default() },
            true => Self { day: self.day.max(day), ..self },
        }
    }
}

/// How an account and the day that it is counted for are written into the row of a call in flight.
fn line(account: &str, day: i64) -> String {
    format!("\n{day} {account}\n")
}

/// What is written by [`line`], with the accounts in their stored form.
fn lines(text: &str) -> impl Iterator<Item = (i64, &str)> {
    text.lines().filter_map(|line| {
        let (day, account) = line.split_once(' ')?;
        Some((day.parse().ok()?, account))
    })
}

/// Reads the rows of these accounts, in the order in which they are locked.
async fn rows<T: Transaction>(
    transaction: &mut T,
    tenant: &TenantId,
    accounts: impl Iterator<Item = String>,
    lock: &str,
) -> Result<BTreeMap<String, Row>, Failure> {
    let (places, mut parameters) = padded(accounts.map(Value::from).collect());
    if parameters.is_empty() {
        return Ok(BTreeMap::new());
    }
    parameters.push(Value::from(tenant));
    let last = parameters.len();
    let sql = format!(
        "SELECT {COLUMNS} FROM spending WHERE account IN ({places}) AND tenant = ${last} ORDER BY account{lock}"
    );
    let rows = transaction.query(&sql, &parameters).await?;
    rows.into_iter().map(|row| Ok((row.text(0)?.to_owned(), row))).collect()
}

/// What the calls themselves say.
async fn scan<T: Transaction>(
    transaction: &mut T,
    tenant: &TenantId,
    account: &Account,
    day: Timestamp,
) -> Result<Used, Failure> {
    // Ids sort by time: the first possible id allows the use of the index by id.
    let first = InvocationId::new(day, [0; 10]);
    let row = match account {
        Account::Agent(agent) => transaction.query_optional(OF_AGENT, values![tenant, agent, first, day]).await?,
        Account::Tenant => transaction.query_optional(OF_TENANT, values![tenant, first, day]).await?,
        Account::Run { owner, run } => transaction.query_optional(OF_RUN, values![tenant, run.as_str(), owner]).await?,
        // These count from the time at which they are created.
        Account::AgentTotal(_) | Account::TenantTotal | Account::Coordinator(_) => None,
    };
    let (calls, cost) = row.map_or(Ok((0, 0)), |row| Ok::<_, SqlError>((row.count(0)?, row.count(1)?)))?;
    Ok(Used { calls, cost })
}

/// Creates the row of an account from the existing calls, unless there is one.
///
/// INVARIANT: concurrent transactions that create the same row wait for this insert, and then find its row. Every
/// admission that the account concerns holds the row, so no call comes between the scan and the row.
async fn create<T: Transaction>(
    transaction: &mut T,
    tenant: &TenantId,
    account: &Account,
    now: Timestamp,
) -> Result<(), Failure> {
    let (name, today) = (account.to_string(), beginning_of_day(now));
    let day = if account.is_daily() { today.as_millis() } else { 0 };
    let sql = "INSERT INTO spending (tenant, account, day, calls, cost, since, changed_at) \
         VALUES ($1, $2, $3, 0, 0, $4, $4) ON CONFLICT (tenant, account) DO NOTHING";
    if transaction.execute(sql, values![tenant, name.as_str(), Value::Integer(day), now]).await? == 0 {
        return Ok(());
    }
    // Calls in flight are counted as what they have reserved, and their settlement must find the account. Marked first:
    // a settlement then waits for this transaction, or is among the calls that are read below.
    let line = line(&name, day);
    let mark = "UPDATE calls_in_flight SET accounts = REPLACE(COALESCE(accounts, ''), $1, '') || $1 \
         WHERE status = 'running' AND tenant = $2";
    let first = InvocationId::new(today, [0; 10]);
    match account {
        Account::Agent(agent) => {
            let sql = format!("{mark} AND agent = $3 AND id >= $4 AND created_at >= $5");
            transaction.execute(&sql, values![line.as_str(), tenant, agent, first, today]).await?;
        }
        Account::Tenant => {
            let sql = format!("{mark} AND id >= $3 AND created_at >= $4");
            transaction.execute(&sql, values![line.as_str(), tenant, first, today]).await?;
        }
        Account::Run { owner, run } => {
            let sql = format!("{mark} AND run = $3 AND actor = $4 AND agent <> $4");
            transaction.execute(&sql, values![line.as_str(), tenant, run.as_str(), owner]).await?;
        }
        Account::AgentTotal(_) | Account::TenantTotal | Account::Coordinator(_) => return Ok(()),
    }
    let Used { calls, cost } = scan(transaction, tenant, account, today).await?;
    let sql = "UPDATE spending SET calls = $1, cost = $2 WHERE tenant = $3 AND account = $4";
    transaction.execute(sql, values![calls, cost, tenant, name.as_str()]).await?;
    Ok(())
}

/// What an agent has called and spent, today and in a run.
pub async fn read<T: Transaction>(
    transaction: &mut T,
    tenant: &TenantId,
    agent: &PrincipalId,
    run: Option<&CountedRun>,
    day: Timestamp,
) -> Result<Counts, Failure> {
    let accounts: Vec<Account> = counted(agent, run).collect();
    let known = rows(transaction, tenant, accounts.iter().map(ToString::to_string), "").await?;
    let mut used = Vec::new();
    for account in &accounts {
        used.push(match known.get(&account.to_string()) {
            Some(row) => Sum::read(row)?.on(account, day).used,
            None => scan(transaction, tenant, account, day).await?,
        });
    }
    Ok(counts_of(&used))
}

/// The accounts that policies read.
fn counted(agent: &PrincipalId, run: Option<&CountedRun>) -> impl Iterator<Item = Account> {
    let run = run.map(|run| Account::Run { owner: run.owner.clone(), run: run.run.clone() });
    std::iter::once(Account::Agent(agent.clone())).chain(run)
}

/// The counts of the day, and of the run if there is one.
fn counts_of(used: &[Used]) -> Counts {
    let today = used.first().copied().unwrap_or_default();
    let run = used.get(1).copied().unwrap_or(today);
    Counts { calls_today: today.calls, cost_today: today.cost, calls_in_run: run.calls, cost_in_run: run.cost }
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
            (OF_AGENT, "invocations_of_agent (tenant=? AND agent=? AND id>?)"),
            (OF_RUN, "invocations_of_run (tenant=? AND run=?)"),
        ] {
            let mut plan = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let values = vec![None::<String>; plan.parameter_count()];
            let steps = plan.query_map(rusqlite::params_from_iter(values), |row| row.get(3)).unwrap();
            let steps: Vec<String> = steps.collect::<Result<_, _>>().unwrap();
            assert!(steps.iter().any(|step| step.ends_with(&format!("INDEX {index}"))), "{steps:?}");
            assert!(steps.iter().any(|step| step.ends_with("PRIMARY KEY (tenant=? AND id=?)")), "{steps:?}");
        }
    }

    #[test]
    fn the_accounts_of_a_call_are_read_as_they_were_written() {
        let text = [line("agent/a", 5), line("total/agent/a", 0)].concat();
        assert_eq!(lines(&text).collect::<Vec<_>>(), [(5, "agent/a"), (0, "total/agent/a")]);
        assert_eq!(text.replace(&line("agent/a", 5), ""), line("total/agent/a", 0));
        assert_eq!(lines("").count(), 0);
    }
}
