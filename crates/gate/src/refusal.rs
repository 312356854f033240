//! Refusals: the one way in which anything in Toolgate says no. A stable code for programs, a sentence for people, details
//! that help the caller to correct itself. Never a secret.

use serde_json::{Map, Value};
use thiserror::Error;

pub use self::code::{Code, Kind};

mod code;

/// Why something was not done.
#[derive(Debug, Clone, PartialEq, Error)]
#[error("{reason}")]
pub struct Refusal {
    code: Code,
    reason: String,
    // Boxed and often empty: refusals travel in every Result of the gate.
    details: Option<Box<Map<String, Value>>>,
}

impl Refusal {
    /// A refusal with its sentence.
    pub fn new(code: Code, reason: impl Into<String>) -> Self {
        Self { code, reason: reason.into(), details: None }
    }

    /// Adds a detail for programs.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl serde::Serialize) -> Self {
        let value = serde_json::to_value(value).unwrap_or(Value::Null);
        self.details.get_or_insert_default().insert(name.to_owned(), value);
        self
    }

    /// The stable code.
    pub fn code(&self) -> Code {
        self.code
    }

    /// The sentence.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The details, by name.
    pub fn details(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.details.iter().flat_map(|details| details.iter()).map(|(name, value)| (name.as_str(), value))
    }
}

impl From<crate::ports::entropy::EntropyError> for Refusal {
    fn from(error: crate::ports::entropy::EntropyError) -> Self {
        Self::new(Code::Internal, error.to_string())
    }
}

impl From<crate::ports::sealer::SealError> for Refusal {
    fn from(error: crate::ports::sealer::SealError) -> Self {
        use crate::ports::sealer::SealError;
        let code = match &error {
            SealError::Damaged { .. } => Code::CredentialDamaged,
            SealError::KeyMissing { .. } | SealError::Provider { .. } => Code::KeyProviderUnavailable,
        };
        Self::new(code, error.to_string())
    }
}
