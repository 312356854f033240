//! The ledger on SQLite: one file, one process that owns it, one thread that writes.
//!
//! Operations that wait while the disk flushes are committed together in the next transaction: each is acknowledged
//! only after the flush that made it durable, and fails alone if the domain refuses it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::Connection;
use thiserror::Error;
use toolgate_gate::ports::ledger::{Admission, Admit, EngineStatistics, Generation, Settle};
use toolgate_gate::refusal::Refusal;

use self::connection::{connect, sql_error};
use self::identity::Identity;
use self::readers::Readers;
use self::transaction::SqliteTransaction;
use self::writer::{Job, Writer};
use crate::ledger::Engine;
use crate::migration::{SQLITE, TooNew, outstanding};
use crate::operation::Operation;
use crate::sql::SqlError;

mod connection;
mod identity;
mod readers;
mod transaction;
mod writer;

/// The ledger cannot be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// Another process has it.
    #[error("{path} is in use by another toolgate; stop that one, or give this one another --data directory")]
    InUse { path: String },
    #[error("{path} cannot be opened as a ledger: {reason}")]
    Sqlite { path: String, reason: String },
    /// A newer program wrote it.
    #[error(transparent)]
    TooNew(#[from] TooNew),
}

/// How long the truncation of the write-ahead log waits for readers.
const TRUNCATION_WAIT: std::time::Duration = std::time::Duration::from_millis(100);

/// A ledger in one file.
pub struct SqliteEngine {
    path: PathBuf,
    writer: Writer,
    readers: Readers,
    // Held as long as the ledger is open: a second process would not see what this one keeps in memory.
    _owner: Arc<std::fs::File>,
}

impl SqliteEngine {
    /// Opens the ledger in this file, making or migrating it where needed.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let shown = path.display().to_string();
        let owner = own(path)?;
        // Created with a private mode before SQLite opens it; its companion files inherit the mode.
        private_file(path).map_err(|error| OpenError::Sqlite { path: shown.clone(), reason: error.to_string() })?;
        let failed = |error: &SqlError| OpenError::Sqlite { path: shown.clone(), reason: error.to_string() };
        let mut connection = connect(path).map_err(|error| failed(&error))?;
        migrate(&mut connection, &failed)?;
        let readers = Readers::open(path).map_err(|error| failed(&error))?;
        let second = connect(path).map_err(|error| failed(&error))?;
        let identity = Identity::of(path).map_err(|error| failed(&SqlError::Unavailable(error.to_string())))?;
        let writer = Writer::start(connection, second, identity)
            .map_err(|error| failed(&SqlError::Unavailable(error.to_string())))?;
        Ok(Self { path: path.to_owned(), writer, readers, _owner: owner })
    }
}

impl Engine for SqliteEngine {
    // Nothing changes but through the one writer.
    const SEES_EVERY_CHANGE: bool = true;
    const IS_SHARED: bool = false;

    fn generation(&self) -> Generation {
        self.writer.generation()
    }

    async fn admit(&self, command: Arc<Admit>) -> Result<Admission, Refusal> {
        self.writer.join(command, Job::Admit).await
    }

    async fn settle(&self, command: Arc<Settle>) -> Result<(), Refusal> {
        self.writer.join(command, Job::Settle).await
    }

    async fn write<O: Operation>(&self, operation: O) -> Result<O::Output, Refusal> {
        self.writer.run(operation).await
    }

    async fn erase(&self, _: &[&str]) -> Result<bool, Refusal> {
        // `secure_delete` has overwritten it in the pages: the log, which has the pages of before, ends here.
        let path = self.path.clone();
        let truncating = tokio::task::spawn_blocking(move || truncate_log(&path));
        let truncated = truncating.await.unwrap_or_else(|error| Err(SqlError::Unavailable(error.to_string())));
        truncated.map_err(|error| crate::sql::Failure::Sql(error).into_refusal())
    }

