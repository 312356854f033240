//! The JSON Schema of events on the wire: the closed envelope, and the payload of each type that the protocol defines.
//! For the description of the API and for tests.

use serde_json::{Value, json};

use crate::event::EventKind;
use crate::hook::RETURNED;

/// The envelope, with the payload of its type.
pub(super) fn of_event() -> Value {
    let identifier = json!({"type": "string", "minLength": 1, "maxLength": 128});
    let payloads = [
        (EventKind::AgentToolCalled.as_str(), called()),
        (RETURNED, returned()),
        (EventKind::ApprovalGranted.as_str(), approval_decided()),
        (EventKind::ApprovalOverridden.as_str(), overridden()),
        (EventKind::ApprovalRejected.as_str(), approval_decided()),
        (EventKind::AuthorizationDecided.as_str(), decided()),
        (EventKind::ToolSessionOpened.as_str(), session(json!({}))),
        (EventKind::ToolSessionClosed.as_str(), session(json!({"outcome": {"enum": ["completed", "failed"]}}))),
    ];
    let of_type = |(kind, payload): (&str, Value)| {
        json!({
            "if": {"properties": {"type": {"const": kind}}},
            "then": {"properties": {"payload": payload}}
        })
    };
    json!({
        "type": "object",
        "properties": {
            "eventId": identifier,
            "runId": identifier,
            "type": identifier,
            "payload": {"type": "object"},
            "timestamp": {"type": "string", "format": "date-time"},
            "sequence": {"type": "integer", "minimum": 0},
            "causationId": identifier
        },
        "required": ["eventId", "runId", "type", "payload", "timestamp", "sequence"],
        "additionalProperties": false,
        "allOf": payloads.into_iter().map(of_type).collect::<Vec<_>>()
    })
}

/// RFC 0064 §B.
fn called() -> Value {
    json!({
        "type": "object",
        "properties": {
            "agentId": agent_id(),
            "toolName": {"type": "string", "minLength": 1},
            "callId": {"type": "string", "minLength": 1},
            "inputs": {"type": "object"},
            "argsHash": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
            "principal": {"type": "string", "minLength": 1},
            "transport": {"enum": ["http", "mcp", "native"]}
        },
        "required": ["agentId", "toolName", "callId", "argsHash", "principal", "transport"],
        "additionalProperties": false
    })
}

/// RFC 0051: an override requires a reason.
fn overridden() -> Value {
    let mut schema = approval_decided();
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.push(json!("reason"));
    }
    schema
}

/// RFC 0051.
fn approval_decided() -> Value {
    let text = json!({"type": "string", "minLength": 1});
    json!({
        "type": "object",
        "properties": {"gateId": text, "principal": text, "reason": text},
        "required": ["gateId", "principal"],
        "additionalProperties": false
    })
}

/// RFC 0064 §B and §F: every failure has an error, and only an executed call has a duration.
fn returned() -> Value {
    json!({
        "type": "object",
        "properties": {
            "agentId": agent_id(),
            "toolName": {"type": "string", "minLength": 1},
            "callId": {"type": "string", "minLength": 1},
            "status": {"enum": ["error", "forbidden", "ok", "rate_limited"]},
            "durationMs": {"type": "integer", "minimum": 0},
            "error": {
                "type": "object",
                "properties": {"code": {"type": "string", "minLength": 1}, "message": {"type": "string"}},
                "required": ["code", "message"],
                "additionalProperties": false
            }
        },
        "required": ["agentId", "toolName", "callId", "status"],
        "additionalProperties": false,
        "if": {"properties": {"status": {"const": "error"}}},
        "then": {"required": ["error"]},
        "else": {"not": {"required": ["error"]}},
        "allOf": [{
            "if": {"properties": {"status": {"enum": ["forbidden", "rate_limited"]}}},
            "then": {"not": {"required": ["durationMs"]}}
        }]
    })
}

/// RFC 0049.
fn decided() -> Value {
    let text = json!({"type": "string", "minLength": 1});
    json!({
        "type": "object",
        "properties": {
            "principal": text, "action": text, "resource": text, "allowed": {"type": "boolean"}, "reason": text
        },
        "required": ["principal", "action", "resource", "allowed"],
        "additionalProperties": false
    })
}

/// RFC 0078 §D: identifiers only.
fn session(more: Value) -> Value {
    let mut properties =
        json!({"sessionId": {"type": "string", "minLength": 1}, "toolId": {"type": "string", "minLength": 1}});
    let mut required = vec!["sessionId", "toolId"];
    if let (Some(properties), Value::Object(more)) = (properties.as_object_mut(), more) {
        properties.extend(more);
    }
    if properties.get("outcome").is_some() {
        required.push("outcome");
    }
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

fn agent_id() -> Value {
    json!({"type": "string", "minLength": 3, "maxLength": 256})
}
