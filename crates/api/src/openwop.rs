//! OpenWOP under `/v1`, and the hooks of AOS beside it. Members are spelled as the protocols spell them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::endpoint::Group;
use crate::reply::ErrorCode;

pub mod discovery;
pub mod events;
pub mod hooks;
pub mod runs;
pub mod sessions;
pub mod tools;

/// All endpoints under `/v1`, in the order of the document's tags.
pub fn groups() -> Vec<Group> {
    vec![discovery::group(), tools::group(), events::group(), runs::group(), sessions::group(), hooks::group()]
}

/// Why a request was refused. There are no other members.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Error", deny_unknown_fields)]
pub struct FlatError {
    /// The protocol's name for the error.
    pub error: String,
    /// The message for people.
    pub message: String,
    #[serde(default, skip_serializing_if = "FlatDetails::is_empty")]
    pub details: FlatDetails,
}

/// Details that help to correct the request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct FlatDetails {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ErrorCode")]
    pub code: Option<ErrorCode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub retry_after_ms: Option<u64>,
    #[serde(flatten)]
    #[schemars(with = "KnownDetails")]
    pub others: Map<String, Value>,
}

impl FlatDetails {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Other members with a fixed meaning.
#[derive(JsonSchema)]
#[schemars(extend("additionalProperties" = true))]
#[expect(dead_code, reason = "only its schema is used")]
struct KnownDetails {
    /// The invalid part of the request.
    #[schemars(skip_serializing_if = "Option::is_none", with = "String")]
    path: Option<String>,
    /// The limit that was exceeded.
    #[schemars(skip_serializing_if = "Option::is_none", with = "String")]
    scope: Option<String>,
}
