//! One-time links to an approval. The token is only in the link; its digest is stored. A link grants no rights: opening
//! it still requires a key.

use thiserror::Error;

use crate::merkle::{Hash, sha256};
use crate::secret::Secret;

/// The number of digits of a token.
const DIGITS: usize = 64;

/// SHA-256 of a token.
pub type LinkDigest = Hash;

/// The secret part of a link: 256 random bits. Like every secret it cannot be printed.
pub struct LinkToken(Secret);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("must be a link token: 64 hexadecimal digits (0-9, a-f)")]
pub struct LinkTokenError;

impl LinkToken {
    pub fn from_entropy(entropy: [u8; 32]) -> Self {
        Self(Secret::new(Hash::from_bytes(entropy).to_hex()))
    }

    pub fn parse(text: &str) -> Result<Self, LinkTokenError> {
        let fits = text.len() == DIGITS && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        fits.then(|| Self(Secret::new(text.to_owned()))).ok_or(LinkTokenError)
    }

    /// The digest, which is stored and looked up.
    pub fn digest(&self) -> LinkDigest {
        sha256(self.0.expose().as_bytes())
    }

    /// The token itself, for the link.
    pub fn expose(&self) -> &str {
        self.0.expose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_reads_back_and_has_the_same_digest() {
        let token = LinkToken::from_entropy([0xa7; 32]);
        let read = LinkToken::parse(token.expose()).unwrap();
        assert_eq!(read.digest(), token.digest());
        assert_ne!(read.digest(), LinkToken::from_entropy([0xa8; 32]).digest());
    }

    #[test]
    fn what_is_no_token_is_refused() {
        for bad in ["", "a7", &"A7".repeat(32), &"g0".repeat(32), &"a7".repeat(33)] {
            assert!(LinkToken::parse(bad).is_err(), "{bad}");
        }
    }
}
