//! Vaults and the master key.

use serde::{Deserialize, Serialize};

use crate::id::VaultId;
use crate::principal::PrincipalId;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VaultCreated {
    pub owner_id: PrincipalId,
    pub vault_id: VaultId,
}

/// The contents of a vault end with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VaultDeleted {
    pub revoked_credentials: u64,
    pub revoked_grants: u64,
    pub vault_id: VaultId,
}

/// All material is wrapped by another master key now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VaultRekeyed {
    /// The current master key.
    pub key_id: String,
    /// The number of rewrapped data keys.
    pub rewrapped: u64,
}
