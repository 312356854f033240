//! The thread that writes, and group commit.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::Connection;
use tokio::sync::oneshot;
use toolgate_gate::distribution::Counted;
use toolgate_gate::ports::ledger::Generation;
use toolgate_gate::refusal::Refusal;

use self::batch::{Batch, BatchResult, RunningBatch, Submission};
use self::checkpoints::Checkpoints;
use self::queue::Queue;
use super::connection::sql_error;
use super::identity::Identity;
use super::run_ready;
use super::transaction::SqliteTransaction;
use crate::operation::admission::AdmitAll;
use crate::operation::settlement::SettleAll;
use crate::operation::{BatchOperation, Operation};
use crate::sql::{Failure, SqlError, unavailable};

mod batch;
mod checkpoints;
mod queue;

/// Acknowledges an operation once it is known whether its transaction became durable.
type Acknowledge = Box<dyn FnOnce(Result<(), SqlError>) + Send>;
/// Runs an operation at this point in the history of authority.
type Run = Box<dyn FnOnce(&mut Connection, Generation) -> Acknowledge + Send>;
type ReplySender<J> = oneshot::Sender<Result<<J as BatchOperation>::Reply, Failure>>;

/// A job for the writer. A refusal also waits for the flush: it may depend on a change just before it.
pub(super) enum Job {
    /// A single operation.
    Alone { run: Run, changes_authority: bool },
    /// An operation that is not urgent.
    Later { run: Run },
    /// A call to admit, together with the others of its transaction.
    Admit(Submission<AdmitAll>, ReplySender<AdmitAll>),
    /// A call to settle, together with the others of its transaction.
    Settle(Submission<SettleAll>, ReplySender<SettleAll>),
}

/// A handle on the thread.
pub(super) struct Writer {
    queue: Arc<Queue<Job>>,
    generation: Arc<AtomicU64>,
}

impl Writer {
    /// `second` is another connection to the same database, for work concurrent with the writes.
    pub(super) fn start(mut connection: Connection, second: Connection, identity: Identity) -> std::io::Result<Self> {
        let checkpoints = Checkpoints::start(&mut connection, second)?;
        let queue = Arc::new(Queue::new());
        let jobs = Arc::clone(&queue);
        let generation = Arc::new(AtomicU64::new(1));
        let shared = Arc::clone(&generation);
        std::thread::Builder::new()
            .name("ledger-writer".to_owned())
            .spawn(move || write(connection, checkpoints, identity, &jobs, &shared))?;
        Ok(Self { queue, generation })
    }

    /// The generation that a read from now on has reached.
    pub(super) fn generation(&self) -> Generation {
        self.generation.load(Ordering::Acquire)
    }

    /// The queue length, and the distribution of batch sizes.
    pub(super) fn statistics(&self) -> (u64, Counted) {
        (u64::try_from(self.queue.length()).unwrap_or(u64::MAX), self.queue.batches())
    }

    pub(super) async fn run<O: Operation>(&self, operation: O) -> Result<O::Output, Refusal> {
        let (reply, received) = oneshot::channel();
        let run = Box::new(move |connection: &mut Connection, generation| {
            let outcome = in_savepoint(connection, &operation, generation);
            Box::new(move |durable: Result<(), SqlError>| {
                // A caller that has disconnected does not need the result.
                let _ = reply.send(durable.map_err(Failure::Sql).and(outcome));
            }) as Acknowledge
        });
        let job = match O::CAN_WAIT {
            true => Job::Later { run },
            false => Job::Alone { run, changes_authority: O::CHANGES_AUTHORITY },
        };
        self.submit(job).await?;
        received.await.map_err(|_| unavailable())?.map_err(Failure::into_refusal)
    }

    /// Submits a command, which is batched with others of its kind.
    pub(super) async fn join<J: BatchOperation>(
        &self,
        command: J::Command,
        job: impl FnOnce(Submission<J>, ReplySender<J>) -> Job,
    ) -> Result<J::Reply, Refusal> {
        // The writer has time to prepare the rows itself, with better locality, unless it has fallen behind: then the
        // waiting callers prepare them.
        let submission = if self.queue.is_long() {
            Submission::Part(J::ready(command).map_err(Failure::into_refusal)?)
        } else {
            Submission::Command(command)
        };
        let (reply, received) = oneshot::channel();
        self.submit(job(submission, reply)).await?;
        received.await.map_err(|_| unavailable())?.map_err(Failure::into_refusal)
    }

    async fn submit(&self, job: Job) -> Result<(), Refusal> {
        self.queue.push(job).await.map_err(|_| unavailable())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue.close();
    }
}

/// Abandons the queue when the thread ends, by a panic too.
struct Abandoning<'a>(&'a Queue<Job>);

impl Drop for Abandoning<'_> {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

