//! Tool sessions of RFC 0078.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_model::descriptor::ToolId;
use toolgate_model::hook::RunId;
use toolgate_model::id::SessionId;
use toolgate_model::time::Timestamp;

use crate::endpoint::{RequestBody, endpoints};
use crate::parameters::{DescribedPath, PathText};

endpoints! {
    tag "sessions" = "Uses of a tool in several calls, with an event at each end (RFC 0078).";

    /// Open a session of a tool
    ///
    /// Calls belong to it that name it in `context.session_id`.
    OpenSession = POST "/v1/tool-sessions" as "open_session" {
        body: SessionRequest = {"toolId": "connector:payments.charges.create", "runId": "report-7", "ttlSeconds": 60},
        reply: CREATED Session = "The session.",
        errors: [NotFound],
    }

    /// Show an open session
    ShowSession = GET "/v1/tool-sessions/{sessionId}" as "show_session" {
        path: PathText<SessionId>,
        reply: OK Session = "The session.",
    }

    /// Close a session
    CloseSession = DELETE "/v1/tool-sessions/{sessionId}" as "close_session" {
        path: PathText<SessionId>,
        query: CloseQuery,
        reply: NO_CONTENT () = "It is closed.",
    }
}

impl DescribedPath for SessionId {
    const DESCRIPTION: &'static str = "An open session of the caller.";
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct SessionRequest {
    // A text that is not an id names no tool.
    #[schemars(length(min = 1))]
    pub tool_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The time after which it is closed as failed, if it is still open.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 3600), extend("default" = 300))]
    pub ttl_seconds: Option<u64>,
}

impl RequestBody for SessionRequest {}

/// An open session.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct Session {
    pub session_id: SessionId,
    #[schemars(with = "ToolId")]
    pub tool_id: String,
    pub run_id: RunId,
    pub opened_at: Timestamp,
    pub expires_at: Timestamp,
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CloseQuery {
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "completed"))]
    pub outcome: Option<SessionEnd>,
}

// The protocol's texts agree on these two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum SessionEnd {
    Completed,
    Failed,
}
