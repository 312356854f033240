//! The thread that writes, and group commit.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

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

/// How long a transaction waits for company.
const GATHERING: Duration = Duration::from_micros(100);

/// What is left to do for an operation once it is known whether its transaction became durable.
type Acknowledge = Box<dyn FnOnce(Result<(), SqlError>) + Send>;
/// Runs an operation at this point in the history of authority.
type Run = Box<dyn FnOnce(&mut Connection, Generation) -> Acknowledge + Send>;
/// An operation, ready to run. A refusal waits for the flush too: it may rest on what was done just before it.
struct Job {
    run: Run,
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
        std::thread::Builder::new()
            .name("ledger-writer".to_owned())
            .spawn(move || write(connection, &queue, &shared))?;
        Ok(Self { jobs, generation })
    }

    /// The point in the history of authority that whoever reads from now on has reached.
    pub(super) fn generation(&self) -> Generation {
        self.generation.load(Ordering::Acquire)
    }

    pub(super) async fn run<O: Operation>(&self, operation: O) -> Result<O::Output, Refusal> {
        let (answer, answered) = oneshot::channel();
        let run = Box::new(move |connection: &mut Connection, generation| {
            let outcome = match O::IS_UNDONE_ALONE {
                true => in_savepoint(connection, &operation, generation),
                false => in_company(connection, &operation, generation),
            };
            Box::new(move |durable: Result<(), SqlError>| {
                let outcome = match outcome {
                    // It is itself what ended the transaction.
                    Err(Failure::Sql(error)) if !O::IS_UNDONE_ALONE => Err(Failure::Sql(error)),
                    outcome => durable.map_err(Failure::Sql).and(outcome),
                };
                // A caller that has gone away does not need the answer.
                let _ = answer.send(outcome);
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

fn write(mut connection: Connection, queue: &Receiver<Job>, published: &AtomicU64) {
    let mut generation = published.load(Ordering::Acquire);
    // How many operations the last transaction carried.
    let mut last = 0;
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
        while let Some(job) = next {
            // INVARIANT: published only once it is durable. Whoever reads meanwhile reads the state before the change,
            // and must not be taken for one who knows of it by what follows in the same transaction.
            if job.changes_authority {
                generation += 1;
            }
            acknowledge.push((job.run)(&mut connection, generation));
            taken += 1;
            // Some errors, such as a full disk, end the whole transaction.
            let ended = connection.is_autocommit();
            next = match ended || taken >= BATCH {
                true => None,
                false => queue.try_recv().ok().or_else(|| gather(queue, taken, last)),
            };
        }
        last = taken;
        let durable = commit(&mut connection);
        published.store(generation, Ordering::Release);
        for acknowledge in acknowledge {
            acknowledge(durable.clone());
        }
    }
}

/// Waits a moment for more, where the last transaction shows that more are on their way: a flush costs the same for one
/// as for many. Who is alone never waits.
fn gather(queue: &Receiver<Job>, taken: usize, last: usize) -> Option<Job> {
    if taken < last / 2 { queue.recv_timeout(GATHERING).ok() } else { None }
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

/// Without a savepoint of its own: a refusal has written nothing, and a fault takes the whole transaction with it.
fn in_company<O: Operation>(
    connection: &mut Connection,
    operation: &O,
    generation: Generation,
) -> Result<O::Output, Failure> {
    let outcome = run_ready(operation, &mut SqliteTransaction::at(connection, generation));
    if matches!(outcome, Err(Failure::Sql(_))) && !connection.is_autocommit() {
        run_batch(connection, "ROLLBACK")?;
    }
    outcome
}

fn run_batch(connection: &Connection, sql: &str) -> Result<(), SqlError> {
    connection.execute_batch(sql).map_err(|error| sql_error(&error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transaction::Transaction;

    /// Looks, from inside the transaction, whether one who reads now would be taken for up to date.
    struct Look<const CHANGES: bool>(Arc<AtomicU64>);

    impl<const CHANGES: bool> Operation for Look<CHANGES> {
        type Output = bool;

        const CHANGES_AUTHORITY: bool = CHANGES;

        async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<bool, Failure> {
            Ok(transaction.unchanged_since(self.0.load(Ordering::Acquire)))
        }
    }

    #[tokio::test]
    async fn who_reads_while_a_change_is_under_way_is_not_up_to_date() {
        let writer = Writer::start(Connection::open_in_memory().unwrap()).unwrap();
        let shared = || Arc::clone(&writer.generation);
        let before = writer.generation();

        assert!(writer.run(Look::<false>(shared())).await.unwrap(), "nothing has changed");
        assert!(!writer.run(Look::<true>(shared())).await.unwrap(), "the change is not durable yet");
        assert!(writer.run(Look::<false>(shared())).await.unwrap(), "whoever reads now reads the change");
        assert!(writer.generation() > before);
    }

    #[tokio::test]
    async fn a_change_is_seen_by_what_follows_in_the_same_transaction() {
        let writer = Writer::start(Connection::open_in_memory().unwrap()).unwrap();
        let (hold, held) = std::sync::mpsc::channel::<()>();
        let (begun, has_begun) = oneshot::channel();
        // Keeps the transaction open until the other two wait in the queue.
        let run = Box::new(move |_: &mut Connection, _| {
            let _ = begun.send(());
            let _ = held.recv();
            Box::new(|_| {}) as Acknowledge
        });
        writer.submit(Job { run, changes_authority: false }).await.unwrap();
        has_begun.await.unwrap();

        let (changing, following) =
            (Look::<true>(Arc::clone(&writer.generation)), Look::<false>(Arc::clone(&writer.generation)));
        let both = async { tokio::join!(writer.run(changing), writer.run(following)) };
        let release = async { hold.send(()).unwrap() };
        // The first poll of `both` queues both operations; then the transaction goes on.
        let ((changed, followed), ()) = tokio::join!(both, release);

        assert_eq!((changed, followed), (Ok(false), Ok(false)));
    }
}
