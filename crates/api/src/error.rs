//! The body of every response that refuses a request, under `/api/v1`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolgate_model::id::InvocationId;

use crate::reply::ErrorCode;

/// Why a request was refused. Match on `error.code`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Error")]
pub struct ErrorBody {
    pub status: RefusedStatus,
    /// The message for people.
    pub message: String,
    /// The message again, where the Python client of OpenIntent looks for it.
    #[schemars(length(min = 1, max = 1))]
    pub errors: Vec<String>,
    pub error: ErrorDetails,
    /// The record of a refused call.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "InvocationId")]
    pub invocation_id: Option<InvocationId>,
    /// For `VERSION_CONFLICT`, where the Python client of OpenIntent looks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub current_version: Option<u64>,
    /// For `LEASE_HELD`, where the Python client of OpenIntent looks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Map<String, Value>")]
    pub existing_lease: Option<Box<Map<String, Value>>>,
}

/// `unknown` for a call that was admitted and whose outcome could not be recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum RefusedStatus {
    Denied,
    Unknown,
}

/// The code, and details that help to correct the request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct ErrorDetails {
    pub code: ErrorCode,
    pub message: String,
    /// The stage of the pipeline that refused the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub stage: Option<String>,
    #[serde(flatten)]
    pub details: Map<String, Value>,
}

impl ErrorBody {
    pub fn new(status: RefusedStatus, error: ErrorDetails, invocation_id: Option<InvocationId>) -> Self {
        Self {
            status,
            message: error.message.clone(),
            errors: vec![error.message.clone()],
            error,
            invocation_id,
            current_version: None,
            existing_lease: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_body_is_written_as_it_is_read() {
        let body = json!({
            "status": "denied",
            "message": "no",
            "errors": ["no"],
            "error": {"code": "GRANT_NOT_FOUND", "message": "no", "stage": "authorize", "path": "grant_id"},
            "invocation_id": "inv_01KGYB3881EC1R60R30C1G60R3",
        });
        let read: ErrorBody = serde_json::from_value(body.clone()).unwrap();
        assert_eq!(read.error.details, Map::from_iter([("path".to_owned(), json!("grant_id"))]));
        assert_eq!(json!(read), body);
        let details = ErrorDetails { stage: None, ..read.error };
        let body = json!(ErrorBody::new(RefusedStatus::Unknown, details, None));
        assert_eq!((&body["status"], &body["errors"]), (&json!("unknown"), &json!(["no"])));
        assert!(body.get("invocation_id").is_none() && body["error"].get("stage").is_none());
    }
}
