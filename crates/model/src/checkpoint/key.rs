//! The Ed25519 keys that sign and verify heads of the log.

use std::fmt;

use aws_lc_rs::rand;
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use thiserror::Error;
use zeroize::Zeroizing;

use crate::merkle::sha256;

/// The key name in every signature of Toolgate.
pub const KEY_NAME: &str = "toolgate";

/// The number of Ed25519 in the signed-note format.
const ALGORITHM: u8 = 1;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum KeyError {
    #[error("must be a public key: {KEY_NAME}+<8 hex digits>+<base64>, or the 32 bytes of the key in base64")]
    Malformed,
    #[error("the public key and its checksum do not match; copy the key again")]
    Checksum,
    #[error("could not generate a signing key; check the random number generator of the system")]
    Unavailable,
}

/// Signs the heads of the log.
///
/// INVARIANT: implements none of `Debug`, `Display`, `Serialize`, `Clone`, `PartialEq`.
pub struct SigningKey {
    seed: Zeroizing<[u8; 32]>,
    pair: Ed25519KeyPair,
    public: PublicKey,
}

/// Verifies the heads of the log. Displayed as a verifier key of the signed-note format.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PublicKey([u8; 32]);

impl SigningKey {
    /// The key of a seed; the caller must wipe its copy.
    pub fn from_seed(seed: &[u8; 32]) -> Result<Self, KeyError> {
        let seed = Zeroizing::new(*seed);
        let pair = Ed25519KeyPair::from_seed_unchecked(seed.as_slice()).map_err(|_| KeyError::Unavailable)?;
        let public = pair.public_key().as_ref().try_into().map_err(|_| KeyError::Unavailable)?;
        Ok(Self { seed, pair, public: PublicKey(public) })
    }

    /// Generates a key with the cryptographic library.
    pub fn generate() -> Result<Self, KeyError> {
        let mut seed = Zeroizing::new([0; 32]);
        rand::fill(seed.as_mut_slice()).map_err(|_| KeyError::Unavailable)?;
        Self::from_seed(&seed)
    }

    /// The seed, for the key file. Review every caller.
    pub fn expose_seed(&self) -> &[u8; 32] {
        &self.seed
    }

    pub fn public_key(&self) -> &PublicKey {
        &self.public
    }

    pub(super) fn sign(&self, text: &[u8]) -> Option<Vec<u8>> {
        self.pair.try_sign(text).ok().map(|signature| signature.as_ref().to_vec())
    }
}

impl PublicKey {
    /// Parses the verifier key, or the bare 32 bytes in base64.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let text = text.trim();
        let Some(rest) = text.strip_prefix(KEY_NAME).and_then(|rest| rest.strip_prefix('+')) else {
            let bytes = STANDARD.decode(text).map_err(|_| KeyError::Malformed)?;
            return bytes.try_into().map(Self).map_err(|_| KeyError::Malformed);
        };
        let (_, encoded) = rest.split_once('+').ok_or(KeyError::Malformed)?;
        let bytes = STANDARD.decode(encoded).map_err(|_| KeyError::Malformed)?;
        let Some((&ALGORITHM, key)) = bytes.split_first() else { return Err(KeyError::Malformed) };
        let key = Self(key.try_into().map_err(|_| KeyError::Malformed)?);
        if key.to_string() == text { Ok(key) } else { Err(KeyError::Checksum) }
    }

    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Four bytes that distinguish keys of the same name.
    pub(super) fn hint(&self) -> [u8; 4] {
        let named = [KEY_NAME.as_bytes(), b"\n", &[ALGORITHM], &self.0].concat();
        sha256(&named).as_bytes().first_chunk().copied().unwrap_or_default()
    }

    pub(super) fn verifies(&self, text: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, &self.0).verify(text, signature).is_ok()
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hint = u32::from_be_bytes(self.hint());
        let encoded = STANDARD.encode([&[ALGORITHM], self.0.as_slice()].concat());
        write!(formatter, "{KEY_NAME}+{hint:08x}+{encoded}")
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first test vector of RFC 8032: secret key, public key, signature of the empty message.
    const SEED: &str = "nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A=";
    const PUBLIC: &str = "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";
    const SIGNATURE: &str = "5VZDAMNgrHKQhuLMgG6CioSHfx645dl02HPgZSJJAVVfuIIVkKM7rMYeOXAc+bRr0lv18FlbviRlUUFDjnoQCw==";

    fn key() -> SigningKey {
        SigningKey::from_seed(&STANDARD.decode(SEED).unwrap().try_into().unwrap()).unwrap()
    }

    #[test]
    fn keys_and_signatures_are_those_of_rfc_8032() {
        assert_eq!(STANDARD.encode(key().public_key().as_bytes()), PUBLIC);
        assert_eq!(STANDARD.encode(key().sign(b"").unwrap()), SIGNATURE);
        assert!(key().public_key().verifies(b"", &STANDARD.decode(SIGNATURE).unwrap()));
        assert!(!key().public_key().verifies(b"x", &STANDARD.decode(SIGNATURE).unwrap()));
    }

    #[test]
    fn a_seed_gives_the_same_key_again_and_a_new_key_is_new() {
        let made = SigningKey::generate().unwrap();
        let again = SigningKey::from_seed(made.expose_seed()).unwrap();
        assert_eq!(made.public_key(), again.public_key());
        assert_ne!(made.public_key(), SigningKey::generate().unwrap().public_key());
    }

    #[test]
    fn a_public_key_reads_back_from_either_form() {
        let public = *key().public_key();
        let text = public.to_string();
        assert!(text.starts_with("toolgate+"), "{text}");
        assert_eq!(PublicKey::parse(&text), Ok(public));
        assert_eq!(PublicKey::parse(&format!(" {text}\n")), Ok(public));
        assert_eq!(PublicKey::parse(PUBLIC), Ok(public));
    }

    #[test]
    fn a_miscopied_public_key_is_refused() {
        let text = key().public_key().to_string();
        let encoded = text.splitn(3, '+').last().unwrap();
        assert_eq!(PublicKey::parse(&format!("toolgate+00000000+{encoded}")), Err(KeyError::Checksum));
        for bad in
            ["", "toolgate", "toolgate+", "toolgate+00000000+", "toolgate+00000000+AAAA", "AAAA", text.split_at(60).0]
        {
            assert_eq!(PublicKey::parse(bad), Err(KeyError::Malformed), "{bad}");
        }
        assert_eq!(PublicKey::parse(&text.replace("toolgate", "other")), Err(KeyError::Malformed));
    }
}