fn write(
    mut connection: Connection,
    mut checkpoints: Checkpoints,
    mut identity: Identity,
    queue: &Queue<Job>,
    published: &AtomicU64,
) {
    let _abandoning = Abandoning(queue);
    while let Some(jobs) = queue.take() {
        let (later, jobs): (Vec<_>, Vec<_>) = jobs.into_iter().partition(|job| matches!(job, Job::Later { .. }));
        // All other jobs are acknowledged before those that are not urgent are started.
        for jobs in [jobs, later].into_iter().filter(|jobs| !jobs.is_empty()) {
            // The callers of the transaction get LEDGER_UNAVAILABLE; later jobs are written.
            let written = AssertUnwindSafe(|| write_together(&mut connection, &mut identity, jobs, published));
            if std::panic::catch_unwind(written).is_err() {
                tracing::error!("a ledger operation panicked; its transaction is rolled back");
                if let Err(error) = roll_back(&connection) {
                    return tracing::error!(%error, "stopping the ledger writer: its transaction could not be rolled \
                        back");
                }
            }
            checkpoints.between_transactions(&connection);
        }
    }
}

/// Runs these jobs in one transaction and acknowledges them.
fn write_together(connection: &mut Connection, identity: &mut Identity, jobs: Vec<Job>, published: &AtomicU64) {
    let mut generation = published.load(Ordering::Acquire);
    if let Err(error) = run_statement(connection, "BEGIN IMMEDIATE") {
        tracing::error!(%error, "the ledger could not begin a transaction");
        // Dropped without running, a job tells its caller that the ledger is not available.
        return;
    }
    let mut alone = Vec::new();
    let (mut admissions, mut settlements) = (Batch::<AdmitAll>::default(), Batch::<SettleAll>::default());
    for job in jobs {
        // Some errors, such as a full disk, end the whole transaction: the rest is dropped without running.
        if connection.is_autocommit() {
            break;
        }
        match job {
            Job::Alone { run, changes_authority } => {
                // INVARIANT: published only once it is durable. A concurrent read sees the state before the change, and
                // later operations of the same transaction must not count it as up to date.
                if changes_authority {
                    generation += 1;
                }
                alone.push(run(connection, generation));
            }
            Job::Later { run } => alone.push(run(connection, generation)),
            Job::Admit(submission, reply) => admissions.take(submission, reply),
            Job::Settle(submission, reply) => settlements.take(submission, reply),
        }
    }
    let (settlements, admissions) = (settlements.start(), admissions.start());
    let at_once = alone.is_empty() && !connection.is_autocommit();
    let Some((settled, admitted)) = carry_out(connection, generation, settlements, admissions, at_once) else { return };
    // INVARIANT: nothing is acknowledged that is not in the file at the ledger's path.
    let durable = commit(connection).and_then(|()| identity.check());
    published.store(generation, Ordering::Release);
    for acknowledge in alone {
        acknowledge(durable.clone());
    }
    settled.acknowledge(&durable);
    admitted.acknowledge(&durable);
}

/// Runs settlements and admissions. Admissions come after everything else in their transaction, so that each of them
/// sees its changes. `None` if there is no transaction to run in: the jobs are dropped, their callers get
/// LEDGER_UNAVAILABLE, and nothing is committed.
fn carry_out(
    connection: &mut Connection,
    generation: Generation,
    settlements: RunningBatch<SettleAll>,
    admissions: RunningBatch<AdmitAll>,
    at_once: bool,
) -> Option<(BatchResult<SettleAll>, BatchResult<AdmitAll>)> {
    // Where nothing else is in the transaction, all of it can be rolled back: savepoints, which copy every page that is
    // changed, are needed only where something fails.
    if at_once {
        let settled = settlements.run_at_once(connection, generation);
        let both = settled.and_then(|settled| Ok((settled, admissions.run_at_once(connection, generation)?)));
        if let Ok((settled, admitted)) = both {
            return Some((settlements.ended(settled), admissions.ended(admitted)));
        }
        let begun = roll_back(connection).and_then(|()| run_statement(connection, "BEGIN IMMEDIATE"));
        if let Err(error) = begun {
            tracing::error!(%error, "the ledger could not begin the transaction again");
            return None;
        }
    }
    let settled = settlements.run(connection, generation);
    Some((settled, admissions.run(connection, generation)))
}

fn roll_back(connection: &Connection) -> Result<(), SqlError> {
    // Some errors have done so already.
    if connection.is_autocommit() { Ok(()) } else { run_statement(connection, "ROLLBACK") }
}

fn commit(connection: &mut Connection) -> Result<(), SqlError> {
    if connection.is_autocommit() {
        return Err(SqlError::Unavailable("an error aborted the transaction".to_owned()));
    }
    run_statement(connection, "COMMIT").inspect_err(|_| {
        // Whatever the rollback returns, the next transaction starts from a clean state.
        let _ = run_statement(connection, "ROLLBACK");
    })
}

