//! The schemas of budgets and stops.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::json;

use super::{schema, schemas};
use crate::principal::PrincipalId;
use crate::spending::{AccountKind, Budget, CostBasis, Stop};
use crate::text::Line;
use crate::time::Timestamp;

schemas! {
    AccountKind => "AccountKind" |_generator| json!({
        "type": "string",
        "description": "What an account belongs to. Accounts of runs are read by policies, and have no budget.",
        "enum": ["agent", "coordinator", "run", "tenant"],
    });
    Budget => "Budget" |_generator| json!({
        "type": "object",
        "description": "How many calls may be made and what they may cost: in a day (UTC), and altogether since the limit \
            was set. At least one limit.",
        "additionalProperties": false,
        "anyOf": [
            {"required": ["calls_per_day"]}, {"required": ["cost_per_day_usd"]}, {"required": ["calls_total"]},
            {"required": ["cost_total_usd"]},
        ],
        "properties": {
            "calls_per_day": calls(),
            "cost_per_day_usd": dollars(),
            "calls_total": calls(),
            "cost_total_usd": dollars(),
            "warn_at_percent": {
                "type": "integer",
                "description": "The share of a limit at which a warning is recorded; 80 if absent.",
                "minimum": 1,
                "maximum": 100,
            },
        },
    });
    Stop => "Stop" |generator| json!({
        "type": "object",
        "description": "That calls are stopped.",
        "required": ["at", "by"],
        "properties": {
            "at": generator.subschema_for::<Timestamp>(),
            "by": generator.subschema_for::<PrincipalId>(),
            "reason": generator.subschema_for::<Line>(),
        },
    });
    CostBasis => "CostBasis" |_generator| json!({
        "type": "string",
        "description": "What a cost is based on: the service stated it; it stated no usable amount, so the estimate \
            counts; it stated more than a call can cost, so that limit counts.",
        "enum": ["stated", "estimated", "capped"],
    });
}

fn calls() -> serde_json::Value {
    json!({"type": "integer", "minimum": 0, "maximum": 1_000_000_000_000_u64})
}

fn dollars() -> serde_json::Value {
    json!({
        "type": "number",
        "description": "US dollars, with at most six decimal places.",
        "minimum": 0,
        "maximum": 1_000_000_000,
    })
}
