//! Readers: a few connections that see the newest durable state, each read in one snapshot.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use tokio::sync::Semaphore;
use toolgate_gate::refusal::Refusal;

use super::connection::{connect, sql_error};
use super::run_ready;
use super::transaction::SqliteTransaction;
use crate::operation::Operation;
use crate::sql::{Failure, SqlError, unavailable};

/// More than there are cores to use them.
const CONNECTIONS: usize = 8;

pub(super) struct Readers {
    path: PathBuf,
    idle: Arc<Mutex<Vec<Connection>>>,
    places: Arc<Semaphore>,
}

impl Readers {
    pub(super) fn open(path: &Path) -> Result<Self, SqlError> {
        let first = for_reading(path)?;
        Ok(Self {
            path: path.to_owned(),
            idle: Arc::new(Mutex::new(vec![first])),
            places: Arc::new(Semaphore::new(CONNECTIONS)),
        })
    }

    /// The maximum number of connections, and the number in use.
    pub(super) fn connections(&self) -> (u64, u64) {
        let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        (count(CONNECTIONS), count(CONNECTIONS.saturating_sub(self.places.available_permits())))
    }

    pub(super) async fn run<O: Operation>(&self, operation: O) -> Result<O::Output, Refusal> {
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(|_| unavailable())?;
        let idle = Arc::clone(&self.idle);
        let path = self.path.clone();
        let read = tokio::task::spawn_blocking(move || {
            let taken = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let mut connection = taken.map_or_else(|| for_reading(&path), Ok)?;
            let result = in_snapshot(&mut connection, &operation);
            idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
            drop(place);
            result
        });
        match read.await {
            Ok(result) => result.map_err(Failure::into_refusal),
            Err(_) => Err(unavailable()),
        }
    }
}

fn for_reading(path: &Path) -> Result<Connection, SqlError> {
    let connection = connect(path)?;
    // There are several of them, and frequent reads are cached above.
    connection.execute_batch("PRAGMA query_only = ON; PRAGMA cache_size = -2048").map_err(|error| sql_error(&error))?;
    Ok(connection)
}

fn in_snapshot<O: Operation>(connection: &mut Connection, operation: &O) -> Result<O::Output, Failure> {
    connection.execute_batch("BEGIN").map_err(|error| sql_error(&error))?;
    let result = run_ready(operation, &mut SqliteTransaction::new(connection));
    connection.execute_batch("ROLLBACK").map_err(|error| sql_error(&error))?;
    result
}