fn in_savepoint<O: Operation>(
    connection: &mut Connection,
    operation: &O,
    generation: Generation,
) -> Result<O::Output, Failure> {
    run_statement(connection, "SAVEPOINT operation")?;
    match run_ready(operation, &mut SqliteTransaction::at(connection, generation)) {
        Ok(output) => {
            run_statement(connection, "RELEASE operation")?;
            Ok(output)
        }
        Err(failure) => {
            if !connection.is_autocommit() {
                run_statement(connection, "ROLLBACK TO operation")?;
                run_statement(connection, "RELEASE operation")?;
            }
            Err(failure)
        }
    }
}

fn run_statement(connection: &Connection, sql: &str) -> Result<(), SqlError> {
    let run = || connection.prepare_cached(sql)?.execute([]);
    run().map(drop).map_err(|error| sql_error(&error))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::transaction::Transaction;

    /// Checks, from inside the transaction, whether a concurrent read would count as up to date.
    struct Look<const CHANGES: bool>(Arc<AtomicU64>);

    impl<const CHANGES: bool> Operation for Look<CHANGES> {
        type Output = bool;

        const CHANGES_AUTHORITY: bool = CHANGES;

        async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<bool, Failure> {
            Ok(transaction.unchanged_since(self.0.load(Ordering::Acquire)))
        }
    }

    fn writer() -> Writer {
        let connection = || Connection::open_in_memory().unwrap();
        // A database in memory has no file that could be lost.
        let identity = Identity::of(std::path::Path::new("/")).unwrap();
        Writer::start(connection(), connection(), identity).unwrap()
    }

    #[tokio::test]
    async fn who_reads_while_a_change_is_under_way_is_not_up_to_date() {
        let writer = writer();
        let shared = || Arc::clone(&writer.generation);
        let before = writer.generation();

        assert!(writer.run(Look::<false>(shared())).await.unwrap(), "nothing has changed");
        assert!(!writer.run(Look::<true>(shared())).await.unwrap(), "the change is not durable yet");
        assert!(writer.run(Look::<false>(shared())).await.unwrap(), "a read from now on sees the change");
        assert!(writer.generation() > before);
    }

    /// Keeps a transaction open until the returned sender is used or dropped.
    async fn hold(writer: &Writer) -> std::sync::mpsc::Sender<()> {
        let (hold, held) = std::sync::mpsc::channel::<()>();
        let (begun, has_begun) = oneshot::channel();
        let run = Box::new(move |_: &mut Connection, _| {
            let _ = begun.send(());
            let _ = held.recv();
            Box::new(|_| {}) as Acknowledge
        });
        writer.submit(Job::Alone { run, changes_authority: false }).await.unwrap();
        has_begun.await.unwrap();
        hold
    }

    /// Records when it ran.
    struct Turn<const CAN_WAIT: bool>(Arc<Mutex<Vec<bool>>>);

    impl<const CAN_WAIT: bool> Operation for Turn<CAN_WAIT> {
        type Output = ();

        const CHANGES_AUTHORITY: bool = false;
        const CAN_WAIT: bool = CAN_WAIT;

        async fn run<T: Transaction>(&self, _transaction: &mut T) -> Result<(), Failure> {
            self.0.lock().unwrap().push(CAN_WAIT);
            Ok(())
        }
    }

    #[tokio::test]
    async fn what_is_not_urgent_is_begun_after_all_others_that_wait() {
        let writer = writer();
        let hold = hold(&writer).await;
        let turns = Arc::new(Mutex::new(Vec::new()));

        let first_asked = writer.run(Turn::<true>(Arc::clone(&turns)));
        let asked_later = writer.run(Turn::<false>(Arc::clone(&turns)));
        let release = async { hold.send(()).unwrap() };
        let (first, later, ()) = tokio::join!(first_asked, asked_later, release);

        assert_eq!((first, later), (Ok(()), Ok(())));
        assert_eq!(*turns.lock().unwrap(), [false, true]);
    }

    /// A fault of the program.
    struct Panics;

    impl Operation for Panics {
        type Output = ();

        const CHANGES_AUTHORITY: bool = true;

        async fn run<T: Transaction>(&self, _transaction: &mut T) -> Result<(), Failure> {
            panic!("a fault of the program")
        }
    }

    #[tokio::test]
    async fn an_operation_that_panics_fails_and_the_next_one_is_written() {
        let writer = writer();
        let before = writer.generation();
        assert!(writer.run(Panics).await.is_err());
        assert_eq!(writer.generation(), before, "nothing has changed");
        assert!(writer.run(Look::<false>(Arc::clone(&writer.generation))).await.unwrap());
    }

    #[tokio::test]
    async fn a_change_is_seen_by_what_follows_in_the_same_transaction() {
        let writer = writer();
        let hold = hold(&writer).await;

        let (changing, following) =
            (Look::<true>(Arc::clone(&writer.generation)), Look::<false>(Arc::clone(&writer.generation)));
        let both = async { tokio::join!(writer.run(changing), writer.run(following)) };
        let release = async { hold.send(()).unwrap() };
        // The first poll of `both` queues both operations; then the transaction continues.
        let ((changed, followed), ()) = tokio::join!(both, release);

        assert_eq!((changed, followed), (Ok(false), Ok(false)));
    }
}
