//! Principals that come, change and go.

use serde::{Deserialize, Deserializer, Serialize};

use crate::permission::PermissionSet;
use crate::principal::{PrincipalId, PrincipalKind};
use crate::principal_scope::HeldScopes;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentCreated {
    pub agent_id: PrincipalId,
    pub kind: PrincipalKind,
    pub permissions: PermissionSet,
}

/// The keys and grants of a principal end with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentRemoved {
    pub agent_id: PrincipalId,
    pub revoked_grants: u64,
    pub revoked_keys: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentUpdated {
    pub agent_id: PrincipalId,
    /// The names of the fields.
    pub changed: Vec<String>,
    /// All that it may do now, where that changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permissions: Option<PermissionSet>,
    /// The count of its changes, with this one.
    pub revision: u64,
    /// All that it holds now, where that changed.
    #[serde(default, deserialize_with = "stored_scopes", skip_serializing_if = "Option::is_none")]
    pub scopes: Option<HeldScopes>,
}

/// A stored scope need not be one that may be given today.
fn stored_scopes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<HeldScopes>, D::Error> {
    Ok(Option::<Vec<String>>::deserialize(deserializer)?.map(HeldScopes::from_stored))
}
