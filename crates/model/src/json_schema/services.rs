//! Service definitions: what a tool declares, and how a call of it becomes a request.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::json;

use super::{schema, schemas, words};
use crate::approval::{ApprovalRule, Attendance};
use crate::credential::ServiceName;
use crate::descriptor::{ApprovalNeed, Egress, Hint, ReplayPolicy, SafetyTier};
use crate::principal_scope::RequiredScope;
use crate::scope::Scope;
use crate::service::{
    HttpMapping, LoggingRule, McpMapping, McpMethod, Place, Placement, ServiceDefinition, ServiceVersion,
    ToolDefinition, ToolName,
};
use crate::text::{Label, Line};

/// Parts of definitions that have a schema of their own.
struct StatusRange;

/// The rate limit of a tool, whose period is shorter than that of a principal may be.
pub struct ToolRateLimit;

schemas! {
    ServiceDefinition => "ServiceDefinition" |generator| json!({
        "type": "object",
        "description": "One version of a service. `null` is the same as absent.",
        "required": ["service", "version", "tools"],
        "properties": {
            "service": generator.subschema_for::<ServiceName>(),
            "version": generator.subschema_for::<ServiceVersion>(),
            "description": {"type": ["string", "null"], "description": "For people and agents.", "maxLength": 8192},
            "source": {
                "description": "What backs its tools; `connector` where absent.",
                "enum": ["connector", "host-extension", "mcp", null],
            },
            "base_url": {
                "type": ["string", "null"],
                "description": "Where it is, unless the credential says otherwise.",
            },
            "tools": {
                "type": "object",
                "description": "What can be called, by name.",
                "maxProperties": 2000,
                "propertyNames": generator.subschema_for::<ToolName>(),
                "additionalProperties": generator.subschema_for::<ToolDefinition>(),
            },
        },
        "additionalProperties": false,
    });
    ToolDefinition => "ToolDefinition" |generator| json!({
        "type": "object",
        "description": "Something that can be called. What it does not declare is not taken to be harmless.",
        "properties": {
            "title": {
                "anyOf": [generator.subschema_for::<Line>(), {"type": "null"}],
                "description": "What people call it.",
            },
            "description": {"type": ["string", "null"], "description": "For people and agents.", "maxLength": 8192},
            "scope": {
                "anyOf": [generator.subschema_for::<Scope>(), {"type": "null"}],
                "description": "What a grant must hold; the tool's name where absent.",
            },
            "safety_tier": {
                "anyOf": [generator.subschema_for::<SafetyTier>(), {"type": "null"}],
                "description": "`write` where absent; `exec` only with `source: host-extension`.",
            },
            "required_scopes": {
                "type": ["array", "null"],
                "description": "What the caller itself must hold, besides a grant: all of them.",
                "maxItems": 64,
                "items": generator.subschema_for::<RequiredScope>(),
            },
            "approval": generator.subschema_for::<Option<ApprovalNeed>>(),
            "approval_rule": generator.subschema_for::<Option<ApprovalRule>>(),
            "egress": generator.subschema_for::<Option<Egress>>(),
            "replay_policy": generator.subschema_for::<Option<ReplayPolicy>>(),
            "cost_hint": generator.subschema_for::<Option<Hint>>(),
            "latency_hint": generator.subschema_for::<Option<Hint>>(),
            "rate_limit": generator.subschema_for::<Option<ToolRateLimit>>(),
            "parameters": {
                "type": ["object", "null"],
                "description": "JSON Schema 2020-12, or a schema with a boolean `required` for each parameter.",
                "additionalProperties": true,
            },
            "returns": {
                "type": ["object", "null"],
                "description": "The same for the answer, or the name of a type for each member. Told, not checked.",
                "additionalProperties": true,
            },
            "idempotent": {
                "type": ["boolean", "null"],
                "description": "Whether calling twice does no more than calling once.",
            },
            "estimated_cost_usd": {
                "type": ["number", "null"],
                "description": "US dollars, to at most six decimals.",
                "minimum": 0,
                "maximum": 1_000_000_000,
            },
            "http": generator.subschema_for::<Option<HttpMapping>>(),
            "mcp": generator.subschema_for::<Option<McpMapping>>(),
            "logging": generator.subschema_for::<Option<LoggingRule>>(),
            "labels": {
                "type": ["array", "null"],
                "description": "What policies and guardians know it by, such as `private-data`.",
                "maxItems": 32,
                "items": generator.subschema_for::<Label>(),
            },
            "detach": {
                "type": ["boolean", "null"],
                "description": "Whether a call that must wait for an approver is detached.",
            },
            "timeout_ms": {
                "type": ["integer", "null"],
                "description": "How long one call may take.",
                "minimum": 1000,
                "maximum": 120_000,
            },
        },
        "additionalProperties": false,
    });
    ToolRateLimit => "ToolRateLimit" |_generator| json!({
        "type": "object",
        "description": "How often one principal may call a tool, `burst` times at once; `requests` where it is left out.",
        "required": ["requests", "per_seconds"],
        "properties": {
            "requests": {"type": "integer", "minimum": 1, "maximum": 1_000_000},
            "per_seconds": {"type": "integer", "minimum": 1, "maximum": 86_400},
            "burst": {"type": ["integer", "null"], "minimum": 1, "maximum": 1_000_000},
        },
        "additionalProperties": false,
    });
    HttpMapping => "HttpMapping" |generator| json!({
        "type": "object",
        "description": "How a call becomes a request.",
        "required": ["method", "path"],
        "properties": {
            "method": {"type": "string", "enum": ["DELETE", "GET", "HEAD", "PATCH", "POST", "PUT"]},
            "path": {
                "type": "string",
                "description": "Below the base URL, with parameters in braces: `/charges/{id}`.",
            },
            "parameters": {
                "type": ["object", "null"],
                "description": "Where parameters go that do not go where the method says.",
                "maxProperties": 256,
                "additionalProperties": {"anyOf": [generator.subschema_for::<Place>(), generator.subschema_for::<Placement>()]},
            },
            "headers": {
                "type": ["object", "null"],
                "description": "Headers that every request carries.",
                "maxProperties": 64,
                "additionalProperties": {"type": "string"},
            },
            "body": {"description": "`json` where absent.", "enum": ["form", "json", null]},
            "success": {
                "description": "Status codes from 200 to 599 that are a success: 201, `2xx`, `200-204`.",
                "anyOf": [
                    generator.subschema_for::<StatusRange>(),
                    {
                        "type": "array",
                        "minItems": 1,
                        "maxItems": 64,
                        "items": generator.subschema_for::<StatusRange>(),
                    },
                    {"type": "null"},
                ],
            },
            "default_in": {
                "description": "Where other parameters go; `path` is nowhere.",
                "enum": ["body", "path", "query", null],
            },
        },
        "additionalProperties": false,
    });
    McpMapping => "McpMapping" |_generator| json!({
        "type": "object",
        "description": "How a call becomes a request to a mounted MCP server. Only with `source: mcp`, and then required.",
        "required": ["method"],
        "properties": {
            "method": {"type": "string", "enum": words(McpMethod::WORDS)},
            "name": {
                "type": ["string", "null"],
                "description": "The name of the tool at the server; for `tools/call`, which needs it.",
                "minLength": 1,
                "maxLength": 256,
            },
            "definition_hash": {
                "type": ["string", "null"],
                "description": "The hash of the accepted definition; calls are refused if the server lists another one.",
                "pattern": "^sha256:[0-9a-f]{64}$",
            },
            "hidden_characters": {
                "description": "What happens to characters of the result that a reader cannot see; `show` where absent.",
                "enum": ["show", "strip", "keep", null],
            },
        },
        "additionalProperties": false,
    });
    Place => "Place" |_generator| json!({"type": "string", "enum": ["body", "header", "path", "query"]});
    Placement => "Placement" |generator| json!({
        "type": "object",
        "description": "Where one parameter goes, under which name.",
        "required": ["in"],
        "properties": {
            "in": generator.subschema_for::<Place>(),
            "name": {"type": ["string", "null"], "minLength": 1, "maxLength": 128},
            "divider": {
                "description": "What divides the items of a list that is sent as one text; not in the body.",
                "enum": [",", " ", "|", null],
            },
        },
        "additionalProperties": false,
    });
    StatusRange => "StatusRange" |_generator| json!({
        "type": ["integer", "string"],
        "minimum": 200,
        "maximum": 599,
        "pattern": "^([2-5]xx|[2-5][0-9]{2}(-[2-5][0-9]{2})?)$",
    });
    LoggingRule => "LoggingRule" |_generator| json!({
        "type": "object",
        "description": "What the log keeps of the parameters.",
        "properties": {
            "default": {"description": "`log` where absent.", "enum": ["log", "hash", "omit", null]},
            "fields": {
                "type": ["object", "null"],
                "description": "By dotted path.",
                "maxProperties": 256,
                "additionalProperties": {"type": "string", "enum": ["log", "hash", "omit"]},
            },
            "inputs": {
                "type": ["boolean", "null"],
                "description": "Whether the log keeps the arguments in full, secrets taken out.",
            },
        },
        "additionalProperties": false,
    });
    SafetyTier => "SafetyTier" |_generator| json!({
        "type": "string",
        "description": "How dangerous a tool is: no effect outside, reads, changes something, runs commands.",
        "enum": words(SafetyTier::WORDS),
    });
    ApprovalNeed => "ApprovalNeed" |_generator| json!({
        "type": "string",
        "description": "Whether a person must approve a call: never of itself, where the mode of a session or a guardian says so, always.",
        "enum": words(ApprovalNeed::WORDS),
    });
    Egress => "ToolEgress" |_generator| json!({
        "type": "string",
        "description": "How a tool reaches the network.",
        "enum": words(Egress::WORDS),
    });
    ReplayPolicy => "ReplayPolicy" |_generator| json!({
        "type": "string",
        "description": "What happens when a call is made again.",
        "enum": words(ReplayPolicy::WORDS),
    });
    Hint => "Hint" |_generator| json!({"type": "string", "description": "Roughly how much; advice.", "enum": words(Hint::WORDS)});
    Attendance => "Attendance" |_generator| json!({
        "type": "string",
        "description": "Whether a call waits for whoever comes, or is denied at once where nobody follows the approvals just then.",
        "enum": words(&Attendance::WORDS),
    });
    ApprovalRule => "ApprovalRule" |generator| json!({
        "type": "object",
        "description": "Who must approve a call of a tool, how long they have, and whether a decision may cover later calls.",
        "properties": {
            "approvers": {
                "type": ["integer", "null"],
                "description": "How many people must approve; 1 where absent.",
                "minimum": 1,
                "maximum": 16,
            },
            "groups": {
                "type": ["array", "null"],
                "description": "Groups of which they must be: a principal with the scope `approver:NAME` is of the group NAME.",
                "maxItems": 64,
                "items": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"},
            },
            "separation_of_duties": {
                "type": ["boolean", "null"],
                "description": "Whether the caller cannot approve its own call, even if it is a person.",
            },
            "ttl_seconds": {
                "type": ["integer", "null"],
                "description": "How long a call waits; else as its session or the gate says.",
                "minimum": 1,
                "maximum": 604_800,
            },
            "attendance": generator.subschema_for::<Option<Attendance>>(),
            "standing": {
                "type": ["boolean", "null"],
                "description": "Whether a decision may cover later calls; it may where absent.",
            },
            "override_groups": {
                "type": ["array", "null"],
                "description": "Groups that may override the rule alone, with a reason; every approver where it is empty, \
                    nobody where absent.",
                "maxItems": 64,
                "items": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"},
            },
        },
        "additionalProperties": false,
    });
}
