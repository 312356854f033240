//! Work: intents, plans, tasks, leases, coordinators, costs.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::json;

use super::{id, schema, schemas};
use crate::credential::ServiceName;
use crate::id::{CoordinatorId, CostId, IntentId, LeaseId, PlanId, TaskId};
use crate::scope::ScopeSet;
use crate::text::MultilineText;
use crate::work::limits::{NAMES, TEXT_BYTES};
use crate::work::{
    CoordinatorKind, CoordinatorStatus, CostKind, Guardrails, IntentEventKind, IntentStatus, LeaseStatus, OnFailure,
    PlanState, TaskPriority, TaskStatus, ToolRequirement,
};

schemas! {
    CoordinatorId => "CoordinatorId" |_generator| id(CoordinatorId::PREFIX);
    CostId => "CostId" |_generator| id(CostId::PREFIX);
    IntentId => "IntentId" |_generator| id(IntentId::PREFIX);
    LeaseId => "LeaseId" |_generator| id(LeaseId::PREFIX);
    PlanId => "PlanId" |_generator| id(PlanId::PREFIX);
    TaskId => "TaskId" |_generator| id(TaskId::PREFIX);
    MultilineText => "Text" |_generator| json!({
        "type": "string",
        "description": "Printable text of several lines, at most 8 KiB.",
        "maxLength": TEXT_BYTES,
        "pattern": "^[^\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u2069\\ufeff]*$",
    });
    CoordinatorKind => "CoordinatorType" |_generator| json!({"type": "string", "enum": CoordinatorKind::ALL});
    CoordinatorStatus => "CoordinatorStatus" |_generator| json!({
        "type": "string",
        "description": "`unresponsive` if its heartbeats stopped: its guardrails still apply.",
        "enum": CoordinatorStatus::ALL,
    });
    CostKind => "CostType" |_generator| json!({
        "type": "string",
        "description": "`external_tool` is a call through the gate.",
        "enum": CostKind::ALL,
    });
    IntentEventKind => "IntentEventType" |_generator| json!({
        "type": "string",
        "description": "The types that the Python client of OpenIntent knows.",
        "enum": IntentEventKind::ALL,
    });
    IntentStatus => "IntentStatus" |_generator| json!({"type": "string", "enum": IntentStatus::ALL});
    LeaseStatus => "LeaseStatus" |_generator| json!({"type": "string", "enum": LeaseStatus::ALL});
    OnFailure => "OnFailure" |_generator| json!({
        "type": "string",
        "description": "What the coordinator is to do when a task fails. The gate keeps it for the coordinator.",
        "enum": OnFailure::ALL,
    });
    PlanState => "PlanState" |_generator| json!({"type": "string", "enum": PlanState::ALL});
    TaskPriority => "TaskPriority" |_generator| json!({"type": "string", "enum": TaskPriority::ALL});
    TaskStatus => "TaskStatus" |_generator| json!({"type": "string", "enum": TaskStatus::ALL});
    ToolRequirement => "ToolRequirement" |generator| json!({
        "type": "object",
        "description": "Access to a service that a task needs.",
        "required": ["service"],
        "properties": {
            "service": generator.subschema_for::<ServiceName>(),
            "scopes": generator.subschema_for::<ScopeSet>(),
            "required": {
                "type": "boolean",
                "description": "Whether the task cannot be claimed without it; default: true.",
            },
        },
        "additionalProperties": false,
    });
    Guardrails => "Guardrails" |generator| {
        let services = json!({"type": ["array", "null"], "maxItems": NAMES, "items": generator.subschema_for::<ServiceName>()});
        let dollars = json!({
            "type": ["number", "null"],
            "description": "US dollars, with at most six decimal places.",
            "minimum": 0,
            "maximum": 1_000_000_000,
        });
        let small = json!({"type": ["integer", "null"], "minimum": 0, "maximum": u32::MAX});
        let only = |value: serde_json::Value| {
            json!({"anyOf": [{"const": value}, {"type": "null"}], "description": "Not enforced, so no other value is accepted."})
        };
        let nothing = json!({"type": "null", "description": "Not enforced, so no value is accepted."});
        json!({
            "type": "object",
            "description": "What bounds a coordinator and everything that is delegated below it. An absent member bounds nothing.",
            "properties": {
                "max_tool_invocations": {"type": ["integer", "null"], "minimum": 0, "maximum": i64::MAX},
                "max_tool_cost_usd": dollars.clone(),
                "max_budget_usd": dollars,
                "allowed_services": services.clone(),
                "denied_services": services,
                "require_approval_for": {
                    "type": ["array", "null"],
                    "description": "Tools, as `SERVICE.TOOL` or `SERVICE.SCOPE`.",
                    "maxItems": NAMES,
                    "items": generator.subschema_for::<crate::scope::Scope>(),
                },
                "auto_delegate": {
                    "type": ["boolean", "null"],
                    "description": "Whether assigning a task delegates the grants that it requires.",
                },
                "max_tasks_per_plan": small.clone(),
                "max_delegation_depth": small.clone(),
                "max_concurrent_tasks": small,
                "warn_at_percentage": only(json!(80)),
                "on_exceed": only(json!("pause_and_escalate")),
                "max_plan_versions": only(json!(5)),
                "allowed_capabilities": nothing.clone(),
                "max_plan_duration_hours": nothing.clone(),
                "max_task_wait_hours": nothing.clone(),
                "checkpoint_timeout_hours": only(json!(24)),
                "require_progress_every_minutes": nothing.clone(),
                "requires_plan_review": only(json!(false)),
                "requires_replan_review": only(json!(false)),
                "auto_escalate_after_failures": only(json!(3)),
                "require_human_for_capabilities": {"type": ["array", "null"], "maxItems": 0, "items": {"type": "string"}},
                "max_working_memory_per_task": nothing.clone(),
                "max_episodic_memory_per_agent": nothing.clone(),
                "allowed_semantic_namespaces": nothing.clone(),
                "denied_semantic_namespaces": nothing,
                "memory_archive_required": only(json!(true)),
            },
            "additionalProperties": false,
        })
    };
}
