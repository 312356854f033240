//! Violations of a schema, in words that let an agent fix its call and never repeat what it sent.

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::paths::Location;
use jsonschema::{JsonType, ValidationError};
use serde_json::Value;
use thiserror::Error;

use super::SchemaError;

/// The maximum number of listed names or values.
const LISTED: usize = 32;
/// The maximum length of a quoted name or value, in characters.
const QUOTED: usize = 64;
/// The maximum number of explained alternatives.
const EXPLAINED: usize = 4;

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("parameter `{path}` {reason}")]
pub struct SchemaViolation {
    /// The dotted path of the invalid or missing parameter; empty for the parameters as a whole.
    pub path: String,
    /// The violated keyword.
    pub rule: String,
    /// The requirement.
    pub reason: String,
}

impl SchemaViolation {
    pub(super) fn of(error: &ValidationError<'_>, document: &Value) -> Self {
        let mut path = dotted(error.instance_path());
        let named = match error.kind() {
            ValidationErrorKind::Required { property } => property.as_str(),
            ValidationErrorKind::AdditionalProperties { unexpected }
            | ValidationErrorKind::UnevaluatedProperties { unexpected } => unexpected.first().map(String::as_str),
            _ => None,
        };
        if let Some(name) = named {
            push(&mut path, &quoted(name));
        }
        let reason = match error.kind() {
            ValidationErrorKind::AdditionalProperties { .. } => unknown_name(error, document),
            _ => explain(error),
        };
        Self { path, rule: error.kind().keyword().to_owned(), reason }
    }

    /// A member with a name that a service may read as a declared one.
    pub(crate) fn misspelt(path: String, declared: &str) -> Self {
        let reason = format!("may be read as `{}` by the service; use that name, or remove it", quoted(declared));
        Self { path, rule: "spelling".to_owned(), reason }
    }
}

/// The dotted path of a member.
pub(super) fn below(path: &str, name: &str) -> String {
    let mut path = path.to_owned();
    push(&mut path, &quoted(name));
    path
}

/// An error in a schema itself, which is not the caller's data.
pub(super) fn in_schema(error: &ValidationError<'_>) -> SchemaError {
    let reason = match error.kind() {
        ValidationErrorKind::Referencing(_) => "has a $ref to a part that does not exist; use #/$defs/NAME".to_owned(),
        ValidationErrorKind::Format { format } if format == "regex" => {
            // The error says only that the engine does not take it.
            match error.instance().as_str().map(regex::Regex::new) {
                Some(Ok(_) | Err(regex::Error::CompiledTooBig(_))) => {
                    "is a regular expression that is too large; lower its repetition counts".to_owned()
                }
                _ => "is not a supported regular expression; remove look-around and back-references".to_owned(),
            }
        }
        _ => explain(error),
    };
    SchemaError { path: dotted(error.instance_path()), reason }
}

