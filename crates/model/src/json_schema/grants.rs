//! Grants: their context and constraints.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::json;

use super::{schema, schemas};
use crate::constraint::Constraints;
use crate::context::{ContextId, GrantContext};
use crate::grant::{DelegationDepth, GrantStatus};

/// Parts of [`Constraints`] with their own schema.
struct Values;
struct ParameterRule;
struct ParameterDenial;
struct Pattern;

schemas! {
    GrantStatus => "GrantStatus" |_generator| json!({"type": "string", "enum": GrantStatus::ALL});
    DelegationDepth => "Depth" |_generator| json!({
        "type": ["integer", "null"],
        "description": "How many levels further it may be delegated; `null` is unlimited.",
        "minimum": 0,
        "maximum": u32::MAX,
    });
    GrantContext => "Context" |generator| json!({
        "type": "object",
        "description": "The context that a grant is bound to. An absent part binds nothing.",
        "properties": {
            "intent_id": generator.subschema_for::<Option<ContextId>>(),
            "plan_id": generator.subschema_for::<Option<ContextId>>(),
            "task_id": generator.subschema_for::<Option<ContextId>>(),
        },
        "additionalProperties": false,
    });
    Constraints => "Constraints" |generator| json!({
        "type": "object",
        "description": "Limits. `NAME_max` and `NAME_min` are short for the same inside `allowed_parameters`.",
        "properties": {
            "max_invocations_per_hour": {"type": ["integer", "null"], "minimum": 0, "maximum": 1_000_000_000},
            "max_cost_per_invocation": {
                "type": ["number", "null"],
                "description": "US dollars, with at most six decimal places.",
                "minimum": 0,
                "maximum": 1_000_000_000,
            },
            "allowed_parameters": {
                "type": ["object", "null"],
                "description": "What parameters must match, by dotted path.",
                "maxProperties": 256,
                "patternProperties": {
                    "._(max|min)$": {"anyOf": [
                        {"type": "number"},
                        generator.subschema_for::<Values>(),
                        generator.subschema_for::<ParameterRule>(),
                    ]},
                },
                "additionalProperties": {
                    "anyOf": [generator.subschema_for::<Values>(), generator.subschema_for::<ParameterRule>()],
                },
            },
            "denied_parameters": {
                "type": ["object", "null"],
                "description": "What parameters must not match, by dotted path.",
                "maxProperties": 256,
                "additionalProperties": {
                    "anyOf": [generator.subschema_for::<Values>(), generator.subschema_for::<ParameterDenial>()],
                },
            },
            "ip_allowlist": {
                "type": ["array", "null"],
                "description": "Networks (CIDR) and addresses from which the agent may call.",
                "maxItems": 1024,
                "items": {"type": "string"},
            },
            "allowed_hosts": {
                "type": ["array", "null"],
                "description": "Hosts that a call may reach, including their subdomains.",
                "maxItems": 1024,
                "items": {"type": "string"},
            },
        },
        "patternProperties": {"^(?!max_).+_(max|min)$": {"type": "number"}},
        "additionalProperties": false,
    });
    Values => "Values" |_generator| json!({
        "type": "array",
        "description": "Values, compared as JSON.",
        "maxItems": 1024,
        "items": {},
    });
    ParameterRule => "ParameterRule" |generator| json!({
        "type": "object",
        "description": "What one parameter must match. All criteria must hold.",
        "minProperties": 1,
        "properties": {
            "values": generator.subschema_for::<Values>(),
            "min": {"type": "number"},
            "max": {"type": "number"},
            "pattern": generator.subschema_for::<Pattern>(),
            "patterns": {"type": "array", "maxItems": 1024, "items": generator.subschema_for::<Pattern>()},
            "required": {"type": "boolean"},
        },
        "additionalProperties": false,
    });
    ParameterDenial => "ParameterDenial" |generator| json!({
        "type": "object",
        "description": "What one parameter must not match. One match is enough to deny.",
        "minProperties": 1,
        "properties": {
            "values": generator.subschema_for::<Values>(),
            "pattern": generator.subschema_for::<Pattern>(),
            "patterns": {"type": "array", "maxItems": 1024, "items": generator.subschema_for::<Pattern>()},
            "any": {"type": "boolean", "enum": [true], "description": "The parameter must be absent."},
        },
        "additionalProperties": false,
    });
    Pattern => "Pattern" |_generator| json!({
        "type": "string",
        "description": "A regular expression without look-around that must match the whole string.",
        "maxLength": 512,
    });
}
