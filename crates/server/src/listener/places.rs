//! Who may have a connection: so many in all, so many of one address until a key on them was verified, and a few in
//! reserve for probes, so that an orchestrator hears of a gate that is full.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
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
}

/// One connection's place; given back when it is dropped.
pub(crate) struct Place {
    /// Whether only probes are served on it.
    reserved: bool,
    counted: Option<Counted>,
    _permit: OwnedSemaphorePermit,
}

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
        }
    }

    /// A place for a connection from this address; none counts for no address.
    pub(super) fn take(self: &Arc<Self>, address: Option<IpAddr>) -> Result<Place, NoPlace> {
        let (permit, reserved) = match Arc::clone(&self.ordinary).try_acquire_owned() {
            Ok(permit) => (permit, false),
            Err(_) => (Arc::clone(&self.reserved).try_acquire_owned().map_err(|_| NoPlace::Full)?, true),
        };
        let counted = address.map(|address| self.count(SourceNetwork::of(address))).transpose()?;
        Ok(Place { reserved, counted, _permit: permit })
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
    /// Whether only probes are served on it.
    pub(crate) fn is_reserved(&self) -> bool {
        self.reserved
    }

    /// A key on this connection was verified: it does not count for its address any more.
    pub(crate) fn verified(&self) {
        if let Some(counted) = &self.counted {
            counted.verified();
        }
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
        let reserved: Vec<Place> = (0..RESERVED).map(|_| places.take(None).ok().unwrap()).collect();
        assert!(reserved.iter().all(Place::is_reserved));
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
