//! The events of an intent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolgate_model::context::ContextId;
use toolgate_model::id::{EventId, IntentId};
use toolgate_model::principal::PrincipalId;
use toolgate_model::time::Timestamp;
use toolgate_model::work::IntentEventKind;

use super::objects::Offset;
use crate::endpoint::{RequestBody, endpoints};
use crate::parameters::{Cursor, Limit};
use crate::reply::NextCursor;

endpoints! {
    tag "intent events" = "What happened to an intent and to everything below it.";

    /// List the events of an intent
    ///
    /// With the calls and grants in its context.
    ListIntentEvents = GET "/api/v1/intents/{intent_id}/events" as "list_intent_events" {
        path: IntentId,
        query: IntentEventQuery,
        reply: OK IntentEventList = "The events, oldest first.",
    }

    /// Log an event of an intent
    ///
    /// Not of the types that the gate writes.
    LogIntentEvent = POST "/api/v1/intents/{intent_id}/events" as "log_intent_event" {
        path: IntentId,
        body: IntentEventRequest = {"event_type": "comment", "payload": {"note": "starting"}},
        reply: CREATED IntentEvent = "The event.",
        errors: [TooMany],
    }
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IntentEventQuery {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_type: Option<IntentEventKind>,
    /// Inclusive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Cursor>,
    /// Instead of `cursor`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<Offset>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IntentEventRequest {
    pub event_type: IntentEventKind,
    /// The caller where absent; another principal needs `agents.act_as`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<PrincipalId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Map<String, Value>>,
    /// Kept in the payload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<ContextId>,
    /// Kept in the payload, as `trace_id` is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_event_id: Option<ContextId>,
}

impl RequestBody for IntentEventRequest {}

/// An event of an intent.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct IntentEvent {
    pub id: EventId,
    pub intent_id: IntentId,
    pub event_type: IntentEventKind,
    pub actor: PrincipalId,
    pub payload: Map<String, Value>,
    pub created_at: Timestamp,
    /// As the payload has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub trace_id: Option<String>,
    /// As the payload has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub parent_event_id: Option<String>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct IntentEventList {
    pub events: Vec<IntentEvent>,
    pub next_cursor: NextCursor,
}
