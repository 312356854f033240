//! Plans: the tasks by which an intent is to be reached.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::text_choice::choices;
use crate::id::{IntentId, PlanId, TaskId};
use crate::principal::{PrincipalId, TenantId};
use crate::time::Timestamp;

choices! {
    PlanState {
        Draft = "draft",
        Active = "active",
        Paused = "paused",
        /// Terminal.
        Completed = "completed",
        /// Terminal.
        Failed = "failed",
        /// Terminal.
        Cancelled = "cancelled",
    }
    /// What its coordinator is to do when a task fails. The gate keeps it for them.
    OnFailure {
        PauseAndEscalate = "pause_and_escalate",
        Notify = "notify",
        Fail = "fail",
        Retry = "retry",
    }
}

impl PlanState {
    pub fn has_ended(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }

    /// What it can become.
    pub fn next(self) -> &'static [Self] {
        match self {
            Self::Draft => &[Self::Active, Self::Cancelled],
            Self::Active => &[Self::Paused, Self::Completed, Self::Failed, Self::Cancelled],
            Self::Paused => &[Self::Active, Self::Failed, Self::Cancelled],
            Self::Completed | Self::Failed | Self::Cancelled => &[],
        }
    }
}

/// The parts of a plan that no rule of the gate depends on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlanDetails {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checkpoints: Vec<Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Value>,
    pub on_failure: OnFailure,
    pub on_complete: String,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

impl Default for PlanDetails {
    fn default() -> Self {
        Self {
            checkpoints: Vec::new(),
            conditions: Vec::new(),
            on_failure: OnFailure::PauseAndEscalate,
            on_complete: "notify".to_owned(),
            metadata: Map::new(),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    pub id: PlanId,
    pub tenant: TenantId,
    pub intent: IntentId,
    pub version: u64,
    pub state: PlanState,
    /// In the order of their ids.
    pub tasks: Vec<TaskId>,
    pub details: PlanDetails,
    pub created_by: PrincipalId,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}
