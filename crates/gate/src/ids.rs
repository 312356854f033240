//! Monotonic ids. Lists are read in the order of ids, from a cursor: if the clock was set back, a new id could sort
//! before those already shown and would be missed. So ids use their own clock, which never goes back and starts after
//! the newest id in the ledger.

use std::sync::atomic::{AtomicU64, Ordering};

use toolgate_model::id::{IdEntropy, numbered};
use toolgate_model::time::Timestamp;

use crate::ports::entropy::{EntropyError, random_for_id};

/// The number of ids per millisecond; beyond it the ids run ahead of the clock.
const NUMBERS: u64 = 1 << 12;

/// The newest id: its milliseconds, and its number among those of the same millisecond.
#[derive(Debug, Default)]
pub(crate) struct Ids(AtomicU64);

impl Ids {
    pub(crate) fn make<I>(
        &self,
        now: Timestamp,
        make: impl FnOnce(Timestamp, IdEntropy) -> I,
    ) -> Result<I, EntropyError> {
        let (time, number) = self.next(now);
        Ok(make(time, numbered(number, random_for_id()?)))
    }

    /// Makes all later ids sort after this time.
    pub(crate) fn go_on_from(&self, time: Timestamp) {
        self.0.fetch_max(first_of(time).saturating_add(NUMBERS - 1), Ordering::AcqRel);
    }

    fn next(&self, now: Timestamp) -> (Timestamp, u16) {
        let first = first_of(now);
        let behind = |newest: u64| first.max(newest.saturating_add(1));
        let newest = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, |newest| Some(behind(newest)));
        let next = behind(newest.unwrap_or_else(|newest| newest));
        let time = i64::try_from(next / NUMBERS).ok().and_then(|millis| Timestamp::from_millis(millis).ok());
        (time.unwrap_or(now), u16::try_from(next % NUMBERS).unwrap_or(0))
    }
}

fn first_of(time: Timestamp) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(0).saturating_mul(NUMBERS)
}

#[cfg(test)]
mod tests {
    use toolgate_model::id::VaultId;

    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis).unwrap()
    }

    #[test]
    fn ids_are_in_the_order_in_which_they_are_made_whatever_the_clock_does() {
        let ids = Ids::default();
        let times = [5_000_000, 5_000_000, 5_000_001, 9_000_000_000, 5_000_002, 0, 5_000_003, 9_000_000_000];
        let mut made = Vec::new();
        for time in times {
            for _ in 0..3_000 {
                made.push(ids.make(at(time), VaultId::new).unwrap());
            }
        }
        assert!(made.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(made.last().unwrap().time() < at(9_000_000_100), "they hardly run ahead");
    }

    #[test]
    fn ids_begin_behind_the_newest_that_there_is() {
        let ids = Ids::default();
        let there = VaultId::new(at(5_000_000), numbered(4095, [255; 10]));
        ids.go_on_from(there.time());
        let next = ids.make(at(4_000_000), VaultId::new).unwrap();
        assert!(next > there, "{next} {there}");
        ids.go_on_from(at(1));
        assert!(ids.make(at(4_000_000), VaultId::new).unwrap() > next);
    }

    #[test]
    fn many_threads_make_no_id_twice() {
        let ids = Ids::default();
        let made: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..4).map(|_| scope.spawn(|| (0..10_000).map(|_| ids.next(at(7))).collect::<Vec<_>>())).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        let distinct: std::collections::BTreeSet<_> = made.iter().collect();
        assert_eq!(distinct.len(), made.len());
    }
}
