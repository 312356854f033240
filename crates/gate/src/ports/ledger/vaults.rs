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

/// Makes a vault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateVault {
    /// Who and when, and by which right.
    pub audit: Mandate,
    /// The vault.
    pub vault: Vault,
}

/// Deletes a vault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeleteVault {
    /// Who and when, and by which right.
    pub audit: Mandate,
    /// Which.
    pub id: VaultId,
}

/// What ended with a vault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deleted {
    /// Credentials.
    pub credentials: u64,
    /// Grants.
    pub grants: u64,
    /// From which revision on.
    pub revision: Revision,
}
