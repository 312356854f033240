//! The sealer: turns material into something that may be stored, and back for one call.

use std::fmt;

use async_trait::async_trait;
use thiserror::Error;
use toolgate_model::id::{CredentialId, InvocationId};
use toolgate_model::principal::TenantId;
use toolgate_model::secret::Material;

/// What sealed material belongs to. It is authenticated with the ciphertext, so that a row copied to another tenant,
/// credential, version or call does not open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealBinding {
    /// The tenant that owns it.
    pub tenant: TenantId,
    /// What is sealed.
    pub subject: SealSubject,
}

/// What is sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SealSubject {
    /// The material of a credential.
    Credential {
        /// Which.
        id: CredentialId,
        /// Its version, counted from one.
        version: u32,
    },
    /// A part of a detached call.
    Call {
        /// Which.
        id: InvocationId,
        /// Which part.
        part: CallPart,
    },
}

/// A part of a detached call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallPart {
    /// What the caller sent.
    Request,
    /// What the caller gets.
    Outcome,
}

impl CallPart {
    /// As it is written in the associated data.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Outcome => "outcome",
        }
    }
}

impl SealBinding {
    /// The binding of a credential's version.
    pub fn of_credential(tenant: &TenantId, id: CredentialId, version: u32) -> Self {
        Self { tenant: tenant.clone(), subject: SealSubject::Credential { id, version } }
    }

    /// The binding of a part of a detached call.
    pub fn of_call(tenant: &TenantId, id: InvocationId, part: CallPart) -> Self {
        Self { tenant: tenant.clone(), subject: SealSubject::Call { id, part } }
    }

    /// The version of the credential; 0 for anything else, which has none.
    pub fn version(&self) -> u32 {
        match self.subject {
            SealSubject::Credential { version, .. } => version,
            SealSubject::Call { .. } => 0,
        }
    }
}

impl fmt::Display for SealSubject {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Credential { id, version } => write!(formatter, "{id} version {version}"),
            Self::Call { id, part } => write!(formatter, "the {} of {id}", part.as_str()),
        }
    }
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
    #[error("{}", damaged(*subject))]
    Damaged {
        /// What does not open.
        subject: SealSubject,
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

fn damaged(subject: SealSubject) -> String {
    match subject {
        SealSubject::Credential { .. } => format!(
            "the sealed material of {subject} is damaged or belongs elsewhere; rotate the credential with fresh material"
        ),
        SealSubject::Call { .. } => format!("{subject} is damaged or belongs elsewhere; call again"),
    }
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
