//! Who acts: users, agents and services, each inside one tenant.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::descriptor::ToolId;
use crate::permission::PermissionSet;
use crate::principal_scope::HeldScopes;
use crate::rate_limit::RateLimit;
use crate::text::{Label, Line, identifiers};
use crate::time::Timestamp;

pub use self::changes::PrincipalChanges;
pub use self::rate_limits::ToolRateLimits;

mod changes;
mod rate_limits;

#[cfg(test)]
mod tests;

identifiers! {
    /// A tenant: the wall that no object, key or grant crosses.
    TenantId;
    /// A principal's name inside its tenant, chosen by whoever registers it.
    PrincipalId;
}

impl TenantId {
    /// The tenant that exists from the first start; its administrator also creates the other tenants.
    pub fn default_tenant() -> Self {
        Self("default".to_owned())
    }
}

impl PrincipalId {
    /// The first administrator of a tenant.
    pub fn administrator() -> Self {
        Self("admin".to_owned())
    }

    /// Toolgate itself, as the actor of what happens by the clock.
    pub fn system() -> Self {
        Self("core.system".to_owned())
    }
}

/// What kind of actor a principal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PrincipalKind {
    /// A program that decides by itself what to call.
    Agent,
    /// A program that runs as it was written.
    Service,
    /// A person.
    User,
}

impl PrincipalKind {
    /// As it is stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Service => "service",
            Self::User => "user",
        }
    }

    /// Reads [`PrincipalKind::as_str`] back.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Agent, Self::Service, Self::User].into_iter().find(|kind| kind.as_str() == text)
    }
}

/// A tenant as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tenant {
    /// Its id.
    pub id: TenantId,
    /// What people call it.
    pub name: Option<Line>,
    /// When it was made.
    pub created_at: Timestamp,
}

/// A principal as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// The tenant it belongs to.
    pub tenant: TenantId,
    /// Its id, unique in the tenant and never given out again.
    pub id: PrincipalId,
    /// User, agent or service.
    pub kind: PrincipalKind,
    /// What people call it.
    pub name: Option<Line>,
    /// The scopes that it holds; a tool may require some besides a grant.
    pub scopes: HeldScopes,
    /// What it may do besides using its grants.
    pub permissions: PermissionSet,
    /// How often it may call which tools.
    pub rate_limits: ToolRateLimits,
    /// The only tools that exist for it; `None` leaves that to its grants.
    pub tool_allowlist: Option<BTreeSet<ToolId>>,
    /// What policies and guardians know it by, besides its id.
    pub labels: BTreeSet<Label>,
    /// Whether its calls that must wait for an approver are detached.
    pub detach_calls: bool,
    /// Whether its MCP clients get tools to search for tools, instead of all tools at once.
    pub progressive_discovery: bool,
    /// Counts its changes: one when it is registered, one more with each.
    pub revision: u64,
    /// When it was registered.
    pub created_at: Timestamp,
    /// When it was removed; its keys and grants ended then.
    pub removed_at: Option<Timestamp>,
}

impl Principal {
    /// One that has just been registered: without a name, scopes and limits.
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
            revision: 1,
            created_at,
            removed_at: None,
        }
    }

    /// How often it may call a tool, which is named with its service and may have a limit of its own. An entry of the
    /// principal for just this tool is the last word; otherwise the stricter of the tool's limit and the principal's
    /// limit for all tools holds.
    pub fn rate_limit_for(&self, tool_name: &str, of_tool: Option<RateLimit>) -> Option<RateLimit> {
        self.rate_limits.for_tool(tool_name, of_tool)
    }

    /// Whether its allowlist leaves it this tool. It still needs a grant.
    pub fn may_see(&self, tool: &ToolId) -> bool {
        self.tool_allowlist.as_ref().is_none_or(|allowed| allowed.contains(tool))
    }
}

/// A key as it is kept: never the key itself, only its digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRecord {
    /// The name to list and revoke it by.
    pub id: crate::id::KeyId,
    /// Whose key it is.
    pub principal: PrincipalId,
    /// What people call it.
    pub label: Option<Line>,
    /// The first letters of the key, to recognise it by; worthless for guessing the rest.
    pub hint: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// After this it is refused.
    pub expires_at: Option<Timestamp>,
    /// Since when it is refused.
    pub revoked_at: Option<Timestamp>,
    /// When it was last accepted, to the minute.
    pub last_used_at: Option<Timestamp>,
}
