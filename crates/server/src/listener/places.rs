//! Who may have a connection: so many in all, so many of one address until a key on them was verified, and a few in
//! reserve for probes. Where there is no place left, the connection that has been silent for longest gives up its own.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;
use toolgate_model::source_network::SourceNetwork;

/// How many connections are kept for probes.
const RESERVED: usize = 32;

/// All places of a gate.
pub(super) struct Places {
    ordinary: Arc<Semaphore>,
    reserved: Arc<Semaphore>,
    total: usize,
    most_of_address: usize,
    unverified: Mutex<HashMap<SourceNetwork, usize>>,
    /// Connections that were silent when they came, in that order. Those that are not any more are skipped.
    silent: Mutex<VecDeque<Weak<Place>>>,
}

/// One connection's place; given back when it is dropped.
pub(crate) struct Place {
    /// Whether only probes are served on it.
    reserved: bool,
    counted: Option<Counted>,
    state: AtomicU8,
    task: OnceLock<AbortHandle>,
    permit: Mutex<Option<OwnedSemaphorePermit>>,
}

/// No complete request has come yet.
const SILENT: u8 = 0;
const SERVED: u8 = 1;
/// Another connection has its place.
const EVICTED: u8 = 2;

/// A connection that counts for its address.
struct Counted {
    places: Arc<Places>,
    network: SourceNetwork,
    is_verified: AtomicBool,
}

/// Why there is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoPlace {
    /// All are taken.
    Full,
    /// This address has as many as it may.
    Address,
}

impl Places {
    pub(super) fn new(total: usize, most_of_address: usize) -> Self {
        Self {
            ordinary: Arc::new(Semaphore::new(total)),
            reserved: Arc::new(Semaphore::new(RESERVED)),
            total,
            most_of_address,
            unverified: Mutex::default(),
            silent: Mutex::default(),
        }
    }

    /// A place for a connection from this address; none counts for no address.
    pub(super) fn take(self: &Arc<Self>, address: Option<IpAddr>) -> Result<Arc<Place>, NoPlace> {
        let network = address.map(SourceNetwork::of);
        let counted = match network.map(|network| self.count(network)).transpose() {
            Err(_) if self.evict(network).is_some() => network.map(|network| self.count(network)).transpose()?,
            counted => counted?,
        };
        let ordinary = Arc::clone(&self.ordinary).try_acquire_owned().ok();
        let (permit, reserved) = match ordinary.or_else(|| self.evict(None)) {
            Some(permit) => (permit, false),
            None => (Arc::clone(&self.reserved).try_acquire_owned().map_err(|_| NoPlace::Full)?, true),
        };
        let place = Arc::new(Place {
            reserved,
            counted,
            state: AtomicU8::new(SILENT),
            task: OnceLock::new(),
            permit: Mutex::new(Some(permit)),
        });
        if !reserved {
            let mut silent = self.silent();
            if silent.len() >= self.total.saturating_mul(2) {
                silent.retain(|place| place.upgrade().is_some_and(|place| place.is_silent()));
            }
            silent.push_back(Arc::downgrade(&place));
        }
        Ok(place)
    }

    /// Closes the connection that has been silent for longest, of this network or of any; its place is free then.
    fn evict(&self, network: Option<SourceNetwork>) -> Option<OwnedSemaphorePermit> {
        let mut silent = self.silent();
        let mut position = 0;
        while let Some(place) = silent.get(position) {
            let place = place.upgrade().filter(|place| place.is_silent());
            let Some(place) = place else {
                silent.remove(position);
                continue;
            };
            let is_meant = network.is_none() || place.counted.as_ref().map(|counted| counted.network) == network;
            match is_meant.then(|| place.evict()).flatten() {
                Some(permit) => {
                    silent.remove(position);
                    return Some(permit);
                }
                None => position += 1,
            }
        }
        None
    }

    fn silent(&self) -> MutexGuard<'_, VecDeque<Weak<Place>>> {
        self.silent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(self: &Arc<Self>, network: SourceNetwork) -> Result<Counted, NoPlace> {
        let mut unverified = self.unverified.lock().unwrap_or_else(PoisonError::into_inner);
        let count = unverified.entry(network).or_default();
        if *count >= self.most_of_address {
            return Err(NoPlace::Address);
        }
        *count += 1;
        Ok(Counted { places: Arc::clone(self), network, is_verified: AtomicBool::new(false) })
    }

    fn discount(&self, network: SourceNetwork) {
        let mut unverified = self.unverified.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = unverified.get_mut(&network) {
            *count -= 1;
            if *count == 0 {
                unverified.remove(&network);
            }
        }
    }

