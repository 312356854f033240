//! Signed tree heads, in the text form of C2SP's signed notes and checkpoints, so that witnesses and tools that know
//! nothing of Toolgate can check and countersign them.
//!
//! A head says: at this time the log of this tenant had so many events, and this is the root of their tree.

mod key;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use thiserror::Error;

use crate::merkle::Hash;
use crate::principal::TenantId;
use crate::time::Timestamp;

pub use key::{KEY_NAME, KeyError, PublicKey, SigningKey};

/// The beginning of the first line of a head, before the tenant.
const ORIGIN_PREFIX: &str = "toolgate/";
/// The beginning of every line with a signature.
const SIGNATURE_PREFIX: &str = "\u{2014} ";

/// The state of one tenant's log at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeHead {
    pub tenant: TenantId,
    /// The number of events.
    pub size: u64,
    /// The root of the tree over them.
    pub root: Hash,
    pub time: Timestamp,
}

/// Why a head is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum CheckpointError {
    #[error("the signed head is not a toolgate checkpoint; copy it unchanged from toolgate")]
    Malformed,
    #[error("the signed head has no signature of this public key; use the key of the gate that signed it")]
    OtherKey,
    #[error("the signature of the head is invalid: the head was changed after it was signed")]
    Signature,
    #[error("could not sign the head; try again, and replace the audit key if that fails")]
    Signing,
}

impl TreeHead {
    /// The text that is signed.
    fn to_text(&self) -> String {
        format!("{ORIGIN_PREFIX}{}\n{}\n{}\n{}\n", self.tenant, self.size, self.root, self.time)
    }

    fn from_text(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let head = Self {
            tenant: TenantId::parse(lines.next()?.strip_prefix(ORIGIN_PREFIX)?).ok()?,
            size: lines.next()?.parse().ok()?,
            root: Hash::parse(lines.next()?).ok()?,
            time: Timestamp::parse(lines.next()?).ok()?,
        };
        // One head has one text: no leading zeros, other spellings of the time, or unknown lines.
        (head.to_text() == text).then_some(head)
    }
}

/// Signs a head and returns the text of the signed note.
pub fn sign(head: &TreeHead, key: &SigningKey) -> Result<String, CheckpointError> {
    let text = head.to_text();
    let mut blob = key.public_key().hint().to_vec();
    blob.extend_from_slice(&key.sign(text.as_bytes()).ok_or(CheckpointError::Signing)?);
    Ok(format!("{text}\n{SIGNATURE_PREFIX}{KEY_NAME} {}\n", STANDARD.encode(blob)))
}

