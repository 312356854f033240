//! The sealer: turns material into something that may be stored, and back for one call.

use async_trait::async_trait;
use thiserror::Error;
use toolgate_model::id::CredentialId;
use toolgate_model::principal::TenantId;
use toolgate_model::secret::Material;

/// What a sealed version belongs to. It is authenticated with the ciphertext, so that a row copied to another tenant,
/// credential or version does not open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealBinding {
    /// The tenant that owns the credential.
    pub tenant: TenantId,
    /// The credential.
    pub credential: CredentialId,
    /// Its version, counted from one.
    pub version: u32,
}

/// The name of a master key: derived from the key or given by the key service, never secret.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MasterKeyId(pub String);

/// Material as it is stored.
#[derive(Clone, PartialEq, Eq)]
pub struct SealedMaterial {
    /// The material under its data key: format, nonce, ciphertext, tag.
    pub ciphertext: Vec<u8>,
    /// The data key under the master key.
    pub wrapped_key: Vec<u8>,
    /// Which master key wraps it.
    pub key: MasterKeyId,
}

/// Why sealing or unsealing failed. No variant carries key or material.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SealError {
    /// The ciphertext or its wrapped key does not authenticate: damaged, or moved from elsewhere.
    #[error(
        "the sealed material of {credential} version {version} is damaged or belongs elsewhere; rotate the credential with fresh material"
    )]
    Damaged {
        /// Whose material.
        credential: CredentialId,
        /// Which version.
        version: u32,
    },
    /// The master key that wraps it is not at hand.
    #[error("master key {} is not available from the key provider; give it back, or rotate the credential with fresh material", key.0)]
    KeyMissing {
        /// The missing key.
        key: MasterKeyId,
    },
    /// The key provider did not answer as it should.
    #[error("the key provider failed: {reason}")]
    Provider {
        /// What went wrong, without any secret.
        reason: String,
    },
}

/// Seals and unseals material under a master key that never leaves the implementation.
#[async_trait]
pub trait Sealer: Send + Sync {
    /// Seals material under a fresh data key, wrapped by the current master key.
    async fn seal(&self, binding: &SealBinding, material: &Material) -> Result<SealedMaterial, SealError>;

    /// Opens what [`Sealer::seal`] made for the same binding.
    async fn unseal(&self, binding: &SealBinding, sealed: &SealedMaterial) -> Result<Material, SealError>;

    /// Wraps the same data key under the current master key; the ciphertext stays as it is.
    async fn rewrap(&self, binding: &SealBinding, sealed: &SealedMaterial) -> Result<SealedMaterial, SealError>;

    /// The master key that new material is sealed under.
    async fn current_key(&self) -> Result<MasterKeyId, SealError>;

    /// Makes a new master key current where the provider keeps its own keys; the old ones stay able to unwrap. Where a
    /// key service decides which key is current, answers that one.
    async fn renew_key(&self) -> Result<MasterKeyId, SealError>;

    /// Forgets a master key that wraps nothing any more. The current key is never forgotten.
    async fn forget_key(&self, key: &MasterKeyId) -> Result<(), SealError>;

    /// Wraps and unwraps something, to see that the provider works.
    async fn check(&self) -> Result<(), SealError>;
}
