//! Mounts that the operator declares in the configuration. They follow it: what is added to it is mounted, what is changed in
//! it is mounted anew, and what is gone from it is removed. Everything is recorded as done by Toolgate itself. What their
//! servers offer is quarantined like that of every other mount: a file cannot accept anything.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use toolgate_model::credential::{AuthType, Credential, CredentialStatus, ServiceName, Vault};
use toolgate_model::id::{CredentialId, VaultId};
use toolgate_model::mount::{Mount, MountAddress};
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::scope::ScopeSet;
use toolgate_model::secret::{Material, Secret};
use toolgate_model::service::HiddenCharacters;
use toolgate_model::text::Line;

use super::{MountAdministration, NewRow, failed, refuse_own_name};
use crate::authority::Administration;
use crate::authority::credentials::{NewCredential, NewMaterial};
use crate::ports::ledger::{AuditContext, CreateVault, Freshness, Mandate, PageRequest, RemoveMount, RevokeCredential};
use crate::refusal::{Code, Refusal};

/// The vault of the credentials of mounts.
const VAULT: &str = "mounts";
/// What the label of a credential ends with that was made from the configuration.
const LABEL: &str = "(mounts.file)";

/// A mount as the configuration has it, in one tenant.
#[derive(Debug, Clone, PartialEq)]
pub struct DeclaredMount {
    pub tenant: TenantId,
    pub name: ServiceName,
    pub address: MountAddress,
    pub trusted: bool,
    pub hidden_characters: HiddenCharacters,
    /// What the server is inspected with.
    pub credential: Option<CredentialId>,
}

/// What a server is reached with, as the configuration has it. Without material it needs no secret, and there is a
/// credential all the same, so that there is something to grant.
pub struct DeclaredSecret {
    pub auth_type: AuthType,
    pub metadata: Map<String, Value>,
    pub material: Material,
}

/// What became of a declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Declaration {
    /// It was mounted, and waits for a review.
    Mounted,
    /// Another server, or the same one with other settings, was mounted before: all of it has to be reviewed again.
    Replaced,
    /// It was mounted before.
    Unchanged,
    /// An administrator has mounted the same server under this name. It stays as it is.
    ByAdministrator,
}

impl MountAdministration {
    /// Seals what the configuration has for a mount: returns the credential, made or rotated where it is not the same.
    pub async fn declare_secret(
        &self,
        tenant: &TenantId,
        name: &ServiceName,
        secret: DeclaredSecret,
    ) -> Result<CredentialId, Refusal> {
        self.administration.declared_credential(self.own(tenant), name, secret).await
    }

    /// Checks the credential that the configuration names for a mount.
    pub async fn require_credential(
        &self,
        tenant: &TenantId,
        name: &ServiceName,
        id: CredentialId,
    ) -> Result<(), Refusal> {
        match self.administration.credential_of_mount(tenant, id).await? {
            Some(credential) if credential.service == *name => Ok(()),
            Some(credential) => {
                let reason =
                    format!("credential {id} is one of service `{}`; name one of service `{name}`", credential.service);
                Err(Refusal::new(Code::InvalidField, reason))
            }
            None => Err(Refusal::new(Code::CredentialNotFound, format!("there is no active credential {id}"))),
        }
    }

    /// Mounts what is declared. What was mounted of another server under this name, or with other settings, is removed
    /// first, whether the new one can be reached or not.
    pub async fn declare(&self, declared: &DeclaredMount) -> Result<Declaration, Refusal> {
        refuse_own_name(&declared.name)?;
        let known = self.mounts.mount(&declared.tenant, &declared.name).await?.map(|(mount, _)| mount);
        let outcome = match known {
            None => Declaration::Mounted,
            Some(mount) if declared.is(&mount) => return Ok(Declaration::Unchanged),
            Some(mount) if mount.declared => {
                let audit = self.own(&declared.tenant);
                self.mounts.remove_mount(RemoveMount { audit, name: declared.name.clone() }).await?;
                Declaration::Replaced
            }
            Some(mount) if mount.address == declared.address => return Ok(Declaration::ByAdministrator),
            Some(_) => {
                let reason = format!(
                    "an administrator has mounted another server as `{}`; remove that mount, or rename this one",
                    declared.name
                );
                return Err(Refusal::new(Code::AlreadyExists, reason));
            }
        };
        let credential = match declared.credential {
            Some(id) => self.administration.credential_of_mount(&declared.tenant, id).await?,
            None => None,
        };
        let audit = self.own(&declared.tenant);
        let (context, _) = audit.parts();
        let inspected = self.inspect(context, &declared.name, &declared.address, credential.as_ref()).await;
        let offer = inspected.map_err(|reason| failed(&declared.name, &reason))?;
        let row = NewRow {
            name: &declared.name,
            address: &declared.address,
            trusted: declared.trusted,
            hidden_characters: declared.hidden_characters,
            credential: declared.credential,
            declared: true,
        };
        self.store(audit, row, &offer).await?;
        Ok(outcome)
    }

