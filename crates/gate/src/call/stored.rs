//! Limits how much is stored of the results of calls with idempotency keys, for repeated requests. Each agent has a
//! daily budget, and results are kept for a day; beyond the budget only the key is stored, and not the result.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::time::Timestamp;

/// How long results are kept, in milliseconds.
const DAY: u64 = 24 * 3600 * 1000;
/// The cost of a key besides its result, in bytes.
const KEY: u64 = 256;
/// The maximum number of tracked agents.
const AGENTS: usize = 65_536;

/// The budget of each agent, in the memory of this process.
pub(crate) struct StoredResults {
    most: u64,
    /// When the whole budget of an agent is free again.
    until: Mutex<HashMap<(TenantId, PrincipalId), i64>>,
}

impl StoredResults {
    pub(crate) fn new(most: u64) -> Self {
        Self { most: most.max(1), until: Mutex::default() }
    }

    /// Whether a result of this size is stored; if so, it is counted.
    pub(super) fn keep(&self, tenant: &TenantId, agent: &PrincipalId, bytes: usize, now: Timestamp) -> bool {
        let now = now.as_millis();
        let size = u64::try_from(bytes).unwrap_or(u64::MAX).saturating_add(KEY);
        let cost = u128::from(size) * u128::from(DAY) / u128::from(self.most);
        let (cost, day) = (i64::try_from(cost).unwrap_or(i64::MAX), i64::try_from(DAY).unwrap_or(i64::MAX));
        let mut until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        if until.len() >= AGENTS {
            until.retain(|_, until| *until > now);
        }
        let free = until.entry((tenant.clone(), agent.clone())).or_insert(now);
        let after = (*free).max(now).saturating_add(cost);
        let eligible_grants = after.saturating_sub(now) <= day;
        if eligible_grants {
            *free = after;
        }
        eligible_grants
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_has_so_much_kept_in_a_day_and_others_are_not_held_up() {
        let results = StoredResults::new(1_000_000);
        let (tenant, one) = (TenantId::parse("default").unwrap(), PrincipalId::parse("one").unwrap());
        let at = |hours: i64| Timestamp::from_millis(1_000_000_000 + hours * 3_600_000).unwrap();
        let keep = |bytes: usize, hours: i64| results.keep(&tenant, &one, bytes, at(hours));
        assert!((0..9).all(|_| keep(100_000, 0)));
        assert!(!keep(100_000, 0) && keep(50_000, 0), "a smaller one still fits");
        assert!(results.keep(&tenant, &PrincipalId::parse("two").unwrap(), 900_000, at(0)));
        assert!(keep(100_000, 3), "an eighth of the day gives an eighth of it back");
        assert!(!keep(2_000_000, 48), "one that is more than all of it is never kept");
    }
}
