//! A cache of recent reads. An entry is valid as long as authority has not changed since it was read. If other
//! processes change it too, an entry also expires within a moment; a decision based on it is checked again by the
//! transaction that acts on it.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use toolgate_gate::ports::ledger::{Freshness, Generation};
use toolgate_model::time::Timestamp;

/// The maximum number of entries.
const LIMIT: usize = 20_000;
/// The lifetime of an entry if other processes may change the data.
const GROWS_OLD_AFTER: Duration = Duration::from_secs(1);

pub struct Cache<K, V> {
    entries: Mutex<HashMap<K, Entry<V>>>,
    /// Whether the generation changes with every change by any process.
    sees_every_change: bool,
}

struct Entry<V> {
    value: Arc<V>,
    generation: Generation,
    read_at: Timestamp,
}

impl<K: Eq + Hash, V> Cache<K, V> {
    pub fn new(sees_every_change: bool) -> Self {
        Self { entries: Mutex::default(), sees_every_change }
    }

    /// The entry, if it is fresh enough.
    pub fn get<Q>(&self, key: &Q, generation: Generation, now: Timestamp, freshness: Freshness) -> Option<Arc<V>>
    where
        K: std::borrow::Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = entries.get(key).filter(|entry| entry.generation == generation)?;
        let recent = now.minus(GROWS_OLD_AFTER) < entry.read_at && entry.read_at <= now;
        let fresh = self.sees_every_change || (freshness == Freshness::Recent && recent);
        fresh.then(|| Arc::clone(&entry.value))
    }

    /// The entry, however old.
    pub fn last_known<Q>(&self, key: &Q) -> Option<Arc<V>>
    where
        K: std::borrow::Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.get(key).map(|entry| Arc::clone(&entry.value))
    }

    /// Stores the result of a read that began at `generation`.
    pub fn put(&self, key: K, value: Arc<V>, generation: Generation, read_at: Timestamp) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= LIMIT && !entries.contains_key(&key) {
            entries.retain(|_, entry| entry.generation == generation);
        }
        if entries.len() >= LIMIT && !entries.contains_key(&key) {
            entries.clear();
        }
        entries.insert(key, Entry { value, generation, read_at });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(1_000_000 + millis).unwrap()
    }

    fn held_grant(sees_every_change: bool) -> Cache<u8, &'static str> {
        let cache = Cache::new(sees_every_change);
        cache.put(1, Arc::new("one"), 7, at(0));
        cache
    }

    #[test]
    fn an_entry_ends_with_the_generation_it_was_read_at() {
        for sees_every_change in [true, false] {
            let cache = held_grant(sees_every_change);
            assert!(cache.get(&1, 7, at(0), Freshness::Recent).is_some());
            assert!(cache.get(&1, 8, at(0), Freshness::Recent).is_none());
        }
    }

    #[test]
    fn where_others_write_too_an_entry_is_never_the_newest_and_grows_old() {
        let cache = held_grant(false);
        assert!(cache.get(&1, 7, at(999), Freshness::Recent).is_some());
        assert!(cache.get(&1, 7, at(1000), Freshness::Recent).is_none());
        assert!(cache.get(&1, 7, at(-1), Freshness::Recent).is_none(), "the clock went back");
        assert!(cache.get(&1, 7, at(0), Freshness::Newest).is_none());
    }

    #[test]
    fn the_only_writer_knows_that_nothing_changed() {
        assert!(held_grant(true).get(&1, 7, at(1_000_000), Freshness::Newest).is_some());
    }
}