/// The requirement, as the end of a sentence about the value.
fn explain(error: &ValidationError<'_>) -> String {
    use ValidationErrorKind as Kind;
    match error.kind() {
        Kind::Required { .. } => "is missing".to_owned(),
        Kind::AdditionalProperties { .. } | Kind::UnevaluatedProperties { .. } => "is unknown; remove it".to_owned(),
        Kind::Type { kind: TypeKind::Single(one) } => format!("must be {}", type_name(*one)),
        Kind::Type { kind: TypeKind::Multiple(types) } => {
            format!("must be {}", types.iter().map(type_name).collect::<Vec<_>>().join(" or "))
        }
        Kind::Enum { options } => format!("must be one of {}", listed(options.as_array().map_or(&[], Vec::as_slice))),
        Kind::Constant { expected_value } => format!("must be {}", quoted(&expected_value.to_string())),
        Kind::Maximum { limit } => format!("must be at most {limit}"),
        Kind::Minimum { limit } => format!("must be at least {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("must be less than {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("must be more than {limit}"),
        Kind::MultipleOf { multiple_of } => format!("must be a multiple of {multiple_of}"),
        Kind::MaxLength { limit } => format!("must have at most {limit} characters"),
        Kind::MinLength { limit } => format!("must have at least {limit} characters"),
        Kind::MaxItems { limit } => format!("must have at most {limit} items"),
        Kind::MinItems { limit } => format!("must have at least {limit} items"),
        Kind::AdditionalItems { limit } => format!("must have at most {limit} items"),
        Kind::MaxProperties { limit } => format!("must have at most {limit} members"),
        Kind::MinProperties { limit } => format!("must have at least {limit} members"),
        Kind::UniqueItems => "must not have duplicate items".to_owned(),
        Kind::UnevaluatedItems { .. } => "has items that are not allowed; remove them".to_owned(),
        Kind::Contains => "must contain the required items".to_owned(),
        Kind::Pattern { pattern } => format!("must match the pattern {}", quoted(pattern)),
        Kind::Format { format } => format!("must be a string in the format {}", quoted(format)),
        Kind::PropertyNames { error } => format!("has a member with a name that {}", explain(error)),
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            alternatives(context, &dotted(error.instance_path()))
        }
        Kind::OneOfMultipleValid { .. } => "matches several alternatives, must match exactly one".to_owned(),
        Kind::Not { schema } => format!("must not match {}", quoted(&schema.to_string())),
        Kind::FalseSchema => "is not allowed".to_owned(),
        Kind::ContentEncoding { content_encoding } => format!("must be encoded as {}", quoted(content_encoding)),
        Kind::ContentMediaType { content_media_type } => format!("must be {}", quoted(content_media_type)),
        Kind::FromUtf8 { .. }
        | Kind::BacktrackLimitExceeded { .. }
        | Kind::RegexEngineFailure { .. }
        | Kind::Custom { .. }
        | Kind::Referencing(_) => "cannot be checked against the schema".to_owned(),
    }
}

/// Explains why each alternative failed.
fn alternatives(context: &[Vec<ValidationError<'static>>], own: &str) -> String {
    let mut reasons = Vec::new();
    for error in context.iter().filter_map(|errors| errors.first()).take(EXPLAINED) {
        let reason = explain(error);
        let path = dotted(error.instance_path());
        let reason = if path == own { reason } else { format!("`{path}` {reason}") };
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    format!("matches none of the alternatives: {}", reasons.join("; or "))
}

/// The known names next to an unknown one.
fn unknown_name(error: &ValidationError<'_>, document: &Value) -> String {
    let place = error.schema_path().as_str().rsplit_once('/').map_or("", |(place, _)| place);
    let known = document.pointer(place).and_then(|schema| schema.get("properties")).and_then(Value::as_object);
    match known {
        Some(known) if !known.is_empty() => {
            let mut names: Vec<&str> = known.keys().map(String::as_str).collect();
            names.sort_unstable();
            names.truncate(LISTED);
            let more = if known.len() > LISTED { ", ..." } else { "" };
            format!("is unknown; use {}{more}", names.join(", "))
        }
        _ => "is unknown; remove it".to_owned(),
    }
}

fn listed(options: &[Value]) -> String {
    let texts: Vec<String> = options.iter().take(LISTED).map(|option| quoted(&option.to_string())).collect();
    let more = if options.len() > LISTED { ", ..." } else { "" };
    format!("{}{more}", texts.join(", "))
}

fn type_name(kind: JsonType) -> &'static str {
    match kind {
        JsonType::Array => "a list",
        JsonType::Boolean => "true or false",
        JsonType::Integer => "an integer",
        JsonType::Null => "null",
        JsonType::Number => "a number",
        JsonType::Object => "an object",
        JsonType::String => "a string",
    }
}

fn dotted(location: &Location) -> String {
    let mut path = String::new();
    for segment in location {
        push(&mut path, &quoted(&segment.to_string()));
    }
    path
}

fn push(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(name);
}

fn quoted(text: &str) -> String {
    let cut: String = text.chars().take(QUOTED).collect();
    if cut.len() < text.len() { format!("{cut}...") } else { cut }
}
