//! The resolver of the operating system, which occupies a thread for each lookup, and whose thread cannot be stopped.
//! So lookups have their own slots, few of which one holder can use; concurrent requests for a name share one lookup;
//! and every wait has one deadline.

use std::collections::HashMap;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, timeout_at};

use super::{LookupError, Resolve};
use crate::pool::PoolKey;
use crate::time::now;

#[cfg(test)]
mod tests;

/// The default number of concurrent lookups.
pub const LOOKUPS: usize = 32;
/// Which part of them one holder may have in flight.
const SHARE: usize = 4;
/// The timeout of a lookup, including the wait for a slot.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The resolver of the operating system.
#[derive(Clone)]
pub struct SystemResolver(Arc<Lookups>);

type Found = Result<Vec<IpAddr>, LookupError>;

struct Lookups {
    /// Calls the system; blocks.
    look_up: Box<dyn Fn(&str) -> Found + Send + Sync>,
    places: Arc<Semaphore>,
    of_holder: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// By name. INVARIANT: a thread is at work on each of these.
    in_flight: HashMap<String, watch::Receiver<Option<Found>>>,
    shares: HashMap<PoolKey, Arc<Semaphore>>,
}

/// A lookup in flight; it has ended when this is dropped.
struct PendingLookup {
    lookups: Arc<Lookups>,
    name: String,
    holder: PoolKey,
    result_sender: watch::Sender<Option<Found>>,
    /// `None` while it is being released.
    permits: Option<[OwnedSemaphorePermit; 2]>,
}

/// A task that may wait for a slot.
struct Interest<'a> {
    lookups: &'a Lookups,
    holder: PoolKey,
}

impl SystemResolver {
    /// With this many concurrent lookups.
    pub fn new(lookups: usize) -> Self {
        Self::asking(lookups, |name| {
            let found = (name, 0).to_socket_addrs().map_err(|_| LookupError::Failed)?;
            Ok(found.map(|socket| socket.ip()).collect())
        })
    }

    fn asking(lookups: usize, look_up: impl Fn(&str) -> Found + Send + Sync + 'static) -> Self {
        Self(Arc::new(Lookups {
            look_up: Box::new(look_up),
            places: Arc::new(Semaphore::new(lookups.max(1))),
            of_holder: lookups.div_ceil(SHARE).max(1),
            state: Mutex::default(),
        }))
    }
}

impl Default for SystemResolver {
    fn default() -> Self {
        Self::new(LOOKUPS)
    }
}

#[async_trait]
impl Resolve for SystemResolver {
    async fn resolve(&self, name: &str, holder: PoolKey) -> Found {
        let deadline = now() + TIMEOUT;
        if let Some(flight) = self.0.in_flight(name) {
            return landed(flight, deadline).await;
        }
        let _interest = Interest { lookups: &self.0, holder };
        let permits = timeout_at(deadline, self.0.permits(holder)).await.map_err(|_| LookupError::Busy)??;
        landed(self.0.start(name, holder, permits), deadline).await
    }
}

impl Lookups {
    fn in_flight(&self, name: &str) -> Option<watch::Receiver<Option<Found>>> {
        self.state().in_flight.get(name).cloned()
    }

    /// First a slot of the holder: waiting for it takes none from others.
    async fn permits(&self, holder: PoolKey) -> Result<[OwnedSemaphorePermit; 2], LookupError> {
        let share = self.state().shares.entry(holder).or_insert_with(|| self.new_share()).clone();
        let own = share.acquire_owned().await.map_err(|_| LookupError::Busy)?;
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(|_| LookupError::Busy)?;
        Ok([own, place])
    }

    fn new_share(&self) -> Arc<Semaphore> {
        Arc::new(Semaphore::new(self.of_holder))
    }

    /// Starts a lookup, unless another task has started it while this one waited for its slot.
    fn start(
        self: &Arc<Self>,
        name: &str,
        holder: PoolKey,
        permits: [OwnedSemaphorePermit; 2],
    ) -> watch::Receiver<Option<Found>> {
        let mut state = self.state();
        if let Some(flight) = state.in_flight.get(name) {
            return flight.clone();
        }
        let (result_sender, flight) = watch::channel(None);
        state.in_flight.insert(name.to_owned(), flight.clone());
        drop(state);
        let begun = PendingLookup {
            lookups: Arc::clone(self),
            name: name.to_owned(),
            holder,
            result_sender,
            permits: Some(permits),
        };
        tokio::task::spawn_blocking(move || {
            let found = (begun.lookups.look_up)(&begun.name);
            begun.result_sender.send_replace(Some(found));
        });
        flight
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Drops a share that nobody uses or waits for.
    fn forget_unused(&mut self, holder: &PoolKey) {
        if self.shares.get(holder).is_some_and(|share| Arc::strong_count(share) == 1) {
            self.shares.remove(holder);
        }
    }
}

impl Drop for PendingLookup {
    fn drop(&mut self) {
        let mut state = self.lookups.state();
        state.in_flight.remove(&self.name);
        self.permits = None;
        state.forget_unused(&self.holder);
    }
}

impl Drop for Interest<'_> {
    fn drop(&mut self) {
        self.lookups.state().forget_unused(&self.holder);
    }
}

async fn landed(mut flight: watch::Receiver<Option<Found>>, deadline: Instant) -> Found {
    let found = timeout_at(deadline, flight.wait_for(Option::is_some)).await;
    match found {
        Ok(Ok(found)) => found.clone().unwrap_or(Err(LookupError::Failed)),
        // The thread broke off.
        Ok(Err(_)) => Err(LookupError::Failed),
        Err(_) => Err(LookupError::TimedOut),
    }
}
