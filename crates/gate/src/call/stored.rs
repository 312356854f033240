//! How much is kept of the results of calls with idempotency keys, for whoever sends such a call again. Each agent has a
//! budget for a day, which is as long as they are kept; beyond it the key is kept and the result is not.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::time::Timestamp;

/// For how long results are kept, in milliseconds.
const DAY: u64 = 24 * 3600 * 1000;
/// What a key costs besides its result, in bytes.
const KEY: u64 = 256;
/// How many agents are remembered.
const AGENTS: usize = 65_536;

/// The budget of each agent, in the memory of this gate.
pub(crate) struct StoredResults {
    most: u64,
    /// When, for each agent, all of its budget will be free again.
    until: Mutex<HashMap<(TenantId, PrincipalId), i64>>,
}

impl StoredResults {
    /// With so many bytes for each agent.
    pub(crate) fn new(most: u64) -> Self {
        Self { most: most.max(1), until: Mutex::default() }
    }

    /// Whether a result of this size is kept; then it counts.
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
