//! Counts failures by key, address or principal. Each failure is a penalty that expires with time; a holder with too many
//! must wait.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use toolgate_model::time::Timestamp;

/// The maximum number of holders.
const LIMIT: usize = 65_536;

/// The penalties of each holder, as a leaky bucket.
pub(crate) struct Penalties<K> {
    /// The number of failures without a wait.
    burst: i64,
    /// The time after which one of them expires.
    forgive: Duration,
    /// When all penalties of a holder will have expired.
    until: HashMap<K, Timestamp>,
}

impl<K: Eq + Hash + Clone> Penalties<K> {
    pub(crate) fn new(burst: i64, forgive: Duration) -> Self {
        Self { burst, forgive, until: HashMap::new() }
    }

    /// The seconds that a holder with too many penalties must wait.
    pub(crate) fn wait(&mut self, holder: &K, now: Timestamp) -> Option<i64> {
        let most = now.plus(self.forgive.saturating_mul(u32::try_from(self.burst).unwrap_or(u32::MAX)));
        let penalty = self.until.get_mut(holder).map_or(0, |until| {
            // A later time than failures can lead to means that the clock was set back: the penalty counts from now,
            // and not from a time in the future.
            *until = (*until).min(most);
            until.as_millis() - now.as_millis()
        });
        let excess = penalty - millis(self.forgive) * (self.burst - 1);
        (excess > 0).then(|| excess.div_euclid(1000) + 1)
    }

    pub(crate) fn add(&mut self, holder: &K, now: Timestamp) {
        if self.until.len() >= LIMIT {
            self.until.retain(|_, until| *until > now);
        }
        // Full: the smallest penalty is dropped, so that memory stays bounded under a flood of holders.
        if self.until.len() >= LIMIT
            && let Some(least) = self.until.iter().min_by_key(|(_, until)| **until).map(|(holder, _)| holder.clone())
        {
            self.until.remove(&least);
        }
        let until = self.until.entry(holder.clone()).or_insert(now);
        *until = (*until).max(now).plus(self.forgive);
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_ahead_when_somebody_failed_makes_nobody_wait_for_it() {
        let now = Timestamp::from_millis(1_000_000).unwrap();
        let ahead = now.plus(Duration::from_secs(40 * 24 * 3600));
        let mut penalties = Penalties::new(3, Duration::from_secs(10));
        penalties.add(&"one", ahead);
        // It counts as if all failures had just happened, and expires as usual.
        assert_eq!(penalties.wait(&"one", now), Some(11));
        assert_eq!(penalties.wait(&"one", now.plus(Duration::from_secs(10))), None);
    }
}
