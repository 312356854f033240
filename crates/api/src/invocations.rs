//! The records of calls.

use schemars::JsonSchema;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolgate_model::constraint::Cost;
use toolgate_model::context::{ContextId, GrantContext};
use toolgate_model::credential::ServiceName;
use toolgate_model::hook::{RunId, Transport};
use toolgate_model::id::{GrantId, InvocationId, SessionId};
use toolgate_model::invocation::{IdempotencyKey, InvocationStatus};
use toolgate_model::principal::PrincipalId;
use toolgate_model::service::{ServiceVersion, ToolName};
use toolgate_model::spending::CostBasis;
use toolgate_model::text::Line;
use toolgate_model::time::Timestamp;

use crate::detached::DetachedCall;
use crate::endpoint::{RequestBody, endpoints};
use crate::parameters::{Cursor, Limit};
use crate::reading::optional_object;
use crate::reply::{Digest, Dollars, NextCursor};

endpoints! {
    tag "invocations" = "The records of calls, refused ones included.";

    /// List the invocations that the caller may see
    ListInvocations = GET "/api/v1/invocations" as "list_invocations" {
        query: InvocationQuery,
        reply: OK InvocationPage = "A page, newest first.",
        errors: [NotFound],
    }

    /// Report a call that was not made through the gate
    ///
    /// Needs `tools.invoke`. It is marked as reported.
    ReportInvocation = POST "/api/v1/invocations" as "report_invocation" {
        body: InvocationReport,
        reply: CREATED Invocation = "The record.",
        errors: [NotFound],
    }

    /// Show an invocation
    ///
    /// A detached call that has not been admitted or refused yet has no record: it is shown itself.
    ShowInvocation = GET "/api/v1/invocations/{invocation_id}" as "show_invocation" {
        path: InvocationId,
        reply: OK ShownInvocation = "The record.",
    }

    /// List the invocations of a grant
    ///
    /// An array, as the Python client of OpenIntent reads it; 50 where `limit` is absent.
    ListInvocationsOfGrant = GET "/api/v1/grants/{grant_id}/invocations" as "list_invocations_of_grant" {
        path: GrantId,
        query: GrantInvocationQuery,
        reply: OK Vec<Invocation> = "The newest ones.",
    }

    /// List the invocations of an intent
    ListInvocationsOfIntent = GET "/api/v1/intents/{intent_id}/invocations" as "list_invocations_of_intent" {
        path: ContextId,
        query: IntentInvocationQuery,
        reply: OK InvocationPage = "A page, newest first.",
    }

    /// List the invocations of a task
    ListInvocationsOfTask = GET "/api/v1/tasks/{task_id}/invocations" as "list_invocations_of_task" {
        path: ContextId,
        query: TaskInvocationQuery,
        reply: OK InvocationPage = "A page, newest first.",
    }
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InvocationQuery {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<PrincipalId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<GrantId>")]
    pub grant_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<ServiceName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<InvocationStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intent_id: Option<ContextId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<ContextId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<IdempotencyKey>,
    /// Inclusive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Exclusive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Cursor>,
}

/// At a path that names the grant, the intent or the task, the query cannot name it too. The server parses all of them
/// as [`InvocationQuery`] and refuses the member by name.
macro_rules! narrower_queries {
    ($($name:ident without $member:literal;)+) => {$(
        #[derive(Debug, Default, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub InvocationQuery);

        impl JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                std::borrow::Cow::Borrowed(stringify!($name))
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let mut schema = InvocationQuery::json_schema(generator);
                if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
                    properties.remove($member);
                }
                schema
            }
        }
    )+};
}

narrower_queries! {
    GrantInvocationQuery without "grant_id";
    IntentInvocationQuery without "intent_id";
    TaskInvocationQuery without "task_id";
}

/// A call as reported by its caller.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InvocationReport {
    // A text that is not an id names no grant.
    #[schemars(with = "GrantId")]
    pub grant_id: String,
    pub service: ServiceName,
    pub tool: ToolName,
    pub agent_id: PrincipalId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Map<String, Value>>,
    /// Default: `success`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<ReportedStatus>,
    /// Accepted and not stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<ReportedError>")]
    pub error: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<ReportedCost>")]
    pub cost: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<IdempotencyKey>,
    #[serde(default, deserialize_with = "optional_object", skip_serializing_if = "Option::is_none")]
    pub context: Option<GrantContext>,
}

