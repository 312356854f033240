//! The file of the key that signs the audit log: created at the first start, refused if other users can read it. Its
//! text is `{"format":1,"public_key":"toolgate+...","seed":"base64 of 32 bytes"}`.

use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use thiserror::Error;
use toolgate_cli::private_file::{self, PrivateFileError};
use toolgate_model::checkpoint::{KeyError, SigningKey};
use zeroize::Zeroizing;

/// Why there is no audit key.
#[derive(Debug, Error)]
pub enum AuditKeyError {
    /// The file cannot be used.
    #[error("the audit key file {0}")]
    File(#[from] PrivateFileError),
    /// The text is no audit key.
    #[error("the audit key file {path} is damaged; restore it from a copy")]
    Damaged { path: String },
    /// It would be copied together with the data that it protects.
    #[error(
        "the audit key file {path} is inside the data directory {data}; move it elsewhere, so that a copy of the data \
        does not include the key that signs its log"
    )]
    InsideData { path: String, data: String },
    #[error(transparent)]
    Key(#[from] KeyError),
}

/// Opens the key file, and creates it if there is none.
pub fn open(path: &Path, data: Option<&Path>) -> Result<SigningKey, AuditKeyError> {
    if let Some(data) = data
        && real(path).starts_with(real(data))
    {
        let (path, data) = (path.display().to_string(), data.display().to_string());
        return Err(AuditKeyError::InsideData { path, data });
    }
    if let Some(text) = private_file::read(path)? {
        return parse(&text).ok_or_else(|| damaged(path));
    }
    let key = SigningKey::generate()?;
    if private_file::create(path, &write(&key))? {
        tracing::info!(
            path = %path.display(),
            public_key = %key.public_key(),
            "generated a new audit key; keep a copy of this file, the ledger accepts no other key"
        );
        return Ok(key);
    }
    let text = private_file::read(path)?.ok_or_else(|| damaged(path))?;
    parse(&text).ok_or_else(|| damaged(path))
}

const FORMAT: u64 = 1;

/// Borrows from the text: an owned copy of the seed would not be wiped.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document<'a> {
    format: u64,
    #[serde(borrow)]
    public_key: &'a str,
    #[serde(borrow)]
    seed: &'a str,
}

fn parse(text: &str) -> Option<SigningKey> {
    let document: Document<'_> =
        serde_json::from_str(text).ok().filter(|document: &Document<'_>| document.format == FORMAT)?;
    let bytes = Zeroizing::new(STANDARD.decode(document.seed).ok()?);
    let seed = Zeroizing::new(<[u8; 32]>::try_from(bytes.as_slice()).ok()?);
    let key = SigningKey::from_seed(&seed).ok()?;
    // Also finds a flipped bit that still reads as base 64.
    (key.public_key().to_string() == document.public_key).then_some(key)
}

fn write(key: &SigningKey) -> Zeroizing<String> {
    // Grown once: a reallocation would leave an unwiped copy behind.
    let mut text = Zeroizing::new(String::with_capacity(256));
    text.push_str(&format!("{{\"format\":{FORMAT},\"public_key\":\"{}\",\"seed\":\"", key.public_key()));
    text.push_str(&Zeroizing::new(STANDARD.encode(key.expose_seed())));
    text.push_str("\"}\n");
    text
}

/// The path with the links of its existing part resolved.
pub(crate) fn real(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for existing in path.ancestors() {
        if let Ok(real) = existing.canonicalize() {
            return real.join(path.strip_prefix(existing).unwrap_or(&path));
        }
    }
    path
}

fn damaged(path: &Path) -> AuditKeyError {
    AuditKeyError::Damaged { path: path.display().to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_start_makes_the_key_and_later_ones_find_it() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("keys/audit.key");
        let made = open(&path, None).ok().unwrap();
        let found = open(&path, None).ok().unwrap();
        assert_eq!(made.public_key(), found.public_key());
    }

    #[test]
    fn a_changed_file_is_noticed_and_its_text_not_shown() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("audit.key");
        let key = open(&path, None).ok().unwrap();
        let text = write(&key);
        for position in 0..text.len() - 1 {
            let mut bytes = text.as_bytes().to_vec();
            bytes[position] ^= 1;
            let Ok(changed) = String::from_utf8(bytes) else { continue };
            assert!(parse(&changed).is_none(), "{changed}");
        }
        private_file::replace(&path, "{\"seed\":\"geheim\"}").unwrap();
        let error = open(&path, None).err().unwrap().to_string();
        assert!(error.contains("damaged") && !error.contains("geheim"), "{error}");
    }

    #[test]
    fn a_key_inside_the_data_directory_is_refused_even_through_a_link() {
        let home = tempfile::tempdir().unwrap();
        let data = home.path().join("data");
        std::fs::create_dir(&data).unwrap();
        std::os::unix::fs::symlink(&data, home.path().join("link")).unwrap();
        for path in [data.join("audit.key"), home.path().join("link/deeper/audit.key")] {
            let error = open(&path, Some(&data)).err().unwrap();
            assert!(matches!(error, AuditKeyError::InsideData { .. }), "{error}");
        }
        assert!(open(&home.path().join("audit.key"), Some(&data)).is_ok());
    }
}
