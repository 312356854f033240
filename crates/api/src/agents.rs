//! Principals and their keys. The protocol calls all of them agents; `kind` tells users and services apart.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_model::certificate::CertificateName;
use toolgate_model::descriptor::ToolId;
use toolgate_model::id::KeyId;
use toolgate_model::permission::PermissionSet;
use toolgate_model::principal::{Principal, PrincipalChanges, PrincipalId, PrincipalKind, TenantId, ToolRateLimits};
use toolgate_model::principal_scope::HeldScopes;
use toolgate_model::spending::{Budget, Stop};
use toolgate_model::text::{Label, Line};
use toolgate_model::time::Timestamp;
use toolgate_model::token_subject::TokenSubject;

use crate::endpoint::{RequestBody, endpoints};
use crate::parameters::Paging;
use crate::reading::present;
use crate::reply::{NextCursor, Removed, Revision, Revoked, ShownKey};

endpoints! {
    tag "agents" = "Principals (agents, services and users) and their keys.";

    /// Show the caller
    Whoami = GET "/api/v1/whoami" as "whoami" {
        reply: OK Agent = "The caller.",
    }

    /// Register an agent, a service or a user
    ///
    /// Needs `agents.manage`, and every permission that the new principal gets.
    CreateAgent = POST "/api/v1/agents" as "create_agent" {
        body: AgentRequest = {
            "id": "billing",
            "permissions": ["tools.invoke", "tools.delegate"],
            "scopes": ["tools:payments:*"],
            "rate_limits": {"*": {"requests": 100, "per_seconds": 60}},
            "tool_allowlist": ["connector:stripe.charges.create"]
        },
        reply: CREATED StoredAgent = "The agent.",
    }

    /// List agents by id
    ///
    /// Needs `agents.manage`.
    ListAgents = GET "/api/v1/agents" as "list_agents" {
        query: Paging,
        reply: OK AgentPage = "A page of agents.",
    }

    /// Show an agent
    ///
    /// Every principal may read itself.
    ShowAgent = GET "/api/v1/agents/{agent_id}" as "show_agent" {
        path: PrincipalId,
        reply: OK Agent = "The agent.",
    }

    /// Change an agent
    ///
    /// Needs `agents.manage`, and every permission that the agent has or gets. Absent members stay as they are. No
    /// principal widens its own scopes or allowlist, changes its own rate limits or its own budget, or removes
    /// `agents.manage` from itself.
    UpdateAgent = PATCH "/api/v1/agents/{agent_id}" as "update_agent" {
        path: PrincipalId,
        body: AgentChanges = {"scopes": ["tools:payments:read"], "tool_allowlist": null},
        reply: OK StoredAgent = "The agent as it is now.",
    }

    /// Remove an agent with its keys and grants
    ///
    /// Needs `agents.manage`. The id is never used again.
    RemoveAgent = DELETE "/api/v1/agents/{agent_id}" as "remove_agent" {
        path: PrincipalId,
        reply: OK RemovedAgent = "What was revoked with it.",
    }

    /// Create a key
    ///
    /// Needs `agents.manage`. Only this response contains the key; a key for a client certificate or a token subject has
    /// none.
    CreateKey = POST "/api/v1/agents/{agent_id}/keys" as "create_key" {
        path: PrincipalId,
        body: KeyRequest,
        reply: CREATED NewKey = "The key.",
    }

    /// List the keys of an agent, newest first
    ListKeys = GET "/api/v1/agents/{agent_id}/keys" as "list_keys" {
        path: PrincipalId,
        reply: OK Keys = "All keys of the agent.",
    }

    /// Revoke a key
    ///
    /// Needs `agents.manage`.
    RevokeKey = DELETE "/api/v1/keys/{key_id}" as "revoke_key" {
        path: KeyId,
        reply: OK RevokedKey = "The key as it was.",
    }
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentRequest {
    pub id: PrincipalId,
    /// Default: `agent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<PrincipalKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Line>,
    #[serde(default)]
    pub scopes: HeldScopes,
    /// Default: `tools.invoke`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permissions: Option<PermissionSet>,
    #[serde(default)]
    pub rate_limits: ToolRateLimits,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<ToolAllowlist>")]
    pub tool_allowlist: Option<BTreeSet<ToolId>>,
    /// Labels that policies and guardians match, such as `trusted`. Setting any also needs `policies.manage`.
    #[serde(default)]
    pub labels: BTreeSet<Label>,
    /// Whether its calls that must wait for an approver are detached.
    #[serde(default)]
    pub detach_calls: bool,
    /// Whether its MCP clients get tools to search for tools, instead of all tools at once.
    #[serde(default)]
    pub progressive_discovery: bool,
    /// How much it may call and spend.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
}

impl RequestBody for AgentRequest {}

impl AgentRequest {
    /// An agent without name, scopes, limits and labels, with the permissions of agents.
    pub fn new(id: PrincipalId) -> Self {
        Self {
            id,
            kind: None,
            name: None,
            scopes: HeldScopes::default(),
            permissions: None,
            rate_limits: ToolRateLimits::default(),
            tool_allowlist: None,
            labels: BTreeSet::new(),
            detach_calls: false,
            progressive_discovery: false,
            budget: None,
        }
    }
}

impl From<AgentRequest> for PrincipalChanges {
    fn from(request: AgentRequest) -> Self {
        Self {
            name: Some(request.name),
            scopes: Some(request.scopes),
            permissions: request.permissions,
            rate_limits: Some(request.rate_limits),
            tool_allowlist: Some(request.tool_allowlist),
            labels: Some(request.labels),
            detach_calls: Some(request.detach_calls),
            progressive_discovery: Some(request.progressive_discovery),
            budget: Some(request.budget),
            stopped: None,
        }
    }
}

/// Absent members stay as they are; `null` removes an optional value.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentChanges {
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Line>")]
    pub name: Option<Option<Line>>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "HeldScopes")]
    pub scopes: Option<HeldScopes>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "PermissionSet")]
    pub permissions: Option<PermissionSet>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ToolRateLimits")]
    pub rate_limits: Option<ToolRateLimits>,
    /// `null` leaves it to the grants again.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<ToolAllowlist>")]
    pub tool_allowlist: Option<Option<BTreeSet<ToolId>>>,
    /// Changing them needs `policies.manage` too.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "BTreeSet<Label>")]
    pub labels: Option<BTreeSet<Label>>,
    /// Whether its calls that must wait for an approver are detached.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub detach_calls: Option<bool>,
    /// Whether its MCP clients get tools to search for tools, instead of all tools at once.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub progressive_discovery: Option<bool>,
    /// How much it may call and spend; `null` removes it.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Budget>")]
    pub budget: Option<Option<Budget>>,
}

