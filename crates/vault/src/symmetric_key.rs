//! A 256-bit key: AES-256-GCM over a buffer with associated data. Master keys and data keys are of this type.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::key_provider::KeyError;

/// A 256-bit key, wiped when it is dropped.
///
/// INVARIANT: the bytes stay in one heap allocation, so that moving the key leaves no copy behind; the type implements
/// none of `Debug`, `Display`, `Serialize`, `Clone`, `PartialEq`.
pub struct SymmetricKey(Box<[u8; Self::LENGTH]>);

impl SymmetricKey {
    /// The length of a key in bytes.
    pub const LENGTH: usize = 32;

    /// Generates a key from the system's cryptographic random generator.
    pub fn random() -> Result<Self, KeyError> {
        let mut key = Self::blank();
        aws_lc_rs::rand::fill(key.0.as_mut_slice())
            .map_err(|_| KeyError::failed("the random number generator of the system failed"))?;
        Ok(key)
    }

    /// Copies a key from a buffer, which the caller must wipe; `None` if the length differs.
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        let mut key = Self::blank();
        if bytes.len() != Self::LENGTH {
            return None;
        }
        key.0.copy_from_slice(bytes);
        Some(key)
    }

    /// Decodes padded standard base64; `None` if it is not exactly one key.
    pub fn from_base64(text: &str) -> Option<Self> {
        let mut key = Self::blank();
        let length = STANDARD.decode_slice(text, key.0.as_mut_slice()).ok()?;
        (length == Self::LENGTH).then_some(key)
    }

    /// Encodes the key as [`SymmetricKey::from_base64`] reads it.
    pub fn to_base64(&self) -> Zeroizing<String> {
        Zeroizing::new(STANDARD.encode(self.0.as_slice()))
    }

    /// Compares in constant time.
    pub fn is_same(&self, other: &Self) -> bool {
        verify_slices_are_equal(self.0.as_slice(), other.0.as_slice()).is_ok()
    }

    /// The key bytes, to be sealed under another key.
    pub(crate) fn expose(&self) -> &[u8] {
        self.0.as_slice()
    }

    /// SHA-256 over a domain tag and the key: identifies the key without revealing it.
    pub(crate) fn fingerprint(&self, domain: &[u8]) -> digest::Digest {
        let mut context = digest::Context::new(&digest::SHA256);
        context.update(domain);
        context.update(self.0.as_slice());
        context.finish()
    }

    /// Seals under a new random nonce. The layout is nonce, ciphertext, tag.
    pub(crate) fn seal(&self, associated_data: &[u8], plaintext: &[u8]) -> Result<Vec<u8>, KeyError> {
        let failed = || KeyError::failed("could not encrypt the material");
        let mut nonce = [0_u8; NONCE_LEN];
        aws_lc_rs::rand::fill(&mut nonce)
            .map_err(|_| KeyError::failed("the random number generator of the system failed"))?;

        // The plaintext is copied once, into the buffer in which the ciphertext overwrites it. The buffer has its final
        // capacity from the start and is wiped if sealing fails.
        let mut buffer = Zeroizing::new(Vec::with_capacity(NONCE_LEN + plaintext.len() + AES_256_GCM.tag_len()));
        buffer.extend_from_slice(&nonce);
        buffer.extend_from_slice(plaintext);
        let body = buffer.get_mut(NONCE_LEN..).ok_or_else(failed)?;
        let tag = self
            .cipher()
            .ok_or_else(failed)?
            .seal_in_place_separate_tag(Nonce::assume_unique_for_key(nonce), Aad::from(associated_data), body)
            .map_err(|_| failed())?;
        buffer.extend_from_slice(tag.as_ref());
        Ok(std::mem::take(&mut *buffer))
    }

    /// Opens the output of [`SymmetricKey::seal`] with the same associated data; `None` for anything else.
    pub(crate) fn open(&self, associated_data: &[u8], sealed: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let (nonce, body) = sealed.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut buffer = Zeroizing::new(body.to_vec());
        let length = self.cipher()?.open_in_place(nonce, Aad::from(associated_data), &mut buffer).ok()?.len();
        buffer.truncate(length);
        Some(buffer)
    }

    fn blank() -> Self {
        Self(Box::new([0; Self::LENGTH]))
    }

    /// The expanded key is in memory of the cryptographic library, which wipes what it frees.
    fn cipher(&self) -> Option<LessSafeKey> {
        UnboundKey::new(&AES_256_GCM, self.0.as_slice()).ok().map(LessSafeKey::new)
    }
}

impl Drop for SymmetricKey {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl ZeroizeOnDrop for SymmetricKey {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_text_opens_under_its_key_and_associated_data_only() {
        let key = SymmetricKey::random().unwrap();
        let sealed = key.seal(b"here", b"words").unwrap();
        assert_eq!(key.open(b"here", &sealed).unwrap().as_slice(), b"words");
        assert!(key.open(b"there", &sealed).is_none());
        assert!(SymmetricKey::random().unwrap().open(b"here", &sealed).is_none());
    }

    #[test]
    fn the_same_text_is_never_sealed_alike_twice() {
        let key = SymmetricKey::random().unwrap();
        assert_ne!(key.seal(b"", b"words").unwrap(), key.seal(b"", b"words").unwrap());
    }

    #[test]
    fn bytes_that_were_never_sealed_open_to_nothing() {
        let key = SymmetricKey::random().unwrap();
        for length in 0..80 {
            assert!(key.open(b"", &vec![0xa5; length]).is_none());
        }
    }

    #[test]
    fn base64_of_another_length_or_alphabet_is_no_key() {
        let key = SymmetricKey::random().unwrap();
        assert!(SymmetricKey::from_base64(&key.to_base64()).unwrap().is_same(&key));
        for bytes in [0, 16, 31, 33, 64] {
            assert!(SymmetricKey::from_base64(&STANDARD.encode(vec![1; bytes])).is_none());
        }
        assert!(SymmetricKey::from_base64(key.to_base64().trim_end_matches('=')).is_none());
        assert!(SymmetricKey::from_base64(&"*".repeat(44)).is_none());
    }
}
