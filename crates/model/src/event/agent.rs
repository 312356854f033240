//! Principals: registration, changes and removal.

use serde::{Deserialize, Deserializer, Serialize};

use crate::permission::PermissionSet;
use crate::principal::{PrincipalId, PrincipalKind};
use crate::principal_scope::HeldScopes;
use crate::spending::Budget;

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
    /// The new budget, if it changed; `null` if it was removed.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub budget: Option<Option<Budget>>,
    /// The names of the changed fields.
    pub changed: Vec<String>,
    /// The new permissions, if they changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permissions: Option<PermissionSet>,
    /// The number of its changes, including this one.
    pub revision: u64,
    /// The new scopes, if they changed.
    #[serde(default, deserialize_with = "stored_scopes", skip_serializing_if = "Option::is_none")]
    pub scopes: Option<HeldScopes>,
}

/// `null` is a value here.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<Budget>>, D::Error> {
    Option::<Budget>::deserialize(deserializer).map(Some)
}

/// A stored scope need not be valid by the current rules.
fn stored_scopes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<HeldScopes>, D::Error> {
    Ok(Option::<Vec<String>>::deserialize(deserializer)?.map(HeldScopes::from_stored))
}