impl RequestBody for AgentChanges {}

impl From<AgentChanges> for PrincipalChanges {
    fn from(changes: AgentChanges) -> Self {
        Self {
            name: changes.name,
            scopes: changes.scopes,
            permissions: changes.permissions,
            rate_limits: changes.rate_limits,
            tool_allowlist: changes.tool_allowlist,
            labels: changes.labels,
            detach_calls: changes.detach_calls,
            progressive_discovery: changes.progressive_discovery,
            budget: changes.budget,
            stopped: None,
        }
    }
}

/// The only tools that are visible to a principal, regardless of its grants.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct ToolAllowlist(#[schemars(length(max = 1024))] BTreeSet<ToolId>);

/// A principal.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Agent {
    pub id: PrincipalId,
    pub tenant_id: TenantId,
    pub kind: PrincipalKind,
    pub name: Option<Line>,
    /// As they were stored; one that is no longer a valid scope covers nothing.
    pub scopes: Vec<String>,
    pub permissions: PermissionSet,
    pub rate_limits: ToolRateLimits,
    /// Labels that policies and guardians match, such as `trusted`.
    pub labels: BTreeSet<Label>,
    /// Whether its calls that must wait for an approver are detached.
    pub detach_calls: bool,
    /// Whether its MCP clients get tools to search for tools, instead of all tools at once.
    pub progressive_discovery: bool,
    /// How much it may call and spend; `null` if it has no budget.
    pub budget: Option<Budget>,
    /// Who has stopped its calls, and when; `null` if they are not stopped.
    pub stopped: Option<Stop>,
    #[schemars(with = "Option<ToolAllowlist>")]
    pub tool_allowlist: Option<BTreeSet<ToolId>>,
    /// Counts its changes, from one.
    #[schemars(range(min = 1))]
    pub revision: u64,
    pub created_at: Timestamp,
}

impl From<Principal> for Agent {
    fn from(principal: Principal) -> Self {
        Self {
            id: principal.id,
            tenant_id: principal.tenant,
            kind: principal.kind,
            name: principal.name,
            scopes: principal.scopes.iter().map(str::to_owned).collect(),
            permissions: principal.permissions,
            rate_limits: principal.rate_limits,
            labels: principal.labels,
            detach_calls: principal.detach_calls,
            progressive_discovery: principal.progressive_discovery,
            budget: principal.budget,
            stopped: principal.stopped,
            tool_allowlist: principal.tool_allowlist,
            revision: principal.revision,
            created_at: principal.created_at,
        }
    }
}

/// A principal as it was just stored.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct StoredAgent {
    #[serde(flatten)]
    pub agent: Agent,
    /// Tools that the allowlist of the request names and that do not exist.
    pub unresolved_tools: Vec<ToolId>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct AgentPage {
    pub agents: Vec<Agent>,
    pub next_cursor: NextCursor,
}

/// What was revoked with an agent.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct RemovedAgent {
    pub status: Removed,
    pub agent_id: PrincipalId,
    pub revoked_keys: u64,
    pub revoked_grants: u64,
    pub revision: Revision,
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KeyRequest {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<Line>,
    /// A time in the future; the key has no end where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Registers this client certificate; nothing secret is created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<CertificateName>,
    /// Registers the subject of access tokens; nothing secret is created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_subject: Option<TokenSubject>,
}

impl RequestBody for KeyRequest {
    fn absent() -> Option<Self> {
        Some(Self::default())
    }
}

/// A key, without the key.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct KeyRecord {
    /// The id by which a key is listed and revoked.
    pub id: KeyId,
    pub agent_id: PrincipalId,
    pub label: Option<Line>,
    /// The first characters of the key, or the client certificate or token subject that it represents.
    pub hint: String,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
    /// Rounded to the minute.
    pub last_used_at: Option<Timestamp>,
}

impl From<toolgate_model::principal::KeyRecord> for KeyRecord {
    fn from(record: toolgate_model::principal::KeyRecord) -> Self {
        Self {
            id: record.id,
            agent_id: record.principal,
            label: record.label,
            hint: record.hint,
            created_at: record.created_at,
            expires_at: record.expires_at,
            revoked_at: record.revoked_at,
            last_used_at: record.last_used_at,
        }
    }
}

/// A key and its record.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct NewKey {
    #[serde(flatten)]
    pub record: KeyRecord,
    /// Absent if the key represents a client certificate or a token subject.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ShownKey")]
    pub key: Option<ShownKey>,
}

/// The record of a key that was revoked.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct RevokedKey {
    #[serde(flatten)]
    pub record: KeyRecord,
    pub status: Revoked,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Keys {
    pub keys: Vec<KeyRecord>,
}
