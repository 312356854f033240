//! Credentials: material enters here, is sealed at once, and is never returned.

use serde_json::{Map, Value};
use toolgate_model::connection::Connection;
use toolgate_model::credential::{
    AuthType, Credential, CredentialStatus, MaterialError, ServiceName, check_material, lift_secrets, refuse_leaks,
};
use toolgate_model::id::{CredentialId, VaultId};
use toolgate_model::principal::TenantId;
use toolgate_model::scope::ScopeSet;
use toolgate_model::secret::Material;
use toolgate_model::text::Line;
use toolgate_model::time::Timestamp;

use crate::authority::Administration;
use crate::identify::Caller;
use crate::ports::ledger::{
    CreateCredential, Freshness, Mandate, NewExpiry, Page, PageRequest, RevokeCredential, Revoked, RotateCredential,
};
use crate::ports::sealer::SealBinding;
use crate::refusal::{Code, Refusal};

/// How often material is sealed again if its master key was retired, or its version replaced, in the meantime.
const ATTEMPTS: u32 = 4;

/// A credential to be added.
pub struct NewCredential {
    pub vault: VaultId,
    pub service: ServiceName,
    /// A name for people.
    pub label: Line,
    pub auth_type: AuthType,
    /// The scopes that grants on it can include.
    pub scopes_available: ScopeSet,
    /// Other metadata; secrets in it are moved to the material.
    pub metadata: Map<String, Value>,
    pub material: Material,
    pub expires_at: Option<Timestamp>,
}

/// New material for a credential.
pub struct NewMaterial {
    pub material: Material,
    /// New metadata. `None` keeps the present metadata, and so does metadata that contains nothing but secrets, which
    /// are moved to the material.
    pub metadata: Option<Map<String, Value>>,
    /// A new expiry; `None` keeps it, `Some(None)` removes it.
    pub expires_at: Option<Option<Timestamp>>,
}

/// The state of a credential's material.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MaterialState {
    /// Destroyed with the credential.
    Destroyed,
    /// It can be unsealed.
    Intact,
    /// None has been added yet.
    None,
}

impl Administration {
    pub async fn create_credential(&self, caller: &Caller, new: NewCredential) -> Result<Credential, Refusal> {
        self.managed_vault(caller, new.vault).await?;
        self.store_credential(caller.mandate(self.clock.now()), new).await
    }

    /// Seals the material of a new credential and stores it, in a vault that the caller may use.
    pub(super) async fn store_credential(&self, audit: Mandate, mut new: NewCredential) -> Result<Credential, Refusal> {
        lift_secrets(&mut new.metadata, &mut new.material)?;
        check_connection(&new.metadata)?;
        check_material(new.auth_type, &new.material)?;
        refuse_leaks(&new.material, &new.metadata, new.label.as_str())?;
        self.require_future(new.expires_at)?;
        let credential = Credential {
            id: self.ids.make(audit.time(), CredentialId::new)?,
            tenant: audit.tenant().clone(),
            vault: new.vault,
            service: new.service,
            label: new.label,
            auth_type: new.auth_type,
            scopes_available: new.scopes_available,
            metadata: new.metadata,
            version: u32::from(!new.material.is_empty()),
            material_fields: new.material.names().map(str::to_owned).collect(),
            created_at: audit.time(),
            rotated_at: audit.time(),
            expires_at: new.expires_at,
            revoked_at: None,
        };
        let binding = SealBinding::of_credential(audit.tenant(), credential.id, 1);
        for _ in 0..ATTEMPTS {
            let sealed = match new.material.is_empty() {
                true => None,
                false => Some(self.sealer.seal(&binding, &new.material).await?),
            };
            let command = CreateCredential { audit: audit.clone(), credential: credential.clone(), sealed };
            match self.credentials.create_credential(command).await {
                Err(refusal) if refusal.code() == Code::MasterKeyRetired => {}
                other => return other.map(|()| credential),
            }
        }
        Err(too_busy())
    }

    /// Without its material.
    pub async fn credential(&self, caller: &Caller, id: CredentialId) -> Result<Credential, Refusal> {
        self.managed_credential(caller, id).await
    }

    /// The credential that a mount is inspected with, as long as it can be used.
    pub(super) async fn credential_of_mount(
        &self,
        tenant: &TenantId,
        id: CredentialId,
    ) -> Result<Option<Credential>, Refusal> {
        let credential = self.credentials.credential(tenant, id).await?;
        Ok(credential.filter(|credential| credential.status(self.clock.now()) == CredentialStatus::Active))
    }

    pub async fn credentials(
        &self,
        caller: &Caller,
        vault: VaultId,
        page: PageRequest,
    ) -> Result<Page<Credential>, Refusal> {
        self.managed_vault(caller, vault).await?;
        self.credentials.credentials(caller.tenant(), Some(vault), page).await
    }

