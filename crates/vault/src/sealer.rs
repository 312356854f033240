//! The gate's `Sealer` port over a key provider: a data key encrypts the material, a master key wraps the data key.

use std::sync::Arc;

use async_trait::async_trait;
use toolgate_gate::ports::sealer::{MasterKeyId, SealBinding, SealError, SealedMaterial, Sealer};
use toolgate_model::secret::Material;

use crate::envelope::{self, Purpose, associated_data};
use crate::key_provider::{KeyError, KeyProvider};
use crate::symmetric_key::SymmetricKey;

pub struct VaultSealer {
    provider: Arc<dyn KeyProvider>,
}

impl VaultSealer {
    pub fn new(provider: Arc<dyn KeyProvider>) -> Self {
        Self { provider }
    }

    async fn wrap(
        &self,
        binding: &SealBinding,
        data_key: &SymmetricKey,
        ciphertext: Vec<u8>,
    ) -> Result<SealedMaterial, KeyError> {
        let wrapped = self.provider.wrap(data_key, &associated_data(binding, Purpose::DataKey)).await?;
        Ok(SealedMaterial { ciphertext, wrapped_key: envelope::with_format(&wrapped.bytes), key: wrapped.key })
    }

    async fn unwrap(&self, binding: &SealBinding, sealed: &SealedMaterial) -> Result<SymmetricKey, KeyError> {
        let wrapped = envelope::without_format(&sealed.wrapped_key).ok_or(KeyError::Unauthentic)?;
        self.provider.unwrap(&sealed.key, wrapped, &associated_data(binding, Purpose::DataKey)).await
    }
}

#[async_trait]
impl Sealer for VaultSealer {
    async fn seal(&self, binding: &SealBinding, material: &Material) -> Result<SealedMaterial, SealError> {
        let sealed = async {
            let data_key = SymmetricKey::random()?;
            let ciphertext = envelope::seal_material(&data_key, binding, material)?;
            self.wrap(binding, &data_key, ciphertext).await
        };
        sealed.await.map_err(|error| seal_error(error, binding))
    }

    async fn unseal(&self, binding: &SealBinding, sealed: &SealedMaterial) -> Result<Material, SealError> {
        let data_key = self.unwrap(binding, sealed).await.map_err(|error| seal_error(error, binding))?;
        envelope::open_material(&data_key, binding, &sealed.ciphertext)
            .and_then(|plaintext| Material::from_plaintext(&plaintext))
            .ok_or_else(|| damaged(binding))
    }

    async fn rewrap(&self, binding: &SealBinding, sealed: &SealedMaterial) -> Result<SealedMaterial, SealError> {
        let data_key = self.unwrap(binding, sealed).await.map_err(|error| seal_error(error, binding))?;
        // A key service may return a wrong key without noticing. Wrapping it would replace a wrapped key that might
        // still be opened later, so the key must first decrypt the ciphertext.
        if envelope::open_material(&data_key, binding, &sealed.ciphertext).is_none() {
            return Err(damaged(binding));
        }
        let rewrapped = self.wrap(binding, &data_key, sealed.ciphertext.clone()).await;
        rewrapped.map_err(|error| seal_error(error, binding))
    }

    async fn current_key(&self) -> Result<MasterKeyId, SealError> {
        self.provider.current_key().await.map_err(provider_error)
    }

    async fn renew_key(&self) -> Result<MasterKeyId, SealError> {
        self.provider.renew().await.map_err(provider_error)
    }

    async fn forget_key(&self, key: &MasterKeyId) -> Result<(), SealError> {
        self.provider.forget(key).await.map_err(provider_error)
    }

    async fn check(&self) -> Result<(), SealError> {
        self.provider.check().await.map_err(provider_error)
    }
}

fn damaged(binding: &SealBinding) -> SealError {
    SealError::Damaged { subject: binding.subject }
}

fn seal_error(error: KeyError, binding: &SealBinding) -> SealError {
    match error {
        KeyError::Unauthentic => damaged(binding),
        other => provider_error(other),
    }
}

/// For operations without a credential: a failed probe is a failure of the provider.
fn provider_error(error: KeyError) -> SealError {
    match error {
        KeyError::Missing { key } => SealError::KeyMissing { key },
        other => SealError::Provider { reason: other.to_string() },
    }
}

#[cfg(test)]
mod tests;
