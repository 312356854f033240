//! Intents, their state, and the agents that work on them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolgate_model::id::IntentId;
use toolgate_model::principal::PrincipalId;
use toolgate_model::text::{Line, MultilineText};
use toolgate_model::time::Timestamp;
use toolgate_model::work::IntentStatus;

use super::describe_version;
use super::objects::Offset;
use crate::endpoint::{RequestBody, endpoints};
use crate::parameters::{Cursor, Limit};
use crate::reading::Object;
use crate::reply::{NextCursor, Removed};

endpoints! {
    tag "intents" = "Goals that agents work on together. Visible only to participants.";

    /// Create an intent
    ///
    /// Needs `tools.invoke`. The caller coordinates it, unless a coordinator is created.
    CreateIntent = POST "/api/v1/intents" as "create_intent" {
        body: IntentRequest = {"title": "Quarterly compliance", "state": {"phase": "start"}},
        reply: CREATED Intent = "The intent.",
        errors: [NotFound, TooMany],
    }

    /// List the intents that the caller may see
    ListIntents = GET "/api/v1/intents" as "list_intents" {
        query: IntentQuery,
        reply: OK IntentList = "The intents, in the order of creation.",
    }

    /// Show an intent
    ShowIntent = GET "/api/v1/intents/{intent_id}" as "show_intent" {
        path: IntentId,
        reply: OK Intent = "The intent.",
    }

    /// Change the state of an intent
    ///
    /// The state is a JSON document of the agents, which the gate does not evaluate. Patches are applied in order, or
    /// none is.
    PatchState = POST "/api/v1/intents/{intent_id}/state" as "patch_intent_state" {
        path: IntentId,
        body: StateRequest = {"patches": [{"op": "set", "path": "progress", "value": 0.5}]},
        reply: OK Intent = "The intent as it is now.",
        amend: describe_version,
    }

    /// Change the status of an intent
    SetIntentStatus = POST "/api/v1/intents/{intent_id}/status" as "set_intent_status" {
        path: IntentId,
        body: StatusRequest = {"status": "active"},
        reply: OK Intent = "The intent as it is now.",
        amend: describe_version,
    }

    /// List the agents of an intent
    ListIntentAgents = GET "/api/v1/intents/{intent_id}/agents" as "list_intent_agents" {
        path: IntentId,
        reply: OK IntentAgentList = "The agents.",
    }

    /// Assign an agent to an intent
    ///
    /// It can then see the intent with everything below it.
    AssignIntentAgent = POST "/api/v1/intents/{intent_id}/agents" as "assign_intent_agent" {
        path: IntentId,
        body: IntentAgentRequest = {"agent_id": "worker"},
        reply: CREATED IntentAgent = "The assignment.",
        errors: [TooMany],
    }

    /// Remove an agent from an intent
    UnassignIntentAgent = DELETE "/api/v1/intents/{intent_id}/agents/{agent_id}" as "unassign_intent_agent" {
        path: (IntentId, PrincipalId),
        reply: OK UnassignedAgent = "What was removed.",
    }
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IntentRequest {
    pub title: Line,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<MultilineText>,
    /// The caller where absent; another principal needs `agents.act_as`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_by: Option<PrincipalId>,
    /// Default: `draft`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<IntentStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<Map<String, Value>>,
    /// For the agents: the gate does not evaluate them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constraints: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<IntentId>")]
    pub parent_intent_id: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<IntentId>")]
    pub depends_on: Vec<String>,
}

impl RequestBody for IntentRequest {}

impl IntentRequest {
    /// An intent with an empty state.
    pub fn new(title: Line) -> Self {
        Self {
            title,
            description: None,
            created_by: None,
            status: None,
            state: None,
            constraints: None,
            parent_intent_id: None,
            depends_on: Vec::new(),
        }
    }
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IntentQuery {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<IntentStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_by: Option<PrincipalId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Cursor>,
    /// Instead of `cursor`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<Offset>,
}

/// Either `patches` or `state`.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StateRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patches: Option<Vec<Object<StatePatch>>>,
    /// Members to set, short for a patch of each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Map<String, Value>>,
}

impl RequestBody for StateRequest {}

/// A change of one member of the state.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StatePatch {
    pub op: PatchOperation,
    /// The name of the member, or names separated by `.` or `/` for a member of a member.
    #[schemars(length(min = 1, max = 1024))]
    pub path: String,
    /// Absent for `remove`.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub value: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum PatchOperation {
    Set,
    Remove,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "IntentStatusRequest")]
pub struct StatusRequest {
    pub status: IntentStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Line>,
}

impl RequestBody for StatusRequest {}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IntentAgentRequest {
    pub agent_id: PrincipalId,
    /// Default: `worker`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Line>,
}

impl RequestBody for IntentAgentRequest {}

/// A goal, with the state that the agents share.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Intent {
    pub id: IntentId,
    pub title: String,
    pub description: String,
    /// For `If-Match`; every change of the intent raises it.
    pub version: u64,
    pub status: IntentStatus,
    pub state: Map<String, Value>,
    pub constraints: Map<String, Value>,
    pub parent_intent_id: Option<IntentId>,
    pub depends_on: Vec<IntentId>,
    pub created_by: PrincipalId,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct IntentList {
    pub intents: Vec<Intent>,
    pub next_cursor: NextCursor,
}

/// An agent that is assigned to an intent.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct IntentAgent {
    pub intent_id: IntentId,
    pub agent_id: PrincipalId,
    pub role: String,
    pub assigned_by: PrincipalId,
    pub assigned_at: Timestamp,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct IntentAgentList {
    pub agents: Vec<IntentAgent>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct UnassignedAgent {
    pub status: Removed,
    pub intent_id: IntentId,
    pub agent_id: PrincipalId,
}
