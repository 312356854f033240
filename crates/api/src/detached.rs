//! Calls that outlive their connection.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_model::id::{ApprovalId, InvocationId};
use toolgate_model::invocation::IdempotencyKey;
use toolgate_model::principal::PrincipalId;
use toolgate_model::time::Timestamp;

use crate::endpoint::endpoints;
use crate::parameters::{Cursor, Limit};
use crate::reply::NextCursor;

endpoints! {
    tag "detached" = "Calls that outlive their connection.";

    /// List detached calls, newest first
    ///
    /// The caller's own; those of all principals with `audit.read`. Calls that have ended are listed for as long as their
    /// result is kept.
    ListDetachedCalls = GET "/api/v1/detached-calls" as "list_detached_calls" {
        query: DetachedQuery,
        reply: OK DetachedPage = "A page.",
    }
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
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct DetachedCall {
    pub id: InvocationId,
    /// The same as `id`.
    pub invocation_id: InvocationId,
    pub status: DetachedStatus,
    /// The tool, as the caller names it.
    pub tool_name: String,
    pub agent_id: PrincipalId,
    pub actor: PrincipalId,
    /// The approvals that were asked for.
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
