//! Vaults.

use async_trait::async_trait;
use toolgate_model::credential::Vault;
use toolgate_model::id::{CredentialId, VaultId};
use toolgate_model::principal::{PrincipalId, TenantId};

use super::{Mandate, Page, PageRequest, Revision};
use crate::refusal::Refusal;

#[async_trait]
pub trait Vaults: Send + Sync {
    async fn create_vault(&self, command: CreateVault) -> Result<(), Refusal>;
    /// Returns a vault with the ids of its credentials.
    async fn vault(&self, tenant: &TenantId, id: VaultId) -> Result<Option<(Vault, Vec<CredentialId>)>, Refusal>;
    /// Returns vaults, each with the ids of its credentials.
    async fn vaults(
        &self,
        tenant: &TenantId,
        owner: Option<&PrincipalId>,
        page: PageRequest,
    ) -> Result<Page<(Vault, Vec<CredentialId>)>, Refusal>;
    /// Deletes a vault with its credentials and their grants.
    async fn delete_vault(&self, command: DeleteVault) -> Result<Deleted, Refusal>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateVault {
    pub audit: Mandate,
    pub vault: Vault,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeleteVault {
    pub audit: Mandate,
    pub id: VaultId,
}

/// What was revoked with a vault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deleted {
    pub credentials: u64,
    pub grants: u64,
    /// The first revision that includes the change.
    pub revision: Revision,
}