/// Checks a signed note against a trusted key and parses the head. Signatures of others (witnesses) are ignored.
pub fn verify(note: &str, key: &PublicKey) -> Result<TreeHead, CheckpointError> {
    let (body, signatures) = note.rsplit_once("\n\n").ok_or(CheckpointError::Malformed)?;
    let text = format!("{body}\n");
    if !signatures.ends_with('\n') {
        return Err(CheckpointError::Malformed);
    }
    let mut signed = false;
    for line in signatures.lines() {
        let (name, blob) = line
            .strip_prefix(SIGNATURE_PREFIX)
            .and_then(|rest| rest.split_once(' '))
            .ok_or(CheckpointError::Malformed)?;
        let blob = STANDARD.decode(blob).map_err(|_| CheckpointError::Malformed)?;
        let (hint, signature) = blob.split_first_chunk::<4>().ok_or(CheckpointError::Malformed)?;
        if name == KEY_NAME && *hint == key.hint() {
            if !key.verifies(text.as_bytes(), signature) {
                return Err(CheckpointError::Signature);
            }
            signed = true;
        }
    }
    if !signed {
        return Err(CheckpointError::OtherKey);
    }
    TreeHead::from_text(&text).ok_or(CheckpointError::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(seed: u8) -> SigningKey {
        SigningKey::from_seed(&[seed; 32]).unwrap()
    }

    fn head() -> TreeHead {
        TreeHead {
            tenant: TenantId::parse("acme.eu").unwrap(),
            size: 1234,
            root: crate::merkle::leaf_hash(b"root"),
            time: Timestamp::parse("2026-03-08T10:00:00.5Z").unwrap(),
        }
    }

    #[test]
    fn a_signed_head_has_the_form_of_a_checkpoint() {
        let note = sign(&head(), &key(1)).unwrap();
        let lines: Vec<&str> = note.split('\n').collect();
        assert_eq!(lines[0], "toolgate/acme.eu");
        assert_eq!(lines[1], "1234");
        assert_eq!(lines[2], head().root.to_string());
        assert_eq!(lines[3], "2026-03-08T10:00:00.500+00:00");
        assert_eq!(lines[4], "");
        let blob = STANDARD.decode(lines[5].strip_prefix("— toolgate ").unwrap()).unwrap();
        assert_eq!(blob.len(), 4 + 64);
        assert_eq!((lines[6], lines.len()), ("", 7));
        assert_eq!(verify(&note, key(1).public_key()), Ok(head()));
    }

    #[test]
    fn any_change_of_the_text_is_noticed() {
        let note = sign(&head(), &key(1)).unwrap();
        for position in 0..note.len() {
            for flip in [1, 0x20] {
                let mut bytes = note.clone().into_bytes();
                bytes[position] ^= flip;
                let Ok(changed) = String::from_utf8(bytes) else { continue };
                assert!(verify(&changed, key(1).public_key()).is_err(), "{changed}");
            }
        }
        assert_eq!(verify(&note.replace("1234", "1233"), key(1).public_key()), Err(CheckpointError::Signature));
    }

    #[test]
    fn the_signature_of_another_key_is_not_enough() {
        let note = sign(&head(), &key(2)).unwrap();
        assert_eq!(verify(&note, key(1).public_key()), Err(CheckpointError::OtherKey));
    }

    #[test]
    fn a_witness_may_countersign() {
        let note = sign(&head(), &key(1)).unwrap();
        let witness = STANDARD.encode([7; 76]);
        assert_eq!(verify(&format!("{note}— witness.example {witness}\n"), key(1).public_key()), Ok(head()));
        let both = note.replace("\n\n", &format!("\n\n— witness.example {witness}\n"));
        assert_eq!(verify(&both, key(1).public_key()), Ok(head()));
    }

    #[test]
    fn what_is_signed_but_no_head_is_refused() {
        let time = "2026-03-08T10:00:00.500+00:00";
        let root = head().root;
        for text in [
            format!("toolgate/acme.eu\n01234\n{root}\n{time}\n"),
            format!("toolgate/acme.eu\n1234\n{root}\n2026-03-08T10:00:00.5Z\n"),
            format!("toolgate/acme.eu\n1234\n{root}\n{time}\nmore\n"),
            format!("toolgate/acme.eu\n1234\n{root}\n"),
            format!("otherlog/acme.eu\n1234\n{root}\n{time}\n"),
            format!("toolgate/ac me\n1234\n{root}\n{time}\n"),
        ] {
            let mut blob = key(1).public_key().hint().to_vec();
            blob.extend_from_slice(&key(1).sign(text.as_bytes()).unwrap());
            let note = format!("{text}\n— toolgate {}\n", STANDARD.encode(blob));
            assert_eq!(verify(&note, key(1).public_key()), Err(CheckpointError::Malformed), "{note}");
        }
    }

    #[test]
    fn what_is_no_signed_note_is_refused() {
        let note = sign(&head(), &key(1)).unwrap();
        for bad in [
            "",
            "\n\n",
            "a\n\n",
            note.trim_end(),
            &note.replace("— ", "- "),
            &note.replace("\n\n", "\n"),
            &note.replace("— toolgate ", "— toolgate !"),
        ] {
            let error = verify(bad, key(1).public_key()).unwrap_err();
            assert!(matches!(error, CheckpointError::Malformed | CheckpointError::OtherKey), "{bad:?}: {error}");
        }
    }
}
