//! Runs: the calls that their callers tied together by a run id.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolgate_model::hook::RunId;
use toolgate_model::openwop_event::RunEvent;
use toolgate_model::text::Label;
use toolgate_model::time::Timestamp;

use super::FlatError;
use super::events::{RunEventPage, describe_position};
use crate::endpoint::{RequestBody, endpoints};
use crate::parameters::{DescribedPath, Limit, PathText};

endpoints! {
    tag "runs" = "Calls grouped by their callers under a run id. Runs cannot be started here.";

    /// Start a workflow, which Toolgate does not do
    ///
    /// The response to a valid request is 501.
    CreateRun = POST "/v1/runs" as "create_run" {
        body: RunRequest = {"workflowId": "report", "inputs": {"month": "2026-02"}},
        reply: NOT_IMPLEMENTED FlatError = "Toolgate runs no workflows.",
    }

    /// Show a run
    ShowRun = GET "/v1/runs/{runId}" as "show_run" {
        path: PathText<RunId>,
        reply: OK Run = "The run.",
    }

    /// Read or follow the events of a run
    ///
    /// With `Accept: text/event-stream` the response is a stream without end.
    ListEventsOfRun = GET "/v1/runs/{runId}/events" as "list_events_of_run" {
        path: PathText<RunId>,
        query: EventsOfRunQuery,
        reply: OK RunEventPage = "Events, in order; `sequence` is their position in the run, from 0.",
        stream: Events RunEvent = "Server-sent events with JSON as `data`.",
        amend: describe_position,
    }

    /// Wait for events of a run
    PollEventsOfRun = GET "/v1/runs/{runId}/events/poll" as "poll_events_of_run" {
        path: PathText<RunId>,
        query: PollQuery,
        reply: OK PolledEvents = "The events after that one, at most 1000.",
    }
}

impl DescribedPath for RunId {
    const DESCRIPTION: &'static str =
        "The `context.run_id` of the calls, or the id of a call that was made without one.";
}

/// The members that the protocol defines for a client.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RunRequest {
    #[schemars(length(min = 1))]
    pub workflow_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub callback_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub configurable: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
}

impl RequestBody for RunRequest {}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct Run {
    pub run_id: RunId,
    pub status: RunStatus,
    #[schemars(range(min = 1))]
    pub event_count: u64,
    pub started_at: Timestamp,
    pub updated_at: Timestamp,
}

/// `running` while a call or a session is open, else how the last call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum RunStatus {
    Running,
    Completed,
    Failed,
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventsOfRunQuery {
    /// The `nextCursor` of an earlier response, or the id of the last event that was received.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Label>")]
    pub after: Option<String>,
    /// The maximum number of events; a stream has no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct PollQuery {
    /// The `sequence` of the last event that was received.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_sequence: Option<u64>,
    /// The seconds to wait while a call is in flight and there are no new events.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 60), extend("default" = 30))]
    pub timeout: Option<u64>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields, inline)]
pub struct PolledEvents {
    pub events: Vec<RunEvent>,
    /// Whether no call and no session of the run is open.
    pub is_complete: bool,
}
