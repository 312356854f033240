//! Master keys that never come here: an external command wraps and unwraps, so that any client of a key service or a
//! hardware module fits.
//!
//! The command gets one word behind its own arguments and one JSON object on its input. It answers with one JSON
//! object on its output and exit status 0.
//!
//! - `status`: gets `{}`, answers `{"key_id"}`, the current master key.
//! - `wrap`: gets `{"plaintext", "context"}`, answers `{"key_id", "ciphertext"}`.
//! - `unwrap`: gets `{"key_id", "ciphertext", "context"}`, answers `{"plaintext"}`, or `{"refused": "damaged"}` where
//!   the ciphertext does not belong to the context, or `{"refused": "unknown_key"}`.
//!
//! `plaintext` is base 64, written without JSON escapes in both directions; `ciphertext` is any text. The command
//! should bind the ciphertext to the context.

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use toolgate_gate::ports::sealer::MasterKeyId;
use zeroize::Zeroizing;

use crate::key_provider::{KeyError, KeyProvider, WrappedKey};
use crate::symmetric_key::SymmetricKey;

mod run;
#[cfg(test)]
mod tests;

/// Asks a command to wrap and unwrap.
pub struct CommandProvider {
    program: String,
    arguments: Vec<String>,
    timeout: Duration,
}

impl CommandProvider {
    /// How long a command may take when nothing else is configured.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

    /// A provider over the command of these words: the program, then its arguments. No shell reads them.
    pub fn new(words: &[String], timeout: Duration) -> Result<Self, KeyError> {
        match words.split_first() {
            Some((program, arguments)) if !program.is_empty() => {
                Ok(Self { program: program.clone(), arguments: arguments.to_vec(), timeout })
            }
            _ => Err(KeyError::failed("the key command is empty; configure a program and its arguments")),
        }
    }

    fn read<'a, T: Deserialize<'a>>(&self, verb: Verb, answer: &'a [u8]) -> Result<T, KeyError> {
        // What the parser says may quote the answer, and so the key: none of it is passed on.
        serde_json::from_slice(answer).map_err(|_| self.misspoken(verb, "did not answer with the JSON object expected"))
    }

    fn key_id(&self, verb: Verb, text: String) -> Result<MasterKeyId, KeyError> {
        let printable = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        if text.is_empty() || text.len() > KEY_ID_LIMIT || !printable {
            return Err(self.misspoken(verb, "answered with a key_id that is not 1 to 200 printable ASCII characters"));
        }
        Ok(MasterKeyId(text))
    }

    fn misspoken(&self, verb: Verb, what: &str) -> KeyError {
        KeyError::failed(format!("the key command `{} {}` {what}", self.program, verb.word()))
    }
}

#[async_trait]
impl KeyProvider for CommandProvider {
    async fn current_key(&self) -> Result<MasterKeyId, KeyError> {
        let answer = self.run(Verb::Status, b"{}").await?;
        let StatusResponse { key_id } = self.read(Verb::Status, &answer)?;
        self.key_id(Verb::Status, key_id)
    }

    async fn wrap(&self, data_key: &SymmetricKey, context: &str) -> Result<WrappedKey, KeyError> {
        let request = encode(&WrapRequest { plaintext: &data_key.to_base64(), context }, context.len())?;
        let answer = self.run(Verb::Wrap, &request).await?;
        let WrapResponse { key_id, ciphertext } = self.read(Verb::Wrap, &answer)?;
        if ciphertext.is_empty() {
            return Err(self.misspoken(Verb::Wrap, "answered with an empty ciphertext"));
        }
        Ok(WrappedKey { key: self.key_id(Verb::Wrap, key_id)?, bytes: ciphertext.into_bytes() })
    }

    async fn unwrap(&self, key: &MasterKeyId, wrapped: &[u8], context: &str) -> Result<SymmetricKey, KeyError> {
        // The command only ever gave out text.
        let ciphertext = std::str::from_utf8(wrapped).map_err(|_| KeyError::Unauthentic)?;
        let length = ciphertext.len() + context.len() + key.0.len();
        let request = encode(&UnwrapRequest { key_id: &key.0, ciphertext, context }, length)?;
        let answer = self.run(Verb::Unwrap, &request).await?;
        match self.read(Verb::Unwrap, &answer)? {
            UnwrapResponse { plaintext: Some(text), refused: None } => {
                SymmetricKey::from_base64(text).ok_or_else(|| {
                    self.misspoken(Verb::Unwrap, "answered with a plaintext that is not base64 of 32 bytes")
                })
            }
            UnwrapResponse { plaintext: None, refused: Some(Refused::Damaged) } => Err(KeyError::Unauthentic),
            UnwrapResponse { plaintext: None, refused: Some(Refused::UnknownKey) } => {
                Err(KeyError::Missing { key: key.clone() })
            }
            _ => Err(self.misspoken(Verb::Unwrap, "must answer with either `plaintext` or `refused`")),
        }
    }

    async fn renew(&self) -> Result<MasterKeyId, KeyError> {
        // The key service decides which key is current.
        self.current_key().await
    }

    async fn forget(&self, _key: &MasterKeyId) -> Result<(), KeyError> {
        Ok(())
    }
}

/// What the command is asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Status,
    Wrap,
    Unwrap,
}

impl Verb {
    fn word(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Wrap => "wrap",
            Self::Unwrap => "unwrap",
        }
    }
}

const KEY_ID_LIMIT: usize = 200;

#[derive(Serialize)]
struct WrapRequest<'a> {
    plaintext: &'a str,
    context: &'a str,
}

#[derive(Serialize)]
struct UnwrapRequest<'a> {
    key_id: &'a str,
    ciphertext: &'a str,
    context: &'a str,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StatusResponse {
    key_id: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrapResponse {
    key_id: String,
    ciphertext: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UnwrapResponse<'a> {
    /// Borrowed, because an owned copy would not be wiped; a text with escapes cannot be borrowed and is refused.
    #[serde(borrow, default)]
    plaintext: Option<&'a str>,
    #[serde(default)]
    refused: Option<Refused>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Refused {
    Damaged,
    UnknownKey,
}

/// Writes a request into a buffer that is wiped and never grows. Escaping at most sextuples the `length` of what may
/// need it; names, marks and the data key fit into the rest.
fn encode(request: &impl Serialize, length: usize) -> Result<Zeroizing<Vec<u8>>, KeyError> {
    let mut buffer = Zeroizing::new(Vec::with_capacity(6 * length + 256));
    serde_json::to_writer(&mut *buffer, request).map_err(|_| KeyError::failed("the request could not be written"))?;
    Ok(buffer)
}
