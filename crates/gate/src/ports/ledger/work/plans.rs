//! Plans.

use async_trait::async_trait;
use serde_json::{Map, Value};
use toolgate_model::id::{IntentId, PlanId, TaskId};
use toolgate_model::principal::TenantId;
use toolgate_model::work::{OnFailure, Plan, PlanState};

use super::Viewer;
use crate::ports::ledger::Mandate;
use crate::refusal::Refusal;

#[async_trait]
pub trait Plans: Send + Sync {
    /// Creates a plan. Its tasks must be tasks of the intent that have no plan and that nobody works on.
    async fn create_plan(&self, command: CreatePlan) -> Result<Plan, Refusal>;
    async fn plan(&self, tenant: &TenantId, id: PlanId, viewer: &Viewer) -> Result<Option<Plan>, Refusal>;
    /// Returns the plans of an intent, oldest first; `None` if the viewer does not see the intent.
    async fn plans(&self, tenant: &TenantId, intent: IntentId, viewer: &Viewer) -> Result<Option<Vec<Plan>>, Refusal>;
    /// Returns the plan after the change. Cancelling it cancels its tasks that have not ended.
    async fn change_plan(&self, command: ChangePlan) -> Result<Plan, Refusal>;
}

#[derive(Debug, Clone, PartialEq)]
pub struct CreatePlan {
    pub audit: Mandate,
    pub plan: Plan,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ChangePlan {
    pub audit: Mandate,
    pub id: PlanId,
    /// Any other present version is a conflict.
    pub expected_version: u64,
    pub changes: PlanChanges,
}

/// Changes of a plan. An absent member stays as it is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PlanChanges {
    /// The present state is no change.
    pub state: Option<PlanState>,
    /// All tasks that it has from now on.
    pub tasks: Option<Vec<TaskId>>,
    pub checkpoints: Option<Vec<Value>>,
    pub conditions: Option<Vec<Value>>,
    pub on_failure: Option<OnFailure>,
    pub on_complete: Option<String>,
    pub metadata: Option<Map<String, Value>>,
}
