//! The `Ledger` port over an engine: each method is one operation in one transaction.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use toolgate_gate::ports::ledger::*;
use toolgate_gate::ports::sealer::MasterKeyId;
use toolgate_gate::refusal::Refusal;
use toolgate_model::checkpoint::SigningKey;
use toolgate_model::credential::{Credential, Vault};
use toolgate_model::grant::{Grant, Lineage};
use toolgate_model::id::{CredentialId, GrantId, KeyId, VaultId};
use toolgate_model::key::KeyDigest;
use toolgate_model::merkle::{TileCoordinate, Tiles};
use toolgate_model::principal::{KeyRecord, Principal, PrincipalId, Tenant, TenantId};
use toolgate_model::time::Timestamp;

use crate::operation::Operation;
use crate::operation::audit::{self, Integrate, ListEvents, ListPending, ReadHead, ReadTiles};
use crate::operation::credentials::{ListCredentials, ReadCredential, ReadSealed};
use crate::operation::expiry::{AnnounceExpired, DestroyRetired};
use crate::operation::grant_lists::{ListGrants, ReadDescendants, ReadLineage};
use crate::operation::master_keys::{ListUnderOtherKeys, ReadKeyUsage, RegisterKey, RetireKey};
use crate::operation::principals::{Identify, ListPrincipals, NoteKeyUse, ReadKeys, ReadPrincipal};
use crate::operation::settings::{CheckWrite, ReadRevision, ReadSetting, SetSettingOnce};
use crate::operation::tenants::{ListTenants, ReadTenant};
use crate::operation::vaults::{ListVaults, ReadVault};

/// Runs operations durably.
pub trait Engine: Send + Sync + 'static {
    /// Runs an operation in a transaction of its own; when this answers with success, it is durable.
    fn write<O: Operation>(&self, operation: O) -> impl Future<Output = Result<O::Output, Refusal>> + Send;

    /// Runs an operation that only reads, on one consistent and current state.
    fn read<O: Operation>(&self, operation: O) -> impl Future<Output = Result<O::Output, Refusal>> + Send;
}

/// A ledger on an engine.
pub struct SqlLedger<E>(E);

impl<E: Engine> SqlLedger<E> {
    /// The ledger on this engine.
    pub fn new(engine: E) -> Self {
        Self(engine)
    }
}

impl<E: Engine> SqlLedger<E> {
    /// The revision at which a change that was just made holds: whoever reads later reports this one or a later one.
    async fn revision_after_change(&self) -> Result<Revision, Refusal> {
        self.0.read(ReadRevision).await.map_err(|refusal| {
            Refusal::new(
                refusal.code(),
                "the change was made, and then the ledger stopped answering; look at it again later",
            )
        })
    }
}

#[async_trait]
impl<E: Engine> Ledger for SqlLedger<E> {
    async fn create_tenant(&self, command: CreateTenant) -> Result<(), Refusal> {
        self.0.write(command).await
    }

    async fn tenants(&self, page: PageRequest) -> Result<Page<Tenant>, Refusal> {
        self.0.read(ListTenants { page }).await
    }

    async fn tenant(&self, id: &TenantId) -> Result<Option<Tenant>, Refusal> {
        self.0.read(ReadTenant { id: id.clone() }).await
    }

    async fn create_principal(&self, command: CreatePrincipal) -> Result<(), Refusal> {
        self.0.write(command).await
    }

    async fn principal(&self, tenant: &TenantId, id: &PrincipalId) -> Result<Option<Principal>, Refusal> {
        self.0.read(ReadPrincipal { tenant: tenant.clone(), id: id.clone() }).await
    }

    async fn principals(&self, tenant: &TenantId, page: PageRequest) -> Result<Page<Principal>, Refusal> {
        self.0.read(ListPrincipals { tenant: tenant.clone(), page }).await
    }

    async fn remove_principal(&self, command: RemovePrincipal) -> Result<Removed, Refusal> {
        let (keys, grants) = self.0.write(command).await?;
        Ok(Removed { keys, grants, revision: self.revision_after_change().await? })
    }

