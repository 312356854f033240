//! The queue before the writer. A flush costs the same for one job as for many, and so does waking the writer: where the
//! last transaction shows that more jobs are on their way, the writer is woken when as many and more have come, or a
//! moment later. Who is alone never waits.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;

/// How many may wait; beyond this callers wait for a place, which slows them down instead of filling memory.
const PLACES: usize = 4096;
/// How long the writer waits for each job that it expects, and at most for all of them.
const FOR_EACH: Duration = Duration::from_micros(8);
const FOR_ALL: Duration = Duration::from_micros(1024);

/// Jobs that wait for the writer.
pub(super) struct Queue<J> {
    state: Mutex<State<J>>,
    changed: Condvar,
    places: Semaphore,
}

struct State<J> {
    waiting: Vec<J>,
    /// The writer sleeps until so many wait.
    wanted: usize,
    closed: bool,
}

/// The writer is gone.
#[derive(Debug)]
pub(super) struct Closed;

impl<J> Queue<J> {
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::new(State { waiting: Vec::new(), wanted: 1, closed: false }),
            changed: Condvar::new(),
            places: Semaphore::new(PLACES),
        }
    }

    /// Adds a job.
    pub(super) async fn push(&self, job: J) -> Result<(), Closed> {
        // Given back when the writer takes the job.
        self.places.acquire().await.map_err(|_| Closed)?.forget();
        let mut state = self.lock();
        if state.closed {
            return Err(Closed);
        }
        state.waiting.push(job);
        let enough = state.waiting.len() == state.wanted;
        drop(state);
        if enough {
            self.changed.notify_one();
        }
        Ok(())
    }

    /// The jobs for the next transaction: at least one, and a moment is given to as many as there were last time. `None`
    /// when the queue is closed and empty.
    pub(super) fn take(&self, last: usize) -> Option<Vec<J>> {
        let mut state = self.lock();
        state.wanted = 1;
        while state.waiting.is_empty() {
            if state.closed {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        // More than last time: otherwise a busy queue would settle on small transactions.
        let hoped = if last > 1 { last.saturating_mul(2) } else { 1 };
        if state.waiting.len() < hoped {
            state.wanted = hoped;
            let patience = FOR_EACH.saturating_mul(u32::try_from(hoped).unwrap_or(u32::MAX)).min(FOR_ALL);
            let waited =
                self.changed.wait_timeout_while(state, patience, |state| state.waiting.len() < hoped && !state.closed);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let capacity = state.waiting.len();
        let jobs = std::mem::replace(&mut state.waiting, Vec::with_capacity(capacity));
        drop(state);
        self.places.add_permits(jobs.len());
        Some(jobs)
    }

    /// Takes no more jobs; those that wait are still taken out.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.places.close();
        self.changed.notify_one();
    }

    /// Closes the queue and drops what waits, when the writer is gone, however it went: nobody waits for it in vain.
    pub(super) fn abandon(&self) {
        self.close();
        self.lock().waiting.clear();
    }

    fn lock(&self) -> MutexGuard<'_, State<J>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