    async fn statistics(&self) -> Result<EngineStatistics, Refusal> {
        let bytes = |path: &Path| std::fs::metadata(path).map_or(0, |file| file.len());
        let mut wal = self.path.as_os_str().to_owned();
        wal.push("-wal");
        let (pool_connections, pool_connections_in_use) = self.readers.connections();
        let (queued, batches) = self.writer.statistics();
        Ok(EngineStatistics {
            bytes: bytes(&self.path),
            wal_bytes: Some(bytes(Path::new(&wal))),
            queued,
            batches,
            pool_connections,
            pool_connections_in_use,
        })
    }

    async fn read<O: Operation>(&self, operation: O) -> Result<O::Output, Refusal> {
        self.readers.run(operation).await
    }
}

fn own(path: &Path) -> Result<Arc<std::fs::File>, OpenError> {
    let mut lock_path = path.as_os_str().to_owned();
    lock_path.push(".lock");
    let failed =
        |error: std::io::Error| OpenError::Sqlite { path: path.display().to_string(), reason: error.to_string() };
    let file = private_file(Path::new(&lock_path)).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(Arc::new(file)),
        Err(std::fs::TryLockError::WouldBlock) => Err(OpenError::InUse { path: path.display().to_string() }),
        Err(std::fs::TryLockError::Error(error)) => Err(failed(error)),
    }
}

/// Opens a file; creates it readable for its owner only if it does not exist.
fn private_file(path: &Path) -> std::io::Result<std::fs::File> {
    use std::os::unix::fs::OpenOptionsExt;
    std::fs::OpenOptions::new().create(true).write(true).truncate(false).mode(0o600).open(path)
}

