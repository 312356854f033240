//! Master keys: which of them wraps what, and rekeying.

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

/// Stores a data key that was wrapped anew.
#[derive(Clone)]
pub struct Rewrap {
    /// Which version.
    pub binding: SealBinding,
    /// The wrapped key as it was read; another one now means that somebody else was faster.
    pub replaced: Vec<u8>,
    /// The same material under the new wrapping.
    pub sealed: SealedMaterial,
}

/// Records a finished rekey in the platform's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordRekey {
    /// Who and when.
    pub audit: AuditContext,
    /// The key in use now.
    pub key: MasterKeyId,
    /// How many data keys were wrapped anew.
    pub rewrapped: u64,
}

/// How much a master key wraps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyUsage {
    /// Which key.
    pub key: MasterKeyId,
    /// How many data keys.
    pub wraps: u64,
    /// When it was retired, if it was.
    pub retired_at: Option<Timestamp>,
}
