//! The keys of principals.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use toolgate_model::external_identity::ExternalIdentity;
use toolgate_model::id::KeyId;
use toolgate_model::key::KeyDigest;
use toolgate_model::principal::{KeyRecord, Principal, PrincipalId, TenantId};
use toolgate_model::text::Line;
use toolgate_model::time::Timestamp;

use super::{Freshness, Generation, Mandate};
use crate::refusal::Refusal;

#[async_trait]
pub trait Keys: Send + Sync {
    async fn create_key(&self, command: CreateKey) -> Result<KeyRecord, Refusal>;
    /// Returns the keys of a principal, newest first.
    async fn keys(&self, tenant: &TenantId, principal: &PrincipalId) -> Result<Vec<KeyRecord>, Refusal>;
    async fn key(&self, tenant: &TenantId, id: KeyId) -> Result<Option<KeyRecord>, Refusal>;
    async fn revoke_key(&self, command: RevokeKey) -> Result<KeyRecord, Refusal>;
    /// The generation that a read from now on has reached.
    fn generation(&self) -> Generation;
    /// Returns the key with this digest and its principal, in any state.
    async fn identify(
        &self,
        digest: &KeyDigest,
        now: Timestamp,
        freshness: Freshness,
    ) -> Result<Option<Arc<(Arc<Principal>, KeyRecord)>>, Refusal>;
    /// Stores when keys were last accepted. Writes no event.
    async fn note_key_use(&self, uses: BTreeMap<KeyId, Timestamp>) -> Result<(), Refusal>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewKey {
    pub id: KeyId,
    pub principal: PrincipalId,
    /// The digest that it is looked up by.
    pub digest: KeyDigest,
    /// Its first letters, or the name of what it represents.
    pub hint: String,
    /// What it represents, if that is not a secret of the gate.
    pub identity: Option<ExternalIdentity>,
    /// A name for people.
    pub label: Option<Line>,
    pub expires_at: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateKey {
    pub audit: Mandate,
    pub key: NewKey,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevokeKey {
    pub audit: Mandate,
    pub id: KeyId,
}
