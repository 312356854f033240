//! URL parameters.

use std::fmt::Display;
use std::marker::PhantomData;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolgate_model::approval::{LinkToken, SessionName};
use toolgate_model::context::ContextId;
use toolgate_model::credential::ServiceName;
use toolgate_model::document::DocumentId;
use toolgate_model::hook::RunId;
use toolgate_model::id::{
    ApprovalId, CoordinatorId, CredentialId, GrantId, IntentId, InvocationId, KeyId, LeaseId, PlanId,
    StandingApprovalId, TaskId, VaultId,
};
use toolgate_model::principal::{PrincipalId, TenantId};

use crate::endpoint::PathParameters;
use crate::policies::PolicyVersionNumber;
use crate::schemas::Schemas;

/// A query or a body without members: whatever is sent is refused and not ignored.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Nothing {}

/// A type for the placeholder of a path; a pair for two placeholders.
pub trait PathParameter {
    /// Replaces the description that follows from the name of the placeholder.
    const DESCRIPTION: Option<&'static str> = None;

    fn schema(schemas: &mut Schemas) -> Option<Value>;

    /// Description and schema of each placeholder.
    fn schemas(schemas: &mut Schemas) -> PathParameters {
        Self::schema(schemas).into_iter().map(|schema| (Self::DESCRIPTION, schema)).collect()
    }

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

impl<A: PathParameter, B: PathParameter> PathParameter for (A, B) {
    fn schema(_: &mut Schemas) -> Option<Value> {
        None
    }

    fn schemas(schemas: &mut Schemas) -> PathParameters {
        let mut both = A::schemas(schemas);
        both.extend(B::schemas(schemas));
        both
    }

    fn fill(&self, path: &str) -> String {
        self.1.fill(&self.0.fill(path))
    }
}

macro_rules! path_parameters {
    ($($kind:ty $(= $description:literal)?),+ $(,)?) => {$(
        impl PathParameter for $kind {
            $(const DESCRIPTION: Option<&'static str> = Some($description);)?

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
    ApprovalId, ContextId, CoordinatorId, CredentialId, DocumentId, GrantId, IntentId, InvocationId, KeyId, LeaseId, PlanId,
    PolicyVersionNumber, PrincipalId, RunId,
    ServiceName, SessionName = "The caller's name for the session. The same name of another caller is another session.",
    StandingApprovalId, TaskId, TenantId, VaultId,
}

impl PathParameter for LinkToken {
    const DESCRIPTION: Option<&'static str> = Some("The token of a one-time link.");

    fn schema(schemas: &mut Schemas) -> Option<Value> {
        Some(schemas.request::<Self>())
    }

    fn fill(&self, path: &str) -> String {
        replace_placeholder(path, &self.expose())
    }
}

/// A text that should be a `T`, as it was sent: the handler refuses one that is not like a `T` that does not exist.
#[derive(Debug, Clone)]
pub struct PathText<T> {
    pub text: String,
    kind: PhantomData<T>,
}

impl<T> PathText<T> {
    pub fn new(text: &str) -> Self {
        Self { text: text.to_owned(), kind: PhantomData }
    }
}

/// The description of a [`PathText`] in documents.
pub trait DescribedPath: JsonSchema {
    const DESCRIPTION: &'static str;
}

impl<T: DescribedPath> PathParameter for PathText<T> {
    const DESCRIPTION: Option<&'static str> = Some(T::DESCRIPTION);

    fn schema(schemas: &mut Schemas) -> Option<Value> {
        Some(schemas.request::<T>())
    }

    fn fill(&self, path: &str) -> String {
        replace_placeholder(path, &escaped(&self.text))
    }
}

/// One segment of a path, or one value of a query, with everything but plain characters escaped.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~:@".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}

/// The path with the value in its first placeholder.
///
/// INVARIANT: the ids above consist of characters that need no escaping in a path.
pub fn replace_placeholder(path: &str, value: &impl Display) -> String {
    match (path.split_once('{'), path.split_once('}')) {
        (Some((before, _)), Some((_, after))) => format!("{before}{value}{after}"),
        _ => path.to_owned(),
    }
}

/// The parameters of paged lists.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Paging {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Cursor>,
}

/// The maximum number of items in a page. A value out of range is refused when it is used, so that the refusal names
/// the range.
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

/// A schema that is inlined instead of having its own name.
macro_rules! inline_schema {
    ($type:ty, $name:literal, $schema:expr) => {
        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                std::borrow::Cow::Borrowed($name)
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::Schema::try_from($schema).unwrap_or_default()
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
        "description": "The maximum number of items.",
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
