//! Commands on vaults, credentials and what seals them.

use serde_json::{Map, Value};
use toolgate_model::credential::{Credential, Vault};
use toolgate_model::id::{CredentialId, VaultId};
use toolgate_model::time::Timestamp;

use super::{Mandate, Revision, Stamp};
use crate::ports::sealer::{MasterKeyId, SealBinding, SealedMaterial};

/// Makes a vault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateVault {
    /// Who and when, and by which right.
    pub stamp: Mandate,
    /// The vault.
    pub vault: Vault,
}

/// Deletes a vault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeleteVault {
    /// Who and when, and by which right.
    pub stamp: Mandate,
    /// Which.
    pub id: VaultId,
}

/// What ended with a vault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deleted {
    /// Credentials.
    pub credentials: u64,
    /// Grants.
    pub grants: u64,
    /// From which revision on.
    pub revision: Revision,
}

/// Adds a credential.
#[derive(Clone)]
pub struct CreateCredential {
    /// Who and when, and by which right.
    pub stamp: Mandate,
    /// The credential.
    pub credential: Credential,
    /// Its material, where it came with some.
    pub sealed: Option<SealedMaterial>,
}

/// What becomes of the end of a credential whose material is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewEnd {
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
    pub stamp: Mandate,
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
    pub end: NewEnd,
    /// Until when the replaced version stays for calls already admitted.
    pub retire_until: Timestamp,
}

/// Ends a credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevokeCredential {
    /// Who and when, and by which right.
    pub stamp: Mandate,
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
    pub stamp: Stamp,
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
