//! Service definitions: declarations of tools, and their HTTP mappings.

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
use crate::step::Step;
use crate::store::StoreOperation;
use crate::text::{Label, Line};

/// Parts of definitions with their own schema.
struct StatusRange;

/// The rate limit of a tool, with a shorter maximum period than that of a principal.
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
                "description": "The source of its tools; `connector` if absent.",
                "enum": ["connector", "host-extension", "mcp", null],
            },
            "base_url": {
                "type": ["string", "null"],
                "description": "The base URL, unless the credential has one.",
            },
            "tools": {
                "type": "object",
                "description": "The tools, by name.",
                "maxProperties": 2000,
                "propertyNames": generator.subschema_for::<ToolName>(),
                "additionalProperties": generator.subschema_for::<ToolDefinition>(),
            },
        },
        "additionalProperties": false,
    });
    Step => "Step" |_generator| json!({
        "type": "object",
        "description": "What a call of the tool is to guardians besides the call of a tool.",
        "required": ["kind"],
        "properties": {"kind": {"enum": ["a2a", "knowledge", "memory", "model"]}},
        "additionalProperties": true,
    });
    ToolDefinition => "ToolDefinition" |generator| json!({
        "type": "object",
        "description": "A tool. Undeclared properties are not assumed to be harmless.",
        "properties": {
            "title": {
                "anyOf": [generator.subschema_for::<Line>(), {"type": "null"}],
                "description": "A display name.",
            },
            "description": {"type": ["string", "null"], "description": "For people and agents.", "maxLength": 8192},
            "scope": {
                "anyOf": [generator.subschema_for::<Scope>(), {"type": "null"}],
                "description": "The scope that a grant must have; the name of the tool if absent.",
            },
            "safety_tier": {
                "anyOf": [generator.subschema_for::<SafetyTier>(), {"type": "null"}],
                "description": "`write` if absent; `exec` only with `source: host-extension`.",
            },
            "required_scopes": {
                "type": ["array", "null"],
                "description": "The scopes that the caller itself must have in addition to a grant: all of them.",
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
                "description": "The same for the result, or the name of a type for each member. Informative, not enforced.",
                "additionalProperties": true,
            },
            "idempotent": {
                "type": ["boolean", "null"],
                "description": "Whether a repeated call has no further effect.",
            },
            "estimated_cost_usd": {
                "type": ["number", "null"],
                "description": "US dollars, with at most six decimal places.",
                "minimum": 0,
                "maximum": 1_000_000_000,
            },
            "cost": {
                "type": ["object", "null"],
                "description": "Where the result states what the call has cost. The most that it can cost is reserved \
                    before the call.",
                "required": ["from"],
                "additionalProperties": false,
                "properties": {
                    "from": {
                        "type": "string",
                        "description": "A JSON pointer into the result, to US dollars as a number or a decimal text.",
                        "pattern": "^/",
                        "maxLength": 256,
                    },
                    "at_most_usd": {
                        "type": ["number", "null"],
                        "description": "The most that a call can cost; ten times `estimated_cost_usd` if absent.",
                        "minimum": 0,
                        "maximum": 1_000_000_000,
                    },
                },
            },
            "http": generator.subschema_for::<Option<HttpMapping>>(),
            "mcp": generator.subschema_for::<Option<McpMapping>>(),
            "store": {
                "type": ["string", "null"],
                "description": "What it does in the store that its service is. Only stores have it.",
                "enum": words(StoreOperation::WORDS).into_iter().map(Some).chain([None]).collect::<Vec<_>>(),
            },
            "step": generator.subschema_for::<Option<Step>>(),
            "logging": generator.subschema_for::<Option<LoggingRule>>(),
            "labels": {
                "type": ["array", "null"],
                "description": "Labels for policies and guardians, such as `private-data`.",
                "maxItems": 32,
                "items": generator.subschema_for::<Label>(),
            },
            "detach": {
                "type": ["boolean", "null"],
                "description": "Whether a call that must wait for an approver is detached.",
            },
            "timeout_ms": {
                "type": ["integer", "null"],
                "description": "The timeout of a call.",
                "minimum": 1000,
                "maximum": 120_000,
            },
        },
        "additionalProperties": false,
    });
    ToolRateLimit => "ToolRateLimit" |_generator| json!({
        "type": "object",
        "description": "How often one principal may call a tool, `burst` times at once; `burst` defaults to `requests`.",
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
        "description": "The HTTP request of a call.",
        "required": ["method", "path"],
        "properties": {
            "method": {"type": "string", "enum": ["DELETE", "GET", "HEAD", "PATCH", "POST", "PUT"]},
            "path": {
                "type": "string",
                "description": "Below the base URL, with parameters in braces: `/charges/{id}`.",
            },
            "parameters": {
                "type": ["object", "null"],
                "description": "Parameters that are not placed by the default of the method.",
                "maxProperties": 256,
                "additionalProperties": {"anyOf": [generator.subschema_for::<Place>(), generator.subschema_for::<Placement>()]},
            },
            "headers": {
                "type": ["object", "null"],
                "description": "Headers of every request.",
                "maxProperties": 64,
                "additionalProperties": {"type": "string"},
            },
            "body": {"description": "`json` if absent.", "enum": ["form", "json", null]},
            "success": {
                "description": "Status codes from 200 to 599 that count as success: 201, `2xx`, `200-204`.",
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
                "description": "The place of other parameters; with `path` there are none.",
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
        "description": "The place and name of one parameter.",
        "required": ["in"],
        "properties": {
            "in": generator.subschema_for::<Place>(),
            "name": {"type": ["string", "null"], "minLength": 1, "maxLength": 128},
            "divider": {
                "description": "The separator of the items of a list that is sent as one string; not in the body.",
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
            "default": {"description": "`log` if absent.", "enum": ["log", "hash", "omit", null]},
            "fields": {
                "type": ["object", "null"],
                "description": "By dotted path.",
                "maxProperties": 256,
                "additionalProperties": {"type": "string", "enum": ["log", "hash", "omit"]},
            },
            "inputs": {
                "type": ["boolean", "null"],
                "description": "Whether the log keeps the arguments in full, with secrets redacted.",
            },
        },
        "additionalProperties": false,
    });
    SafetyTier => "SafetyTier" |_generator| json!({
        "type": "string",
        "description": "How dangerous a tool is: no external effect, reads, changes something, runs commands.",
        "enum": words(SafetyTier::WORDS),
    });
    ApprovalNeed => "ApprovalNeed" |_generator| json!({
        "type": "string",
        "description": "Whether a call needs approval: not by the tool itself, if the mode of a session or a guardian requires it, always.",
        "enum": words(ApprovalNeed::WORDS),
    });
    Egress => "ToolEgress" |_generator| json!({
        "type": "string",
        "description": "How a tool accesses the network.",
        "enum": words(Egress::WORDS),
    });
    ReplayPolicy => "ReplayPolicy" |_generator| json!({
        "type": "string",
        "description": "The effect of a repeated call.",
        "enum": words(ReplayPolicy::WORDS),
    });
    Hint => "Hint" |_generator| json!({"type": "string", "description": "An approximate amount; advisory.", "enum": words(Hint::WORDS)});
    Attendance => "Attendance" |_generator| json!({
        "type": "string",
        "description": "Whether a call waits for an approver, or is denied at once if none is connected.",
        "enum": words(&Attendance::WORDS),
    });
    ApprovalRule => "ApprovalRule" |generator| json!({
        "type": "object",
        "description": "Who must approve a call of a tool, how long they have, and whether a decision may cover later calls.",
        "properties": {
            "approvers": {
                "type": ["integer", "null"],
                "description": "The number of required approvers; 1 if absent.",
                "minimum": 1,
                "maximum": 16,
            },
            "groups": {
                "type": ["array", "null"],
                "description": "Approvers must be in one of these groups: a principal with the scope `approver:NAME` is in the group NAME.",
                "maxItems": 64,
                "items": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"},
            },
            "separation_of_duties": {
                "type": ["boolean", "null"],
                "description": "Whether the caller cannot approve its own call, even if it is a person.",
            },
            "ttl_seconds": {
                "type": ["integer", "null"],
                "description": "How long a call waits; by default that of its session or the gate.",
                "minimum": 1,
                "maximum": 604_800,
            },
            "attendance": generator.subschema_for::<Option<Attendance>>(),
            "standing": {
                "type": ["boolean", "null"],
                "description": "Whether a decision may cover later calls; true if absent.",
            },
            "override_groups": {
                "type": ["array", "null"],
                "description": "Groups that may override the rule alone, with a reason; every approver if it is empty, \
                    nobody if absent.",
                "maxItems": 64,
                "items": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"},
            },
        },
        "additionalProperties": false,
    });
}
