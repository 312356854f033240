//! The heads of the logs that this process has seen. A log only grows: one that does not continue from its head here
//! belongs to an older or another ledger, and everything is refused from then on.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use toolgate_gate::ports::ledger::LogHead;
use toolgate_gate::refusal::Refusal;
use toolgate_model::checkpoint::TreeHead;
use toolgate_model::principal::TenantId;
use toolgate_model::time::Timestamp;

#[derive(Default)]
pub(crate) struct KnownHeads {
    state: Mutex<State>,
    rolled_back: OnceLock<Refusal>,
}

#[derive(Default)]
struct State {
    changes: u64,
    heads: BTreeMap<TenantId, LogHead>,
}

impl KnownHeads {
    /// Refuses once a log went back.
    pub(crate) fn intact(&self) -> Result<(), Refusal> {
        self.rolled_back.get().map_or(Ok(()), |refusal| Err(refusal.clone()))
    }

    /// A log was rolled back: permanent, because it is unknown what was decided on the other ledger in the meantime.
    pub(crate) fn lose(&self, refusal: Refusal) -> Refusal {
        if self.rolled_back.set(refusal.clone()).is_ok() {
            tracing::error!(reason = refusal.reason(), "the ledger was rolled back: refusing all requests");
        }
        refusal
    }

    /// Adds heads. A read that was made before another may report an older one.
    pub(crate) fn learn(&self, heads: impl IntoIterator<Item = LogHead>) {
        let mut state = self.state();
        for head in heads {
            let known = state.heads.get(&head.head.tenant);
            if known.is_none_or(|known| known.head.size < head.head.size) {
                state.changes += 1;
                state.heads.insert(head.head.tenant.clone(), head);
            }
        }
    }

    /// The head of one log.
    pub(crate) fn of(&self, tenant: &TenantId) -> Option<TreeHead> {
        self.state().heads.get(tenant).map(|known| known.head.clone())
    }

    pub(crate) fn all(&self) -> BTreeMap<TenantId, TreeHead> {
        self.state().heads.iter().map(|(tenant, known)| (tenant.clone(), known.head.clone())).collect()
    }

    /// The time of the newest.
    pub(crate) fn newest(&self) -> Option<Timestamp> {
        self.state().heads.values().map(|known| known.head.time).max()
    }

    /// All heads, signed, if there were more changes than `seen`.
    pub(crate) fn newer_than(&self, seen: u64) -> Option<(u64, Vec<LogHead>)> {
        let state = self.state();
        (state.changes > seen).then(|| (state.changes, state.heads.values().cloned().collect()))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
