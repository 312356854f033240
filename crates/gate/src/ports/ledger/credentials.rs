//! Credentials and their sealed material.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};
use toolgate_model::credential::Credential;
use toolgate_model::id::{CredentialId, VaultId};
use toolgate_model::principal::TenantId;
use toolgate_model::time::Timestamp;

use super::{Freshness, Mandate, Page, PageRequest, Revoked};
use crate::ports::sealer::{SealBinding, SealedMaterial};
use crate::refusal::Refusal;

#[async_trait]
pub trait Credentials: Send + Sync {
    async fn create_credential(&self, command: CreateCredential) -> Result<(), Refusal>;
    async fn credential(&self, tenant: &TenantId, id: CredentialId) -> Result<Option<Credential>, Refusal>;
    /// Returns the credentials of a tenant or of one vault.
    async fn credentials(
        &self,
        tenant: &TenantId,
        vault: Option<VaultId>,
        page: PageRequest,
    ) -> Result<Page<Credential>, Refusal>;
    /// Returns the credentials, revoked ones included, whose service has this lower-case name or begins with it, or that
    /// may define a tool of this name.
    async fn credentials_naming(&self, tenant: &TenantId, name: &str) -> Result<Vec<Credential>, Refusal>;
    /// Replaces the material of a credential.
    async fn rotate_credential(&self, command: RotateCredential) -> Result<Credential, Refusal>;
    /// Revokes a credential for good: destroys its material and revokes its grants.
    async fn revoke_credential(&self, command: RevokeCredential) -> Result<Revoked, Refusal>;
    /// Returns the sealed material of the current version.
    async fn sealed_material(
        &self,
        tenant: &TenantId,
        id: CredentialId,
        now: Timestamp,
        freshness: Freshness,
    ) -> Result<Option<Arc<SealedVersion>>, Refusal>;
    /// Destroys replaced material that no call can need any more; returns the number of versions.
    async fn destroy_retired(&self, now: Timestamp) -> Result<u64, Refusal>;
}

/// Adds a credential.
#[derive(Clone)]
pub struct CreateCredential {
    /// Who and when, and by which right.
    pub audit: Mandate,
    /// The credential.
    pub credential: Credential,
    /// Its material, where it came with some.
    pub sealed: Option<SealedMaterial>,
}

/// What becomes of the end of a credential whose material is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewExpiry {
    /// This, or none.
    At(Option<Timestamp>),
    /// It stays, unless it is past: a person's fresh material for an expired credential starts over without an end.
    Later,
    /// It stays, also where it is past: what a credential renews by itself never outlives what a person has set.
    Same,
}

/// Replaces material.
#[derive(Clone)]
pub struct RotateCredential {
    /// Who and when, and by which right.
    pub audit: Mandate,
    /// Which credential.
    pub id: CredentialId,
    /// The version that is replaced; another one now is a conflict.
    pub expected_version: u32,
    /// The new material, sealed for the version after it.
    pub sealed: SealedMaterial,
    /// The names of its fields.
    pub material_fields: Vec<String>,
    /// New metadata; `None` keeps what there is.
    pub metadata: Option<Map<String, Value>>,
    /// What becomes of its end.
    pub end: NewExpiry,
    /// Until when the replaced version stays for calls already admitted.
    pub retire_until: Timestamp,
}

/// Ends a credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevokeCredential {
    /// Who and when, and by which right.
    pub audit: Mandate,
    /// Which.
    pub id: CredentialId,
    /// Why.
    pub reason: String,
}

/// Sealed material with what it is bound to.
#[derive(Clone)]
pub struct SealedVersion {
    /// What it belongs to.
    pub binding: SealBinding,
    /// The material.
    pub sealed: SealedMaterial,
}
