//! Refusals of the gate.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolgate_api::error::ErrorBody;
use toolgate_api::tools::FailedCall;
use toolgate_model::id::InvocationId;

/// The body of a response that is not a success.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Refused {
    Request(ErrorBody),
    /// A call that was admitted and failed.
    Call(FailedCall),
}

impl Refused {
    pub fn code(&self) -> &str {
        match self {
            Self::Request(body) => &body.error.code.0,
            Self::Call(call) => &call.error.code.0,
        }
    }

    pub fn message(&self) -> &str {
        match self {
            Self::Request(body) => &body.error.message,
            Self::Call(call) => &call.error.message,
        }
    }

    pub fn details(&self) -> &Map<String, Value> {
        match self {
            Self::Request(body) => &body.error.details,
            Self::Call(call) => &call.error.details,
        }
    }

    pub fn detail(&self, name: &str) -> Option<&Value> {
        self.details().get(name)
    }

    pub fn invocation(&self) -> Option<InvocationId> {
        match self {
            Self::Request(body) => body.invocation_id,
            Self::Call(call) => Some(call.invocation_id),
        }
    }

    /// A refusal with this code, for tests.
    #[cfg(test)]
    pub fn sample(code: &str, message: &str, details: Value) -> Self {
        use toolgate_api::error::{ErrorDetails, RefusedStatus};
        use toolgate_api::reply::ErrorCode;

        let details = details.as_object().cloned().unwrap_or_default();
        let error =
            ErrorDetails { code: ErrorCode(code.to_owned()), message: message.to_owned(), stage: None, details };
        Self::Request(ErrorBody::new(RefusedStatus::Denied, error, None))
    }
}
