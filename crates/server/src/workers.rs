//! Worker runtimes: threads that each serve their own connections from the first byte to the last. A call, its timers and
//! the connection to its service stay on one thread: handing them over costs more than a worker that is busy while its
//! neighbour is idle. Heavy work is offloaded, so that large requests do not delay small ones.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// The workers of one program.
pub struct WorkerRuntimes {
    workers: Vec<Worker>,
    /// For work that would block a worker.
    offload: Worker,
}

struct Worker {
    handle: Handle,
    /// One more reference for each connection.
    connections: Arc<()>,
    thread: Option<WorkerThread>,
}

struct WorkerThread {
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

/// A connection's slot on a worker; released on drop.
pub(crate) struct WorkerSlot {
    pub(crate) handle: Handle,
    /// For work that would block the worker.
    pub(crate) offload: Handle,
    _counted: Arc<()>,
}

impl WorkerRuntimes {
    /// One worker for each processor but one, which the ledger's writer thread uses. After `shutdown_timeout`, threads that
    /// still wait for the disk or for another process are abandoned.
    pub fn start(shutdown_timeout: Duration) -> io::Result<Self> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self::start_many(processors.saturating_sub(1).max(1), shutdown_timeout)
    }

    /// Everything in the runtime that this is called in.
    pub fn here() -> Self {
        let here = || Worker { handle: Handle::current(), connections: Arc::default(), thread: None };
        Self { workers: vec![here()], offload: here() }
    }

    pub(crate) fn start_many(count: usize, shutdown_timeout: Duration) -> io::Result<Self> {
        let workers = (0..count).map(|number| Worker::start(format!("worker-{number}"), shutdown_timeout));
        Ok(Self {
            workers: workers.collect::<io::Result<_>>()?,
            offload: Worker::start("offload".to_owned(), shutdown_timeout)?,
        })
    }

    /// The runtime for work that would block a worker.
    pub fn offload(&self) -> &Handle {
        &self.offload.handle
    }

    /// A slot on the worker with the fewest connections.
    pub(crate) fn slot(&self) -> Option<WorkerSlot> {
        let worker = self.workers.iter().min_by_key(|worker| Arc::strong_count(&worker.connections))?;
        let (handle, offload) = (worker.handle.clone(), self.offload.handle.clone());
        Some(WorkerSlot { handle, offload, _counted: Arc::clone(&worker.connections) })
    }

    /// Ends the threads, with whatever is left on them.
    pub fn end(self) {
        let threads: Vec<_> =
            self.workers.into_iter().chain([self.offload]).filter_map(|worker| worker.thread).collect();
        // All are signalled before the first is awaited.
        let ending: Vec<_> = threads.into_iter().map(|WorkerThread { stop, thread }| (stop.send(()), thread)).collect();
        for (_, thread) in ending {
            // One that panicked has ended too.
            let _ = thread.join();
        }
    }
}

impl Worker {
    fn start(name: String, shutdown_timeout: Duration) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new().name(name).spawn(move || {
            // It also ends when the sender is dropped.
            let _ = runtime.block_on(stopped);
            runtime.shutdown_timeout(shutdown_timeout);
        })?;
        Ok(Self { handle, connections: Arc::default(), thread: Some(WorkerThread { stop, thread }) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_spread_over_the_lanes_and_a_place_that_is_given_back_is_given_out_again() {
        let workers = WorkerRuntimes::start_many(3, Duration::from_secs(1)).unwrap();
        let id = |slot: &WorkerSlot| slot.handle.id();

        let taken: Vec<_> = (0..3).map(|_| workers.slot().unwrap()).collect();
        let [first, second, third] = taken.try_into().ok().unwrap();
        let freed = id(&second);
        drop(second);
        let next = workers.slot().unwrap();

        assert!(id(&first) != id(&third) && id(&first) != freed && id(&third) != freed);
        assert_eq!(id(&next), freed);
        workers.end();
    }

    #[test]
    fn a_lane_carries_what_it_is_given_until_the_end() {
        let workers = WorkerRuntimes::start_many(1, Duration::from_secs(1)).unwrap();

        let slot = workers.slot().unwrap();
        let (sender, receiver) = oneshot::channel();
        slot.handle.spawn(async move { sender.send(std::thread::current().name().map(str::to_owned)) });

        assert_eq!(receiver.blocking_recv().unwrap().as_deref(), Some("worker-0"));
        workers.end();
    }
}
