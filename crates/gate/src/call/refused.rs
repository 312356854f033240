//! Refused calls count against the principal that makes them. A refusal costs the caller nothing else: no rate of a
//! grant, no call of a service. Without a limit of its own it could be repeated to find something out.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::time::Timestamp;

use crate::debts::Debts;
use crate::identify::Caller;
use crate::refusal::{Code, Kind, Refusal};

/// How many calls of a principal are refused before it must wait.
const BURST: i64 = 2_000;
/// How long until one of them is forgiven.
const FORGIVE: Duration = Duration::from_secs(1);

/// The refused calls of each principal.
pub(crate) struct RefusedCalls(Mutex<Debts<(TenantId, PrincipalId)>>);

impl Default for RefusedCalls {
    fn default() -> Self {
        Self(Mutex::new(Debts::new(BURST, FORGIVE)))
    }
}

impl RefusedCalls {
    /// Refuses a caller with too many refused calls.
    pub(super) fn check(&self, caller: &Caller, now: Timestamp) -> Result<(), Refusal> {
        let Some(seconds) = self.debts().wait(&debtor(caller), now) else { return Ok(()) };
        let reason = format!("too many calls of {} were refused; wait {seconds} seconds", caller.id());
        Err(Refusal::new(Code::TooManyAttempts, reason).with("retry_after_seconds", seconds))
    }

    /// Counts a refusal. One for too many calls says nothing about what was in the call.
    pub(super) fn count(&self, caller: &Caller, refusal: &Refusal, now: Timestamp) {
        if refusal.code().kind() != Kind::TooMany {
            self.debts().add(&debtor(caller), now);
        }
    }

    fn debts(&self) -> MutexGuard<'_, Debts<(TenantId, PrincipalId)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn debtor(caller: &Caller) -> (TenantId, PrincipalId) {
    (caller.tenant().clone(), caller.id().clone())
}
