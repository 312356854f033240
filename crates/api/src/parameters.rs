//! What a request carries in its URL.

use std::fmt::Display;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolgate_model::context::ContextId;
use toolgate_model::credential::ServiceName;
use toolgate_model::hook::RunId;
use toolgate_model::id::{
    ApprovalId, CredentialId, GrantId, InvocationId, KeyId, SessionId, StandingApprovalId, VaultId,
};
use toolgate_model::principal::{PrincipalId, TenantId};

use crate::policies::PolicyVersionNumber;
use crate::schemas::Schemas;

/// A query or a body without members: whatever is sent is refused and not ignored.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Nothing {}

/// What stands for the placeholder of a path.
pub trait PathParameter {
    fn schema(schemas: &mut Schemas) -> Option<Value>;

    /// The path with this value in it.
    fn fill(&self, path: &str) -> String;
}

impl PathParameter for () {
    fn schema(_: &mut Schemas) -> Option<Value> {
        None
    }

    fn fill(&self, path: &str) -> String {
        path.to_owned()
    }
}

macro_rules! path_parameters {
    ($($kind:ty),+ $(,)?) => {$(
        impl PathParameter for $kind {
            fn schema(schemas: &mut Schemas) -> Option<Value> {
                Some(schemas.request::<Self>())
            }

            fn fill(&self, path: &str) -> String {
                replace_placeholder(path, self)
            }
        }
    )+};
}

path_parameters! {
    ApprovalId, ContextId, CredentialId, GrantId, InvocationId, KeyId, PolicyVersionNumber, PrincipalId, RunId,
    ServiceName, SessionId, StandingApprovalId, TenantId, VaultId,
}

/// INVARIANT: the ids above consist of characters that stand for themselves in a path.
fn replace_placeholder(path: &str, value: &impl Display) -> String {
    match (path.split_once('{'), path.split_once('}')) {
        (Some((before, _)), Some((_, after))) => format!("{before}{value}{after}"),
        _ => path.to_owned(),
    }
}

/// The parameters of lists that come in pages.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Paging {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Cursor>,
}

/// How many items a page has at most. Out of range is refused where it is used, so that the refusal names the range.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Limit(pub u32);

impl Limit {
    pub const DEFAULT: u32 = 100;
    pub const MAXIMUM: u32 = 1000;
}

/// The `next_cursor` of the previous page.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cursor(pub String);

impl From<Limit> for u32 {
    fn from(Limit(limit): Limit) -> Self {
        limit
    }
}

impl From<Cursor> for String {
    fn from(Cursor(cursor): Cursor) -> Self {
        cursor
    }
}

/// A schema that stands where it is used and not under a name of its own.
macro_rules! inline_schema {
    ($type:ty, $name:literal, $schema:expr) => {
        impl JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                std::borrow::Cow::Borrowed($name)
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                Schema::try_from($schema).unwrap_or_default()
            }
        }
    };
}
pub(crate) use inline_schema;

inline_schema!(
    Limit,
    "Limit",
    json!({
        "type": "integer",
        "description": "How many items at most.",
        "minimum": 1,
        "maximum": Limit::MAXIMUM,
        "default": Limit::DEFAULT,
    })
);
inline_schema!(
    Cursor,
    "Cursor",
    json!({
        "type": "string",
        "description": "The `next_cursor` of the previous page.",
        "pattern": "^[A-Za-z0-9._:@-]{1,128}$",
    })
);
