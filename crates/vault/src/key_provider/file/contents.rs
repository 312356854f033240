//! The format of a key file: `{"format":1,"current":"mk_...","keys":{"mk_...":"base64 of 32 bytes"}}`. Parsing and
//! writing leave no unwiped copy of a key.

use std::collections::BTreeMap;

use serde::Deserialize;
use thiserror::Error;
use toolgate_gate::ports::sealer::MasterKeyId;
use zeroize::Zeroizing;

use crate::key_provider::keyring::{Keyring, id_of};
use crate::symmetric_key::SymmetricKey;

/// What is wrong with the file; never its text, which contains keys.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(super) enum ContentsError {
    #[error("invalid JSON at line {line} column {column}")]
    Json { line: usize, column: usize },
    #[error("format {0} is not supported; this version reads format {FORMAT}")]
    Format(u64),
    #[error("an entry of `keys` is not the base64 encoding of 32 bytes")]
    Key,
    #[error("an entry of `keys` has the id of another key")]
    Id,
    #[error("`current` is not the id of one of the keys")]
    Current,
}

pub(super) fn parse(text: &[u8]) -> Result<Keyring, ContentsError> {
    let document: Document<'_> = serde_json::from_slice(text)
        .map_err(|error| ContentsError::Json { line: error.line(), column: error.column() })?;
    if document.format != FORMAT {
        return Err(ContentsError::Format(document.format));
    }
    let mut keyring: Option<Keyring> = None;
    for (id, text) in document.keys {
        let key = SymmetricKey::from_base64(text).ok_or(ContentsError::Key)?;
        // The id is derived from the key, so this also detects a flipped bit that is still valid base64.
        if id_of(&key) != MasterKeyId(id.to_owned()) {
            return Err(ContentsError::Id);
        }
        match &mut keyring {
            Some(keyring) => keyring.add(key),
            None => keyring = Some(Keyring::new(key)),
        }
    }
    keyring
        .and_then(|mut keyring| keyring.make_current(document.current).then_some(keyring))
        .ok_or(ContentsError::Current)
}

pub(super) fn write(keyring: &Keyring) -> Zeroizing<Vec<u8>> {
    // Allocated once: a reallocation would leave an unwiped copy behind. An entry has at most 19 + 44 characters and
    // punctuation.
    let mut text = Zeroizing::new(Vec::with_capacity(128 + 80 * keyring.iter().count()));
    // Ids are alphanumeric and keys are base64: nothing needs escaping.
    text.extend_from_slice(format!(r#"{{"format":{FORMAT},"current":"{}","keys":{{"#, keyring.current().0).as_bytes());
    for (position, (id, key)) in keyring.iter().enumerate() {
        if position > 0 {
            text.push(b',');
        }
        text.extend_from_slice(format!(r#""{}":""#, id.0).as_bytes());
        text.extend_from_slice(key.to_base64().as_bytes());
        text.push(b'"');
    }
    text.extend_from_slice(b"}}\n");
    text
}

const FORMAT: u64 = 1;

/// Borrows from the text: an owned copy would not be wiped. Strings with escapes cannot be borrowed and are rejected.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document<'a> {
    format: u64,
    #[serde(borrow)]
    current: &'a str,
    #[serde(borrow)]
    keys: BTreeMap<&'a str, &'a str>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keyring() -> Keyring {
        let mut keyring = Keyring::new(SymmetricKey::random().unwrap());
        keyring.renew(SymmetricKey::random().unwrap());
        keyring
    }

    #[test]
    fn what_is_written_reads_back_and_fits_its_first_allocation() {
        let mut keyring = keyring();
        for _ in 0..50 {
            keyring.add(SymmetricKey::random().unwrap());
        }
        let text = write(&keyring);
        assert!(text.len() <= 128 + 80 * 52);
        let again = parse(&text).ok().unwrap();
        assert_eq!(again.current(), keyring.current());
        assert!(keyring.iter().zip(again.iter()).all(|(left, right)| left.0 == right.0 && left.1.is_same(right.1)));
        assert_eq!(again.iter().count(), 52);
    }

    #[test]
    fn every_cut_and_every_changed_byte_that_matters_is_noticed() {
        let text = write(&keyring());
        for length in 0..text.len() - 1 {
            assert!(parse(&text[..length]).is_err(), "cut at {length}");
        }
        for position in 0..text.len() - 1 {
            let mut changed = text.to_vec();
            changed[position] ^= 1;
            assert!(parse(&changed).is_err(), "changed at {position}");
        }
    }

    #[test]
    fn unknown_fields_other_formats_and_missing_keys_are_refused_without_showing_a_key() {
        let key = SymmetricKey::random().unwrap();
        let (id, text) = (id_of(&key).0, key.to_base64());
        let keys = format!(r#"{{"{id}":"{}"}}"#, text.as_str());
        let cases = [
            (format!(r#"{{"format":1,"current":"{id}","keys":{keys},"more":1}}"#), "JSON"),
            (format!(r#"{{"format":2,"current":"{id}","keys":{keys}}}"#), "format 2"),
            (format!(r#"{{"format":1,"current":"mk_0000000000000000","keys":{keys}}}"#), "current"),
            (format!(r#"{{"format":1,"current":"{id}","keys":{{}}}}"#), "current"),
            (format!(r#"{{"format":1,"current":"{id}","keys":{{"{id}":"c2hvcnQ="}}}}"#), "32 bytes"),
            (format!(r#"{{"format":1,"current":"x","keys":{{"x":"{}"}}}}"#, text.as_str()), "id of another"),
            (format!(r#"{{"format":"{}","current":"x","keys":{{}}}}"#, text.as_str()), "JSON"),
            ("\u{0}".repeat(300), "JSON"),
        ];
        for (contents, expected) in cases {
            let error = parse(contents.as_bytes()).err().unwrap().to_string();
            assert!(error.contains(expected), "{error}");
            assert!(!error.contains(text.as_str()), "{error}");
        }
    }
}
