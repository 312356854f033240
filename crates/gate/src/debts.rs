//! Counts what went wrong, by whoever it is held against. Each failure is a debt that time forgives; who owes too much
//! must wait.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use toolgate_model::time::Timestamp;

/// How many debtors are remembered.
const LIMIT: usize = 65_536;

/// Who owes how much.
pub(crate) struct Debts<K> {
    /// How many failures are let pass.
    burst: i64,
    /// How long until one of them is forgiven.
    forgive: Duration,
    /// When, for each debtor, everything will be forgiven.
    until: HashMap<K, Timestamp>,
}

impl<K: Eq + Hash + Clone> Debts<K> {
    pub(crate) fn new(burst: i64, forgive: Duration) -> Self {
        Self { burst, forgive, until: HashMap::new() }
    }

    /// How many seconds this one must wait, where it owes too much.
    pub(crate) fn wait(&self, debtor: &K, now: Timestamp) -> Option<i64> {
        let debt = self.until.get(debtor).map_or(0, |until| until.as_millis() - now.as_millis());
        let excess = debt - millis(self.forgive) * (self.burst - 1);
        (excess > 0).then(|| excess.div_euclid(1000) + 1)
    }

    pub(crate) fn add(&mut self, debtor: &K, now: Timestamp) {
        if self.until.len() >= LIMIT {
            self.until.retain(|_, until| *until > now);
        }
        // Full of debtors: who owes least is forgotten, so that memory stays bounded under a flood of them.
        if self.until.len() >= LIMIT
            && let Some(least) = self.until.iter().min_by_key(|(_, until)| **until).map(|(debtor, _)| debtor.clone())
        {
            self.until.remove(&least);
        }
        let until = self.until.entry(debtor.clone()).or_insert(now);
        *until = (*until).max(now).plus(self.forgive);
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