    /// Removes the mounts of a tenant that were declared and are not any more; returns their names.
    pub async fn retract(
        &self,
        tenant: &TenantId,
        declared: &BTreeSet<ServiceName>,
    ) -> Result<Vec<ServiceName>, Refusal> {
        let mounts = self.mounts.mounts(tenant).await?.into_iter().map(|summary| summary.mount);
        let gone: Vec<ServiceName> =
            mounts.filter(|mount| mount.declared && !declared.contains(&mount.name)).map(|mount| mount.name).collect();
        for name in &gone {
            let removed = self.mounts.remove_mount(RemoveMount { audit: self.own(tenant), name: name.clone() }).await;
            match removed {
                // Another gate with the same configuration was faster.
                Err(refusal) if refusal.code() == Code::MountNotFound => {}
                other => other?,
            }
        }
        Ok(gone)
    }

    /// The tenants with mounts that were declared.
    pub async fn declaring_tenants(&self) -> Result<Vec<TenantId>, Refusal> {
        self.mounts.declaring_tenants().await
    }

    fn own(&self, tenant: &TenantId) -> Mandate {
        let actor = PrincipalId::system();
        Mandate::own(AuditContext { tenant: tenant.clone(), actor, time: self.clock.now() })
    }
}

impl DeclaredMount {
    /// Whether this is the mount, with nothing to change.
    fn is(&self, mount: &Mount) -> bool {
        mount.declared
            && mount.address == self.address
            && mount.trusted == self.trusted
            && mount.hidden_characters == self.hidden_characters
            && mount.credential == self.credential
    }
}

impl Administration {
    async fn declared_credential(
        &self,
        audit: Mandate,
        name: &ServiceName,
        secret: DeclaredSecret,
    ) -> Result<CredentialId, Refusal> {
        let tenant = audit.tenant().clone();
        if self.tenants.tenant(&tenant).await?.is_none() {
            return Err(Refusal::new(Code::TenantNotFound, format!("there is no tenant `{tenant}`; create it first")));
        }
        let label = format!("{name} {LABEL}");
        let label = Line::parse(&label).map_err(|error| Refusal::new(Code::InvalidField, error.to_string()))?;
        let now = self.clock.now();
        let named = self.credentials.credentials_naming(&tenant, &name.as_str().to_ascii_lowercase()).await?;
        let is_own = |credential: &&Credential| {
            credential.service == *name
                && credential.label == label
                && credential.status(now) == CredentialStatus::Active
        };
        let mut known = None;
        for credential in named.iter().filter(is_own) {
            let has_secret = credential.version > 0;
            let is_of_kind = credential.auth_type == secret.auth_type && has_secret != secret.material.is_empty();
            if is_of_kind && known.is_none() {
                known = Some(credential.clone());
                continue;
            }
            let reason = "mounts.file has a credential of another type".to_owned();
            let command = RevokeCredential { audit: audit.clone(), id: credential.id, reason };
            self.credentials.revoke_credential(command).await?;
        }
        let Some(known) = known else {
            let new = NewCredential {
                vault: self.vault_of_mounts(&audit).await?,
                service: name.clone(),
                label,
                auth_type: secret.auth_type,
                scopes_available: ScopeSet::default(),
                metadata: secret.metadata,
                material: secret.material,
                expires_at: None,
            };
            return Ok(self.store_credential(audit, new).await?.id);
        };
        let id = known.id;
        if known.metadata != secret.metadata || !self.has_material(&known, &secret.material).await? {
            let new = NewMaterial { material: secret.material, metadata: Some(secret.metadata), expires_at: None };
            self.replace_material(audit, known, new).await?;
        }
        Ok(id)
    }

    /// Whether the credential's material has these secrets. It may have more: tokens that were got with them.
    async fn has_material(&self, credential: &Credential, material: &Material) -> Result<bool, Refusal> {
        let (tenant, now) = (&credential.tenant, self.clock.now());
        let sealed = self.credentials.sealed_material(tenant, credential.id, now, Freshness::Newest).await?;
        let Some(version) = sealed else { return Ok(material.is_empty()) };
        let current = self.sealer.unseal(&version.binding, &version.sealed).await?;
        let is_same = |(name, secret): (&str, &Secret)| {
            current.get(name).is_some_and(|current| current.expose() == secret.expose())
        };
        Ok(material.iter().all(is_same))
    }

    /// The vault `mounts`, made where there is none.
    async fn vault_of_mounts(&self, audit: &Mandate) -> Result<VaultId, Refusal> {
        let page = PageRequest::first(PageRequest::LIMIT);
        let vaults = self.vaults.vaults(audit.tenant(), None, page).await?;
        if let Some((vault, _)) = vaults.items.into_iter().find(|(vault, _)| vault.name.as_str() == VAULT) {
            return Ok(vault.id);
        }
        let name = Line::parse(VAULT).map_err(|error| Refusal::new(Code::InvalidField, error.to_string()))?;
        let vault = Vault {
            id: self.ids.make(audit.time(), VaultId::new)?,
            tenant: audit.tenant().clone(),
            owner: PrincipalId::system(),
            name,
            created_at: audit.time(),
        };
        self.vaults.create_vault(CreateVault { audit: audit.clone(), vault: vault.clone() }).await?;
        Ok(vault.id)
    }
}
