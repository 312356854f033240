//! Coordinators.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use toolgate_model::id::{CoordinatorId, IntentId};
use toolgate_model::permission::Permission;
use toolgate_model::principal::PrincipalId;
use toolgate_model::spending::Used;
use toolgate_model::time::Timestamp;
use toolgate_model::work::limits::{DOCUMENT_BYTES, HEARTBEAT_SECONDS};
use toolgate_model::work::{Coordinator, CoordinatorKind, CoordinatorStatus, Guardrails};

use super::{WorkAdministration, invalid, require_line, require_size};
use crate::identify::Caller;
use crate::ports::ledger::{ChangeCoordinator, CoordinatorChanges, CreateCoordinator, SendHeartbeat, Viewer};
use crate::refusal::Refusal;

/// A coordinator to register.
pub struct NewCoordinator {
    pub intent: IntentId,
    pub agent: PrincipalId,
    /// Defaults to the caller.
    pub supervisor: Option<PrincipalId>,
    pub role: String,
    pub kind: CoordinatorKind,
    pub guardrails: Guardrails,
    pub heartbeat_seconds: u32,
    pub expires_at: Option<Timestamp>,
    pub metadata: Map<String, Value>,
}

impl WorkAdministration {
    /// Registers a coordinator. Its guardrails bound the agent and everything delegated below it, so registering another
    /// agent takes the right to act for it, or to manage tools.
    pub async fn create_coordinator(&self, caller: &Caller, new: NewCoordinator) -> Result<Coordinator, Refusal> {
        if !caller.may(Permission::ManageTools) {
            caller.require_acting_for(&new.agent)?;
        }
        let supervisor = new.supervisor.unwrap_or_else(|| caller.id().clone());
        caller.require_acting_for(&supervisor)?;
        require_line("role", &new.role)?;
        require_size("metadata", &new.metadata, DOCUMENT_BYTES)?;
        require_heartbeat(new.heartbeat_seconds)?;
        let audit = caller.mandate(self.clock.now());
        require_future(new.expires_at, audit.time())?;
        let coordinator = Coordinator {
            id: self.ids.make(audit.time(), CoordinatorId::new)?,
            tenant: audit.tenant().clone(),
            intent: new.intent,
            agent: new.agent,
            supervisor,
            version: 1,
            status: CoordinatorStatus::Active,
            role: new.role,
            kind: new.kind,
            guardrails: new.guardrails,
            heartbeat_seconds: new.heartbeat_seconds,
            last_heartbeat: None,
            granted_at: audit.time(),
            expires_at: new.expires_at,
            metadata: new.metadata,
        };
        let command = CreateCoordinator { audit, coordinator: coordinator.clone() };
        self.coordinators.create_coordinator(command).await?;
        Ok(coordinator)
    }

    pub async fn coordinator(&self, caller: &Caller, id: CoordinatorId) -> Result<Coordinator, Refusal> {
        let found = self.coordinators.coordinator(caller.tenant(), id, &Viewer::of(caller)).await?;
        Ok(self.as_of_now(found.ok_or_else(|| Refusal::no_coordinator(id))?))
    }

    pub async fn coordinators(&self, caller: &Caller, intent: IntentId) -> Result<Vec<Coordinator>, Refusal> {
        let found = self.coordinators.coordinators(caller.tenant(), intent, &Viewer::of(caller)).await?;
        let found = found.ok_or_else(|| Refusal::no_intent(intent))?;
        Ok(found.into_iter().map(|coordinator| self.as_of_now(coordinator)).collect())
    }

    /// What was used of the limits of coordinators that the caller sees.
    pub async fn coordinator_use(
        &self,
        caller: &Caller,
        coordinators: &[Coordinator],
    ) -> Result<BTreeMap<CoordinatorId, Used>, Refusal> {
        let ids = coordinators.iter().map(|coordinator| coordinator.id).collect();
        self.coordinators.coordinator_use(caller.tenant(), ids).await
    }

    pub async fn change_coordinator(
        &self,
        caller: &Caller,
        id: CoordinatorId,
        expected_version: Option<u64>,
        changes: CoordinatorChanges,
    ) -> Result<Coordinator, Refusal> {
        require_size("metadata", &changes.metadata, DOCUMENT_BYTES)?;
        changes.heartbeat_seconds.map_or(Ok(()), require_heartbeat)?;
        let audit = caller.mandate(self.clock.now());
        require_future(changes.expires_at.flatten(), audit.time())?;
        self.coordinators.change_coordinator(ChangeCoordinator { audit, id, expected_version, changes }).await
    }

    /// Ends a coordinator: its guardrails apply no more.
    pub async fn end_coordinator(&self, caller: &Caller, id: CoordinatorId) -> Result<Coordinator, Refusal> {
        let status = Some(CoordinatorStatus::Completed);
        self.change_coordinator(caller, id, None, CoordinatorChanges { status, ..CoordinatorChanges::default() }).await
    }

    pub async fn send_heartbeat(&self, caller: &Caller, id: CoordinatorId) -> Result<Coordinator, Refusal> {
        let audit = caller.mandate(self.clock.now());
        self.coordinators.send_heartbeat(SendHeartbeat { audit, id }).await
    }

    fn as_of_now(&self, coordinator: Coordinator) -> Coordinator {
        Coordinator { status: coordinator.status_at(self.clock.now()), ..coordinator }
    }
}

fn require_heartbeat(seconds: u32) -> Result<(), Refusal> {
    if HEARTBEAT_SECONDS.contains(&seconds) {
        return Ok(());
    }
    let (shortest, longest) = (HEARTBEAT_SECONDS.start(), HEARTBEAT_SECONDS.end());
    let reason = format!("`heartbeat_interval_seconds` must be between {shortest} and {longest}");
    Err(invalid("heartbeat_interval_seconds", &reason))
}

fn require_future(end: Option<Timestamp>, now: Timestamp) -> Result<(), Refusal> {
    if end.is_none_or(|end| end > now) { Ok(()) } else { Err(invalid("expires_at", "`expires_at` is in the past")) }
}
