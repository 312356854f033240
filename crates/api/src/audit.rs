//! The audit log: reading, proofs, export.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use toolgate_model::context::ContextId;
use toolgate_model::hook::RunId;
use toolgate_model::id::EventId;
use toolgate_model::merkle::Hash;
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::text::Label;
use toolgate_model::time::Timestamp;

use crate::document::replace_content;
use crate::endpoint::endpoints;
use crate::parameters::{Cursor, Limit};
use crate::reply::NextCursor;
use crate::schemas::Schemas;

endpoints! {
    tag "audit" = "The append-only log: a Merkle tree of the events of a tenant.";

    /// Read events in order
    ///
    /// Needs `audit.read`.
    ListEvents = GET "/api/v1/audit/events" as "list_events" {
        query: EventQuery,
        reply: OK EventPage = "A page of events.",
    }

    /// Show the newest signed head
    ///
    /// Needs `audit.read`.
    ShowLogHead = GET "/api/v1/audit/head" as "show_log_head" {
        reply: OK LogHead = "The head.",
    }

    /// Prove that an event, or a smaller log, is in the log
    ///
    /// Needs `audit.read`. Takes `sequence` (and `size`) for inclusion, or `first` (and `second`) for consistency.
    Prove = GET "/api/v1/audit/proof" as "prove" {
        query: ProofQuery,
        reply: OK Proof = "The proof.",
    }

    /// Export the whole log for offline verification
    ///
    /// Needs `audit.read`. An incomplete response has no end line and does not verify.
    ExportLog = GET "/api/v1/audit/export" as "export_log" {
        reply: OK String = "The log, a line of JSON for each event and block.",
        amend: describe_export,
    }
}

fn describe_export(operation: &mut Value, _: &mut Schemas) {
    let content = json!({
        "application/x-ndjson": {"schema": {"type": "string"}},
        "text/plain": {"schema": {"type": "string", "description": "The same, if the client accepts only this type."}},
    });
    replace_content(operation, content);
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventQuery {
    /// Such as `grant.created`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Label>")]
    pub kind: Option<String>,
    /// The execution that calls belong to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// A tool, with its service.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Label>")]
    pub tool: Option<String>,
    /// The principal that caused the event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<PrincipalId>,
    /// The agent that the event concerns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<PrincipalId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intent_id: Option<ContextId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<ContextId>,
    /// Inclusive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Exclusive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Cursor>,
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProofQuery {
    /// The event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u64>,
    /// In the log of this size; the newest where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// The smaller size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<u64>,
    /// The larger size; the newest where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub second: Option<u64>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct EventPage {
    // As it was stored: no member of an event is lost on the way.
    #[schemars(with = "Vec<Event>")]
    pub events: Vec<Value>,
    pub next_cursor: NextCursor,
}

/// One line of the log.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct Event {
    /// Its position, counted from zero without gaps.
    sequence: u64,
    id: EventId,
    tenant: TenantId,
    #[schemars(rename = "type")]
    kind: Label,
    actor: PrincipalId,
    timestamp: Timestamp,
    /// The payload, which depends on the type.
    data: Map<String, Value>,
    #[schemars(skip_serializing_if = "Option::is_none", with = "PrincipalId")]
    agent_id: Option<PrincipalId>,
    #[schemars(skip_serializing_if = "Option::is_none", with = "ContextId")]
    intent_id: Option<ContextId>,
    #[schemars(skip_serializing_if = "Option::is_none", with = "ContextId")]
    plan_id: Option<ContextId>,
    #[schemars(skip_serializing_if = "Option::is_none", with = "ContextId")]
    task_id: Option<ContextId>,
    #[schemars(skip_serializing_if = "Option::is_none", with = "RunId")]
    run_id: Option<RunId>,
}

/// A signed head.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct LogHead {
    pub tenant_id: TenantId,
    pub size: u64,
    #[schemars(with = "Hash")]
    pub root_hash: String,
    pub timestamp: Timestamp,
    /// The signed note.
    pub checkpoint: String,
    /// The key that verifies it.
    pub public_key: String,
}

/// Hashes that lead to a head.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Proof {
    pub kind: ProofKind,
    pub about: Proven,
    #[schemars(with = "Vec<Hash>")]
    pub hashes: Vec<String>,
    pub head: LogHead,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum ProofKind {
    Inclusion,
    Consistency,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum Proven {
    /// An event in a log.
    Inclusion { sequence: u64, size: u64 },
    /// A log in a larger one.
    Consistency { first: u64, second: u64 },
}
