//! Calls that outlive their connection.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolgate_model::id::{ApprovalId, InvocationId};
use toolgate_model::invocation::IdempotencyKey;
use toolgate_model::principal::PrincipalId;
use toolgate_model::time::Timestamp;

use crate::document::merge;
use crate::endpoint::endpoints;
use crate::parameters::{Cursor, Limit};
use crate::reply::NextCursor;
use crate::schemas::Schemas;
use crate::tools::{CallStep, SucceededCall, describe_endings, detached_response};

endpoints! {
    tag "detached" = "Calls that outlive their connection.";

    /// List detached calls, newest first
    ///
    /// The caller's own; those of all principals with `audit.read`. Ended calls are listed as long as their result is
    /// stored.
    ListDetachedCalls = GET "/api/v1/detached-calls" as "list_detached_calls" {
        query: DetachedQuery,
        reply: OK DetachedPage = "A page.",
    }

    /// Fetch the result of a detached call
    ///
    /// The response that the call would have had on its connection, status included; 202 while it has not ended. With
    /// `Accept: application/x-ndjson` the response is a stream of steps.
    FetchResult = GET "/api/v1/invocations/{invocation_id}/result" as "fetch_result" {
        path: InvocationId,
        query: ResultQuery,
        reply: OK SucceededCall = "The call was executed.",
        stream: Lines CallStep = "Lines of JSON, each one step.",
        errors: [
            Conflict = "The call was refused, or its outcome is unknown.",
            Gone = "The result is not kept."
        ],
        amend: describe_endings,
    }

    /// Delete the result of a detached call that has ended
    DeleteResult = DELETE "/api/v1/invocations/{invocation_id}/result" as "delete_result" {
        path: InvocationId,
        reply: OK DetachedChange = "It is deleted.",
        errors: [Gone = "The result is not kept."],
    }

    /// Cancel a detached call that is not admitted yet
    CancelCall = POST "/api/v1/invocations/{invocation_id}/cancel" as "cancel_call" {
        path: InvocationId,
        reply: OK DetachedChange = "It was cancelled, and is recorded as `denied`.",
        errors: [Gone = "The result is not kept."],
        amend: describe_cancel,
    }
}

fn describe_cancel(operation: &mut Value, schemas: &mut Schemas) {
    merge(operation, json!({"responses": {"202": detached_response(schemas)}}));
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResultQuery {
    /// How long to wait for the end of the call; at most 600. `Prefer: wait=SECONDS` means the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_seconds: Option<u32>,
}

/// A change of a detached call.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct DetachedChange {
    pub status: DetachedChangeStatus,
    pub invocation_id: InvocationId,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum DetachedChangeStatus {
    Cancelled,
    Deleted,
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DetachedQuery {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<PrincipalId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Cursor>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct DetachedPage {
    pub detached_calls: Vec<DetachedCall>,
    pub next_cursor: NextCursor,
}

/// A call that outlives its connection.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct DetachedCall {
    pub id: InvocationId,
    /// The same as `id`.
    pub invocation_id: InvocationId,
    pub status: DetachedStatus,
    /// The tool, as the caller names it.
    pub tool_name: String,
    pub agent_id: PrincipalId,
    pub actor: PrincipalId,
    /// The requested approvals.
    pub approval_ids: Vec<ApprovalId>,
    pub cancelled: bool,
    pub idempotency_key: Option<IdempotencyKey>,
    pub timestamp: Timestamp,
    pub finished_at: Option<Timestamp>,
    pub url: String,
    pub result_url: String,
    pub cancel_url: String,
}

/// `pending` before it is decided on, `waiting` for an approver, `running`, `finished`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum DetachedStatus {
    Pending,
    Waiting,
    Running,
    Finished,
}
