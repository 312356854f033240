//! Signatures of the Standard Webhooks: over an id, a time and the very bytes that are sent.

use aws_lc_rs::hmac;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use thiserror::Error;
use toolgate_model::secret::Secret;
use zeroize::Zeroizing;

/// The prefix of a Standard Webhooks secret; the rest is the key in base64.
const PREFIX: &str = "whsec_";

/// The key of signatures.
pub struct SignatureKey(hmac::Key);

/// Why a secret is no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SignatureKeyError {
    #[error("the signing secret is empty")]
    Empty,
    #[error("the signing secret begins with `whsec_`, but the rest is not base64")]
    NotBase64,
}

impl SignatureKey {
    /// The key of a secret: the part after `whsec_`, decoded, or the text itself.
    pub fn of(secret: &Secret) -> Result<Self, SignatureKeyError> {
        let text = secret.expose();
        if text.is_empty() {
            return Err(SignatureKeyError::Empty);
        }
        let Some(encoded) = encoded_part(secret) else {
            return Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, text.as_bytes())));
        };
        match STANDARD.decode(encoded).map(Zeroizing::new) {
            Ok(key) if !key.is_empty() => Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, &key))),
            _ => Err(SignatureKeyError::NotBase64),
        }
    }

    /// The value of the header `webhook-signature`.
    pub(crate) fn signature(&self, id: &str, timestamp: &str, body: &str) -> String {
        let signature = hmac::sign(&self.0, format!("{id}.{timestamp}.{body}").as_bytes());
        format!("v1,{}", STANDARD.encode(signature))
    }
}

/// The part after `whsec_`, which is equivalent to the whole secret.
pub(crate) fn encoded_part(secret: &Secret) -> Option<&str> {
    secret.expose().strip_prefix(PREFIX)
}
