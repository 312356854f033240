//! Calls: the request, the result, and the steps in between.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use toolgate_model::approval::CallLabel;
use toolgate_model::context::ContextId;
use toolgate_model::hook::RunId;
use toolgate_model::id::{ApprovalId, GrantId, InvocationId, SessionId, StandingApprovalId};
use toolgate_model::invocation::{CallCost, IdempotencyKey, InvocationStatus};
use toolgate_model::principal::PrincipalId;
use toolgate_model::service::{ServiceVersion, ToolName};
use toolgate_model::time::Timestamp;

use crate::approvals::{Approval, CallSession};
use crate::detached::DetachedCall;
use crate::endpoint::RequestBody;
use crate::error::ErrorBody;
use crate::invocations::EstimatedCost;
use crate::parameters::inline_schema;
use crate::reading::optional_object;
use crate::reply::{ErrorCode, constants};

/// A call, with `tool` or `tool_name`.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CallRequest {
    /// `SERVICE.TOOL`, or a scope that only one tool has.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<ToolName>")]
    pub tool: Option<String>,
    /// The same as `tool`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<ToolName>")]
    pub tool_name: Option<String>,
    /// Of the service's definition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<ServiceVersion>,
    /// Chosen by the gate where absent.
    // A text that is not an id names no grant.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<GrantId>")]
    pub grant_id: Option<String>,
    /// The caller where absent; another principal needs `agents.act_as`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<PrincipalId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Map<String, Value>>,
    /// The caller's name for the call, which is then executed once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<IdempotencyKey>,
    /// The conversation that it belongs to, whose mode decides whether it needs an approval.
    #[serde(default, deserialize_with = "optional_object", skip_serializing_if = "Option::is_none")]
    pub approval_session: Option<CallSession>,
    /// How long it waits for an approver; never longer than its tool allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 604_800))]
    pub approval_ttl_seconds: Option<u32>,
    /// The caller's name for the call, shown to approvers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_id: Option<CallLabel>,
    /// Why the agent makes the call, for policies and guardians; at most 8 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 8192))]
    pub reasoning: Option<String>,
    #[serde(default, deserialize_with = "optional_object", skip_serializing_if = "Option::is_none")]
    pub context: Option<CallContext>,
}

impl RequestBody for CallRequest {}

/// The intent, plan, task and run of a call.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CallContext {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intent_id: Option<ContextId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan_id: Option<ContextId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<ContextId>,
    /// The run; a new one if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The tool session that it is part of.
    // A text that is not an id names no session.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<SessionId>")]
    pub session_id: Option<String>,
    /// The same as `agent_id` of the call, which RFC-0014 repeats here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<PrincipalId>,
}

/// A call that succeeded.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "CallAnswer")]
pub struct SucceededCall {
    pub invocation_id: InvocationId,
    #[schemars(with = "Success")]
    pub status: InvocationStatus,
    /// The service and the tool.
    pub tool_name: String,
    /// The grant that was used.
    pub grant_id: Option<GrantId>,
    /// What the service returned.
    pub result: Value,
    pub error: (),
    #[schemars(with = "EstimatedCost")]
    pub cost: CallCost,
    pub duration_ms: u64,
    pub timestamp: Timestamp,
    /// The service returned more than the limit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schemars(with = "Yes")]
    pub truncated: bool,
    /// The response of an earlier call with the same idempotency key.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schemars(with = "Yes")]
    pub replayed: bool,
}

/// A call that was admitted and did not succeed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FailedCall {
    pub invocation_id: InvocationId,
    #[schemars(with = "Failure")]
    pub status: InvocationStatus,
    /// The service and the tool.
    pub tool_name: String,
    /// The grant that was used.
    pub grant_id: Option<GrantId>,
    /// What the service returned.
    pub result: Value,
    pub error: CallFailure,
    #[schemars(with = "EstimatedCost")]
    pub cost: CallCost,
    pub duration_ms: u64,
    pub timestamp: Timestamp,
    /// The service returned more than the limit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schemars(with = "Yes")]
    pub truncated: bool,
    /// The response of an earlier call with the same idempotency key.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schemars(with = "Yes")]
    pub replayed: bool,
    pub message: String,
}

/// The code, and details.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct CallFailure {
    pub code: ErrorCode,
    pub message: String,
    pub grant_id: Option<GrantId>,
    #[serde(flatten)]
    pub details: Map<String, Value>,
}

/// The body of a response to a call that has ended.
// The order matters to the reader: only an error has `errors`, and only a failed call has an object as `error`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum CallResponse {
    Refused(ErrorBody),
    Failed(FailedCall),
    Succeeded(SucceededCall),
}

/// The progress of a call. The last step is `answered`, with the status and the body of the response without steps.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum CallStep {
    /// It waits for an approver.
    Asked { approval: AskedApproval },
    /// Standing approvals cover it.
    Covered { standing_approval_ids: Vec<StandingApprovalId> },
    /// Policies or guardians modified it.
    Modified {
        #[schemars(with = "CallParameters")]
        parameters: Value,
        reason: Option<String>,
        policy_id: Option<String>,
        policy_version: Option<String>,
    },
    /// It is about to be executed.
    Admitted { invocation_id: InvocationId },
    /// The server that executes it says how far it is.
    Progress { progress: f64, total: Option<f64>, message: Option<String> },
    /// The state of a detached call has changed.
    State { call: Box<DetachedCall> },
    /// Nothing has changed; sent now and then.
    Waiting,
    /// The gate stops; another one continues the detached call.
    Interrupted,
    Answered {
        #[schemars(range(min = 200, max = 599))]
        status: u16,
        body: Box<CallResponse>,
    },
}

/// The approval; only its id and tool if the rest could not be read.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum AskedApproval {
    Whole(Box<Approval>),
    Brief(BriefApproval),
}

/// An approval whose details could not be read.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct BriefApproval {
    pub id: ApprovalId,
    pub tool: String,
}

/// The parameters of a call.
// A named type, because openapi-python-client does not support such an object inside a variant.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct CallParameters(Map<String, Value>);

constants! {
    Success = "success";
    Failure = "error";
}

struct Yes;

inline_schema!(Yes, "Yes", json!({"type": "boolean", "enum": [true]}));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_endings_of_a_call_are_told_apart() {
        let id = "inv_01KGYB3881EC1R60R30C1G60R3";
        let ended = |status: &str, error: Value| {
            json!({
                "invocation_id": id, "status": status, "tool_name": "a.b", "grant_id": null, "result": [1], "error": error,
                "cost": {"api_units": 1, "estimated_cost_usd": null}, "duration_ms": 3, "message": "no",
                "timestamp": "2026-03-08T10:00:00.000+00:00",
            })
        };
        let read = |body: &Value| serde_json::from_value::<CallResponse>(body.clone()).unwrap();
        assert!(matches!(read(&ended("success", Value::Null)), CallResponse::Succeeded(_)));
        let failed = ended("error", json!({"code": "X", "message": "no", "grant_id": null, "http_status": 500}));
        assert!(matches!(read(&failed), CallResponse::Failed(_)));
        assert_eq!(json!(read(&failed)), failed);
        let refused = json!({
            "status": "denied", "message": "no", "errors": ["no"], "error": {"code": "X", "message": "no"},
            "invocation_id": id,
        });
        assert!(matches!(read(&refused), CallResponse::Refused(_)));
        assert_eq!(json!(read(&refused)), refused);
    }
}
