//! What an intent costs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};
use toolgate_model::credential::ServiceName;
use toolgate_model::id::{IntentId, InvocationId, TaskId};
use toolgate_model::principal::PrincipalId;
use toolgate_model::service::ToolName;
use toolgate_model::text::{Label, Line};
use toolgate_model::time::Timestamp;
use toolgate_model::work::CostKind;

use crate::endpoint::{RequestBody, endpoints};
use crate::reply::Dollars;

endpoints! {
    tag "costs" = "What an intent costs: calls through the gate, and what agents record.";

    /// List the costs of an intent
    ListCosts = GET "/api/v1/intents/{intent_id}/costs" as "list_costs" {
        path: IntentId,
        reply: OK CostList = "The newest entries, and the sums of all.",
    }

    /// Record a cost
    ///
    /// Such as the tokens of a model. Calls through the gate are recorded without it.
    RecordCost = POST "/api/v1/intents/{intent_id}/costs" as "record_cost" {
        path: IntentId,
        body: CostRequest = {"cost_type": "tokens", "amount": 1200, "unit": "tokens"},
        reply: CREATED CostEntry = "The entry.",
        errors: [TooMany],
    }
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CostRequest {
    /// The caller where absent; another principal needs `agents.act_as`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<PrincipalId>,
    /// A task of the intent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<TaskId>")]
    pub task_id: Option<String>,
    /// Not `external_tool`, which is for calls through the gate.
    pub cost_type: CostKind,
    /// With at most six decimal places.
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub amount: f64,
    /// `usd`, `cents` and `usd_micros` are money and are added up; any other unit is only listed.
    pub unit: Label,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<Line>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
}

impl RequestBody for CostRequest {}

/// A cost: of a call, or recorded by an agent.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct CostEntry {
    /// Of the entry, or of the call.
    pub id: String,
    pub intent_id: IntentId,
    pub task_id: Option<TaskId>,
    pub agent_id: PrincipalId,
    /// `external_tool` for a call.
    pub cost_type: CostKind,
    /// In `unit`; millionths of a US dollar for a call.
    #[schemars(with = "f64")]
    pub amount: Number,
    pub unit: String,
    /// Where it is money.
    #[schemars(with = "Option<Dollars>")]
    pub amount_usd: Option<f64>,
    pub service: Option<ServiceName>,
    #[schemars(with = "Option<ToolName>")]
    pub tool: Option<String>,
    pub invocation_id: Option<InvocationId>,
    pub provider: Option<String>,
    pub metadata: Map<String, Value>,
    pub recorded_at: Timestamp,
    /// The same as `recorded_at`, where the Python client of OpenIntent looks for it.
    #[serde(rename = "recordedAt")]
    pub recorded_at_again: Timestamp,
}

/// Sums in millionths of a US dollar.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct CostSummary {
    pub total: u64,
    /// The total in dollars.
    #[schemars(with = "Dollars")]
    pub total_usd: f64,
    pub by_type: BTreeMap<String, u64>,
    pub by_agent: BTreeMap<String, u64>,
    pub by_task: BTreeMap<String, u64>,
    pub by_service: BTreeMap<String, u64>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct CostList {
    pub costs: Vec<CostEntry>,
    pub summary: CostSummary,
}
