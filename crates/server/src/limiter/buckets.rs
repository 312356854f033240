//! A table of token buckets with a fixed capacity, which drops only buckets that make no difference.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use toolgate_model::rate_limit::{BucketState, RateLimit, Wait};
use toolgate_model::time::Timestamp;

/// How often a full table is searched for buckets to drop, so that a flood does not make every request pay for that.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// Buckets by their owners.
///
/// INVARIANT: there are never more than `capacity`, plus one bucket shared by all owners without room. Only buckets
/// that are full again are dropped: a new bucket is full too.
pub(super) struct Buckets<K> {
    capacity: usize,
    limit: RateLimit,
    states: HashMap<K, BucketState>,
    shared: Option<BucketState>,
    swept_at: Option<Timestamp>,
}

/// Where a token was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// In the owner's bucket.
    Own,
    /// In the one shared by all owners without room.
    Shared,
}

impl<K: Eq + Hash> Buckets<K> {
    pub(super) fn new(capacity: usize, limit: RateLimit) -> Self {
        Self { capacity, limit, states: HashMap::new(), shared: None, swept_at: None }
    }

    /// Takes a token of an owner.
    pub(super) fn take(&mut self, owner: K, now: Timestamp) -> Result<Place, Wait> {
        if self.states.contains_key(&owner) || self.has_room(now) {
            let state = self.limit.take(self.states.get(&owner).copied(), now)?;
            self.states.insert(owner, state);
            Ok(Place::Own)
        } else {
            self.shared = Some(self.limit.take(self.shared, now)?);
            Ok(Place::Shared)
        }
    }

    /// Takes a token of an owner that has a bucket here; `None` if it has none.
    pub(super) fn take_known(&mut self, owner: &K, now: Timestamp) -> Option<Result<(), Wait>> {
        let state = self.states.get_mut(owner)?;
        Some(self.limit.take(Some(*state), now).map(|next| *state = next))
    }

    /// Creates a bucket for an owner and takes a token if there is one; returns whether the owner has a bucket now.
    pub(super) fn make_known(&mut self, owner: K, now: Timestamp) -> bool {
        let known = self.states.contains_key(&owner) || self.has_room(now);
        if known && let Ok(state) = self.limit.take(self.states.get(&owner).copied(), now) {
            self.states.insert(owner, state);
        }
        known
    }

    /// Returns a token that was taken at `since`.
    pub(super) fn give_back(&mut self, owner: &K, place: Place, since: Timestamp, now: Timestamp) {
        let state = match place {
            Place::Own => self.states.get_mut(owner),
            Place::Shared => self.shared.as_mut(),
        };
        if let Some(state) = state {
            *state = self.limit.give_back(*state, since, now);
        }
    }

    fn has_room(&mut self, now: Timestamp) -> bool {
        let due = |at: Timestamp| at.plus(SWEEP_INTERVAL) <= now;
        if self.states.len() >= self.capacity && self.swept_at.is_none_or(due) {
            self.swept_at = Some(now);
            let limit = self.limit;
            let full = limit.take(None, now);
            self.states.retain(|_, state| limit.take(Some(*state), now) != full);
        }
        self.states.len() < self.capacity
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.states.len()
    }
}