    async fn create_key(&self, command: CreateKey) -> Result<KeyRecord, Refusal> {
        self.0.write(command).await
    }

    async fn keys(&self, tenant: &TenantId, principal: &PrincipalId) -> Result<Vec<KeyRecord>, Refusal> {
        self.0.read(ReadKeys { tenant: tenant.clone(), principal: Some(principal.clone()), id: None }).await
    }

    async fn key(&self, tenant: &TenantId, id: KeyId) -> Result<Option<KeyRecord>, Refusal> {
        let keys = self.0.read(ReadKeys { tenant: tenant.clone(), principal: None, id: Some(id) }).await?;
        Ok(keys.into_iter().next())
    }

    async fn revoke_key(&self, command: RevokeKey) -> Result<KeyRecord, Refusal> {
        self.0.write(command).await
    }

    async fn identify(&self, digest: &KeyDigest) -> Result<Option<(Principal, KeyRecord)>, Refusal> {
        self.0.read(Identify { digest: *digest }).await
    }

    async fn note_key_use(&self, uses: BTreeMap<KeyId, Timestamp>) -> Result<(), Refusal> {
        self.0.write(NoteKeyUse { uses }).await
    }

    async fn create_vault(&self, command: CreateVault) -> Result<(), Refusal> {
        self.0.write(command).await
    }

    async fn vault(&self, tenant: &TenantId, id: VaultId) -> Result<Option<(Vault, Vec<CredentialId>)>, Refusal> {
        self.0.read(ReadVault { tenant: tenant.clone(), id }).await
    }

    async fn vaults(
        &self,
        tenant: &TenantId,
        owner: Option<&PrincipalId>,
        page: PageRequest,
    ) -> Result<Page<(Vault, Vec<CredentialId>)>, Refusal> {
        self.0.read(ListVaults { tenant: tenant.clone(), owner: owner.cloned(), page }).await
    }

    async fn delete_vault(&self, command: DeleteVault) -> Result<Deleted, Refusal> {
        let (credentials, grants) = self.0.write(command).await?;
        Ok(Deleted { credentials, grants, revision: self.revision_after_change().await? })
    }

    async fn create_credential(&self, command: CreateCredential) -> Result<(), Refusal> {
        self.0.write(command).await
    }

    async fn credential(&self, tenant: &TenantId, id: CredentialId) -> Result<Option<Credential>, Refusal> {
        self.0.read(ReadCredential { tenant: tenant.clone(), id }).await
    }

    async fn credentials(
        &self,
        tenant: &TenantId,
        vault: Option<VaultId>,
        page: PageRequest,
    ) -> Result<Page<Credential>, Refusal> {
        self.0.read(ListCredentials { tenant: tenant.clone(), vault, page }).await
    }

    async fn rotate_credential(&self, command: RotateCredential) -> Result<Credential, Refusal> {
        self.0.write(command).await
    }

    async fn revoke_credential(&self, command: RevokeCredential) -> Result<Revoked, Refusal> {
        let grants = self.0.write(command).await?;
        Ok(Revoked { grants, revision: self.revision_after_change().await? })
    }

    async fn sealed_material(&self, tenant: &TenantId, id: CredentialId) -> Result<Option<SealedVersion>, Refusal> {
        self.0.read(ReadSealed { tenant: tenant.clone(), id }).await
    }

    async fn key_usage(&self) -> Result<Vec<KeyUsage>, Refusal> {
        self.0.read(ReadKeyUsage).await
    }

    async fn register_key(&self, key: &MasterKeyId) -> Result<(), Refusal> {
        self.0.write(RegisterKey { key: key.clone() }).await
    }

    async fn sealed_under_other_keys(
        &self,
        current: &MasterKeyId,
        after: Option<(CredentialId, u32)>,
        limit: u32,
    ) -> Result<Vec<SealedVersion>, Refusal> {
        self.0.read(ListUnderOtherKeys { current: current.clone(), after, limit }).await
    }

