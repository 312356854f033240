//! The thread that writes, and group commit.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use rusqlite::Connection;
use tokio::sync::oneshot;
use toolgate_gate::ports::ledger::Generation;
use toolgate_gate::refusal::Refusal;

use super::connection::sql_error;
use super::run_ready;
use super::transaction::SqliteTransaction;
use crate::operation::Operation;
use crate::sql::{Failure, SqlError, unavailable};

/// How many operations one flush may carry.
const BATCH: usize = 512;
/// How many may wait; beyond this callers wait for a place, which slows them down instead of filling memory.
const QUEUE: usize = 4096;

/// What is left to do for an operation once it is known whether its transaction became durable.
type Acknowledge = Box<dyn FnOnce(Result<(), SqlError>) + Send>;
/// An operation, ready to run. A refusal waits for the flush too: it may rest on what was done just before it.
struct Job {
    run: Box<dyn FnOnce(&mut Connection, Generation) -> Acknowledge + Send>,
    changes_authority: bool,
}

/// A handle on the thread.
pub(super) struct Writer {
    jobs: SyncSender<Job>,
    generation: Arc<AtomicU64>,
}

impl Writer {
    pub(super) fn start(connection: Connection) -> std::io::Result<Self> {
        let (jobs, queue) = sync_channel(QUEUE);
        let generation = Arc::new(AtomicU64::new(1));
        let shared = Arc::clone(&generation);
        std::thread::Builder::new().name("ledger-writer".to_owned()).spawn(move || write(connection, &queue, &shared))?;
        Ok(Self { jobs, generation })
    }

    /// The point in the history of authority that whoever reads from now on has reached.
    pub(super) fn generation(&self) -> Generation {
        self.generation.load(Ordering::Acquire)
    }

    pub(super) async fn run<O: Operation>(&self, operation: O) -> Result<O::Output, Refusal> {
        let (answer, answered) = oneshot::channel();
        let run = Box::new(move |connection: &mut Connection, generation| {
            let outcome = in_savepoint(connection, &operation, generation);
            Box::new(move |durable: Result<(), SqlError>| {
                // A caller that has gone away does not need the answer.
                let _ = answer.send(durable.map_err(Failure::Sql).and(outcome));
            }) as Acknowledge
        });
        self.submit(Job { run, changes_authority: O::CHANGES_AUTHORITY }).await?;
        match answered.await {
            Ok(result) => result.map_err(Failure::into_refusal),
            Err(_) => Err(unavailable()),
        }
    }

    async fn submit(&self, job: Job) -> Result<(), Refusal> {
        use std::sync::mpsc::TrySendError;
        match self.jobs.try_send(job) {
            Ok(()) => Ok(()),
            Err(TrySendError::Disconnected(_)) => Err(unavailable()),
            Err(TrySendError::Full(job)) => {
                let jobs = self.jobs.clone();
                let sent = tokio::task::spawn_blocking(move || jobs.send(job).is_ok()).await;
                if sent.unwrap_or(false) { Ok(()) } else { Err(unavailable()) }
            }
        }
    }
}

fn write(mut connection: Connection, queue: &Receiver<Job>, generation: &AtomicU64) {
    while let Ok(first) = queue.recv() {
        if let Err(error) = connection.execute_batch("BEGIN IMMEDIATE") {
            tracing::error!(%error, "the ledger does not begin a transaction");
            // Dropped unrun, the job tells its caller that the ledger is not available.
            drop(first);
            continue;
        }
        let mut acknowledge = Vec::new();
        let mut next = Some(first);
        let mut taken = 0;
        let mut changed = false;
        while let Some(job) = next {
            // Before it is durable, for what follows in the same transaction; and again after, for whoever reads.
            if job.changes_authority {
                generation.fetch_add(1, Ordering::AcqRel);
                changed = true;
            }
            acknowledge.push((job.run)(&mut connection, generation.load(Ordering::Acquire)));
            taken += 1;
            // Some errors, such as a full disk, end the whole transaction.
            let ended = connection.is_autocommit();
            next = if ended || taken >= BATCH { None } else { queue.try_recv().ok() };
        }
        let durable = commit(&mut connection);
        if changed {
            generation.fetch_add(1, Ordering::AcqRel);
        }
        for acknowledge in acknowledge {
            acknowledge(durable.clone());
        }
    }
}

fn commit(connection: &mut Connection) -> Result<(), SqlError> {
    if connection.is_autocommit() {
        return Err(SqlError::Unavailable("the transaction was ended by an error in it".to_owned()));
    }
    connection.execute_batch("COMMIT").map_err(|error| {
        // Whatever the rollback says, the next transaction begins anew.
        let _ = connection.execute_batch("ROLLBACK");
        sql_error(&error)
    })
}

fn in_savepoint<O: Operation>(
    connection: &mut Connection,
    operation: &O,
    generation: Generation,
) -> Result<O::Output, Failure> {
    run_batch(connection, "SAVEPOINT operation")?;
    match run_ready(operation, &mut SqliteTransaction::at(connection, generation)) {
        Ok(output) => {
            run_batch(connection, "RELEASE operation")?;
            Ok(output)
        }
        Err(failure) => {
            if !connection.is_autocommit() {
                run_batch(connection, "ROLLBACK TO operation; RELEASE operation")?;
            }
            Err(failure)
        }
    }
}

fn run_batch(connection: &Connection, sql: &str) -> Result<(), SqlError> {
    connection.execute_batch(sql).map_err(|error| sql_error(&error))
}
