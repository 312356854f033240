//! Intents, their agents and their events.

use serde_json::{Map, Value};
use toolgate_model::id::{EventId, IntentId};
use toolgate_model::permission::Permission;
use toolgate_model::principal::PrincipalId;
use toolgate_model::work::limits::{DEPENDENCIES, DOCUMENT_BYTES, PATCHES, STATE_BYTES, TEXT_BYTES};
use toolgate_model::work::{Intent, IntentChange, IntentEvent, IntentEventKind, IntentStatus, Participant};

use super::{WorkAdministration, invalid, require_line, require_size, require_text};
use crate::identify::Caller;
use crate::ports::ledger::{
    AssignParticipant, ChangeIntent, CreateIntent, IntentEventFilter, IntentFilter, LogIntentEvent, Page, PageRequest,
    RemoveParticipant, Viewer,
};
use crate::refusal::Refusal;

/// An intent to create.
pub struct NewIntent {
    pub title: String,
    pub description: String,
    /// Defaults to the caller.
    pub created_by: Option<PrincipalId>,
    pub status: IntentStatus,
    pub state: Map<String, Value>,
    pub constraints: Map<String, Value>,
    pub parent: Option<IntentId>,
    pub depends_on: Vec<IntentId>,
}

impl WorkAdministration {
    pub async fn create_intent(&self, caller: &Caller, new: NewIntent) -> Result<Intent, Refusal> {
        caller.require(Permission::InvokeTools)?;
        let created_by = new.created_by.unwrap_or_else(|| caller.id().clone());
        caller.require_acting_for(&created_by)?;
        require_text("title", &new.title, TEXT_BYTES)?;
        if !new.description.is_empty() {
            require_text("description", &new.description, DOCUMENT_BYTES)?;
        }
        require_size("state", &new.state, STATE_BYTES)?;
        require_size("constraints", &new.constraints, DOCUMENT_BYTES)?;
        if new.depends_on.len() > DEPENDENCIES {
            return Err(invalid("depends_on", &format!("`depends_on` must have at most {DEPENDENCIES} intents")));
        }
        if new.status.has_ended() {
            return Err(invalid("status", &format!("an intent cannot be created as {}", new.status)));
        }
        let audit = caller.mandate(self.clock.now());
        let intent = Intent {
            id: self.ids.make(audit.time(), IntentId::new)?,
            tenant: audit.tenant().clone(),
            version: 1,
            status: new.status,
            title: new.title,
            description: new.description,
            state: new.state,
            constraints: new.constraints,
            parent: new.parent,
            depends_on: new.depends_on,
            created_by,
            created_at: audit.time(),
            updated_at: audit.time(),
        };
        self.intents.create_intent(CreateIntent { audit, intent: intent.clone() }).await?;
        Ok(intent)
    }

    pub async fn intent(&self, caller: &Caller, id: IntentId) -> Result<Intent, Refusal> {
        let found = self.intents.intent(caller.tenant(), id, &Viewer::of(caller)).await?;
        found.ok_or_else(|| Refusal::no_intent(id))
    }

    pub async fn intents(
        &self,
        caller: &Caller,
        filter: IntentFilter,
        page: PageRequest,
    ) -> Result<Page<Intent>, Refusal> {
        self.intents.intents(caller.tenant(), filter, &Viewer::of(caller), page).await
    }

    /// Changes the status or the state of an intent.
    pub async fn change_intent(
        &self,
        caller: &Caller,
        id: IntentId,
        expected_version: u64,
        change: IntentChange,
    ) -> Result<Intent, Refusal> {
        match &change {
            IntentChange::Status { reason: Some(reason), .. } => require_text("reason", reason, TEXT_BYTES)?,
            IntentChange::Status { .. } => {}
            IntentChange::State(patches) if patches.len() > PATCHES => {
                return Err(invalid("patches", &format!("`patches` must have at most {PATCHES} entries")));
            }
            IntentChange::State(patches) => require_size("patches", patches, STATE_BYTES)?,
        }
        let audit = caller.mandate(self.clock.now());
        self.intents.change_intent(ChangeIntent { audit, id, expected_version, change }).await
    }

    pub async fn participants(&self, caller: &Caller, id: IntentId) -> Result<Vec<Participant>, Refusal> {
        let found = self.intents.participants(caller.tenant(), id, &Viewer::of(caller)).await?;
        found.ok_or_else(|| Refusal::no_intent(id))
    }

    /// Assigns an agent to an intent: it sees the intent, and its calls may name it.
    pub async fn assign_participant(
        &self,
        caller: &Caller,
        intent: IntentId,
        agent: PrincipalId,
        role: String,
    ) -> Result<Participant, Refusal> {
        require_line("role", &role)?;
        let audit = caller.mandate(self.clock.now());
        self.intents.assign_participant(AssignParticipant { audit, intent, agent, role }).await
    }

    pub async fn remove_participant(
        &self,
        caller: &Caller,
        intent: IntentId,
        agent: PrincipalId,
    ) -> Result<(), Refusal> {
        let audit = caller.mandate(self.clock.now());
        self.intents.remove_participant(RemoveParticipant { audit, intent, agent }).await
    }

    /// Records an event that an agent states. Events about what the gate did are written by the gate alone.
    pub async fn log_intent_event(
        &self,
        caller: &Caller,
        intent: IntentId,
        kind: IntentEventKind,
        actor: Option<PrincipalId>,
        payload: Map<String, Value>,
    ) -> Result<IntentEvent, Refusal> {
        let actor = actor.unwrap_or_else(|| caller.id().clone());
        caller.require_acting_for(&actor)?;
        if !kind.may_be_logged() {
            let reason = format!("events of the type {kind} are written by Toolgate itself");
            return Err(invalid("event_type", &reason));
        }
        require_size("payload", &payload, DOCUMENT_BYTES)?;
        let audit = caller.mandate(self.clock.now());
        let id = self.ids.make(audit.time(), EventId::new)?;
        self.intents.log_intent_event(LogIntentEvent { audit, id, intent, kind, actor, payload }).await
    }

    pub async fn intent_events(
        &self,
        caller: &Caller,
        id: IntentId,
        filter: IntentEventFilter,
        page: PageRequest,
    ) -> Result<Page<IntentEvent>, Refusal> {
        let found = self.intents.intent_events(caller.tenant(), id, &Viewer::of(caller), filter, page).await?;
        found.ok_or_else(|| Refusal::no_intent(id))
    }
}
