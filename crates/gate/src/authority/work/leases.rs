//! Leases.

use std::time::Duration;

use toolgate_model::id::{IntentId, LeaseId};
use toolgate_model::principal::PrincipalId;
use toolgate_model::work::limits::LONGEST_LEASE;
use toolgate_model::work::{Lease, LeaseScope, LeaseStatus};

use super::{WorkAdministration, invalid, require_line};
use crate::identify::Caller;
use crate::ports::ledger::{AcquireLease, EndLease, RenewLease, Viewer};
use crate::refusal::Refusal;

/// A lease to acquire.
pub struct NewLease {
    pub intent: IntentId,
    /// Free text, or the id of a task, with or without `task:` before it.
    pub scope: String,
    pub duration: Duration,
    /// Defaults to the caller.
    pub agent: Option<PrincipalId>,
}

impl WorkAdministration {
    pub async fn acquire_lease(&self, caller: &Caller, new: NewLease) -> Result<Lease, Refusal> {
        require_line("scope", &new.scope)?;
        require_duration(new.duration)?;
        let agent = new.agent.unwrap_or_else(|| caller.id().clone());
        caller.require_acting_for(&agent)?;
        let audit = caller.mandate(self.clock.now());
        let lease = Lease {
            id: self.ids.make(audit.time(), LeaseId::new)?,
            tenant: audit.tenant().clone(),
            intent: new.intent,
            agent,
            task: match LeaseScope::of(&new.scope) {
                LeaseScope::Task(task) => Some(task),
                LeaseScope::Free => None,
            },
            scope: new.scope,
            status: LeaseStatus::Active,
            created_at: audit.time(),
            expires_at: audit.time().plus(new.duration),
            ended_at: None,
        };
        self.leases.acquire_lease(AcquireLease { audit, lease }).await
    }

    pub async fn renew_lease(
        &self,
        caller: &Caller,
        intent: IntentId,
        id: LeaseId,
        duration: Duration,
    ) -> Result<Lease, Refusal> {
        require_duration(duration)?;
        let audit = caller.mandate(self.clock.now());
        let expires_at = audit.time().plus(duration);
        self.leases.renew_lease(RenewLease { audit, intent, id, expires_at }).await
    }

    /// Releases a lease. A task that was claimed with it is given back, or fails if it was running.
    pub async fn end_lease(&self, caller: &Caller, intent: IntentId, id: LeaseId) -> Result<Lease, Refusal> {
        let audit = caller.mandate(self.clock.now());
        self.leases.end_lease(EndLease { audit, intent, id }).await
    }

    pub async fn leases(&self, caller: &Caller, intent: IntentId) -> Result<Vec<Lease>, Refusal> {
        let found = self.leases.leases(caller.tenant(), intent, &Viewer::of(caller), self.clock.now()).await?;
        found.ok_or_else(|| Refusal::no_intent(intent))
    }
}

fn require_duration(duration: Duration) -> Result<(), Refusal> {
    if (Duration::from_secs(1)..=LONGEST_LEASE).contains(&duration) {
        return Ok(());
    }
    let longest = LONGEST_LEASE.as_secs();
    Err(invalid("duration_seconds", &format!("`duration_seconds` must be between 1 and {longest}")))
}
