//! The log as events of the protocol.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolgate_model::hook::RunId;
use toolgate_model::openwop_event::RunEvent;
use toolgate_model::principal::PrincipalId;
use toolgate_model::text::Label;

use crate::document::merge;
use crate::endpoint::endpoints;
use crate::parameters::Limit;
use crate::schemas::Schemas;

endpoints! {
    tag "events" = "The log as events, content-free unless a tool's logging rule says otherwise.";

    /// Read or follow the log
    ///
    /// Needs `audit.read`; a caller without it gets the events that concern itself. With `Accept: text/event-stream` the
    /// response is a stream without end.
    ListRunEvents = GET "/v1/events" as "list_run_events" {
        query: RunEventQuery,
        reply: OK RunEventPage = "Events, in order; `sequence` is their position in the log.",
        stream: Events RunEvent = "Server-sent events with JSON as `data`.",
        amend: describe_position,
    }
}

/// A client that reconnects sends the id of the last event in a header.
pub(super) fn describe_position(operation: &mut Value, _: &mut Schemas) {
    let header = json!({
        "name": "Last-Event-ID",
        "in": "header",
        "description": "The same as `after`, over which it takes precedence.",
        "schema": {"type": "string"},
    });
    merge(operation, json!({"parameters": [header]}));
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunEventQuery {
    /// Only events of this run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// Only events that concern this agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<PrincipalId>,
    /// Only calls of this tool, such as `stripe.charges.create`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Label>")]
    pub tool: Option<String>,
    /// Only events that are shown with this type.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Label>")]
    pub kind: Option<String>,
    /// The `nextCursor` of an earlier response, or the id of the last event that was received.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Label>")]
    pub after: Option<String>,
    /// The maximum number of events; a stream has no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct RunEventPage {
    pub events: Vec<RunEvent>,
    /// Where the next page begins; `null` on the last one.
    pub next_cursor: Option<String>,
}
