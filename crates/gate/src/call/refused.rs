//! Refused calls count against their principal. A refusal costs the caller nothing else: no rate of a grant, no call of
//! a service. Without its own limit it could be repeated to probe the gate. Its cost for the ledger is bounded too:
//! beyond a rate, refusals are counted and recorded in one event.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::time::Timestamp;

use crate::identify::Caller;
use crate::penalties::Penalties;
use crate::refusal::{Code, Kind, Refusal};

/// How many calls of a principal are refused before it must wait.
const BURST: i64 = 2_000;
/// The time after which one of them is forgiven.
const FORGIVE: Duration = Duration::from_secs(1);

/// The default number of refusals per second that are recorded individually.
pub(crate) const REFUSALS_PER_SECOND: u32 = 10;
/// The burst of individually recorded refusals, in seconds' worth.
const RECORDED_BURST: u32 = 10;

type OfPrincipal = Mutex<Penalties<(TenantId, PrincipalId)>>;

/// The refused calls of each principal.
pub(crate) struct RefusedCalls {
    refused: OfPrincipal,
    recorded: OfPrincipal,
}

impl RefusedCalls {
    pub(crate) fn new(recorded_per_second: u32) -> Self {
        let recorded = recorded_per_second.max(1);
        let forgive = Duration::from_secs(1) / recorded;
        Self {
            refused: Mutex::new(Penalties::new(BURST, FORGIVE)),
            recorded: Mutex::new(Penalties::new(i64::from(recorded.saturating_mul(RECORDED_BURST)), forgive)),
        }
    }

    /// Whether this refusal is recorded individually, and not in a summary.
    ///
    /// INVARIANT: a refusal caused by the ledger or by an internal error always is, since the call may have been
    /// admitted after all, and only the record can tell.
    pub(super) fn is_recorded(&self, caller: &Caller, refusal: &Refusal, now: Timestamp) -> bool {
        if refusal.code() == Code::LedgerUnavailable || refusal.code().kind() == Kind::Internal {
            return true;
        }
        let (holder, mut recorded) = (holder(caller), locked(&self.recorded));
        if recorded.wait(&holder, now).is_some() {
            return false;
        }
        recorded.add(&holder, now);
        true
    }

    /// Refuses to detach a call of a caller whose refusals are summarized: a refused detached call has its own record.
    pub(super) fn check_recorded(&self, caller: &Caller, now: Timestamp) -> Result<(), Refusal> {
        let Some(seconds) = locked(&self.recorded).wait(&holder(caller), now) else { return Ok(()) };
        let reason = format!("too many calls of {} were refused; detach none for {seconds} seconds", caller.id());
        Err(Refusal::new(Code::TooManyAttempts, reason).with("retry_after_seconds", seconds))
    }

    /// Refuses a caller with too many refused calls.
    pub(super) fn check(&self, caller: &Caller, now: Timestamp) -> Result<(), Refusal> {
        let Some(seconds) = locked(&self.refused).wait(&holder(caller), now) else { return Ok(()) };
        let reason = format!("too many calls of {} were refused; wait {seconds} seconds", caller.id());
        Err(Refusal::new(Code::TooManyAttempts, reason).with("retry_after_seconds", seconds))
    }

    /// Counts a refusal. A refusal for too many calls does not count.
    pub(super) fn count(&self, caller: &Caller, refusal: &Refusal, now: Timestamp) {
        if refusal.code().kind() != Kind::TooMany {
            locked(&self.refused).add(&holder(caller), now);
        }
    }
}

fn locked(penalties: &OfPrincipal) -> MutexGuard<'_, Penalties<(TenantId, PrincipalId)>> {
    penalties.lock().unwrap_or_else(PoisonError::into_inner)
}

fn holder(caller: &Caller) -> (TenantId, PrincipalId) {
    (caller.tenant().clone(), caller.id().clone())
}
