//! Master keys from environment variables, for platforms that provide secrets that way (containers, CI). To rotate, set
//! the new key as the current one and move the old one to the previous keys.

use async_trait::async_trait;
use toolgate_gate::ports::sealer::MasterKeyId;
use toolgate_model::secret::Secret;

use crate::key_provider::keyring::Keyring;
use crate::key_provider::{KeyError, KeyProvider, WrappedKey};
use crate::symmetric_key::SymmetricKey;

/// The current master key: base64 of 32 bytes.
pub const CURRENT_VARIABLE: &str = "TOOLGATE_MASTER_KEY";

/// Older master keys that may still unwrap, separated by commas.
pub const PREVIOUS_VARIABLE: &str = "TOOLGATE_MASTER_KEY_PREVIOUS";

pub struct EnvironmentProvider {
    keyring: Keyring,
}

impl EnvironmentProvider {
    /// Parses the values of [`CURRENT_VARIABLE`] and [`PREVIOUS_VARIABLE`].
    pub fn new(current: &Secret, previous: Option<&Secret>) -> Result<Self, KeyError> {
        let mut keyring = Keyring::new(read_key(current.expose(), CURRENT_VARIABLE)?);
        let previous = previous.map_or("", |secret| secret.expose().trim());
        // Deployment files set an empty value for "none".
        if !previous.is_empty() {
            for text in previous.split(',') {
                keyring.add(read_key(text, PREVIOUS_VARIABLE)?);
            }
        }
        Ok(Self { keyring })
    }
}

#[async_trait]
impl KeyProvider for EnvironmentProvider {
    async fn current_key(&self) -> Result<MasterKeyId, KeyError> {
        Ok(self.keyring.current().clone())
    }

    async fn wrap(&self, data_key: &SymmetricKey, context: &str) -> Result<WrappedKey, KeyError> {
        self.keyring.wrap(data_key, context)
    }

    async fn unwrap(&self, key: &MasterKeyId, wrapped: &[u8], context: &str) -> Result<SymmetricKey, KeyError> {
        self.keyring.unwrap(key, wrapped, context)
    }

    async fn renew(&self) -> Result<MasterKeyId, KeyError> {
        self.current_key().await
    }

    async fn forget(&self, _key: &MasterKeyId) -> Result<(), KeyError> {
        Ok(())
    }
}

fn read_key(text: &str, variable: &str) -> Result<SymmetricKey, KeyError> {
    SymmetricKey::from_base64(text.trim()).ok_or_else(|| {
        KeyError::failed(format!(
            "{variable} must be the base64 encoding of 32 random bytes; generate it with: head -c 32 /dev/urandom | base64"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTEXT: &str = "here";

    fn key() -> String {
        SymmetricKey::random().unwrap().to_base64().to_string()
    }

    fn provider(current: &str, previous: Option<&str>) -> Result<EnvironmentProvider, KeyError> {
        let previous = previous.map(|text| Secret::new(text.to_owned()));
        EnvironmentProvider::new(&Secret::new(current.to_owned()), previous.as_ref())
    }

    #[tokio::test]
    async fn a_key_moved_to_the_previous_ones_still_unwraps_but_wraps_no_more() {
        let (first, second, third) = (key(), key(), key());
        let data_key = SymmetricKey::random().unwrap();
        let before = provider(&first, None).unwrap();
        let wrapped = before.wrap(&data_key, CONTEXT).await.unwrap();

        let after = provider(&second, Some(&format!("{third}, {first}"))).unwrap();
        let unwrapped = after.unwrap(&wrapped.key, &wrapped.bytes, CONTEXT).await.unwrap();
        assert!(unwrapped.is_same(&data_key));
        assert_ne!(after.wrap(&data_key, CONTEXT).await.unwrap().key, wrapped.key);

        let later = provider(&second, Some(&third)).unwrap();
        let gone = later.unwrap(&wrapped.key, &wrapped.bytes, CONTEXT).await.err();
        assert_eq!(gone, Some(KeyError::Missing { key: wrapped.key }));
    }

    #[tokio::test]
    async fn renewing_answers_the_current_key_and_forgetting_changes_nothing() {
        let provider = provider(&key(), Some("")).unwrap();
        let current = provider.current_key().await.unwrap();
        assert_eq!(provider.renew().await, Ok(current.clone()));
        assert_eq!(provider.forget(&current).await, Ok(()));
        assert_eq!(provider.check().await, Ok(()));
    }

    #[test]
    fn a_value_that_is_no_key_is_refused_by_the_name_of_its_variable_and_not_shown() {
        let good = key();
        for bad in ["", "secret!", "c2hvcnQ=", good.trim_end_matches('='), &format!("{good}{good}")] {
            let reason = provider(bad, None).err().unwrap().to_string();
            assert!(reason.starts_with("TOOLGATE_MASTER_KEY must"), "{reason}");
            assert!(bad.is_empty() || !reason.contains(bad), "{reason}");
        }
        for bad in [",", "c2hvcnQ=", &format!("{good},"), &format!("{good};{good}")] {
            let reason = provider(&good, Some(bad)).err().unwrap().to_string();
            assert!(reason.starts_with("TOOLGATE_MASTER_KEY_PREVIOUS must"), "{reason}");
        }
    }
}
