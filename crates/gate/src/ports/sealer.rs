//! The sealer: encrypts material for storage, and decrypts it for one call.

use std::fmt;

use async_trait::async_trait;
use thiserror::Error;
use toolgate_model::id::{CredentialId, InvocationId, ItemId, StoreId};
use toolgate_model::principal::TenantId;
use toolgate_model::secret::Material;

/// What sealed material belongs to. It is authenticated with the ciphertext, so that a row copied to another tenant,
/// credential, version or call cannot be unsealed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealBinding {
    pub tenant: TenantId,
    pub subject: SealSubject,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SealSubject {
    /// The material of a credential.
    Credential {
        id: CredentialId,
        /// Counted from one.
        version: u32,
    },
    /// A part of a detached call.
    Call { id: InvocationId, part: CallPart },
    /// The key of a store's index.
    Store { id: StoreId },
    /// A text in a store.
    Item { id: ItemId },
}

/// A part of a detached call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallPart {
    /// The caller's request.
    Request,
    /// The outcome for the caller.
    Outcome,
}

impl CallPart {
    /// The form in the associated data.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Outcome => "outcome",
        }
    }
}

impl SealBinding {
    pub fn of_credential(tenant: &TenantId, id: CredentialId, version: u32) -> Self {
        Self { tenant: tenant.clone(), subject: SealSubject::Credential { id, version } }
    }

    pub fn of_call(tenant: &TenantId, id: InvocationId, part: CallPart) -> Self {
        Self { tenant: tenant.clone(), subject: SealSubject::Call { id, part } }
    }

    pub fn of_store(tenant: &TenantId, id: StoreId) -> Self {
        Self { tenant: tenant.clone(), subject: SealSubject::Store { id } }
    }

    pub fn of_item(tenant: &TenantId, id: ItemId) -> Self {
        Self { tenant: tenant.clone(), subject: SealSubject::Item { id } }
    }

    /// The version of the credential; 0 for everything else, which has none.
    pub fn version(&self) -> u32 {
        match self.subject {
            SealSubject::Credential { version, .. } => version,
            SealSubject::Call { .. } | SealSubject::Store { .. } | SealSubject::Item { .. } => 0,
        }
    }
}

impl fmt::Display for SealSubject {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Credential { id, version } => write!(formatter, "{id} version {version}"),
            Self::Call { id, part } => write!(formatter, "the {} of {id}", part.as_str()),
            Self::Store { id } => write!(formatter, "the index key of {id}"),
            Self::Item { id } => write!(formatter, "the text of {id}"),
        }
    }
}

/// The name of a master key: derived from the key or assigned by the key service, not secret.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MasterKeyId(pub String);

/// Material in its stored form.
#[derive(Clone, PartialEq, Eq)]
pub struct SealedMaterial {
    /// The material under its data key: format, nonce, ciphertext, tag.
    pub ciphertext: Vec<u8>,
    /// The data key under the master key.
    pub wrapped_key: Vec<u8>,
    /// The master key that wraps it.
    pub key: MasterKeyId,
}

/// Why sealing or unsealing failed. No variant contains a key or material.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SealError {
    /// The ciphertext or its wrapped key does not authenticate: damaged, or copied from another record.
    #[error("{}", damaged(*subject))]
    Damaged { subject: SealSubject },
    /// The master key that wraps it is not available.
    #[error("master key {} is not available from the key provider; restore it, or rotate the credential with fresh \
        material", key.0)]
    KeyMissing { key: MasterKeyId },
    /// The key provider failed.
    #[error("the key provider failed: {reason}")]
    Provider {
        /// Without any secret.
        reason: String,
    },
}

fn damaged(subject: SealSubject) -> String {
    match subject {
        SealSubject::Credential { .. } => format!(
            "the sealed material of {subject} is damaged or belongs to another record; rotate the credential with \
            fresh material"
        ),
        SealSubject::Call { .. } => format!("{subject} is damaged or belongs to another record; call again"),
        SealSubject::Store { .. } | SealSubject::Item { .. } => {
            format!("{subject} is damaged or belongs to another record; restore it from a backup, or remove it")
        }
    }
}

/// Seals and unseals material under a master key that never leaves the implementation.
#[async_trait]
pub trait Sealer: Send + Sync {
    /// Seals material under a new data key, wrapped by the current master key.
    async fn seal(&self, binding: &SealBinding, material: &Material) -> Result<SealedMaterial, SealError>;

    /// Unseals the result of [`Sealer::seal`] for the same binding.
    async fn unseal(&self, binding: &SealBinding, sealed: &SealedMaterial) -> Result<Material, SealError>;

    /// Wraps the same data key under the current master key; the ciphertext stays the same.
    async fn rewrap(&self, binding: &SealBinding, sealed: &SealedMaterial) -> Result<SealedMaterial, SealError>;

    /// The master key that new material is sealed under.
    async fn current_key(&self) -> Result<MasterKeyId, SealError>;

    /// Makes a new master key current if the provider manages its own keys; old ones can still unwrap. If a key service
    /// decides which key is current, returns that one.
    async fn renew_key(&self) -> Result<MasterKeyId, SealError>;

    /// Removes a master key that no longer wraps anything. The current key is never removed.
    async fn forget_key(&self, key: &MasterKeyId) -> Result<(), SealError>;

    /// Wraps and unwraps a value, to check that the provider works.
    async fn check(&self) -> Result<(), SealError>;
}
