//! Master keys: what each of them wraps, and rekeying.

use async_trait::async_trait;
use toolgate_model::time::Timestamp;

use super::{AuditContext, SealedVersion};
use crate::ports::sealer::{MasterKeyId, SealBinding, SealSubject, SealedMaterial};
use crate::refusal::Refusal;

/// The master keys that wrap the data keys of sealed material.
#[async_trait]
pub trait MasterKeys: Send + Sync {
    /// Returns how many data keys each master key wraps.
    async fn key_usage(&self) -> Result<Vec<KeyUsage>, Refusal>;
    /// Registers a master key before anything is stored under it, so that it can be retired later.
    async fn register_key(&self, key: &MasterKeyId) -> Result<(), Refusal>;
    /// Returns sealed versions that another key than `current` wraps, in order, after the given one.
    async fn sealed_under_other_keys(
        &self,
        current: &MasterKeyId,
        after: Option<SealSubject>,
        limit: u32,
    ) -> Result<Vec<SealedVersion>, Refusal>;
    /// Stores a data key that was wrapped again; returns false where the version changed in between.
    async fn rewrap(&self, command: Rewrap) -> Result<bool, Refusal>;
    /// Retires a master key that wraps nothing: nothing can be stored under it any more. Returns false while it wraps
    /// something.
    async fn retire_key(&self, key: &MasterKeyId, time: Timestamp) -> Result<bool, Refusal>;
    /// Records that a rekey is complete.
    async fn record_rekey(&self, command: RecordRekey) -> Result<(), Refusal>;
}

/// Stores a rewrapped data key.
#[derive(Clone)]
pub struct Rewrap {
    pub binding: SealBinding,
    /// The wrapped key as it was read; any other present value means a concurrent rewrap.
    pub replaced: Vec<u8>,
    /// The same material with the new wrapping.
    pub sealed: SealedMaterial,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordRekey {
    pub audit: AuditContext,
    pub key: MasterKeyId,
    pub rewrapped: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyUsage {
    pub key: MasterKeyId,
    pub wraps: u64,
    pub retired_at: Option<Timestamp>,
}