    /// Waits until every place was given back.
    pub(super) async fn all_returned(&self) {
        let total = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        // An error would mean that the semaphore is closed, which nobody does.
        let _ = self.ordinary.acquire_many(total(self.total)).await;
        let _ = self.reserved.acquire_many(total(RESERVED)).await;
    }
}

impl Place {
    /// The task that has it, so that it can be ended.
    pub(super) fn belongs_to(&self, task: AbortHandle) {
        // There is only one.
        let _ = self.task.set(task);
    }

    /// Whether only probes are served on it.
    pub(crate) fn is_reserved(&self) -> bool {
        self.reserved
    }

    /// A complete request has come: from now on nobody takes it.
    pub(crate) fn served(&self) {
        let _ = self.state.compare_exchange(SILENT, SERVED, Ordering::AcqRel, Ordering::Acquire);
    }

    /// A key on this connection was verified: it does not count for its address any more.
    pub(crate) fn verified(&self) {
        if let Some(counted) = &self.counted {
            counted.verified();
        }
    }

    fn is_silent(&self) -> bool {
        self.state.load(Ordering::Acquire) == SILENT
    }

    /// Ends the connection and hands out its permit; `None` where it is not silent any more, or has no task yet.
    fn evict(&self) -> Option<OwnedSemaphorePermit> {
        let task = self.task.get()?;
        self.state.compare_exchange(SILENT, EVICTED, Ordering::AcqRel, Ordering::Acquire).ok()?;
        task.abort();
        self.verified();
        self.permit.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Counted {
    fn verified(&self) {
        if !self.is_verified.swap(true, Ordering::AcqRel) {
            self.places.discount(self.network);
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.verified();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Option<IpAddr> {
        Some(text.parse().unwrap())
    }

    /// A connection that a task has.
    fn connected(places: &Arc<Places>, from: &str) -> Result<(Arc<Place>, tokio::task::JoinHandle<()>), NoPlace> {
        let place = places.take(address(from))?;
        let task = tokio::spawn(std::future::pending());
        place.belongs_to(task.abort_handle());
        Ok((place, task))
    }

    #[tokio::test]
    async fn the_longest_silent_connection_gives_its_place_to_a_new_one() {
        let places = Arc::new(Places::new(3, 2));
        let (served, served_task) = connected(&places, "192.0.2.1").ok().unwrap();
        served.served();
        let (_oldest, oldest_task) = connected(&places, "192.0.2.1").ok().unwrap();
        // The address has no place left but that of its own silent one.
        let (newer, newer_task) = connected(&places, "192.0.2.1").ok().unwrap();
        assert!(oldest_task.await.unwrap_err().is_cancelled());
        // Neither has the gate, for whoever comes.
        let (_second, second_task) = connected(&places, "192.0.2.2").ok().unwrap();
        let (third, _) = connected(&places, "192.0.2.3").ok().unwrap();
        assert!(newer_task.await.unwrap_err().is_cancelled() && !third.is_reserved());
        assert!(!served_task.is_finished() && !second_task.is_finished());
        drop(newer);
        assert!(connected(&places, "192.0.2.3").ok().is_some());
    }

    #[test]
    fn one_address_has_so_many_until_a_key_is_verified() {
        let places = Arc::new(Places::new(10, 2));
        let first = places.take(address("192.0.2.1")).ok().unwrap();
        let _second = places.take(address("192.0.2.1")).ok().unwrap();
        assert_eq!(places.take(address("192.0.2.1")).err(), Some(NoPlace::Address));
        assert!(places.take(address("192.0.2.2")).is_ok());
        assert!(places.take(None).is_ok());
        first.verified();
        first.verified();
        let third = places.take(address("192.0.2.1")).ok().unwrap();
        assert_eq!(places.take(address("192.0.2.1")).err(), Some(NoPlace::Address));
        drop((first, third));
        assert!(places.take(address("192.0.2.1")).is_ok());
    }

    #[test]
    fn when_all_are_taken_a_few_are_left_for_probes() {
        let places = Arc::new(Places::new(1, 1000));
        let first = places.take(address("192.0.2.1")).ok().unwrap();
        assert!(!first.is_reserved());
        let reserved: Vec<Arc<Place>> = (0..RESERVED).map(|_| places.take(None).ok().unwrap()).collect();
        assert!(reserved.iter().all(|place| place.is_reserved()));
        assert_eq!(places.take(address("192.0.2.2")).err(), Some(NoPlace::Full));
        drop(first);
        assert!(!places.take(None).ok().unwrap().is_reserved());
    }

    #[test]
    fn addresses_of_one_ipv6_network_count_together() {
        let places = Arc::new(Places::new(10, 1));
        let _first = places.take(address("2001:db8::1")).ok().unwrap();
        assert_eq!(places.take(address("2001:db8::2")).err(), Some(NoPlace::Address));
    }
}
