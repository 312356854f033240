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
    /// Revokes a credential permanently: destroys its material and revokes its grants.
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

#[derive(Clone)]
pub struct CreateCredential {
    pub audit: Mandate,
    pub credential: Credential,
    /// Absent if it is to be added later.
    pub sealed: Option<SealedMaterial>,
}

/// The expiry of a credential after its material is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewExpiry {
    At(Option<Timestamp>),
    /// Unchanged, unless it has passed: new material from a person for an expired credential starts over without
    /// expiry.
    Later,
    /// Unchanged, even if it has passed: what a credential renews by itself never outlives what a person has set.
    Same,
}

#[derive(Clone)]
pub struct RotateCredential {
    pub audit: Mandate,
    pub id: CredentialId,
    /// The version that is replaced; any other current version is a conflict.
    pub expected_version: u32,
    /// The new material, sealed for the next version.
    pub sealed: SealedMaterial,
    pub material_fields: Vec<String>,
    /// `None` keeps the present metadata.
    pub metadata: Option<Map<String, Value>>,
    pub end: NewExpiry,
    /// Until when the replaced version is kept for calls already admitted.
    pub retire_until: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevokeCredential {
    pub audit: Mandate,
    pub id: CredentialId,
    pub reason: String,
}

/// Sealed material with its binding.
#[derive(Clone)]
pub struct SealedVersion {
    pub binding: SealBinding,
    pub sealed: SealedMaterial,
}
