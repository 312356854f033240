//! OWASP AOS 0.1.0, and AOS as Joch uses it, as JSON-RPC 2.0. The dialect parses and writes the messages; these types
//! describe them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use toolgate_model::time::Timestamp;

use crate::document::merge;
use crate::endpoint::{RequestBody, endpoints};
use crate::parameters::inline_schema;
use crate::reply::constants;
use crate::schemas::Schemas;

endpoints! {
    tag "hooks" = "OWASP AOS 0.1.0, and the Joch dialect of AOS: the runtimes of other agents ask for decisions. Not a part of OpenWOP.";

    /// Ask the gate as a guardian
    ///
    /// JSON-RPC 2.0: one message, or a batch of at most 100 that are handled in order. Needs `tools.invoke`, and
    /// `agents.act_as` for another agent than the caller; without them the decision is a deny. A caller with a valid key
    /// always gets 200 and JSON-RPC, whatever the content and its declared type. Members that AOS does not define are
    /// ignored, as AOS requires.
    AnswerHooks = POST "/v1/hooks/aos" as "answer_hooks" {
        body: HookRequest = {
            "jsonrpc": "2.0",
            "id": "question-1",
            "method": "steps/toolCallRequest",
            "params": {
                "toolCallRequest": {
                    "executionId": "execution-1",
                    "toolId": "helpdesk.tickets.create",
                    "inputs": [{"name": "subject", "value": "A refund"}]
                },
                "reasoning": "The customer may have a refund.",
                "context": {"agent": {"id": "support"}, "session": {"id": "conversation-1"}}
            }
        },
        reply: OK HookReply = "A response, or for a batch the responses in its order.",
        amend: describe_silence,
    }
}

fn describe_silence(operation: &mut Value, _: &mut Schemas) {
    let description = "There were only notifications, which have no response.";
    merge(operation, json!({"responses": {"204": {"description": description}}}));
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum HookRequest {
    Single(HookMessage),
    Batch(#[schemars(length(min = 1, max = 100))] Vec<HookMessage>),
}

impl RequestBody for HookRequest {}

/// A hook of AOS 0.1.0, a method of A2A by its old or its new name, or `ping`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("additionalProperties" = true))]
pub struct HookMessage {
    pub jsonrpc: JsonRpc,
    /// A hook needs one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "RpcId")]
    pub id: Option<Value>,
    /// Such as `steps/toolCallRequest` or `protocols/MCP`.
    pub method: String,
    /// The parameters of the method, `context` and `reasoning`.
    #[serde(default)]
    pub params: Map<String, Value>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum HookReply {
    Single(HookResponse),
    Batch(#[schemars(length(min = 1))] Vec<HookResponse>),
}

/// A decision, the response to a ping, or an error.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "HookAnswer", deny_unknown_fields)]
pub struct HookResponse {
    pub jsonrpc: JsonRpc,
    /// That of the request; `null` where it could not be read.
    #[schemars(with = "Option<RpcId>")]
    pub id: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "HookOutcome")]
    pub result: Option<HookOutcome>,
    /// What was wrong with the message. A request that cannot be decided is a deny.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "HookError")]
    pub error: Option<HookError>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum HookOutcome {
    Decision(Box<HookResult>),
    Pong(HookPong),
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub struct HookError {
    #[schemars(with = "RpcCode")]
    pub code: i64,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "HookErrorData")]
    pub data: Option<HookErrorData>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct HookErrorData {
    /// The invalid member.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub path: Option<String>,
}

/// That the gate is reachable.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct HookPong {
    pub status: Connected,
    /// Of AOS.
    pub version: String,
    pub timestamp: Timestamp,
}

/// A decision, in the terms of AOS and of Joch side by side.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct HookResult {
    pub decision: HookDecision,
    /// Why, in a sentence.
    pub message: String,
    /// The same.
    pub reason: String,
    /// The same.
    pub reasoning: String,
    /// Why, for programs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reason_code: Vec<String>,
    /// The rule behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub policy_id: Option<String>,
    /// The version of the policies that contains the rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub policy_version: Option<String>,
    pub data: HookData,
    /// The whole request with the change in it, or its changed members, as configured for the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Map<String, Value>")]
    pub modified_request: Option<Map<String, Value>>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline, deny_unknown_fields)]
pub struct HookData {
    /// The decision; `ask` if a deny only waits for an approver.
    pub effective: EffectiveDecision,
    /// The approval that it waits for, or is based on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub approval_id: Option<String>,
    /// The record of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub invocation_id: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum HookDecision {
    Allow,
    Deny,
    Modify,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum EffectiveDecision {
    Allow,
    Modify,
    Ask,
    Deny,
}

constants! {
    Connected = "connected";
    JsonRpc = "2.0";
}

struct RpcId;
struct RpcCode;

inline_schema!(RpcId, "RpcId", json!({"type": ["string", "integer"]}));
inline_schema!(RpcCode, "RpcCode", json!({"type": "integer", "enum": [-32700, -32600, -32601, -32602, -32603]}));
