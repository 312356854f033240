//! Decisions of approvers, and decisions about calls that a client executes itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolgate_model::approval::{CallLabel, Category, Channel, Decision, RequestedReach};
use toolgate_model::id::{ApprovalId, InvocationId, StandingApprovalId};
use toolgate_model::invocation::IdempotencyKey;
use toolgate_model::principal::PrincipalId;

use super::CallSession;
use crate::endpoint::RequestBody;
use crate::reading::optional_object;

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DecisionRequest {
    pub decision: Decision,
    /// `once` where absent. A denial always covers only this call.
    // Parsed by the server, whose refusal shows all forms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<ApprovalScope>")]
    pub scope: Option<Value>,
    /// Shown to the caller. At most 2000 bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2000), regex(pattern = r"^[^\u0000-\u0008\u000b-\u001f\u007f-\u009f]*$"))]
    pub reason: Option<String>,
    /// The reply to the question of a question tool; ignored for any other tool. At most 16384 bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16384), regex(pattern = r"^[^\u0000-\u0008\u000b-\u001f\u007f-\u009f]*$"))]
    pub answer: Option<String>,
    /// The caller's name for this decision: sent again, it has the same response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<IdempotencyKey>,
    /// How the approver decided; `http` where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<Channel>,
}

impl RequestBody for DecisionRequest {}

/// What an approval covers: this call, all later calls of this tool by this agent, or those whose commands begin with
/// these words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, deny_unknown_fields)]
pub enum ApprovalScope {
    Word(ScopeWord),
    Always { always: Extent },
    AlwaysPrefix { always_prefix: PrefixExtent },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum ScopeWord {
    Once,
    Always,
}

/// The extent of a standing approval.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Extent {
    /// The session of the call where absent; `user` for a call without a session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reach: Option<RequestedReach>,
    /// Without end where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub expires_in_seconds: Option<u32>,
    /// Without limit where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_uses: Option<u32>,
}

/// The words that commands must begin with, and the extent of the standing approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PrefixExtent {
    #[schemars(extend("examples" = ["cargo test"]))]
    pub prefix: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reach: Option<RequestedReach>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub expires_in_seconds: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_uses: Option<u32>,
}

/// A call that the client executes itself.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ExternalCall")]
pub struct ExternalCallRequest {
    /// The program and its tool.
    #[schemars(regex(pattern = r"^[A-Za-z0-9_:@-]{1,128}\.[A-Za-z0-9._:@-]{1,128}$"))]
    pub tool: String,
    pub category: Category,
    pub arguments: Map<String, Value>,
    #[serde(default, deserialize_with = "optional_object", skip_serializing_if = "Option::is_none")]
    pub session: Option<CallSession>,
    /// How long to wait for an approver.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 604_800))]
    pub ttl_seconds: Option<u32>,
    /// The caller's name for the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_id: Option<CallLabel>,
    /// The caller where absent; another principal needs `agents.act_as`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<PrincipalId>,
    /// Whether the client makes the call with the `arguments` of the decision, if it has any. Without this, a call that
    /// is allowed only with other arguments is denied.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub takes_changes: bool,
}

impl RequestBody for ExternalCallRequest {}

/// Whether a call may be made.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ExternalDecision {
    pub decision: ExternalVerdict,
    pub reason: String,
    pub source: DecisionSource,
    pub approval_id: Option<ApprovalId>,
    pub standing_approval_ids: Vec<StandingApprovalId>,
    /// The record of the call.
    pub invocation_id: Option<InvocationId>,
    /// The arguments to use, if policies or guardians modified them; only for a client that takes changes.
    #[serde(default)]
    #[schemars(with = "Option<Map<String, Value>>")]
    pub arguments: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum ExternalVerdict {
    Allow,
    Deny,
}

/// What decided: the mode of the session, standing approvals, an approver, the lack of a decision in time, or a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum DecisionSource {
    Mode,
    Standing,
    Person,
    Nobody,
    Policy,
}
