//! Coordinators and their guardrails.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolgate_model::id::{CoordinatorId, IntentId};
use toolgate_model::principal::PrincipalId;
use toolgate_model::text::Line;
use toolgate_model::time::Timestamp;
use toolgate_model::work::{CoordinatorKind, CoordinatorStatus, Guardrails};

use super::describe_optional_version;
use crate::endpoint::{RequestBody, endpoints};
use crate::reading::present;
use crate::reply::{Dollars, constants};

endpoints! {
    tag "coordinators" = "Agents that coordinate an intent within guardrails, which their supervisor sets.";

    /// Create a coordinator
    ///
    /// The caller must be allowed to change the intent. For another agent than the caller it needs `agents.act_as` or `tools.manage`.
    CreateCoordinator = POST "/api/v1/coordinators" as "create_coordinator" {
        body: CoordinatorRequest,
        reply: CREATED Coordinator = "The coordinator.",
        errors: [NotFound, TooMany],
    }

    /// Show a coordinator
    ShowCoordinator = GET "/api/v1/coordinators/{coordinator_id}" as "show_coordinator" {
        path: CoordinatorId,
        reply: OK Coordinator = "The coordinator.",
    }

    /// Change a coordinator
    ///
    /// By its supervisor, or with `tools.manage`. A coordinator that is its own supervisor can only narrow its guardrails.
    UpdateCoordinator = PATCH "/api/v1/coordinators/{coordinator_id}" as "update_coordinator" {
        path: CoordinatorId,
        body: CoordinatorChanges = {"status": "paused"},
        reply: OK Coordinator = "The coordinator as it is now.",
        amend: describe_optional_version,
    }

    /// End a coordinator
    ///
    /// By its supervisor, or with `tools.manage`.
    EndCoordinator = DELETE "/api/v1/coordinators/{coordinator_id}" as "end_coordinator" {
        path: CoordinatorId,
        reply: OK Coordinator = "The coordinator as it was ended.",
    }

    /// Send a coordinator heartbeat
    ///
    /// By its agent. One that misses heartbeats is shown as `unresponsive`; its guardrails still apply.
    BeatCoordinator = POST "/api/v1/coordinators/{coordinator_id}/heartbeat" as "coordinator_heartbeat" {
        path: CoordinatorId,
        reply: OK Coordinator = "The coordinator.",
    }

    /// List the coordinators of an intent
    ///
    /// An array, as the Python client of OpenIntent reads it.
    ListCoordinators = GET "/api/v1/intents/{intent_id}/coordinators" as "list_coordinators" {
        path: IntentId,
        reply: OK Vec<Coordinator> = "The coordinators, in the order of creation.",
    }
}

constants! {
    CoordinatorScope = "intent";
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CoordinatorRequest {
    pub agent_id: PrincipalId,
    // A text that is not an id names no intent.
    #[schemars(with = "IntentId")]
    pub intent_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Line>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<CoordinatorScope>,
    /// The caller where absent; another principal needs `agents.act_as`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supervisor_id: Option<PrincipalId>,
    /// Default: `llm`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coordinator_type: Option<CoordinatorKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Guardrails>")]
    pub guardrails: Option<Map<String, Value>>,
    /// Default: 60.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 86_400))]
    pub heartbeat_interval_seconds: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
}

impl RequestBody for CoordinatorRequest {}

/// Absent members stay as they are.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CoordinatorChanges {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<CoordinatorStatus>,
    /// Replaces all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Guardrails>")]
    pub guardrails: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 86_400))]
    pub heartbeat_interval_seconds: Option<u32>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Timestamp>")]
    pub expires_at: Option<Option<Timestamp>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
}

impl RequestBody for CoordinatorChanges {}

/// An agent that coordinates an intent.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Coordinator {
    pub id: CoordinatorId,
    pub intent_id: IntentId,
    pub agent_id: PrincipalId,
    pub role: String,
    pub scope: CoordinatorScope,
    pub supervisor_id: PrincipalId,
    pub coordinator_type: CoordinatorKind,
    pub status: CoordinatorStatus,
    #[schemars(with = "Guardrails")]
    pub guardrails: Map<String, Value>,
    /// `null` unless `guardrails` limits calls or costs.
    pub usage: Option<CoordinatorUsage>,
    pub heartbeat_interval_seconds: u32,
    pub last_heartbeat: Option<Timestamp>,
    pub granted_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    /// For `If-Match`; every change of the coordinator raises it.
    pub version: u64,
    pub metadata: Map<String, Value>,
}

/// What the calls have used that a coordinator governs, those in flight included.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct CoordinatorUsage {
    pub calls: u64,
    pub remaining_calls: Option<u64>,
    #[schemars(with = "Dollars")]
    pub cost_usd: f64,
    #[schemars(with = "Option<Dollars>")]
    pub remaining_cost_usd: Option<f64>,
}
