//! What a principal may do besides using its grants. The three `tools.` permissions are those of RFC-0014 §7.2; the
//! others are for administration.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! permissions {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)+) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Permission {
            $($(#[$doc])* #[serde(rename = $name)] $variant,)+
        }

        impl Permission {
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The stored and displayed form.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }
    };
}

permissions! {
    /// Act and be recorded as another principal of the tenant.
    ActAs = "agents.act_as",
    /// Register and remove principals, create and revoke their keys.
    ManageAgents = "agents.manage",
    /// Decide approvals.
    DecideApprovals = "approvals.decide",
    ReadAudit = "audit.read",
    /// Change policies: apply, roll back, promote; and the labels of principals, which policies use.
    ManagePolicies = "policies.manage",
    /// Create tenants. Effective only in the tenant `default`.
    ManageTenants = "tenants.manage",
    /// Delegate its own grants.
    DelegateTools = "tools.delegate",
    /// Use tools through its own grants.
    InvokeTools = "tools.invoke",
    /// Manage vaults and credentials; create, suspend and revoke any grant.
    ManageTools = "tools.manage",
}

impl fmt::Display for Permission {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PermissionSet(BTreeSet<Permission>);

impl PermissionSet {
    /// The default of an agent: it may use its grants.
    pub fn of_an_agent() -> Self {
        [Permission::InvokeTools].into_iter().collect()
    }

    /// Everything inside one tenant.
    pub fn of_a_tenant_administrator() -> Self {
        Permission::ALL.iter().copied().filter(|&permission| permission != Permission::ManageTenants).collect()
    }

    /// Everything.
    pub fn of_the_platform_administrator() -> Self {
        Permission::ALL.iter().copied().collect()
    }

    pub fn has(&self, permission: Permission) -> bool {
        self.0.contains(&permission)
    }

    /// The first of these that `other` does not have.
    pub fn first_beyond(&self, other: &Self) -> Option<Permission> {
        self.0.difference(&other.0).next().copied()
    }

    /// Ordered by name.
    pub fn iter(&self) -> impl Iterator<Item = Permission> {
        self.0.iter().copied()
    }
}

impl FromIterator<Permission> for PermissionSet {
    fn from_iter<I: IntoIterator<Item = Permission>>(permissions: I) -> Self {
        Self(permissions.into_iter().collect())
    }
}
