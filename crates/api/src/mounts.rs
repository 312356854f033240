//! Mounted MCP servers.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolgate_model::credential::ServiceName;
use toolgate_model::id::{CredentialId, VaultId};
use toolgate_model::service::ToolName;
use toolgate_model::time::Timestamp;

use crate::endpoint::{RequestBody, endpoints};
use crate::reply::Removed;

endpoints! {
    tag "mounts" = "MCP servers behind the gate. What a server offers can be used after a person has accepted it.";

    /// Mount an MCP server
    ///
    /// Inspects the server and stores what it offers, quarantined. Needs `tools.manage` and `agents.act_as`.
    CreateMount = POST "/api/v1/mounts" as "create_mount" {
        body: MountRequest = {"name": "files", "url": "https://files.example.com/mcp"},
        reply: CREATED Mount = "The mount.",
        errors: [BadGateway = "The server could not be inspected; the message says why."],
    }

    /// Add a peer agent
    ///
    /// Fetches its A2A card and stores it, quarantined. From then on it is a mount: it is reviewed, accepted, inspected and
    /// removed as one. Needs `tools.manage` and `agents.act_as`.
    CreatePeer = POST "/api/v1/peers" as "create_peer" {
        body: PeerRequest = {"name": "travel", "url": "https://travel.example.com"},
        reply: CREATED Mount = "The peer, as a mount without tools.",
        errors: [BadGateway = "The card could not be fetched or used; the message says why."],
    }

    /// List mounts
    ///
    /// Needs `tools.manage`.
    ListMounts = GET "/api/v1/mounts" as "list_mounts" {
        reply: OK MountList = "All mounts of the tenant.",
    }

    /// Show a mount with its tools
    ///
    /// Needs `tools.manage`.
    ShowMount = GET "/api/v1/mounts/{mount}" as "show_mount" {
        path: ServiceName,
        reply: OK Mount = "The mount.",
    }

    /// Remove a mount
    ///
    /// Its tools can then not be called any more; its credentials and grants stay. Needs `tools.manage` and
    /// `agents.act_as`.
    RemoveMount = DELETE "/api/v1/mounts/{mount}" as "remove_mount" {
        path: ServiceName,
        reply: OK RemovedMount = "What was removed.",
    }

    /// Inspect the server of a mount again
    ///
    /// What has changed is quarantined. Needs `tools.manage` and `agents.act_as`.
    CheckMount = POST "/api/v1/mounts/{mount}/check" as "check_mount" {
        path: ServiceName,
        reply: OK CheckedMount = "What has changed.",
        errors: [BadGateway = "The server could not be inspected; the message says why."],
    }

    /// Show what waits for a decision
    ///
    /// Each item has the hash that a decision names, the definitions to compare, and what the lint found. Needs
    /// `tools.manage`.
    ReviewMount = GET "/api/v1/mounts/{mount}/review" as "review_mount" {
        path: ServiceName,
        reply: OK MountReview = "The quarantined items.",
    }

    /// Accept what was reviewed
    ///
    /// Each item is named with the hash that was shown; if it is another one now, nothing is accepted. Needs
    /// `tools.manage` and `agents.act_as`.
    AcceptMount = POST "/api/v1/mounts/{mount}/accept" as "accept_mount" {
        path: ServiceName,
        body: AcceptRequest = {
            "server": "sha256:0000000000000000000000000000000000000000000000000000000000000000",
            "tools": {"read_file": "sha256:0000000000000000000000000000000000000000000000000000000000000000"}
        },
        reply: OK Mount = "The mount.",
    }

    /// Reject tools that were reviewed
    ///
    /// They stay hidden until their definition changes. Needs `tools.manage` and `agents.act_as`.
    RejectMount = POST "/api/v1/mounts/{mount}/reject" as "reject_mount" {
        path: ServiceName,
        body: RejectRequest = {
            "tools": {"read_file": "sha256:0000000000000000000000000000000000000000000000000000000000000000"}
        },
        reply: OK Mount = "The mount.",
    }
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MountRequest {
    /// The service that its tools belong to.
    pub name: ServiceName,
    /// The endpoint of a server over streamable HTTP; absent for a process that the operator has configured under the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Whether hints of the server may lower the safety tier of a tool. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trusted: Option<bool>,
    /// What happens to characters that a reader cannot see, in definitions and results. Default: `show`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hidden_characters: Option<HiddenCharacters>,
    /// The credential that the server is inspected with: one of the service `name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential_id: Option<CredentialId>,
    /// For a server that needs no secret: the vault in which a credential without material is made, so that its tools can
    /// be granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vault_id: Option<VaultId>,
}

impl RequestBody for MountRequest {}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PeerRequest {
    /// The service that it is called as, and its name in `/a2a/{name}`.
    pub name: ServiceName,
    /// The URL below which its card is: `/.well-known/agent-card.json` is appended, here or at the origin.
    pub url: String,
    /// The credential that it is called with: one of the service `name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential_id: Option<CredentialId>,
    /// For a peer that needs no secret: the vault in which a credential without material is made, so that it can be granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vault_id: Option<VaultId>,
}

impl RequestBody for PeerRequest {}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HiddenCharacters {
    /// Replaced by their code points, `<U+200B>`.
    Show,
    /// Removed.
    Strip,
    /// Left in results; shown in definitions.
    Keep,
}

/// A SHA-256 as `sha256:` and 64 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct DefinitionHash(#[schemars(length(max = 128))] pub String);

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AcceptRequest {
    /// The hash of the identity of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<DefinitionHash>,
    /// The hashes of tools by their names at the server.
    #[serde(default)]
    pub tools: BTreeMap<String, DefinitionHash>,
    /// Whether blocking findings are overridden. The audit log records which. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub override_findings: Option<bool>,
}

impl RequestBody for AcceptRequest {}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RejectRequest {
    /// The hashes of tools by their names at the server.
    pub tools: BTreeMap<String, DefinitionHash>,
}

impl RequestBody for RejectRequest {}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Mount {
    #[serde(flatten)]
    pub summary: MountSummary,
    pub tools: Vec<MountTool>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct MountSummary {
    pub name: ServiceName,
    pub transport: MountTransport,
    /// The endpoint of a server over HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    pub trusted: bool,
    pub hidden_characters: HiddenCharacters,
    pub credential_id: Option<CredentialId>,
    /// The supported revisions of the protocol.
    pub era: ProtocolEra,
    /// The identity of the server, as it reports it.
    pub server: ServerIdentity,
    pub server_state: ServerState,
    /// How many tools are in each state.
    pub accepted: u64,
    pub quarantined: u64,
    pub rejected: u64,
    pub checked_at: Timestamp,
    /// Why the last inspection failed.
    pub failure: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MountTransport {
    /// A peer agent, over A2A.
    A2a,
    Http,
    Stdio,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProtocolEra {
    /// 2025-11-25 and before.
    Legacy,
    /// 2026-07-28.
    Modern,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServerState {
    Accepted,
    /// Its identity differs from the accepted one; its tools stay usable. Those of a peer agent do not.
    Changed,
    New,
    /// It has another name than the one that was accepted; none of its tools is usable.
    Replaced,
}

/// The identity of a server, as it reports it. Untrusted content.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ServerIdentity {
    pub name: String,
    pub version: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Instructions of the server for models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Its capabilities besides tools, as far as they are forwarded.
    pub capabilities: Vec<String>,
    /// The SHA-256 of command and working directory, if it is a process. Said by the gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The card of a peer agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<Map<String, Value>>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct MountTool {
    /// Its name at the server.
    pub upstream: String,
    /// Its name here, and its scope.
    pub tool: ToolName,
    pub state: ToolState,
    /// Of the definition that was accepted.
    pub pinned_hash: Option<DefinitionHash>,
    /// Of the definition that the server lists.
    pub seen_hash: Option<DefinitionHash>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolState {
    Accepted,
    /// Quarantined: the definition is another one than the one that was accepted.
    Changed,
    /// Quarantined: no decision yet.
    New,
    Rejected,
    /// Quarantined: the server does not list it any more.
    Removed,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct MountList {
    pub mounts: Vec<MountSummary>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct RemovedMount {
    pub status: Removed,
    pub name: ServiceName,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct CheckedMount {
    pub mount: Mount,
    /// How many tools were quarantined by this inspection.
    pub quarantined: u64,
    /// How many tools are listed again as they were accepted.
    pub restored: u64,
    /// Whether the identity of the server was quarantined.
    pub server_changed: bool,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct MountReview {
    pub name: ServiceName,
    /// The identity of the server, if it waits for a decision.
    pub server: Option<ServerReview>,
    pub tools: Vec<ToolReview>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ServerReview {
    /// The hash to accept it by.
    pub hash: DefinitionHash,
    pub pinned: Option<ServerIdentity>,
    pub seen: ServerIdentity,
    pub findings: Vec<Finding>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ToolReview {
    /// Its name at the server.
    pub upstream: String,
    /// Its name here.
    pub tool: ToolName,
    pub state: ToolState,
    /// The hash to accept or reject it by.
    pub hash: Option<DefinitionHash>,
    /// The definition that was accepted.
    pub pinned: Option<Map<String, Value>>,
    /// The definition that the server lists. Untrusted content.
    pub seen: Option<Map<String, Value>>,
    pub findings: Vec<Finding>,
    /// Why it cannot be accepted, even by an override.
    pub unusable: Option<String>,
    /// How dangerous the gate would take it to be.
    pub safety_tier: Option<String>,
    /// What policies and guardians would know it by.
    pub labels: Vec<String>,
}

/// What the lint found in a definition.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// A stable code.
    pub code: String,
    pub severity: FindingSeverity,
    /// Where in the definition.
    pub path: String,
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FindingSeverity {
    /// Accepted only with an override.
    Block,
    Warn,
}
