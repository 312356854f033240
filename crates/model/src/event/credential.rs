//! Credentials, in the terms of RFC-0014.

use serde::{Deserialize, Serialize};

use crate::credential::{AuthType, ServiceName};
use crate::id::{CredentialId, VaultId};
use crate::principal::PrincipalId;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CredentialCreated {
    pub auth_type: AuthType,
    pub credential_id: CredentialId,
    pub service: ServiceName,
    pub vault_id: VaultId,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CredentialExpired {
    pub credential_id: CredentialId,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CredentialRevoked {
    /// The number of grants that ended with it.
    pub affected_grants_count: u64,
    pub credential_id: CredentialId,
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CredentialRotated {
    pub credential_id: CredentialId,
    pub rotated_by: PrincipalId,
}
