//! Vaults.

use toolgate_model::credential::Vault;
use toolgate_model::id::{CredentialId, VaultId};
use toolgate_model::permission::Permission;
use toolgate_model::principal::PrincipalId;
use toolgate_model::text::Line;

use crate::authority::Administration;
use crate::identify::Caller;
use crate::ports::ledger::{CreateVault, DeleteVault, Deleted, Page, PageRequest};
use crate::refusal::Refusal;

impl Administration {
    /// Creates a vault. Its owner is the caller unless another one is named.
    pub async fn create_vault(
        &self,
        caller: &Caller,
        owner: Option<PrincipalId>,
        name: Line,
    ) -> Result<Vault, Refusal> {
        caller.require(Permission::ManageTools)?;
        let owner = owner.unwrap_or_else(|| caller.id().clone());
        caller.require_acting_for(&owner)?;
        let audit = caller.mandate(self.clock.now());
        let vault = Vault {
            id: self.ids.make(audit.time(), VaultId::new)?,
            tenant: audit.tenant().clone(),
            owner,
            name,
            created_at: audit.time(),
        };
        self.vaults.create_vault(CreateVault { audit, vault: vault.clone() }).await?;
        Ok(vault)
    }

    /// Returns a vault with the ids of its credentials.
    pub async fn vault(&self, caller: &Caller, id: VaultId) -> Result<(Vault, Vec<CredentialId>), Refusal> {
        self.managed_vault(caller, id).await
    }

    /// The vaults that the caller manages.
    pub async fn vaults(
        &self,
        caller: &Caller,
        page: PageRequest,
    ) -> Result<Page<(Vault, Vec<CredentialId>)>, Refusal> {
        caller.require(Permission::ManageTools)?;
        let owner = (!caller.manages_all()).then(|| caller.id());
        self.vaults.vaults(caller.tenant(), owner, page).await
    }

    /// Deletes a vault with its contents.
    pub async fn delete_vault(&self, caller: &Caller, id: VaultId) -> Result<Deleted, Refusal> {
        self.managed_vault(caller, id).await?;
        self.vaults.delete_vault(DeleteVault { audit: caller.mandate(self.clock.now()), id }).await
    }
}
