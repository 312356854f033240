//! Principals: users, agents and services, each inside one tenant.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::descriptor::ToolId;
use crate::permission::PermissionSet;
use crate::principal_scope::HeldScopes;
use crate::rate_limit::RateLimit;
use crate::spending::{Budget, Stop};
use crate::text::{Label, Line, identifiers};
use crate::time::Timestamp;

pub use self::changes::PrincipalChanges;
pub use self::rate_limits::ToolRateLimits;

mod changes;
mod rate_limits;

#[cfg(test)]
mod tests;

identifiers! {
    /// A tenant: no object, key or grant crosses its boundary.
    TenantId;
    /// A principal's name inside its tenant, chosen at registration.
    PrincipalId;
}

impl TenantId {
    /// The tenant that exists from the first start; its administrator also creates the other tenants.
    pub fn default_tenant() -> Self {
        Self("default".into())
    }
}

impl PrincipalId {
    /// The first administrator of a tenant.
    pub fn administrator() -> Self {
        Self("admin".into())
    }

    /// Toolgate itself, as the actor of scheduled work.
    pub fn system() -> Self {
        Self("core.system".into())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PrincipalKind {
    /// A program that decides by itself what to call.
    Agent,
    /// A program that runs as written.
    Service,
    /// A person.
    User,
}

impl PrincipalKind {
    /// The stored and displayed form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Service => "service",
            Self::User => "user",
        }
    }

    /// Parses [`PrincipalKind::as_str`].
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Agent, Self::Service, Self::User].into_iter().find(|kind| kind.as_str() == text)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tenant {
    pub id: TenantId,
    pub name: Option<Line>,
    pub created_at: Timestamp,
    /// How much its agents may call and spend together.
    pub budget: Option<Budget>,
    /// Set while the calls of the tenant are stopped.
    pub stopped: Option<Stop>,
    /// Set while the calls of all tenants are stopped.
    pub gate_stopped: Option<Stop>,
}

impl Tenant {
    /// A new tenant: without a budget, and not stopped.
    pub fn new(id: TenantId, name: Option<Line>, created_at: Timestamp) -> Self {
        Self { id, name, created_at, budget: None, stopped: None, gate_stopped: None }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    pub tenant: TenantId,
    /// Unique in the tenant and never reused.
    pub id: PrincipalId,
    pub kind: PrincipalKind,
    pub name: Option<Line>,
    /// A tool may require some in addition to a grant.
    pub scopes: HeldScopes,
    /// What it may do besides using its grants.
    pub permissions: PermissionSet,
    /// How often it may call which tools.
    pub rate_limits: ToolRateLimits,
    /// The only tools that exist for it; `None` leaves that to its grants.
    pub tool_allowlist: Option<BTreeSet<ToolId>>,
    /// Used by policies and guardians.
    pub labels: BTreeSet<Label>,
    /// Whether its calls that must wait for an approver are detached.
    pub detach_calls: bool,
    /// Whether its MCP clients get tools to search for tools, instead of all tools at once.
    pub progressive_discovery: bool,
    /// How much it may call and spend.
    pub budget: Option<Budget>,
    /// Set while its calls are stopped.
    pub stopped: Option<Stop>,
    /// The number of its changes: 1 when it is registered.
    pub revision: u64,
    pub created_at: Timestamp,
    /// Its keys and grants ended then.
    pub removed_at: Option<Timestamp>,
}

impl Principal {
    /// A newly registered principal: without a name, scopes and limits.
    pub fn new(
        tenant: TenantId,
        id: PrincipalId,
        kind: PrincipalKind,
        permissions: PermissionSet,
        created_at: Timestamp,
    ) -> Self {
        Self {
            tenant,
            id,
            kind,
            name: None,
            scopes: HeldScopes::default(),
            permissions,
            rate_limits: ToolRateLimits::default(),
            tool_allowlist: None,
            labels: BTreeSet::new(),
            detach_calls: false,
            progressive_discovery: false,
            budget: None,
            stopped: None,
            revision: 1,
            created_at,
            removed_at: None,
        }
    }

    /// The rate limit for a tool by its qualified name, which may have its own limit. An entry of the principal for
    /// exactly this tool takes precedence; otherwise the stricter of the tool's limit and the principal's limit for all
    /// tools applies.
    pub fn rate_limit_for(&self, tool_name: &str, of_tool: Option<RateLimit>) -> Option<RateLimit> {
        self.rate_limits.for_tool(tool_name, of_tool)
    }

    /// Whether its allowlist includes this tool. It still needs a grant.
    pub fn may_see(&self, tool: &ToolId) -> bool {
        self.tool_allowlist.as_ref().is_none_or(|allowed| allowed.contains(tool))
    }
}

/// A stored key: never the key itself, only its digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRecord {
    /// For listing and revoking it.
    pub id: crate::id::KeyId,
    pub principal: PrincipalId,
    pub label: Option<Line>,
    /// The first characters of the key, to recognize it; useless for guessing the rest.
    pub hint: String,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
    /// When it was last accepted, to the minute.
    pub last_used_at: Option<Timestamp>,
}