impl RequestBody for InvocationReport {}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum ReportedStatus {
    Denied,
    Error,
    Success,
    Timeout,
}

#[derive(JsonSchema)]
#[schemars(untagged, inline)]
#[expect(dead_code, reason = "only its schema is used")]
enum ReportedError {
    Text(Line),
    Object { message: Line },
}

#[derive(JsonSchema)]
#[schemars(untagged, inline)]
#[expect(dead_code, reason = "only its schema is used")]
enum ReportedCost {
    Dollars(#[schemars(with = "Dollars")] f64),
    Object { estimated_cost_usd: Option<Dollars> },
}

/// The record of a call.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Invocation {
    pub id: InvocationId,
    /// The same as `id`.
    pub invocation_id: InvocationId,
    pub grant_id: Option<GrantId>,
    pub agent_id: PrincipalId,
    /// The principal that made it.
    pub actor: PrincipalId,
    pub service: Option<ServiceName>,
    #[schemars(with = "ToolName")]
    pub tool: String,
    pub version: Option<ServiceVersion>,
    pub status: InvocationStatus,
    /// As far as the tool's logging rule allows; only short values for readers without `audit.read`.
    pub parameters: Map<String, Value>,
    /// Of the canonical parameters; keyed for readers without `audit.read`.
    #[schemars(with = "Digest")]
    pub arguments_hash: String,
    /// Of method, URL and canonical parameters.
    #[schemars(with = "Option<Digest>")]
    pub request_fingerprint: Option<String>,
    /// Not stored.
    pub result: (),
    pub error: Option<InvocationError>,
    #[schemars(range(min = 100, max = 599))]
    pub http_status: Option<u16>,
    pub cost: EstimatedCost,
    /// What the cost is based on, if the tool states what its calls cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_basis: Option<CostBasis>,
    pub duration_ms: Option<u64>,
    pub idempotency_key: Option<IdempotencyKey>,
    pub context: GrantContext,
    #[schemars(with = "RunId")]
    pub run_id: String,
    pub session_id: Option<SessionId>,
    #[schemars(with = "Transport")]
    pub transport: String,
    pub reported: bool,
    pub timestamp: Timestamp,
    /// Decisions of policies and guardians about the request and the result. Only if one invocation is shown, for
    /// readers with `audit.read`, and if any guardian was consulted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hook_decisions: Vec<Map<String, Value>>,
}

impl From<toolgate_model::invocation::Invocation> for Invocation {
    fn from(invocation: toolgate_model::invocation::Invocation) -> Self {
        Self {
            run_id: invocation.run_id(),
            id: invocation.id,
            invocation_id: invocation.id,
            grant_id: invocation.grant,
            agent_id: invocation.agent,
            actor: invocation.actor,
            service: invocation.service,
            tool: invocation.tool.to_string(),
            version: invocation.version,
            status: invocation.status,
            parameters: Arc::unwrap_or_clone(invocation.parameters),
            arguments_hash: invocation.arguments_hash.to_string(),
            request_fingerprint: invocation.fingerprint.map(|fingerprint| fingerprint.to_string()),
            result: (),
            error: invocation.error.map(|error| InvocationError { code: error.code, message: error.reason }),
            http_status: invocation.http_status,
            cost: EstimatedCost { api_units: 1, estimated_cost_usd: invocation.cost.map(Cost::dollars) },
            cost_basis: invocation.cost_basis,
            duration_ms: invocation.duration_ms,
            idempotency_key: invocation.idempotency_key,
            context: invocation.context,
            session_id: invocation.trace.session,
            transport: invocation.trace.transport.as_str().to_owned(),
            reported: invocation.reported,
            timestamp: invocation.created_at,
            hook_decisions: Vec::new(),
        }
    }
}

/// Why a call did not succeed.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct InvocationError {
    pub code: String,
    pub message: String,
}

/// The estimated cost of a call.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Cost")]
pub struct EstimatedCost {
    pub api_units: u64,
    #[schemars(with = "Option<Dollars>")]
    pub estimated_cost_usd: Option<f64>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum ShownInvocation {
    Recorded(Box<Invocation>),
    Detached(Box<DetachedCall>),
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct InvocationPage {
    pub invocations: Vec<Invocation>,
    pub next_cursor: NextCursor,
}