    /// Replaces the material. The id, the grants and the scopes stay; an expired credential becomes active again.
    pub async fn rotate_credential(
        &self,
        caller: &Caller,
        id: CredentialId,
        new: NewMaterial,
    ) -> Result<Credential, Refusal> {
        let credential = self.managed_credential(caller, id).await?;
        self.replace_material(caller.mandate(self.clock.now()), credential, new).await
    }

    /// Seals new material of a credential that the caller may manage.
    pub(super) async fn replace_material(
        &self,
        audit: Mandate,
        mut credential: Credential,
        mut new: NewMaterial,
    ) -> Result<Credential, Refusal> {
        let id = credential.id;
        if let Some(metadata) = &mut new.metadata {
            let stated = new.material.names().count();
            lift_secrets(metadata, &mut new.material)?;
            check_connection(metadata)?;
            // Metadata that contained nothing but the secret was only its envelope, and does not replace the rest.
            if new.material.names().count() > stated && is_empty(metadata) {
                new.metadata = None;
            }
        }
        if new.material.is_empty() {
            let reason = "send the new secret in `material`, for example {\"material\": {\"api_key\": \"...\"}}";
            return Err(Refusal::new(Code::InvalidField, reason).with("path", "material"));
        }
        check_material(credential.auth_type, &new.material)?;
        let metadata = new.metadata.as_ref().unwrap_or(&credential.metadata);
        refuse_leaks(&new.material, metadata, credential.label.as_str())?;
        self.require_future(new.expires_at.flatten())?;
        for _ in 0..ATTEMPTS {
            let binding = SealBinding::of_credential(audit.tenant(), id, credential.version + 1);
            let command = RotateCredential {
                audit: audit.clone(),
                id,
                expected_version: credential.version,
                sealed: self.sealer.seal(&binding, &new.material).await?,
                material_fields: new.material.names().map(str::to_owned).collect(),
                metadata: new.metadata.clone(),
                end: new.expires_at.map_or(NewExpiry::Later, NewExpiry::At),
                retire_until: audit.time().plus(self.settings.retire_after),
            };
            match self.credentials.rotate_credential(command).await {
                Err(refusal) if matches!(refusal.code(), Code::MasterKeyRetired | Code::VersionConflict) => {
                    let current = self.credentials.credential(audit.tenant(), id).await?;
                    credential = current.ok_or(refusal)?;
                }
                other => return other,
            }
        }
        Err(too_busy())
    }

    /// Revokes a credential permanently.
    pub async fn revoke_credential(
        &self,
        caller: &Caller,
        id: CredentialId,
        reason: Option<Line>,
    ) -> Result<Revoked, Refusal> {
        self.managed_credential(caller, id).await?;
        let reason = reason.map_or_else(|| format!("revoked by `{}`", caller.id()), |line| line.as_str().to_owned());
        self.credentials
            .revoke_credential(RevokeCredential { audit: caller.mandate(self.clock.now()), id, reason })
            .await
    }

    /// Unseals the material and drops it at once, to check that it can be used.
    pub async fn verify_credential(
        &self,
        caller: &Caller,
        id: CredentialId,
    ) -> Result<(Credential, MaterialState), Refusal> {
        let credential = self.managed_credential(caller, id).await?;
        let state =
            match self.credentials.sealed_material(caller.tenant(), id, self.clock.now(), Freshness::Newest).await? {
                Some(version) => {
                    self.sealer.unseal(&version.binding, &version.sealed).await?;
                    MaterialState::Intact
                }
                None if credential.version == 0 => MaterialState::None,
                None => MaterialState::Destroyed,
            };
        Ok((credential, state))
    }

    pub(crate) fn require_future(&self, end: Option<Timestamp>) -> Result<(), Refusal> {
        match end {
            Some(end) if end <= self.clock.now() => {
                let reason = format!("`expires_at` is {end}, which is in the past; use a future time");
                Err(Refusal::new(Code::InvalidField, reason).with("path", "expires_at"))
            }
            _ => Ok(()),
        }
    }
}

impl From<MaterialError> for Refusal {
    fn from(error: MaterialError) -> Self {
        let path = match &error {
            MaterialError::Buried { path } | MaterialError::Field { path } | MaterialError::Leak { path, .. } => path,
            MaterialError::Incomplete { .. } | MaterialError::Name | MaterialError::Twice { .. } => "material",
        };
        Self::new(Code::InvalidField, error.to_string()).with("path", path)
    }
}

/// Metadata about how the service is reached must be valid before anything depends on it.
fn check_connection(metadata: &Map<String, Value>) -> Result<(), Refusal> {
    Connection::from_metadata(metadata).map(drop).map_err(Refusal::from)
}

/// Whether metadata is empty after its secrets were removed.
fn is_empty(metadata: &Map<String, Value>) -> bool {
    metadata.iter().all(|(name, value)| name == "auth" && value.as_object().is_some_and(Map::is_empty))
}

fn too_busy() -> Refusal {
    Refusal::new(Code::VersionConflict, "the credential or its master key keeps changing; try again")
}
