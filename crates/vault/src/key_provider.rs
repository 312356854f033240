//! Where master keys come from. A provider wraps data keys under its current master key and unwraps them under any it
//! still has; whether the master key is in this process at all is its own affair.

use async_trait::async_trait;
use thiserror::Error;
use toolgate_gate::ports::sealer::MasterKeyId;

use crate::symmetric_key::SymmetricKey;

pub mod command;
pub mod environment;
pub mod file;
mod keyring;

/// A data key under a master key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrappedKey {
    /// The master key that wraps it.
    pub key: MasterKeyId,
    /// What the provider needs to unwrap it again; opaque to everyone else.
    pub bytes: Vec<u8>,
}

/// Why a provider did not do what was asked. No variant carries a key.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum KeyError {
    /// The wrapped key was not made by this master key for this context, or was changed since.
    #[error("the wrapped key does not open: it is damaged, or belongs elsewhere")]
    Unauthentic,
    /// The provider does not have this master key.
    #[error("master key {} is not available", key.0)]
    Missing {
        /// The missing key.
        key: MasterKeyId,
    },
    /// The provider itself is in trouble.
    #[error("{reason}")]
    Failed {
        /// What went wrong and what to do, without any secret.
        reason: String,
    },
}

impl KeyError {
    pub(crate) fn failed(reason: impl Into<String>) -> Self {
        Self::Failed { reason: reason.into() }
    }
}

/// A source of master keys.
#[async_trait]
pub trait KeyProvider: Send + Sync {
    /// The master key that the next [`KeyProvider::wrap`] uses.
    async fn current_key(&self) -> Result<MasterKeyId, KeyError>;

    /// Wraps a data key under the current master key, bound to the context.
    async fn wrap(&self, data_key: &SymmetricKey, context: &str) -> Result<WrappedKey, KeyError>;

    /// Unwraps what [`KeyProvider::wrap`] made for the same context.
    async fn unwrap(&self, key: &MasterKeyId, wrapped: &[u8], context: &str) -> Result<SymmetricKey, KeyError>;

    /// Makes a new master key current where the provider keeps its own keys, else answers the current one.
    async fn renew(&self) -> Result<MasterKeyId, KeyError>;

    /// Drops a master key that wraps nothing any more, where the provider keeps its own keys. One that is already gone
    /// is no error; the current one is never dropped.
    async fn forget(&self, key: &MasterKeyId) -> Result<(), KeyError>;

    /// Wraps and unwraps a throw-away key.
    async fn check(&self) -> Result<(), KeyError> {
        let context = r#"{"purpose":"check"}"#;
        let probe = SymmetricKey::random()?;
        let wrapped = self.wrap(&probe, context).await?;
        let returned = self.unwrap(&wrapped.key, &wrapped.bytes, context).await?;
        if !probe.is_same(&returned) {
            return Err(KeyError::failed("the key provider gave back another key than it was given"));
        }
        Ok(())
    }
}