    async fn rewrap(&self, command: Rewrap) -> Result<bool, Refusal> {
        self.0.write(command).await
    }

    async fn retire_key(&self, key: &MasterKeyId, time: Timestamp) -> Result<bool, Refusal> {
        self.0.write(RetireKey { key: key.clone(), time }).await
    }

    async fn record_rekey(&self, command: RecordRekey) -> Result<(), Refusal> {
        self.0.write(command).await
    }

    async fn destroy_retired(&self, now: Timestamp) -> Result<u64, Refusal> {
        self.0.write(DestroyRetired { now }).await
    }

    async fn create_grant(&self, command: CreateGrant) -> Result<(), Refusal> {
        self.0.write(command).await
    }

    async fn delegate_grant(&self, command: DelegateGrant) -> Result<Grant, Refusal> {
        self.0.write(command).await
    }

    async fn lineage(&self, tenant: &TenantId, id: GrantId) -> Result<Option<Lineage>, Refusal> {
        self.0.read(ReadLineage { tenant: tenant.clone(), id }).await
    }

    async fn grants(
        &self,
        tenant: &TenantId,
        filter: GrantFilter,
        page: PageRequest,
    ) -> Result<Page<Lineage>, Refusal> {
        self.0.read(ListGrants { tenant: tenant.clone(), filter, page }).await
    }

    async fn descendants(&self, tenant: &TenantId, id: GrantId, limit: u32) -> Result<Vec<Grant>, Refusal> {
        self.0.read(ReadDescendants { tenant: tenant.clone(), id, limit }).await
    }

    async fn revoke_grant(&self, command: RevokeGrant) -> Result<Revoked, Refusal> {
        let grants = self.0.write(command).await?;
        Ok(Revoked { grants, revision: self.revision_after_change().await? })
    }

    async fn suspend_grant(&self, command: SuspendGrant) -> Result<Grant, Refusal> {
        self.0.write(command).await
    }

    async fn resume_grant(&self, command: ResumeGrant) -> Result<Grant, Refusal> {
        self.0.write(command).await
    }

    async fn announce_expired(&self, now: Timestamp) -> Result<u64, Refusal> {
        let mut total = 0;
        loop {
            let announced = self.0.write(AnnounceExpired { now }).await?;
            total += announced.count;
            if !announced.more {
                return Ok(total);
            }
        }
    }

    async fn integrate(&self, signer: Arc<SigningKey>, now: Timestamp) -> Result<u64, Refusal> {
        let mut total = 0;
        for tenant in self.0.read(ListPending).await? {
            loop {
                let integrate = Integrate { tenant: tenant.clone(), signer: Arc::clone(&signer), now };
                let count = self.0.write(integrate).await?;
                total += count;
                if count < u64::from(audit::BATCH) {
                    break;
                }
            }
        }
        Ok(total)
    }

    async fn events(
        &self,
        tenant: &TenantId,
        filter: EventFilter,
        page: PageRequest,
    ) -> Result<Page<LoggedEvent>, Refusal> {
        self.0.read(ListEvents { tenant: tenant.clone(), filter, page }).await
    }

    async fn log_head(&self, tenant: &TenantId) -> Result<Option<LogHead>, Refusal> {
        self.0.read(ReadHead { tenant: tenant.clone() }).await
    }

    async fn tiles(&self, tenant: &TenantId, coordinates: &[TileCoordinate]) -> Result<Tiles, Refusal> {
        self.0.read(ReadTiles { tenant: tenant.clone(), coordinates: coordinates.to_vec() }).await
    }

    async fn setting(&self, name: &'static str) -> Result<Option<String>, Refusal> {
        self.0.read(ReadSetting { name }).await
    }

    async fn set_setting_once(&self, name: &'static str, value: &str) -> Result<String, Refusal> {
        self.0.write(SetSettingOnce { name, value: value.to_owned() }).await
    }

    async fn revision(&self) -> Result<Revision, Refusal> {
        self.0.read(ReadRevision).await
    }

    async fn check(&self) -> Result<(), Refusal> {
        self.0.write(CheckWrite).await
    }
}