/// Copies the whole write-ahead log into the database and empties it; false if there is a reader.
fn truncate_log(path: &Path) -> Result<bool, SqlError> {
    let connection = connect(path)?;
    // While it waits for readers, nothing is written.
    connection.busy_timeout(TRUNCATION_WAIT).map_err(|error| sql_error(&error))?;
    let busy = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0));
    match busy.map_err(|error| sql_error(&error)) {
        Ok(busy) => Ok(busy == 0),
        Err(SqlError::Busy(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

fn migrate(connection: &mut Connection, failed: &impl Fn(&SqlError) -> OpenError) -> Result<(), OpenError> {
    let failed = |error: rusqlite::Error| failed(&sql_error(&error));
    let found: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(failed)?;
    // All of them or none: a failure leaves the ledger as the previous version knows it.
    let transaction = connection.transaction().map_err(failed)?;
    for migration in outstanding(SQLITE, found)? {
        transaction.execute_batch(migration.sql).map_err(failed)?;
        transaction.pragma_update(None, "user_version", migration.number).map_err(failed)?;
    }
    transaction.commit().map_err(failed)
}

/// Runs an operation whose statements never wait.
fn run_ready<O: Operation>(
    operation: &O,
    transaction: &mut SqliteTransaction<'_>,
) -> Result<O::Output, crate::sql::Failure> {
    use futures_util::FutureExt;
    // INVARIANT: every future of `SqliteTransaction` is ready when first polled, and operations await nothing else.
    operation.run(transaction).now_or_never().unwrap_or_else(|| {
        Err(SqlError::Unavailable(
            "a SQLite operation did not complete \
            synchronously"
                .to_owned(),
        )
        .into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ledger as it was after the first so many migrations.
    fn ledger_at(schema: usize, directory: &tempfile::TempDir) -> (std::path::PathBuf, Connection) {
        let path = directory.path().join("ledger.sqlite3");
        let ledger = Connection::open(&path).unwrap();
        for migration in SQLITE.iter().take(schema) {
            ledger.execute_batch(migration.sql).unwrap();
            ledger.pragma_update(None, "user_version", migration.number).unwrap();
        }
        (path, ledger)
    }

    #[test]
    fn events_of_an_older_ledger_keep_their_places_and_those_without_one_get_the_next() {
        let directory = tempfile::TempDir::new().unwrap();
        let (path, older) = ledger_at(2, &directory);
        let events = [("a", Some(1)), ("b", None), ("a", Some(0)), ("a", None), ("b", Some(0)), ("a", None)];
        for (number, (tenant, sequence)) in events.into_iter().enumerate() {
            let sql = "INSERT INTO events (tenant, sequence, kind, actor, time, leaf, canonical) \
                 VALUES (?1, ?2, 'key.created', 'admin', 0, x'00', ?3)";
            older.execute(sql, rusqlite::params![tenant, sequence, number.to_string()]).unwrap();
        }
        drop(older);

        drop(SqliteEngine::open(&path).unwrap());

        let newer = Connection::open(&path).unwrap();
        let read = |tenant: &str| -> Vec<String> {
            let mut statement =
                newer.prepare("SELECT events FROM event_batches WHERE tenant = ?1 ORDER BY first").unwrap();
            let text = |row: &rusqlite::Row<'_>| Ok(String::from_utf8(row.get(0)?).unwrap());
            let texts = statement.query_map([tenant], text).unwrap();
            texts.map(|text| text.unwrap().split_once('\n').unwrap().1.to_owned()).collect()
        };
        assert_eq!(
            (read("a"), read("b")),
            (vec!["2".into(), "0".into(), "3".into(), "5".into()], vec!["4".into(), "1".into()])
        );
        let gaps = "SELECT COUNT(*) FROM (SELECT first, row_number() OVER (PARTITION BY tenant ORDER BY first) - 1 \
             AS place FROM event_batches) WHERE first <> place";
        assert_eq!(newer.query_row(gaps, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
    }

    #[test]
    fn what_is_in_the_log_of_an_older_ledger_can_be_found_in_it() {
        let directory = tempfile::TempDir::new().unwrap();
        let (path, older) = ledger_at(6, &directory);
        for sequence in 0..602_u32 {
            let sql = "INSERT INTO events (tenant, sequence, kind, actor, agent, run, time, leaf, canonical) \
                 VALUES ('a', ?1, ?2, 'admin', ?3, ?4, 0, x'00', '{}')";
            let kind = if sequence == 70 { "grant.created" } else { "tool.invoked" };
            let (agent, run) = ((sequence < 64).then_some("first"), (sequence % 300 == 0).then_some("hundreds"));
            older.execute(sql, rusqlite::params![sequence, kind, agent, run]).unwrap();
        }
        // The last one is not in the tree yet.
        let head = "INSERT INTO heads (tenant, size, root, time, checkpoint) VALUES ('a', 601, x'00', 0, '')";
        older.execute_batch(head).unwrap();
        drop(older);

        drop(SqliteEngine::open(&path).unwrap());

        let newer = Connection::open(&path).unwrap();
        let mut pages =
            newer.prepare("SELECT field, value, page FROM event_pages ORDER BY field, value, page").unwrap();
        let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        let pages: Vec<(String, String, i64)> = pages.query_map([], read).unwrap().collect::<Result<_, _>>().unwrap();
        let expected = (0..10).map(|page| ("actor", "admin", page));
        let expected = expected.chain([("agent", "first", 0), ("kind", "grant.created", 1)]);
        let expected: Vec<_> =
            expected.map(|(field, value, page)| (field.to_owned(), value.to_owned(), page)).collect();
        assert_eq!(pages, expected);
        let mut runs = newer.prepare("SELECT run, page FROM event_runs ORDER BY run, page").unwrap();
        let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let runs: Vec<(String, i64)> = runs.query_map([], read).unwrap().collect::<Result<_, _>>().unwrap();
        assert_eq!(runs, [("hundreds".to_owned(), 0), ("hundreds".to_owned(), 1)]);
    }
}
