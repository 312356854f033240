//! The parts of a document besides its endpoints: the heading, the security schemes, and the responses that many
//! operations share.

use serde_json::{Map, Value, json};
use toolgate_model::principal::PrincipalId;

use crate::error::ErrorBody;
use crate::openwop::FlatError;
use crate::schemas::Schemas;

/// The heading of a document, and what only the program knows.
pub struct Heading<'a> {
    pub title: &'a str,
    pub summary: &'a str,
    pub description: &'a str,
    pub version: &'a str,
    /// All error codes.
    pub codes: &'a [&'a str],
    pub errors: ErrorFormat,
}

/// The format of the bodies that refuse a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorFormat {
    /// [`ErrorBody`], which has everything in `error`.
    OpenIntent,
    /// [`FlatError`], which has everything in `details`.
    OpenWop,
}

impl ErrorFormat {
    fn schema(self, schemas: &mut Schemas) -> Value {
        match self {
            Self::OpenIntent => schemas.reply::<ErrorBody>(),
            Self::OpenWop => schemas.reply::<FlatError>(),
        }
    }
}

/// The document without endpoints.
pub(super) fn base(heading: &Heading<'_>, schemas: &mut Schemas) -> Value {
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": heading.title,
            "summary": heading.summary,
            "description": heading.description,
            "version": heading.version,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "components": {
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "The caller's key, as `Authorization: Bearer KEY`.",
                },
                "key": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "X-API-Key",
                    "description": "The caller's key, in a header of its own.",
                },
            },
            "parameters": {
                "X-Agent-ID": {
                    "name": "X-Agent-ID",
                    "in": "header",
                    "description": "The caller itself, or a principal that it may act for by `agents.act_as`.",
                    "schema": schemas.request::<PrincipalId>(),
                },
            },
            "responses": shared_responses(heading.errors, schemas),
            "schemas": {
                "ErrorCode": {
                    "type": "string",
                    "description": "Why a request was refused. A code never changes its meaning.",
                    "enum": heading.codes,
                },
            },
        },
    })
}

fn shared_responses(format: ErrorFormat, schemas: &mut Schemas) -> Value {
    let schema = format.schema(schemas);
    let (invalid, forbidden, too_many) = match format {
        ErrorFormat::OpenIntent => (
            "The request is invalid; `error.path` names the member where there is one.",
            "The caller may not do this; `error.required_permission` names the missing permission.",
            "Too many requests.",
        ),
        ErrorFormat::OpenWop => (
            "The request is invalid; `details.path` names the member where there is one.",
            "The caller may not do this; `details.requiredPermission` names the missing permission.",
            "Too many requests; `details.scope` says whose limit it was.",
        ),
    };
    let responses = [
        ("Invalid", invalid),
        ("Unauthenticated", "There is no key, or it is not valid."),
        ("Forbidden", forbidden),
        ("NotFound", "It does not exist, or the caller may not know of it."),
        ("Conflict", "It is not possible in the current state."),
        ("TooLarge", "The body is larger than the limit."),
        ("WrongType", "The body is not declared as JSON."),
        ("TooMany", too_many),
        ("Fault", "An internal error of Toolgate."),
        ("Unavailable", "Something that Toolgate depends on is unavailable; try again later."),
    ];
    let mut shared: Map<String, Value> = Map::new();
    for (name, description) in responses {
        let mut response = refusal(description, &schema);
        let headers = match name {
            "Unauthenticated" => json!({"WWW-Authenticate": {"required": true, "schema": {"const": "Bearer"}}}),
            "TooMany" => json!({"Retry-After": retry_after(format)}),
            _ => Value::Null,
        };
        if let (Some(members), true) = (response.as_object_mut(), headers.is_object()) {
            members.insert("headers".to_owned(), headers);
        }
        shared.insert(name.to_owned(), response);
    }
    Value::Object(shared)
}

fn retry_after(format: ErrorFormat) -> Value {
    let schema = json!({"type": "integer", "minimum": 0});
    match format {
        ErrorFormat::OpenIntent => json!({
            "description": "Seconds to wait before retrying; absent if waiting alone does not help.",
            "schema": schema,
        }),
        ErrorFormat::OpenWop => json!({
            "description": "Seconds to wait before retrying.",
            "required": true,
            "schema": schema,
        }),
    }
}

/// A response that refuses a request.
pub(crate) fn refusal(description: &str, schema: &Value) -> Value {
    json!({"description": description, "content": {"application/json": {"schema": schema}}})
}
