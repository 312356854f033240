//! Refusals: every "no" of the gate. A stable code for programs, a sentence for people, and details that help the
//! caller to correct the request. Never a secret.

use serde_json::{Map, Value};
use thiserror::Error;
use toolgate_model::grant::{GrantStatus, Standing};
use toolgate_model::id::GrantId;

pub use self::code::{Code, Kind};
pub use self::stage::Stage;

mod code;
mod stage;

#[derive(Debug, Clone, PartialEq, Error)]
#[error("{reason}")]
pub struct Refusal {
    code: Code,
    stage: Option<Stage>,
    reason: String,
    // Boxed and often empty: refusals are in every Result of the gate.
    details: Option<Box<Map<String, Value>>>,
}

impl Refusal {
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

    /// Adds to the sentence for people.
    #[must_use]
    pub(crate) fn adding(mut self, told: &str) -> Self {
        self.reason.push_str(told);
        self
    }

    /// Sets the stage of the pipeline, unless it is already set.
    #[must_use]
    pub fn at(mut self, stage: Stage) -> Self {
        self.stage.get_or_insert(stage);
        self
    }

    /// The stage of the pipeline, if it came from one.
    pub fn stage(&self) -> Option<Stage> {
        self.stage
    }

    /// The refusal for a grant that is not valid.
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

    pub fn code(&self) -> Code {
        self.code
    }

    /// The kind of this refusal. A budget that begins anew is a matter of time, a total is not.
    pub fn kind(&self) -> Kind {
        let is_lasting =
            self.code == Code::BudgetExceeded && !self.details().any(|(name, _)| name == "retry_after_seconds");
        if is_lasting { Kind::Forbidden } else { self.code.kind() }
    }

    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The grant in its details.
    pub fn grant(&self) -> Option<GrantId> {
        let (_, named) = self.details().find(|(name, _)| *name == "grant_id")?;
        GrantId::parse(named.as_str()?).ok()
    }

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
