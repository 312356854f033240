//! Master keys that stay in a key service: an external command wraps and unwraps data keys, so that any client of a key
//! service or a hardware security module can be used.
//!
//! The command gets the operation as its last argument and one JSON object on standard input. It writes one JSON object
//! to standard output and exits with status 0.
//!
//! - `status`: gets `{}`, returns `{"key_id"}`, the current master key.
//! - `wrap`: gets `{"plaintext", "context"}`, returns `{"key_id", "ciphertext"}`.
//! - `unwrap`: gets `{"key_id", "ciphertext", "context"}`, returns `{"plaintext"}`, or `{"refused": "damaged"}` if
//!   the ciphertext does not belong to the context, or `{"refused": "unknown_key"}`.
//!
//! `plaintext` is base64, without JSON escapes in both directions; `ciphertext` is any string. The command should bind
//! the ciphertext to the context.

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

pub struct CommandProvider {
    program: String,
    arguments: Vec<String>,
    timeout: Duration,
}

impl CommandProvider {
    /// The default timeout of a command.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

    /// Takes the program and its arguments. They are not interpreted by a shell.
    pub fn new(words: &[String], timeout: Duration) -> Result<Self, KeyError> {
        match words.split_first() {
            Some((program, arguments)) if !program.is_empty() => {
                Ok(Self { program: program.clone(), arguments: arguments.to_vec(), timeout })
            }
            _ => Err(KeyError::failed("the key command is empty; configure a program and its arguments")),
        }
    }

    fn read<'a, T: Deserialize<'a>>(&self, verb: Verb, output: &'a [u8]) -> Result<T, KeyError> {
        // The parser error may quote the output, and so the key: it is not passed on.
        serde_json::from_slice(output).map_err(|_| self.command_error(verb, "did not return the expected JSON object"))
    }

    fn key_id(&self, verb: Verb, text: String) -> Result<MasterKeyId, KeyError> {
        let printable = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        if text.is_empty() || text.len() > KEY_ID_LIMIT || !printable {
            return Err(self.command_error(verb, "returned a key_id that is not 1 to 200 printable ASCII characters"));
        }
        Ok(MasterKeyId(text))
    }

    fn command_error(&self, verb: Verb, what: &str) -> KeyError {
        KeyError::failed(format!("the key command `{} {}` {what}", self.program, verb.word()))
    }
}

#[async_trait]
impl KeyProvider for CommandProvider {
    async fn current_key(&self) -> Result<MasterKeyId, KeyError> {
        let output = self.run(Verb::Status, b"{}").await?;
        let StatusResponse { key_id } = self.read(Verb::Status, &output)?;
        self.key_id(Verb::Status, key_id)
    }

    async fn wrap(&self, data_key: &SymmetricKey, context: &str) -> Result<WrappedKey, KeyError> {
        let request = encode(&WrapRequest { plaintext: &data_key.to_base64(), context }, context.len())?;
        let output = self.run(Verb::Wrap, &request).await?;
        let WrapResponse { key_id, ciphertext } = self.read(Verb::Wrap, &output)?;
        if ciphertext.is_empty() {
            return Err(self.command_error(Verb::Wrap, "returned an empty ciphertext"));
        }
        Ok(WrappedKey { key: self.key_id(Verb::Wrap, key_id)?, bytes: ciphertext.into_bytes() })
    }

    async fn unwrap(&self, key: &MasterKeyId, wrapped: &[u8], context: &str) -> Result<SymmetricKey, KeyError> {
        // The command only ever returned strings.
        let ciphertext = std::str::from_utf8(wrapped).map_err(|_| KeyError::Unauthentic)?;
        let length = ciphertext.len() + context.len() + key.0.len();
        let request = encode(&UnwrapRequest { key_id: &key.0, ciphertext, context }, length)?;
        let output = self.run(Verb::Unwrap, &request).await?;
        match self.read(Verb::Unwrap, &output)? {
            UnwrapResponse { plaintext: Some(text), refused: None } => {
                SymmetricKey::from_base64(text).ok_or_else(|| {
                    self.command_error(Verb::Unwrap, "returned a plaintext that is not the base64 encoding of 32 bytes")
                })
            }
            UnwrapResponse { plaintext: None, refused: Some(Refused::Damaged) } => Err(KeyError::Unauthentic),
            UnwrapResponse { plaintext: None, refused: Some(Refused::UnknownKey) } => {
                Err(KeyError::Missing { key: key.clone() })
            }
            _ => Err(self.command_error(Verb::Unwrap, "returned neither or both of `plaintext` and `refused`")),
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

/// An operation of the command.
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
    /// Borrowed, because an owned copy would not be wiped; a string with escapes cannot be borrowed and is rejected.
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

/// Writes a request into a buffer that is wiped and never reallocated. Escaping grows the `length` of what may need it
/// at most sixfold; names, punctuation and the data key fit into the rest.
fn encode(request: &impl Serialize, length: usize) -> Result<Zeroizing<Vec<u8>>, KeyError> {
    let mut buffer = Zeroizing::new(Vec::with_capacity(6 * length + 256));
    serde_json::to_writer(&mut *buffer, request)
        .map_err(|_| KeyError::failed("could not encode the request to the key command"))?;
    Ok(buffer)
}
