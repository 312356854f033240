//! Who may see and change which vault, credential and grant.
//!
//! An administrator (`tools.manage` and `agents.act_as`) can access everything in the tenant. A principal with
//! `tools.manage` alone can access the contents of its own vaults. An agent can access the grants that it holds and
//! those delegated from them.

use toolgate_model::credential::{Credential, Vault};
use toolgate_model::grant::Lineage;
use toolgate_model::id::{CredentialId, GrantId, VaultId};
use toolgate_model::permission::Permission;

use crate::authority::Administration;
use crate::identify::Caller;
use crate::refusal::{Code, Refusal};

/// The relation of a caller to a grant that it can see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// It holds an ancestor of the grant.
    Delegator,
    /// It holds the grant.
    Holder,
    /// It manages the credential.
    Manager,
}

impl Administration {
    /// Returns the vault if the caller manages it.
    pub(crate) async fn managed_vault(
        &self,
        caller: &Caller,
        id: VaultId,
    ) -> Result<(Vault, Vec<CredentialId>), Refusal> {
        let missing = || Refusal::new(Code::VaultNotFound, format!("there is no vault {id}")).with("vault_id", id);
        if !caller.may(Permission::ManageTools) {
            return Err(missing());
        }
        let found = self.vaults.vault(caller.tenant(), id).await?;
        found.filter(|(vault, _)| caller.manages_all() || vault.owner == *caller.id()).ok_or_else(missing)
    }

    /// Returns the credential if the caller manages it.
    pub(crate) async fn managed_credential(&self, caller: &Caller, id: CredentialId) -> Result<Credential, Refusal> {
        let missing =
            || Refusal::new(Code::CredentialNotFound, format!("there is no credential {id}")).with("credential_id", id);
        if !caller.may(Permission::ManageTools) {
            return Err(missing());
        }
        let credential = self.credentials.credential(caller.tenant(), id).await?.ok_or_else(missing)?;
        if caller.manages_all() || self.owns_vault(caller, credential.vault).await? {
            Ok(credential)
        } else {
            Err(missing())
        }
    }

    /// Returns the grant with its lineage and the caller's relation to it, if the caller can see it.
    pub(crate) async fn visible_grant(&self, caller: &Caller, id: GrantId) -> Result<(Lineage, Relation), Refusal> {
        let missing = || Refusal::new(Code::GrantNotFound, format!("there is no grant {id}")).with("grant_id", id);
        let lineage = self.grants.lineage(caller.tenant(), id).await?.ok_or_else(missing)?;
        if caller.manages_all() {
            return Ok((lineage, Relation::Manager));
        }
        if caller.may(Permission::ManageTools) {
            let credential = self.credentials.credential(caller.tenant(), lineage.grant().credential).await?;
            if let Some(credential) = credential
                && self.owns_vault(caller, credential.vault).await?
            {
                return Ok((lineage, Relation::Manager));
            }
        }
        if lineage.grant().agent == *caller.id() {
            return Ok((lineage, Relation::Holder));
        }
        if lineage.ancestors().iter().any(|grant| grant.agent == *caller.id()) {
            return Ok((lineage, Relation::Delegator));
        }
        Err(missing())
    }

    async fn owns_vault(&self, caller: &Caller, id: VaultId) -> Result<bool, Refusal> {
        let vault = self.vaults.vault(caller.tenant(), id).await?;
        Ok(vault.is_some_and(|(vault, _)| vault.owner == *caller.id()))
    }
}

impl Caller {
    /// Whether it manages every vault of its tenant.
    pub(crate) fn manages_all(&self) -> bool {
        self.may(Permission::ManageTools) && self.may(Permission::ActAs)
    }
}
