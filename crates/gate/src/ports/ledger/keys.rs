//! The keys of principals.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use toolgate_model::certificate::CertificateName;
use toolgate_model::id::KeyId;
use toolgate_model::key::KeyDigest;
use toolgate_model::principal::{KeyRecord, Principal, PrincipalId, TenantId};
use toolgate_model::text::Line;
use toolgate_model::time::Timestamp;

use super::{Freshness, Generation, Mandate};
use crate::refusal::Refusal;

/// The keys of principals, and who presents them.
#[async_trait]
pub trait Keys: Send + Sync {
    async fn create_key(&self, command: CreateKey) -> Result<KeyRecord, Refusal>;
    /// Returns the keys of a principal, newest first.
    async fn keys(&self, tenant: &TenantId, principal: &PrincipalId) -> Result<Vec<KeyRecord>, Refusal>;
    async fn key(&self, tenant: &TenantId, id: KeyId) -> Result<Option<KeyRecord>, Refusal>;
    async fn revoke_key(&self, command: RevokeKey) -> Result<KeyRecord, Refusal>;
    /// The point in the history of authority that a read made from now on has reached.
    fn generation(&self) -> Generation;
    /// Returns the key with this digest and its principal, in whatever state they are.
    async fn identify(
        &self,
        digest: &KeyDigest,
        now: Timestamp,
        freshness: Freshness,
    ) -> Result<Option<Arc<(Arc<Principal>, KeyRecord)>>, Refusal>;
    /// Stores when keys were last accepted. Writes no event.
    async fn note_key_use(&self, uses: BTreeMap<KeyId, Timestamp>) -> Result<(), Refusal>;
}

/// A key to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewKey {
    /// Its name.
    pub id: KeyId,
    /// Whose it is.
    pub principal: PrincipalId,
    /// What it is looked up by.
    pub digest: KeyDigest,
    /// Its first letters, or the name of the certificate.
    pub hint: String,
    /// The client certificate that it stands for; there is nothing secret to present then.
    pub certificate: Option<CertificateName>,
    /// What people call it.
    pub label: Option<Line>,
    /// Until when it is accepted.
    pub expires_at: Option<Timestamp>,
}

/// Adds a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateKey {
    /// Who and when, and by which right.
    pub audit: Mandate,
    /// The key.
    pub key: NewKey,
}

/// Ends a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevokeKey {
    /// Who and when, and by which right.
    pub audit: Mandate,
    /// Which.
    pub id: KeyId,
}
