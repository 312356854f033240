//! Who acts: users, agents and services, each inside one tenant.

use serde::{Deserialize, Serialize};

use crate::permission::PermissionSet;
use crate::scope::ScopeSet;
use crate::text::{Line, identifiers};
use crate::time::Timestamp;

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
    /// The protocol scopes it carries (for the surfaces that speak of scopes without grants).
    pub scopes: ScopeSet,
    /// What it may do besides using its grants.
    pub permissions: PermissionSet,
    /// When it was registered.
    pub created_at: Timestamp,
    /// When it was removed; its keys and grants ended then.
    pub removed_at: Option<Timestamp>,
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
