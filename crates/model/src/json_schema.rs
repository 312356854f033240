//! The JSON Schemas of the model's types, for the OpenAPI documents. Each states the rule that the type's parser
//! enforces. Types with the same schema share one name, so that a generated client has one type for them.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};

use crate::approval::{CallLabel, SessionName};
use crate::context::ContextId;
use crate::credential::{AuthType, CredentialStatus, ServiceName};
use crate::document::DocumentId;
use crate::hook::{RunId, Transport};
use crate::id::{
    ApprovalId, CredentialId, EventId, GrantId, InvocationId, ItemId, KeyId, SessionId, StandingApprovalId, VaultId,
};
use crate::invocation::{IdempotencyKey, InvocationStatus};
use crate::merkle::Hash;
use crate::principal::{PrincipalId, TenantId};
use crate::scope::{SCOPE_LIMIT, Scope, ScopeSet};
use crate::service::{ServiceVersion, ToolName};
use crate::text::{Label, Line};
use crate::time::Timestamp;
use crate::workflow::{WorkflowName, WorkflowVersion};

mod approvals;
mod grants;
mod openwop;
mod principals;
mod services;
mod spending;
mod work;

#[cfg(test)]
mod tests;

pub use self::services::ToolRateLimit;

/// `schemas! { Type, OtherType => "Name" |generator| { ... }; }`: all listed types have the schema of that name.
macro_rules! schemas {
    ($($($type:ty),+ => $name:literal |$generator:ident| $schema:expr;)+) => {$($(
        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                Cow::Borrowed($name)
            }

            fn schema_id() -> Cow<'static, str> {
                Cow::Borrowed(concat!("toolgate_model::", $name))
            }

            fn json_schema($generator: &mut SchemaGenerator) -> Schema {
                schema($schema)
            }
        }
    )+)+};
}
use schemas;

schemas! {
    CallLabel, ContextId, DocumentId, IdempotencyKey, Label, PrincipalId, RunId, Scope, ServiceName, ServiceVersion,
    SessionName, TenantId, WorkflowName, WorkflowVersion,
    ToolName => "Name" |_generator| json!({
        "type": "string",
        "description": "A name chosen by a client: letters, digits and `. _ : @ -`.",
        "pattern": "^[A-Za-z0-9._:@-]{1,128}$",
    });
    Line => "Line" |_generator| json!({
        "type": "string",
        "description": "Printable text on one line, at most 256 bytes.",
        "minLength": 1,
        "maxLength": 256,
        "pattern": "^[^\\u0000-\\u001f\\u007f-\\u009f\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u2069\\ufeff]+$",
    });
    Timestamp => "Time" |_generator| json!({
        "type": "string",
        "description": "RFC 3339 with an offset; written in UTC with milliseconds.",
        "format": "date-time",
        "examples": ["2099-03-08T10:00:00.000+00:00"],
    });
    ApprovalId => "ApprovalId" |_generator| id(ApprovalId::PREFIX);
    CredentialId => "CredentialId" |_generator| id(CredentialId::PREFIX);
    EventId => "EventId" |_generator| id(EventId::PREFIX);
    GrantId => "GrantId" |_generator| id(GrantId::PREFIX);
    InvocationId => "InvocationId" |_generator| id(InvocationId::PREFIX);
    ItemId => "ItemId" |_generator| id(ItemId::PREFIX);
    KeyId => "KeyId" |_generator| id(KeyId::PREFIX);
    SessionId => "SessionId" |_generator| id(SessionId::PREFIX);
    StandingApprovalId => "StandingApprovalId" |_generator| id(StandingApprovalId::PREFIX);
    VaultId => "VaultId" |_generator| id(VaultId::PREFIX);
    Hash => "Hash" |_generator| json!({
        "type": "string",
        "description": "A SHA-256 in base64.",
        "pattern": "^[A-Za-z0-9+/]{43}=$",
    });
    InvocationStatus => "InvocationStatus" |_generator| json!({
        "type": "string",
        "description": "Refused, failed, in flight, executed, or interrupted before it was settled.",
        "enum": InvocationStatus::ALL,
    });
    Transport => "Transport" |_generator| json!({
        "type": "string",
        "description": "How the tool is reached.",
        "enum": ["http", "mcp", "native"],
    });
    AuthType => "AuthType" |_generator| json!({
        "type": "string",
        "description": "How a request authenticates to the service.",
        "enum": AuthType::ALL,
    });
    CredentialStatus => "CredentialStatus" |_generator| json!({
        "type": "string",
        "enum": ["active", "expired", "revoked"],
    });
    ScopeSet => "Scopes" |generator| json!({
        "type": "array",
        "description": "Operations of a service, such as `charges.read`; compared as strings.",
        "maxItems": SCOPE_LIMIT,
        "items": generator.subschema_for::<Scope>(),
    });
}

fn id(prefix: &str) -> Value {
    json!({"type": "string", "pattern": format!("^{prefix}_[0-7][0-9A-HJKMNP-TV-Z]{{25}}$")})
}

/// The words of a closed vocabulary.
fn words<T>(vocabulary: &[(&'static str, T)]) -> Vec<&'static str> {
    vocabulary.iter().map(|(word, _)| *word).collect()
}

/// INVARIANT: every schema above is an object, so the default is never used.
fn schema(value: Value) -> Schema {
    Schema::try_from(value).unwrap_or_default()
}
