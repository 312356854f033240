//! Coordinators.

use std::collections::BTreeMap;

use async_trait::async_trait;
use serde_json::{Map, Value};
use toolgate_model::id::{CoordinatorId, IntentId};
use toolgate_model::principal::TenantId;
use toolgate_model::spending::Used;
use toolgate_model::time::Timestamp;
use toolgate_model::work::{Coordinator, CoordinatorStatus, Guardrails};

use super::Viewer;
use crate::ports::ledger::Mandate;
use crate::refusal::Refusal;

#[async_trait]
pub trait Coordinators: Send + Sync {
    /// Registers a coordinator of an intent that the caller directs.
    async fn create_coordinator(&self, command: CreateCoordinator) -> Result<(), Refusal>;
    async fn coordinator(
        &self,
        tenant: &TenantId,
        id: CoordinatorId,
        viewer: &Viewer,
    ) -> Result<Option<Coordinator>, Refusal>;
    /// Returns the coordinators of an intent, oldest first; `None` if the viewer does not see the intent.
    async fn coordinators(
        &self,
        tenant: &TenantId,
        intent: IntentId,
        viewer: &Viewer,
    ) -> Result<Option<Vec<Coordinator>>, Refusal>;
    /// Returns what the calls have used that each of these coordinators governs.
    async fn coordinator_use(
        &self,
        tenant: &TenantId,
        ids: Vec<CoordinatorId>,
    ) -> Result<BTreeMap<CoordinatorId, Used>, Refusal>;
    /// Changes a coordinator. Only its supervisor and managers may; a coordinator that is its own supervisor may only
    /// narrow its guardrails.
    async fn change_coordinator(&self, command: ChangeCoordinator) -> Result<Coordinator, Refusal>;
    /// Records that a coordinator is alive. Only its own agent may.
    async fn send_heartbeat(&self, command: SendHeartbeat) -> Result<Coordinator, Refusal>;
}

#[derive(Debug, Clone, PartialEq)]
pub struct CreateCoordinator {
    pub audit: Mandate,
    pub coordinator: Coordinator,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ChangeCoordinator {
    pub audit: Mandate,
    pub id: CoordinatorId,
    /// Any other present version is a conflict.
    pub expected_version: Option<u64>,
    pub changes: CoordinatorChanges,
}

/// Changes of a coordinator. An absent member stays as it is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CoordinatorChanges {
    /// `completed` and `failed_over` end it.
    pub status: Option<CoordinatorStatus>,
    pub guardrails: Option<Guardrails>,
    pub heartbeat_seconds: Option<u32>,
    pub expires_at: Option<Option<Timestamp>>,
    pub metadata: Option<Map<String, Value>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendHeartbeat {
    pub audit: Mandate,
    pub id: CoordinatorId,
}
