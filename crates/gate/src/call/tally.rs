//! Refused calls that are counted instead of recorded individually. A refusal is returned once its count is durable;
//! concurrent ones share one write, so that a flood of refusals takes one connection of the ledger and not all.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::time::Timestamp;

use crate::ports::clock::pause;
use crate::ports::ledger::{Calls, DenialCount};
use crate::refusal::{Code, Refusal};

/// How long a write waits for more: a caller with so many refused calls may wait.
const GATHER: Duration = Duration::from_millis(50);

/// The counts on their way to the ledger.
#[derive(Default)]
pub(crate) struct Tally {
    gathering: Mutex<Option<Arc<Batch>>>,
    writing: tokio::sync::Mutex<()>,
}

type Counted = BTreeMap<(TenantId, PrincipalId, &'static str), (u64, Timestamp, Timestamp)>;

#[derive(Default)]
struct Batch {
    counts: Mutex<Counted>,
    outcome: OnceLock<Result<(), Refusal>>,
}

impl Tally {
    /// Counts a refused call; returns when the count is durable.
    pub(super) async fn count(
        &self,
        calls: &dyn Calls,
        tenant: &TenantId,
        principal: &PrincipalId,
        code: Code,
        time: Timestamp,
    ) -> Result<(), Refusal> {
        let batch = Arc::clone(self.gathering().get_or_insert_default());
        batch.add((tenant.clone(), principal.clone(), code.as_str()), time);
        let _writing = self.writing.lock().await;
        if let Some(outcome) = batch.outcome.get() {
            return outcome.clone();
        }
        pause(GATHER).await;
        // INVARIANT: no other task has written this batch, so it is the current one.
        *self.gathering() = None;
        let outcome = calls.count_denials(batch.taken()).await;
        batch.outcome.get_or_init(|| outcome).clone()
    }

    fn gathering(&self) -> MutexGuard<'_, Option<Arc<Batch>>> {
        self.gathering.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Batch {
    fn add(&self, key: (TenantId, PrincipalId, &'static str), time: Timestamp) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let (count, first, last) = counts.entry(key).or_insert((0, time, time));
        *count += 1;
        *first = (*first).min(time);
        *last = (*last).max(time);
    }

    fn taken(&self) -> Vec<DenialCount> {
        let counts = std::mem::take(&mut *self.counts.lock().unwrap_or_else(PoisonError::into_inner));
        let count = |((tenant, principal, code), (count, first, last))| DenialCount {
            tenant,
            principal,
            code,
            count,
            first,
            last,
        };
        counts.into_iter().map(count).collect()
    }
}
