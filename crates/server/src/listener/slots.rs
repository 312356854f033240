//! Slots for connections: a total, a number per address until a key was verified, and a few reserved for probes. If no
//! slot is left, the oldest connection without requests in flight is closed; those without a verified key first.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;
use toolgate_model::source_network::SourceNetwork;

use super::activity::Activity;
use crate::operations::metrics::{Counted as CountedOpen, OpenConnections};

/// The number of slots reserved for probes.
const RESERVED: usize = 32;

/// All connection slots of a gate.
pub(super) struct Slots {
    ordinary: Arc<Semaphore>,
    reserved: Arc<Semaphore>,
    total: usize,
    most_of_address: usize,
    unverified: Mutex<HashMap<SourceNetwork, usize>>,
    /// All ordinary connections in the order of arrival. Ended ones are skipped.
    open: Mutex<VecDeque<Weak<Slot>>>,
    connections: OpenConnections,
}

/// The slot of a connection; released on drop.
pub(crate) struct Slot {
    /// Whether only probes are served on it.
    reserved: bool,
    counted: Option<Counted>,
    is_verified: AtomicBool,
    connection: OnceLock<(AbortHandle, Arc<Activity>)>,
    permit: Mutex<Option<OwnedSemaphorePermit>>,
    _counted_open: CountedOpen,
}

/// A connection that counts for its address.
struct Counted {
    slots: Arc<Slots>,
    network: SourceNetwork,
    is_discounted: AtomicBool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoSlot {
    Full,
    /// This address has as many as it may.
    Address,
}

impl Slots {
    pub(super) fn new(total: usize, most_of_address: usize, connections: OpenConnections) -> Self {
        Self {
            ordinary: Arc::new(Semaphore::new(total)),
            reserved: Arc::new(Semaphore::new(RESERVED)),
            total,
            most_of_address,
            unverified: Mutex::default(),
            open: Mutex::default(),
            connections,
        }
    }

    /// A slot for a connection from this address; `None` counts for no address.
    pub(super) fn take(self: &Arc<Self>, address: Option<IpAddr>) -> Result<Arc<Slot>, NoSlot> {
        let network = address.map(SourceNetwork::of);
        let counted = match network.map(|network| self.count(network)).transpose() {
            Err(_) if self.evict(|slot| slot.network() == network && !slot.has_verified_key()).is_some() => {
                network.map(|network| self.count(network)).transpose()?
            }
            counted => counted?,
        };
        let ordinary = Arc::clone(&self.ordinary).try_acquire_owned().ok();
        let ordinary = ordinary.or_else(|| self.evict(|slot| !slot.has_verified_key()));
        let (permit, reserved) = match ordinary.or_else(|| self.evict(|_| true)) {
            Some(permit) => (permit, false),
            None => (Arc::clone(&self.reserved).try_acquire_owned().map_err(|_| NoSlot::Full)?, true),
        };
        let slot = Arc::new(Slot {
            reserved,
            counted,
            is_verified: AtomicBool::new(false),
            connection: OnceLock::new(),
            permit: Mutex::new(Some(permit)),
            _counted_open: self.connections.one(),
        });
        if !reserved {
            let mut open = self.open();
            if open.len() >= self.total.saturating_mul(2) {
                open.retain(|slot| slot.strong_count() > 0);
            }
            open.push_back(Arc::downgrade(&slot));
        }
        Ok(slot)
    }

    /// Closes the oldest connection of this kind without requests in flight, and returns its slot.
    fn evict(&self, is_meant: impl Fn(&Slot) -> bool) -> Option<OwnedSemaphorePermit> {
        let mut open = self.open();
        let mut position = 0;
        while let Some(slot) = open.get(position) {
            let Some(slot) = slot.upgrade() else {
                open.remove(position);
                continue;
            };
            match is_meant(&slot).then(|| slot.evict()).flatten() {
                Some(permit) => {
                    open.remove(position);
                    return Some(permit);
                }
                None => position += 1,
            }
        }
        None
    }

    fn open(&self) -> MutexGuard<'_, VecDeque<Weak<Slot>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(self: &Arc<Self>, network: SourceNetwork) -> Result<Counted, NoSlot> {
        let mut unverified = self.unverified.lock().unwrap_or_else(PoisonError::into_inner);
        let count = unverified.entry(network).or_default();
        if *count >= self.most_of_address {
            return Err(NoSlot::Address);
        }
        *count += 1;
        Ok(Counted { slots: Arc::clone(self), network, is_discounted: AtomicBool::new(false) })
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

    /// Waits until every slot is released.
    pub(super) async fn all_returned(&self) {
        let total = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        // An error would mean that the semaphore is closed, which never happens.
        let _ = self.ordinary.acquire_many(total(self.total)).await;
        let _ = self.reserved.acquire_many(total(RESERVED)).await;
    }
}

impl Slot {
    /// The connection that has it, so that it can be closed.
    pub(super) fn belongs_to(&self, task: AbortHandle, activity: Arc<Activity>) {
        // Set only once.
        let _ = self.connection.set((task, activity));
    }

    /// Whether only probes are served on it.
    pub(crate) fn is_reserved(&self) -> bool {
        self.reserved
    }

    /// A key on this connection was verified: it no longer counts for its address.
    pub(crate) fn verified(&self) {
        self.is_verified.store(true, Ordering::Release);
        if let Some(counted) = &self.counted {
            counted.discount();
        }
    }

