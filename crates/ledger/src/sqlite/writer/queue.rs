//! The queue of the writer. Jobs that arrive while a transaction runs and is flushed are taken into the next one
//! together: a flush costs the same for one job as for many.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use tokio::sync::Semaphore;
use toolgate_gate::distribution::Counted;

use crate::batch_sizes::{BatchSizes, batch_sizes};

/// The capacity; beyond it callers wait for a slot, which slows them down instead of filling memory.
const PLACES: usize = 4096;

/// The length from which the writer has fallen behind. Below it, a busy writer takes larger transactions, which is
/// cheaper.
const LONG: usize = 64;

/// Jobs that wait for the writer.
pub(super) struct Queue<J> {
    state: Mutex<State<J>>,
    changed: Condvar,
    places: Semaphore,
    batches: BatchSizes,
}

struct State<J> {
    waiting: Vec<J>,
    closed: bool,
}

/// The writer has stopped.
#[derive(Debug)]
pub(super) struct Closed;

impl<J> Queue<J> {
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::new(State { waiting: Vec::new(), closed: false }),
            changed: Condvar::new(),
            places: Semaphore::new(PLACES),
            batches: batch_sizes(),
        }
    }

    pub(super) async fn push(&self, job: J) -> Result<(), Closed> {
        // Released when the writer takes the job.
        self.places.acquire().await.map_err(|_| Closed)?.forget();
        let mut state = self.lock();
        if state.closed {
            return Err(Closed);
        }
        let first = state.waiting.is_empty();
        state.waiting.push(job);
        drop(state);
        // If other jobs already wait, the writer is awake, or about to be.
        if first {
            self.changed.notify_one();
        }
        Ok(())
    }

    /// Whether the writer has fallen behind: a job put in now waits for many others.
    pub(super) fn is_long(&self) -> bool {
        self.length() >= LONG
    }

    pub(super) fn length(&self) -> usize {
        PLACES - self.places.available_permits()
    }

    /// The number of jobs taken at once.
    pub(super) fn batches(&self) -> Counted {
        self.batches.counted()
    }

    /// All jobs that wait, for the next transaction: at least one. `None` when the queue is closed and empty.
    pub(super) fn take(&self) -> Option<Vec<J>> {
        let mut state = self.lock();
        while state.waiting.is_empty() {
            if state.closed {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let capacity = state.waiting.len();
        let jobs = std::mem::replace(&mut state.waiting, Vec::with_capacity(capacity));
        drop(state);
        self.places.add_permits(jobs.len());
        self.batches.add(u64::try_from(jobs.len()).unwrap_or(u64::MAX));
        Some(jobs)
    }

    /// Accepts no more jobs; waiting ones are still taken.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.places.close();
        self.changed.notify_one();
    }

    /// Closes the queue and drops its jobs when the writer has stopped for any reason: no caller waits in vain.
    pub(super) fn abandon(&self) {
        self.close();
        self.lock().waiting.clear();
    }

    fn lock(&self) -> MutexGuard<'_, State<J>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_queue_is_long_while_many_wait_in_it() {
        let queue = Queue::new();
        for job in 0..LONG {
            assert!(!queue.is_long(), "{job} wait");
            queue.push(job).await.unwrap();
        }
        assert!(queue.is_long());

        let taken = queue.take().unwrap();

        assert_eq!(taken, (0..LONG).collect::<Vec<_>>(), "all of them, in order");
        assert!(!queue.is_long());
        assert_eq!((queue.length(), queue.batches().count(), queue.batches().sum), (0, 1, 64));
    }

    #[tokio::test]
    async fn what_waits_when_the_queue_is_closed_is_still_taken_and_nothing_more_is_let_in() {
        let queue = Queue::new();
        queue.push(1).await.unwrap();

        queue.close();

        assert!(queue.push(2).await.is_err());
        assert_eq!((queue.take(), queue.take()), (Some(vec![1]), None));
    }
}
