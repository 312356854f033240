//! Refusals: the one way in which anything in Toolgate says no. A stable code for programs, a sentence for people, details
//! that help the caller to correct itself. Never a secret.

use serde_json::{Map, Value};
use thiserror::Error;
use toolgate_model::grant::{GrantStatus, Standing};
use toolgate_model::id::GrantId;

pub use self::code::{Code, Kind};
pub use self::stage::Stage;

mod code;
mod stage;

/// Why something was not done.
#[derive(Debug, Clone, PartialEq, Error)]
#[error("{reason}")]
pub struct Refusal {
    code: Code,
    stage: Option<Stage>,
    reason: String,
    // Boxed and often empty: refusals travel in every Result of the gate.
    details: Option<Box<Map<String, Value>>>,
}

impl Refusal {
    /// A refusal with its sentence.
    pub fn new(code: Code, reason: impl Into<String>) -> Self {
        Self { code, stage: None, reason: reason.into(), details: None }
    }

    /// Adds a detail for programs.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl serde::Serialize) -> Self {
        let value = serde_json::to_value(value).unwrap_or(Value::Null);
        self.details.get_or_insert_default().insert(name.to_owned(), value);
        self
    }

    /// Says at which stage of the path it was; the first to say so is right.
    #[must_use]
    pub fn at(mut self, stage: Stage) -> Self {
        self.stage.get_or_insert(stage);
        self
    }

    /// The stage of the path, where it came from one.
    pub fn stage(&self) -> Option<Stage> {
        self.stage
    }

    /// The refusal of a grant that does not stand.
    pub fn of_standing(standing: Standing, grant: GrantId) -> Self {
        let (code, state) = match standing.status {
            GrantStatus::Expired => (Code::GrantExpired, "has expired"),
            GrantStatus::Revoked => (Code::GrantRevoked, "is revoked"),
            GrantStatus::Suspended | GrantStatus::Active => (Code::GrantSuspended, "is suspended"),
        };
        let by = standing.decided_by;
        let reason = if by == grant {
            format!("grant {grant} {state}")
        } else {
            format!("grant {grant} cannot be used: {by}, which it was delegated from, {state}")
        };
        Self::new(code, reason).with("grant_id", grant)
    }

    /// The stable code.
    pub fn code(&self) -> Code {
        self.code
    }

    /// The sentence.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The grant that it names.
    pub fn grant(&self) -> Option<GrantId> {
        let (_, named) = self.details().find(|(name, _)| *name == "grant_id")?;
        GrantId::parse(named.as_str()?).ok()
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
