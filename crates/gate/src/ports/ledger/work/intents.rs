//! Intents, the agents that are assigned to them, and their events.

use async_trait::async_trait;
use serde_json::{Map, Value};
use toolgate_model::id::{EventId, IntentId};
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::time::Timestamp;
use toolgate_model::work::{Intent, IntentChange, IntentEvent, IntentEventKind, IntentStatus, Participant};

use super::Viewer;
use crate::ports::ledger::{Mandate, Page, PageRequest};
use crate::refusal::Refusal;

#[async_trait]
pub trait Intents: Send + Sync {
    /// Creates an intent, unless its creator has too many open ones.
    async fn create_intent(&self, command: CreateIntent) -> Result<(), Refusal>;
    async fn intent(&self, tenant: &TenantId, id: IntentId, viewer: &Viewer) -> Result<Option<Intent>, Refusal>;
    /// Returns intents, oldest first.
    async fn intents(
        &self,
        tenant: &TenantId,
        filter: IntentFilter,
        viewer: &Viewer,
        page: PageRequest,
    ) -> Result<Page<Intent>, Refusal>;
    /// Returns the intent after the change. With its end its open tasks are cancelled, and its coordinators and leases end.
    async fn change_intent(&self, command: ChangeIntent) -> Result<Intent, Refusal>;
    /// Returns the assigned agents; `None` if the viewer does not see the intent.
    async fn participants(
        &self,
        tenant: &TenantId,
        id: IntentId,
        viewer: &Viewer,
    ) -> Result<Option<Vec<Participant>>, Refusal>;
    /// Assigns an agent to an intent, or changes its role.
    async fn assign_participant(&self, command: AssignParticipant) -> Result<Participant, Refusal>;
    async fn remove_participant(&self, command: RemoveParticipant) -> Result<(), Refusal>;
    /// Records an event that an agent states.
    async fn log_intent_event(&self, command: LogIntentEvent) -> Result<IntentEvent, Refusal>;
    /// Returns the events of an intent, oldest first; `None` if the viewer does not see the intent.
    async fn intent_events(
        &self,
        tenant: &TenantId,
        id: IntentId,
        viewer: &Viewer,
        filter: IntentEventFilter,
        page: PageRequest,
    ) -> Result<Option<Page<IntentEvent>>, Refusal>;
}

#[derive(Debug, Clone, PartialEq)]
pub struct CreateIntent {
    pub audit: Mandate,
    pub intent: Intent,
}

/// Filters intents. An absent member does not filter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IntentFilter {
    pub status: Option<IntentStatus>,
    pub created_by: Option<PrincipalId>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ChangeIntent {
    pub audit: Mandate,
    pub id: IntentId,
    /// Any other present version is a conflict.
    pub expected_version: u64,
    pub change: IntentChange,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssignParticipant {
    pub audit: Mandate,
    pub intent: IntentId,
    pub agent: PrincipalId,
    pub role: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoveParticipant {
    pub audit: Mandate,
    pub intent: IntentId,
    pub agent: PrincipalId,
}

#[derive(Debug, Clone, PartialEq)]
pub struct LogIntentEvent {
    pub audit: Mandate,
    pub id: EventId,
    pub intent: IntentId,
    pub kind: IntentEventKind,
    /// Who states it: the caller, or an agent that it may act for.
    pub actor: PrincipalId,
    pub payload: Map<String, Value>,
}

/// Filters events of an intent. An absent member does not filter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IntentEventFilter {
    pub kind: Option<IntentEventKind>,
    pub since: Option<Timestamp>,
}
