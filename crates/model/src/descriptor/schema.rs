//! The JSON Schemas of descriptors, for the description of the API and for tests.

use serde_json::{Map, Value, json};

use super::vocabulary::{ApprovalNeed, Egress, Hint, ReplayPolicy, SafetyTier, SourceKind};

/// RFC 0078 §C.
pub(super) fn of_descriptor() -> Value {
    let mut properties = shared();
    let more = json!({
        "outputSchema": {"type": "object"},
        "auth": {
            "type": "object",
            "properties": {
                "scopes": {"type": "array", "items": {"type": "string"}, "uniqueItems": true},
                "credentialRef": {"type": "boolean"}
            },
            "additionalProperties": false
        },
        "egress": words(Egress::WORDS),
        "approval": words(ApprovalNeed::WORDS),
        "replayPolicy": words(ReplayPolicy::WORDS),
        "costHint": words(Hint::WORDS),
        "latencyHint": words(Hint::WORDS)
    });
    properties.extend(more.as_object().cloned().unwrap_or_default());
    closed(properties, &["toolId", "source", "safetyTier"])
}

/// RFC 0112: fewer members, and arguments that are always an object with properties.
pub(super) fn of_compact_descriptor() -> Value {
    let mut properties = shared();
    let input = json!({
        "type": "object",
        "properties": {"type": {"const": "object"}, "properties": {"type": "object"}},
        "required": ["type", "properties"]
    });
    properties.insert("inputSchema".to_owned(), input);
    closed(properties, &["toolId", "source", "safetyTier", "inputSchema"])
}

fn shared() -> Map<String, Value> {
    let properties = json!({
        "toolId": {"type": "string", "minLength": 1},
        "source": words(SourceKind::WORDS),
        "safetyTier": words(SafetyTier::WORDS),
        "title": {"type": "string"},
        "description": {"type": "string"},
        "inputSchema": {"type": "object"}
    });
    properties.as_object().cloned().unwrap_or_default()
}

fn closed(properties: Map<String, Value>, required: &[&str]) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
        "if": {"properties": {"safetyTier": {"const": SafetyTier::Exec}}},
        "then": {"properties": {"source": {"const": SourceKind::HostExtension}}}
    })
}

fn words<T>(words: &[(&str, T)]) -> Value {
    let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    json!({"type": "string", "enum": words})
}
