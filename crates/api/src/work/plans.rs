//! Plans.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolgate_model::id::{IntentId, PlanId, TaskId};
use toolgate_model::principal::PrincipalId;
use toolgate_model::text::Line;
use toolgate_model::time::Timestamp;
use toolgate_model::work::{OnFailure, PlanState};

use super::describe_required_version;
use crate::endpoint::{RequestBody, endpoints};
use crate::reply::Dollars;

endpoints! {
    tag "plans" = "Which tasks carry out an intent.";

    /// Create a plan
    CreatePlan = POST "/api/v1/plans" as "create_plan" {
        body: PlanRequest,
        reply: CREATED Plan = "The plan.",
        errors: [NotFound, TooMany],
    }

    /// Show a plan
    ShowPlan = GET "/api/v1/plans/{plan_id}" as "show_plan" {
        path: PlanId,
        reply: OK Plan = "The plan.",
    }

    /// Change a plan
    ///
    /// Absent members stay as they are.
    UpdatePlan = PATCH "/api/v1/plans/{plan_id}" as "update_plan" {
        path: PlanId,
        body: PlanChanges = {"state": "active"},
        reply: OK Plan = "The plan as it is now.",
        amend: describe_required_version,
    }

    /// List the plans of an intent
    ///
    /// An array, as the Python client of OpenIntent reads it.
    ListPlans = GET "/api/v1/intents/{intent_id}/plans" as "list_plans" {
        path: IntentId,
        reply: OK Vec<Plan> = "The plans, in the order of creation.",
    }

    /// Estimate the cost of a plan
    ///
    /// One call of each scope that its tasks require; a scope that several tools have costs from the cheapest to the most
    /// expensive of them.
    EstimatePlan = GET "/api/v1/plans/{plan_id}/estimate" as "estimate_plan" {
        path: PlanId,
        reply: OK PlanEstimate = "The estimate.",
    }
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanRequest {
    // A text that is not an id names no intent.
    #[schemars(with = "IntentId")]
    pub intent_id: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<TaskId>")]
    pub tasks: Vec<String>,
    /// `draft`, which is the default, or `active`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<PlanState>,
    /// Default: `pause_and_escalate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<OnFailure>,
    /// Default: `notify`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_complete: Option<Line>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
}

impl RequestBody for PlanRequest {}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanChanges {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<PlanState>,
    /// Replaces all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<TaskId>>")]
    pub tasks: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<OnFailure>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_complete: Option<Line>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
}

impl RequestBody for PlanChanges {}

/// The tasks that carry out an intent.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    pub id: PlanId,
    pub intent_id: IntentId,
    /// For `If-Match`; every change of the plan raises it.
    pub version: u64,
    pub state: PlanState,
    pub tasks: Vec<TaskId>,
    pub on_failure: OnFailure,
    pub on_complete: String,
    pub metadata: Map<String, Value>,
    pub created_by: PrincipalId,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// What a plan will cost.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct PlanEstimate {
    pub plan_id: PlanId,
    pub tasks: Vec<TaskEstimate>,
    /// The sum for the cheapest tools.
    #[schemars(with = "Dollars")]
    pub min_usd: f64,
    /// The sum for the most expensive tools.
    #[schemars(with = "Dollars")]
    pub max_usd: f64,
    /// Whether the cost of every tool is known.
    pub complete: bool,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct TaskEstimate {
    pub task_id: TaskId,
    #[schemars(with = "Dollars")]
    pub min_usd: f64,
    #[schemars(with = "Dollars")]
    pub max_usd: f64,
    /// Scopes whose tools state no cost, or that no tool has, as `SERVICE.SCOPE`.
    pub unknown: Vec<String>,
}
