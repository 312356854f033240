//! Migrations: numbered SQL files, built in, applied in order at start, each in a transaction together with the note that
//! it was applied. A ledger that a newer Toolgate has migrated is refused rather than guessed at.

use thiserror::Error;

/// One step of the schema.
pub struct Migration {
    /// Its number, from one without gaps.
    pub number: i64,
    pub sql: &'static str,
}

/// The steps on SQLite.
pub const SQLITE: &[Migration] = &[
    Migration { number: 1, sql: include_str!("../migrations/sqlite/0001_authority.sql") },
    Migration { number: 2, sql: include_str!("../migrations/sqlite/0002_calls.sql") },
    Migration { number: 3, sql: include_str!("../migrations/sqlite/0003_trail.sql") },
    Migration { number: 4, sql: include_str!("../migrations/sqlite/0004_approvals.sql") },
    Migration { number: 5, sql: include_str!("../migrations/sqlite/0005_approval_webhooks.sql") },
    Migration { number: 6, sql: include_str!("../migrations/sqlite/0006_guardians.sql") },
    Migration { number: 7, sql: include_str!("../migrations/sqlite/0007_event_pages.sql") },
    Migration { number: 8, sql: include_str!("../migrations/sqlite/0008_event_runs.sql") },
    Migration { number: 9, sql: include_str!("../migrations/sqlite/0009_call_counts.sql") },
    Migration { number: 10, sql: include_str!("../migrations/sqlite/0010_waiting_calls.sql") },
    Migration { number: 11, sql: include_str!("../migrations/sqlite/0011_denial_counts.sql") },
    Migration { number: 12, sql: include_str!("../migrations/sqlite/0012_event_times.sql") },
    Migration { number: 13, sql: include_str!("../migrations/sqlite/0013_ended_rates.sql") },
    Migration { number: 14, sql: include_str!("../migrations/sqlite/0014_detached_calls.sql") },
    Migration { number: 15, sql: include_str!("../migrations/sqlite/0015_sessions_of_principal.sql") },
    Migration { number: 16, sql: include_str!("../migrations/sqlite/0016_event_batches.sql") },
    Migration { number: 17, sql: include_str!("../migrations/sqlite/0017_calls_in_flight.sql") },
    Migration { number: 18, sql: include_str!("../migrations/sqlite/0018_principal_attributes.sql") },
    Migration { number: 19, sql: include_str!("../migrations/sqlite/0019_mounts.sql") },
    Migration { number: 20, sql: include_str!("../migrations/sqlite/0020_calls_by_time.sql") },
    Migration { number: 21, sql: include_str!("../migrations/sqlite/0021_declared_mounts.sql") },
    Migration { number: 22, sql: include_str!("../migrations/sqlite/0022_work.sql") },
    Migration { number: 23, sql: include_str!("../migrations/sqlite/0023_spending.sql") },
    Migration { number: 24, sql: include_str!("../migrations/sqlite/0024_workflows.sql") },
    Migration { number: 25, sql: include_str!("../migrations/sqlite/0025_stores.sql") },
    Migration { number: 26, sql: include_str!("../migrations/sqlite/0026_agent_tasks.sql") },
];

/// The steps on PostgreSQL.
pub const POSTGRES: &[Migration] = &[
    Migration { number: 1, sql: include_str!("../migrations/postgres/0001_authority.sql") },
    Migration { number: 2, sql: include_str!("../migrations/postgres/0002_calls.sql") },
    Migration { number: 3, sql: include_str!("../migrations/postgres/0003_trail.sql") },
    Migration { number: 4, sql: include_str!("../migrations/postgres/0004_approvals.sql") },
    Migration { number: 5, sql: include_str!("../migrations/postgres/0005_approval_webhooks.sql") },
    Migration { number: 6, sql: include_str!("../migrations/postgres/0006_guardians.sql") },
    Migration { number: 7, sql: include_str!("../migrations/postgres/0007_event_pages.sql") },
    Migration { number: 8, sql: include_str!("../migrations/postgres/0008_event_runs.sql") },
    Migration { number: 9, sql: include_str!("../migrations/postgres/0009_call_counts.sql") },
    Migration { number: 10, sql: include_str!("../migrations/postgres/0010_waiting_calls.sql") },
    Migration { number: 11, sql: include_str!("../migrations/postgres/0011_denial_counts.sql") },
    Migration { number: 12, sql: include_str!("../migrations/postgres/0012_event_times.sql") },
    Migration { number: 13, sql: include_str!("../migrations/postgres/0013_ended_rates.sql") },
    Migration { number: 14, sql: include_str!("../migrations/postgres/0014_detached_calls.sql") },
    Migration { number: 15, sql: include_str!("../migrations/postgres/0015_sessions_of_principal.sql") },
    Migration { number: 16, sql: include_str!("../migrations/postgres/0016_event_batches.sql") },
    Migration { number: 17, sql: include_str!("../migrations/postgres/0017_calls_in_flight.sql") },
    Migration { number: 18, sql: include_str!("../migrations/postgres/0018_principal_attributes.sql") },
    Migration { number: 19, sql: include_str!("../migrations/postgres/0019_mounts.sql") },
    Migration { number: 20, sql: include_str!("../migrations/postgres/0020_calls_by_time.sql") },
    Migration { number: 21, sql: include_str!("../migrations/postgres/0021_declared_mounts.sql") },
    Migration { number: 22, sql: include_str!("../migrations/postgres/0022_work.sql") },
    Migration { number: 23, sql: include_str!("../migrations/postgres/0023_spending.sql") },
    Migration { number: 24, sql: include_str!("../migrations/postgres/0024_workflows.sql") },
    Migration { number: 25, sql: include_str!("../migrations/postgres/0025_stores.sql") },
    Migration { number: 26, sql: include_str!("../migrations/postgres/0026_agent_tasks.sql") },
];

/// The ledger was written by a newer program.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the ledger has schema version {found}, and this toolgate supports up to {known}; run a newer toolgate")]
pub struct TooNew {
    found: i64,
    known: i64,
}

/// The migrations that a ledger at schema `found` still needs.
pub fn outstanding(all: &'static [Migration], found: i64) -> Result<&'static [Migration], TooNew> {
    let known = i64::try_from(all.len()).unwrap_or(i64::MAX);
    let done = usize::try_from(found).unwrap_or(0);
    all.get(done..).ok_or(TooNew { found, known })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn migrations_are_numbered_from_one_without_gaps_and_alike_on_both_engines() {
        for all in [SQLITE, POSTGRES] {
            assert_eq!(all.len(), SQLITE.len());
            for (position, migration) in all.iter().enumerate() {
                assert_eq!(usize::try_from(migration.number).unwrap(), position + 1);
            }
        }
    }

    #[test]
    fn a_newer_ledger_is_refused() {
        let newest = i64::try_from(SQLITE.len()).unwrap();
        assert!(outstanding(SQLITE, newest).unwrap().is_empty());
        assert_eq!(outstanding(SQLITE, 0).unwrap().len(), SQLITE.len());
        assert!(outstanding(SQLITE, 99).is_err());
    }
}