    fn has_verified_key(&self) -> bool {
        self.is_verified.load(Ordering::Acquire)
    }

    fn network(&self) -> Option<SourceNetwork> {
        self.counted.as_ref().map(|counted| counted.network)
    }

    /// Closes the connection and hands out its permit; `None` where something is in flight, or it has no task yet.
    fn evict(&self) -> Option<OwnedSemaphorePermit> {
        let (task, activity) = self.connection.get()?;
        if !activity.close_unused() {
            return None;
        }
        task.abort();
        if let Some(counted) = &self.counted {
            counted.discount();
        }
        self.permit.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Counted {
    fn discount(&self) {
        if !self.is_discounted.swap(true, Ordering::AcqRel) {
            self.slots.discount(self.network);
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.discount();
    }
}

#[cfg(test)]
mod tests {
    use super::super::activity::Timeouts;
    use super::*;

    fn address(text: &str) -> Option<IpAddr> {
        Some(text.parse().unwrap())
    }

    struct Connected {
        slot: Arc<Slot>,
        activity: Arc<Activity>,
        task: tokio::task::JoinHandle<()>,
    }

    fn connect(slots: &Arc<Slots>, from: &str) -> Result<Connected, NoSlot> {
        let slot = slots.take(address(from))?;
        let day = std::time::Duration::from_secs(86_400);
        let activity = Arc::new(Activity::new(Timeouts { head: day, idle: day }));
        let task = tokio::spawn(std::future::pending());
        slot.belongs_to(task.abort_handle(), Arc::clone(&activity));
        Ok(Connected { slot, activity, task })
    }

    #[tokio::test]
    async fn the_oldest_unused_connection_gives_its_place_to_a_new_one() {
        let slots = Arc::new(Slots::new(3, 2, OpenConnections::default()));
        let used = connect(&slots, "192.0.2.1").ok().unwrap();
        let _request = used.activity.begin(false);
        let oldest = connect(&slots, "192.0.2.1").ok().unwrap();
        // The address has no slot left but that of its own unused connection.
        let newer = connect(&slots, "192.0.2.1").ok().unwrap();
        assert!(oldest.task.await.unwrap_err().is_cancelled());
        // Neither has the gate.
        let second = connect(&slots, "192.0.2.2").ok().unwrap();
        let third = connect(&slots, "192.0.2.3").ok().unwrap();
        assert!(newer.task.await.unwrap_err().is_cancelled() && !third.slot.is_reserved());
        assert!(!used.task.is_finished() && !second.task.is_finished());
    }

    #[tokio::test]
    async fn connections_with_a_verified_key_go_last_and_only_while_they_are_unused() {
        let slots = Arc::new(Slots::new(3, 10, OpenConnections::default()));
        let [unused, used, unverified] = [1, 2, 3].map(|_| connect(&slots, "192.0.2.1").ok().unwrap());
        unused.slot.verified();
        used.slot.verified();
        let _request = used.activity.begin(false);
        let fourth = connect(&slots, "192.0.2.2").ok().unwrap();
        assert!(unverified.task.await.unwrap_err().is_cancelled());
        fourth.slot.verified();
        let _second_request = fourth.activity.begin(false);
        let fifth = connect(&slots, "192.0.2.3").ok().unwrap();
        assert!(unused.task.await.unwrap_err().is_cancelled() && !used.task.is_finished());
        let _third_request = fifth.activity.begin(false);
        assert!(connect(&slots, "192.0.2.4").ok().unwrap().slot.is_reserved(), "all are in use");
    }

    #[test]
    fn one_address_has_so_many_until_a_key_is_verified() {
        let slots = Arc::new(Slots::new(10, 2, OpenConnections::default()));
        let first = slots.take(address("192.0.2.1")).ok().unwrap();
        let _second = slots.take(address("192.0.2.1")).ok().unwrap();
        assert_eq!(slots.take(address("192.0.2.1")).err(), Some(NoSlot::Address));
        assert!(slots.take(address("192.0.2.2")).is_ok());
        assert!(slots.take(None).is_ok());
        first.verified();
        first.verified();
        let third = slots.take(address("192.0.2.1")).ok().unwrap();
        assert_eq!(slots.take(address("192.0.2.1")).err(), Some(NoSlot::Address));
        drop((first, third));
        assert!(slots.take(address("192.0.2.1")).is_ok());
    }

    #[test]
    fn when_all_are_taken_a_few_are_left_for_probes() {
        let slots = Arc::new(Slots::new(1, 1000, OpenConnections::default()));
        let first = slots.take(address("192.0.2.1")).ok().unwrap();
        assert!(!first.is_reserved());
        let reserved: Vec<Arc<Slot>> = (0..RESERVED).map(|_| slots.take(None).ok().unwrap()).collect();
        assert!(reserved.iter().all(|slot| slot.is_reserved()));
        assert_eq!(slots.take(address("192.0.2.2")).err(), Some(NoSlot::Full));
        drop(first);
        assert!(!slots.take(None).ok().unwrap().is_reserved());
    }

    #[test]
    fn addresses_of_one_ipv6_network_count_together() {
        let slots = Arc::new(Slots::new(10, 1, OpenConnections::default()));
        let _first = slots.take(address("2001:db8::1")).ok().unwrap();
        assert_eq!(slots.take(address("2001:db8::2")).err(), Some(NoSlot::Address));
    }
}
