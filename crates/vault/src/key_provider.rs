//! Providers of master keys. A provider wraps data keys under its current master key and unwraps them under any key
//! that it still has. The master key need not be in this process.

use async_trait::async_trait;
use thiserror::Error;
use toolgate_gate::ports::sealer::MasterKeyId;

use crate::symmetric_key::SymmetricKey;

pub mod command;
pub mod environment;
pub mod file;
mod keyring;

/// A data key wrapped under a master key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrappedKey {
    pub key: MasterKeyId,
    /// The wrapped key, opaque to everything but the provider.
    pub bytes: Vec<u8>,
}

/// Why a provider failed. No variant contains a key.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum KeyError {
    /// The wrapped key was not made by this master key for this context, or was modified since.
    #[error("the wrapped key cannot be decrypted: it is damaged, or was wrapped for another context")]
    Unauthentic,
    #[error("master key {} is not available", key.0)]
    Missing { key: MasterKeyId },
    /// The provider itself failed.
    #[error("{reason}")]
    Failed {
        /// What failed and what to do, without any secret.
        reason: String,
    },
}

impl KeyError {
    pub(crate) fn failed(reason: impl Into<String>) -> Self {
        Self::Failed { reason: reason.into() }
    }
}

#[async_trait]
pub trait KeyProvider: Send + Sync {
    /// The master key that the next [`KeyProvider::wrap`] uses.
    async fn current_key(&self) -> Result<MasterKeyId, KeyError>;

    /// Wraps a data key under the current master key, bound to the context.
    async fn wrap(&self, data_key: &SymmetricKey, context: &str) -> Result<WrappedKey, KeyError>;

    /// Unwraps the output of [`KeyProvider::wrap`] for the same context.
    async fn unwrap(&self, key: &MasterKeyId, wrapped: &[u8], context: &str) -> Result<SymmetricKey, KeyError>;

    /// Creates a new current master key if the provider manages its own keys; otherwise returns the current one.
    async fn renew(&self) -> Result<MasterKeyId, KeyError>;

    /// Removes a master key that no longer wraps anything, if the provider manages its own keys. A missing key is not
    /// an error; the current key is never removed.
    async fn forget(&self, key: &MasterKeyId) -> Result<(), KeyError>;

    /// Wraps and unwraps a throw-away key.
    async fn check(&self) -> Result<(), KeyError> {
        let context = r#"{"purpose":"check"}"#;
        let probe = SymmetricKey::random()?;
        let wrapped = self.wrap(&probe, context).await?;
        let returned = self.unwrap(&wrapped.key, &wrapped.bytes, context).await?;
        if !probe.is_same(&returned) {
            return Err(KeyError::failed("the key provider unwrapped a different key than it wrapped"));
        }
        Ok(())
    }
}
