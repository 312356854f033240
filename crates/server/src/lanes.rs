//! Lanes: threads that each carry their own connections from the first byte to the last. A call, its timers and the
//! connection to its service stay where they began: handing them from thread to thread costs more than a lane that is busy
//! while its neighbour is not. What takes long to compute goes aside, so that nobody's large requests stand in the way of
//! everybody's small ones.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// The lanes of one program.
pub struct Lanes {
    lanes: Vec<Lane>,
    /// For what would hold a lane up.
    aside: Lane,
}

struct Lane {
    handle: Handle,
    /// One more reference for each connection.
    connections: Arc<()>,
    thread: Option<LaneThread>,
}

struct LaneThread {
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

/// A place in a lane; given back when it is dropped.
pub(crate) struct Place {
    pub(crate) handle: Handle,
    /// Where to go with what would hold the lane up.
    pub(crate) aside: Handle,
    _counted: Arc<()>,
}

impl Lanes {
    /// One lane for each processor but one: that one is the ledger's, which writes on a thread of its own. `patience` is
    /// how long threads that wait for the disk or for another process may still take in the end.
    pub fn start(patience: Duration) -> io::Result<Self> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self::start_many(processors.saturating_sub(1).max(1), patience)
    }

    /// Everything in the runtime that this is called in.
    pub fn here() -> Self {
        let here = || Lane { handle: Handle::current(), connections: Arc::default(), thread: None };
        Self { lanes: vec![here()], aside: here() }
    }

    pub(crate) fn start_many(count: usize, patience: Duration) -> io::Result<Self> {
        let lanes = (0..count).map(|number| Lane::start(format!("lane-{number}"), patience));
        Ok(Self { lanes: lanes.collect::<io::Result<_>>()?, aside: Lane::start("aside".to_owned(), patience)? })
    }

    /// The runtime for what would hold a lane up.
    pub fn offload(&self) -> &Handle {
        &self.aside.handle
    }

    /// A place in the lane that has the fewest connections.
    pub(crate) fn place(&self) -> Option<Place> {
        let lane = self.lanes.iter().min_by_key(|lane| Arc::strong_count(&lane.connections))?;
        let (handle, aside) = (lane.handle.clone(), self.aside.handle.clone());
        Some(Place { handle, aside, _counted: Arc::clone(&lane.connections) })
    }

    /// Ends the threads, with whatever is left on them.
    pub fn end(self) {
        let threads: Vec<_> = self.lanes.into_iter().chain([self.aside]).filter_map(|lane| lane.thread).collect();
        // All are told before the first is waited for.
        let ending: Vec<_> = threads.into_iter().map(|LaneThread { stop, thread }| (stop.send(()), thread)).collect();
        for (_, thread) in ending {
            // One that panicked has ended too.
            let _ = thread.join();
        }
    }
}

impl Lane {
    fn start(name: String, patience: Duration) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new().name(name).spawn(move || {
            // It ends as well when nobody is left to tell it.
            let _ = runtime.block_on(stopped);
            runtime.shutdown_timeout(patience);
        })?;
        Ok(Self { handle, connections: Arc::default(), thread: Some(LaneThread { stop, thread }) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_spread_over_the_lanes_and_a_place_that_is_given_back_is_given_out_again() {
        let lanes = Lanes::start_many(3, Duration::from_secs(1)).unwrap();
        let id = |place: &Place| place.handle.id();

        let taken: Vec<_> = (0..3).map(|_| lanes.place().unwrap()).collect();
        let [first, second, third] = taken.try_into().ok().unwrap();
        let freed = id(&second);
        drop(second);
        let next = lanes.place().unwrap();

        assert!(id(&first) != id(&third) && id(&first) != freed && id(&third) != freed);
        assert_eq!(id(&next), freed);
        lanes.end();
    }

    #[test]
    fn a_lane_carries_what_it_is_given_until_the_end() {
        let lanes = Lanes::start_many(1, Duration::from_secs(1)).unwrap();

        let place = lanes.place().unwrap();
        let (tell, told) = oneshot::channel();
        place.handle.spawn(async move { tell.send(std::thread::current().name().map(str::to_owned)) });

        assert_eq!(told.blocking_recv().unwrap().as_deref(), Some("lane-0"));
        lanes.end();
    }
}
