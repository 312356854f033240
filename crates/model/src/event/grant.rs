//! Grants, in the terms of RFC-0014.

use serde::{Deserialize, Serialize};

use crate::id::{CredentialId, GrantId};
use crate::principal::PrincipalId;
use crate::scope::ScopeSet;
use crate::time::Timestamp;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GrantCreated {
    pub agent_id: PrincipalId,
    pub credential_id: CredentialId,
    pub expires_at: Option<Timestamp>,
    pub grant_id: GrantId,
    pub scopes: ScopeSet,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GrantDelegated {
    /// The remaining delegation depth; `None` is unlimited.
    pub delegation_depth: Option<u32>,
    pub grant_id: GrantId,
    pub scopes: ScopeSet,
    pub source_grant_id: GrantId,
    pub target_agent_id: PrincipalId,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GrantExpired {
    pub grant_id: GrantId,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GrantResumed {
    pub grant_id: GrantId,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GrantRevoked {
    /// The number of delegated grants that ended with it.
    pub cascade_count: u64,
    pub grant_id: GrantId,
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GrantSuspended {
    pub grant_id: GrantId,
    pub reason: String,
}
