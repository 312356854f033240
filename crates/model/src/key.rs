//! API keys: `tgk_`, 40 random letters and digits, and a checksum of 6 more. The prefix lets secret scanners find a
//! leaked key; the checksum rules out false positives and lets the gate refuse a mistyped key without a lookup.

use aws_lc_rs::digest;

use crate::secret::Secret;

/// The prefix of every key.
pub const PREFIX: &str = "tgk_";
/// A pattern for secret scanners; the checksum removes the remaining false positives.
pub const PATTERN: &str = "tgk_[0-9A-Za-z]{46}";

const BODY: usize = 40;
const CHECKSUM: usize = 6;
const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The SHA-256 of a key, which is all that is stored. A key has over 230 random bits, so a slow hash would add nothing.
pub type KeyDigest = [u8; 32];

/// A well-formed key. Like every secret it cannot be printed.
pub struct ApiKey(Secret);

impl ApiKey {
    /// Creates a key from random bytes; bytes that would bias the digits are skipped, so more are needed than the key
    /// has.
    pub fn from_entropy(entropy: &[u8; 96]) -> Option<Self> {
        let mut text = String::with_capacity(PREFIX.len() + BODY + CHECKSUM);
        text.push_str(PREFIX);
        for byte in entropy.iter().filter(|&&byte| byte < 248).take(BODY) {
            text.push(digit(u32::from(*byte)));
        }
        if text.len() != PREFIX.len() + BODY {
            return None;
        }
        let checksum: Vec<char> = checksum(&text).collect();
        text.extend(checksum);
        Some(Self(Secret::new(text)))
    }

    /// Parses a key; rejects a wrong format or checksum.
    pub fn parse(text: &str) -> Option<Self> {
        Self::is_well_formed(text).then(|| Self(Secret::new(text.to_owned())))
    }

    /// Whether a text has the format of a key and the right checksum. Every request is checked, so nothing is copied.
    pub fn is_well_formed(text: &str) -> bool {
        let Some((signed, stated)) = text.split_at_checked(PREFIX.len() + BODY) else { return false };
        let is_key = |body: &str| body.len() == BODY && body.bytes().all(|byte| byte.is_ascii_alphanumeric());
        signed.strip_prefix(PREFIX).is_some_and(is_key) && stated.chars().eq(checksum(signed))
    }

    /// The digest, which is stored and looked up.
    pub fn digest(&self) -> KeyDigest {
        digest_of(self.0.expose())
    }

    /// The first characters, to recognize the key in a list.
    pub fn hint(&self) -> String {
        self.0.expose().chars().take(PREFIX.len() + 4).collect()
    }

    /// The key itself, for the one time that it is shown.
    pub fn expose(&self) -> &str {
        self.0.expose()
    }
}

/// The digest under which a presented key is looked up, in any format (an operator may choose the first token).
pub fn digest_of(text: &str) -> KeyDigest {
    let mut bytes = [0; 32];
    let digest = digest::digest(&digest::SHA256, text.as_bytes());
    bytes.copy_from_slice(digest.as_ref());
    bytes
}

/// The digits behind this text.
fn checksum(text: &str) -> impl Iterator<Item = char> {
    let rests = std::iter::successors(Some(crc32fast::hash(text.as_bytes())), |rest| Some(rest / 62));
    rests.take(CHECKSUM).map(digit)
}

fn digit(value: u32) -> char {
    let index = usize::try_from(value % 62).unwrap_or(0);
    DIGITS.get(index).copied().map_or('0', char::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> ApiKey {
        let mut entropy = [0; 96];
        for (position, byte) in entropy.iter_mut().enumerate() {
            *byte = u8::try_from(position * 7 % 256).unwrap();
        }
        ApiKey::from_entropy(&entropy).unwrap()
    }

    #[test]
    fn a_key_reads_back_and_fits_the_pattern_for_scanners() {
        let key = key();
        assert!(ApiKey::parse(key.expose()).is_some());
        assert!(regex::Regex::new(&format!("^{PATTERN}$")).unwrap().is_match(key.expose()));
        assert!(key.expose().starts_with(&key.hint()));
    }

    #[test]
    fn a_single_wrong_letter_is_refused_by_the_checksum() {
        let text = key().expose().to_owned();
        for position in PREFIX.len()..text.len() {
            let mut letters: Vec<char> = text.chars().collect();
            letters[position] = if letters[position] == 'x' { 'y' } else { 'x' };
            assert!(ApiKey::parse(&letters.into_iter().collect::<String>()).is_none(), "position {position}");
        }
    }
}
