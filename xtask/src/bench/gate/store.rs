//! The store of a gate, accessed directly while the gate is stopped: to fill it with grants, and to count what the gate
//! wrote. Statements are in the SQL that both engines accept.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::programs;
use crate::process::{program, run};

/// The place of a gate's ledger.
#[derive(Debug)]
pub enum Store {
    Sqlite(PathBuf),
    Postgres {
        /// The URL of the database.
        url: String,
    },
}

/// The records of calls in a ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recorded {
    /// Successful invocations.
    pub invocations: u64,
    /// Their events in the log.
    pub events: u64,
}

impl Store {
    /// A new directory `ledger` in `home`.
    pub fn sqlite(home: &Path) -> Self {
        Self::Sqlite(home.join("ledger"))
    }

    /// A new database of the cluster whose database `postgres` has this URL.
    pub fn postgres(cluster: &str, name: &str) -> Result<Self, String> {
        let server = cluster.strip_suffix("/postgres").ok_or("the URL of the cluster does not end in /postgres")?;
        query(psql(cluster), &[&format!("CREATE DATABASE {name}")])?;
        Ok(Self::Postgres { url: format!("{server}/{name}") })
    }

    /// Copies the one grant in the ledger, each copy for another agent, until there are `total`.
    pub fn multiply_grant(&self, total: u64) -> Result<(), String> {
        let copies = total.saturating_sub(1);
        let make = format!(
            "CREATE TEMPORARY TABLE copies AS \
             WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {copies}) \
             SELECT numbers.n AS n, grants.* FROM grants, numbers"
        );
        // An id has 32 characters; digits are valid in all of them, so the last seven can hold the number.
        let name =
            "UPDATE copies SET agent = 'agent-' || n, id = substr(id, 1, 25) || substr(CAST(10000000 + n AS TEXT), 2)";
        let insert = ["ALTER TABLE copies DROP COLUMN n", "INSERT INTO grants SELECT * FROM copies"];
        // Pending background work would affect the measurement.
        let finish: &[&str] = match self {
            Self::Sqlite(_) => &["PRAGMA wal_checkpoint(TRUNCATE)"],
            Self::Postgres { .. } => &["VACUUM ANALYZE grants", "CHECKPOINT"],
        };
        let statements: Vec<&str> =
            [make.as_str(), name].into_iter().chain(insert).chain(finish.iter().copied()).collect();
        self.query(&statements)?;
        run(&mut program("sync", &[]))?;
        let stored = self.number("SELECT count(*) FROM grants")?;
        if stored == total { Ok(()) } else { Err(format!("{stored} grants are in the ledger instead of {total}")) }
    }

    pub fn recorded(&self) -> Result<Recorded, String> {
        // The baseline may predate batched events. A run without a name has one call; what a mounted server keeps for a
        // principal is a run of its own.
        let events = self
            .number(
                "SELECT count(DISTINCT run) FROM event_runs WHERE run NOT LIKE 'session%' \
                 AND EXISTS (SELECT 1 FROM event_batches)",
            )
            .or_else(|_| self.number("SELECT count(*) FROM events WHERE kind = 'tool.invoked'"))?;
        let invocations = self.number("SELECT count(*) FROM invocations WHERE status = 'success'")?;
        Ok(Recorded { invocations, events })
    }

    /// Its size on disk, with the write-ahead log of SQLite checkpointed. That of PostgreSQL belongs to the whole
    /// cluster and is not counted.
    pub fn bytes(&self) -> Result<u64, String> {
        match self {
            Self::Sqlite(directory) => {
                self.query(&["PRAGMA wal_checkpoint(TRUNCATE)"])?;
                size(directory).map_err(|error| format!("{}: {error}", directory.display()))
            }
            Self::Postgres { .. } => self.number("SELECT pg_database_size(current_database())"),
        }
    }

    fn number(&self, statement: &str) -> Result<u64, String> {
        let printed = self.query(&[statement])?;
        printed.trim().parse().map_err(|_| format!("`{statement}` answered {printed:?}"))
    }

    fn query(&self, statements: &[&str]) -> Result<String, String> {
        match self {
            Self::Sqlite(directory) => {
                let mut command = program("sqlite3", &["-batch", "-bail"]);
                command.arg(directory.join("ledger.sqlite3")).arg(statements.join(";\n"));
                programs::output(&mut command)
            }
            Self::Postgres { url } => query(psql(url), statements),
        }
    }
}

/// The bytes of all files below a directory.
fn size(directory: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += if metadata.is_dir() { size(&entry.path())? } else { metadata.len() };
    }
    Ok(bytes)
}

fn psql(url: &str) -> Command {
    program(
        "psql",
        &["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set=ON_ERROR_STOP=1", "--dbname", url],
    )
}

/// Each statement in its own transaction, all in one session.
fn query(mut psql: Command, statements: &[&str]) -> Result<String, String> {
    for statement in statements {
        psql.args(["--command", statement]);
    }
    programs::output(&mut psql)
}

#[cfg(test)]
mod tests {
    use super::super::scratch::Scratch;
    use super::*;

    #[test]
    fn the_size_of_a_directory_counts_the_files_below_it() {
        let scratch = Scratch::make(&std::env::temp_dir().join("store-size")).unwrap();
        scratch.write("one", "12345").unwrap();
        std::fs::create_dir(scratch.path().join("inner")).unwrap();
        scratch.write("inner/two", "123").unwrap();
        assert_eq!(size(scratch.path()).unwrap(), 8);
        assert!(size(&scratch.path().join("none")).is_err());
    }
}
