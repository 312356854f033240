//! Shared parts of replies.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::parameters::inline_schema;

/// Where the next page begins; `null` on the last one.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct NextCursor(pub Option<String>);

/// Reads that report this revision or a later one include the change.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Revision(pub u64);

inline_schema!(
    Revision,
    "Revision",
    json!({
        "type": "integer",
        "description": "Reads that report this revision or a later one include the change.",
        "minimum": 0,
    })
);

/// US dollars, to at most six decimals.
#[derive(JsonSchema)]
#[schemars(inline)]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) struct Dollars(#[schemars(range(min = 0, max = 1_000_000_000))] f64);

/// A SHA-256 in hexadecimal.
#[derive(JsonSchema)]
#[schemars(extend("pattern" = "^[0-9a-f]{64}$"))]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) struct Digest(String);

/// The code of a refusal. The document lists the codes of the gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ErrorCode(pub String);

inline_schema!(ErrorCode, "ErrorCode", json!({"$ref": "#/components/schemas/ErrorCode"}));

/// A secret that a response shows once.
#[derive(Serialize, Deserialize)]
#[serde(transparent)]
pub struct ShownKey(String);

impl ShownKey {
    pub fn new(key: &str) -> Self {
        Self(key.to_owned())
    }

    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl JsonSchema for ShownKey {
    fn schema_name() -> Cow<'static, str> {
        Cow::Borrowed("Key")
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let schema = json!({
            "type": "string",
            "description": "A key itself, shown once.",
            "pattern": "^tgk_[0-9A-Za-z]{46}$",
        });
        Schema::try_from(schema).unwrap_or_default()
    }
}

/// A member that always has the same value, such as `"status": "deleted"`.
macro_rules! constants {
    ($($name:ident = $text:literal;)+) => {$(
        #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[schemars(inline)]
        pub enum $name {
            #[serde(rename = $text)]
            Value,
        }
    )+};
}

pub(crate) use constants;

constants! {
    Deleted = "deleted";
    Okay = "ok";
    Removed = "removed";
    Revoked = "revoked";
}
