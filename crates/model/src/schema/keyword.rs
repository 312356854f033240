//! The keywords that a schema may use, and the subschemas under each.

use serde_json::{Map, Value};

use super::SchemaError;

/// The only supported dialect.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";
/// The maximum nesting of schemas, and the maximum number of schemas in one.
const DEPTH_LIMIT: usize = 64;
const COUNT_LIMIT: usize = 10_000;
/// The largest divisor that the validator handles exactly.
const EXACT_DIVISORS: u64 = 1 << 53;
/// The formats that are checked. `regex` is not among them: it would compile patterns that agents send.
pub(crate) const FORMATS: [&str; 16] = [
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "iri",
    "iri-reference",
    "json-pointer",
    "relative-json-pointer",
    "time",
    "uri",
    "uri-reference",
    "uri-template",
    "uuid",
];

/// What is under a keyword.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Under {
    /// A schema for the same value.
    InPlace,
    /// A list of schemas for the same value.
    InPlaceList,
    /// Schemas by name, for the same value.
    InPlaceMap,
    /// A schema for a part of the value.
    Part,
    /// A list of schemas for parts of the value.
    PartList,
    /// Schemas by name, for parts of the value or for reference.
    PartMap,
    /// No schema.
    Plain,
}

/// What is under this keyword; `None` for those that are not enforced.
pub(super) fn under(keyword: &str) -> Option<Under> {
    Some(match keyword {
        "else" | "if" | "not" | "then" => Under::InPlace,
        "allOf" | "anyOf" | "oneOf" => Under::InPlaceList,
        "dependentSchemas" => Under::InPlaceMap,
        "additionalProperties"
        | "contains"
        | "items"
        | "propertyNames"
        | "unevaluatedItems"
        | "unevaluatedProperties" => Under::Part,
        "prefixItems" => Under::PartList,
        "$defs" | "definitions" | "patternProperties" | "properties" => Under::PartMap,
        // An anchor restricts nothing; references by it are refused.
        "$anchor" | "$comment" | "$ref" | "$schema" | "const" | "contentEncoding" | "contentMediaType" | "default"
        | "dependentRequired" | "deprecated" | "description" | "enum" | "examples" | "exclusiveMaximum"
        | "exclusiveMinimum" | "format" | "maxContains" | "maxItems" | "maxLength" | "maxProperties" | "maximum"
        | "minContains" | "minItems" | "minLength" | "minProperties" | "minimum" | "multipleOf" | "pattern"
        | "readOnly" | "required" | "title" | "type" | "uniqueItems" | "writeOnly" => Under::Plain,
        _ if keyword.starts_with("x-") => Under::Plain,
        _ => return None,
    })
}

/// The schemas directly under a keyword, each with the rest of its path.
pub(super) fn schemas_under(under: Under, value: &Value) -> Vec<(String, &Value)> {
    match (under, value) {
        (Under::InPlace | Under::Part, schema) => vec![(String::new(), schema)],
        (Under::InPlaceList | Under::PartList, Value::Array(schemas)) => {
            schemas.iter().enumerate().map(|(position, schema)| (format!(".{position}"), schema)).collect()
        }
        (Under::InPlaceMap | Under::PartMap, Value::Object(schemas)) => {
            schemas.iter().map(|(name, schema)| (format!(".{name}"), schema)).collect()
        }
        _ => Vec::new(),
    }
}

/// Checks the keywords of a schema and of all schemas in it.
pub(super) fn check(document: &Value) -> Result<(), SchemaError> {
    let mut count = 0;
    check_schema(document, "", 0, &mut count)
}

fn check_schema(schema: &Value, path: &str, depth: usize, count: &mut usize) -> Result<(), SchemaError> {
    *count += 1;
    if depth > DEPTH_LIMIT || *count > COUNT_LIMIT {
        return Err(refuse(path, "is nested too deep or has too many parts; make the schema smaller"));
    }
    let members = match schema {
        Value::Bool(_) => return Ok(()),
        Value::Object(members) => members,
        _ => return Err(refuse(path, "must be a schema: an object, true or false")),
    };
    for (keyword, value) in members {
        let at = if path.is_empty() { keyword.clone() } else { format!("{path}.{keyword}") };
        let Some(under) = under(keyword) else { return Err(refuse(&at, unknown(keyword))) };
        check_plain(keyword, value, &at, depth)?;
        for (rest, schema) in schemas_under(under, value) {
            check_schema(schema, &format!("{at}{rest}"), depth + 1, count)?;
        }
    }
    refuse_ignored(members, path)
}

fn check_plain(keyword: &str, value: &Value, at: &str, depth: usize) -> Result<(), SchemaError> {
    match (keyword, value) {
        ("$ref", Value::String(target)) if target == "#" || target.starts_with("#/") => Ok(()),
        ("$ref", _) => Err(refuse(at, "must refer to a part of the schema; use #/$defs/NAME")),
        ("$schema", Value::String(dialect)) if depth == 0 && dialect.trim_end_matches('#') == DIALECT => Ok(()),
        ("$schema", _) => Err(refuse(at, format!("must be {DIALECT} at the top level, or absent"))),
        ("format", Value::String(format)) if FORMATS.contains(&format.as_str()) => Ok(()),
        ("format", _) => Err(refuse(at, format!("is not a supported format; use {}", FORMATS.join(", ")))),
        ("multipleOf", Value::Number(number)) if number.as_u64().is_some_and(|divisor| divisor > EXACT_DIVISORS) => {
            Err(refuse(
                at,
                format!("must be at most {EXACT_DIVISORS}, because a larger divisor is not checked exactly"),
            ))
        }
        ("required", Value::Bool(_)) => {
            Err(refuse(at, "must be a list of names; a boolean is valid only in the short form of parameters"))
        }
        _ => Ok(()),
    }
}

/// Keywords that have no effect without another one.
fn refuse_ignored(members: &Map<String, Value>, path: &str) -> Result<(), SchemaError> {
    let needs = [("then", "if"), ("else", "if"), ("minContains", "contains"), ("maxContains", "contains")];
    match needs.into_iter().find(|(keyword, other)| members.contains_key(*keyword) && !members.contains_key(*other)) {
        Some((keyword, other)) => Err(refuse(path, format!("has {keyword} without {other}, which has no effect"))),
        None => Ok(()),
    }
}

fn unknown(keyword: &str) -> &'static str {
    match keyword {
        "$dynamicAnchor" | "$dynamicRef" | "$id" | "$recursiveAnchor" | "$recursiveRef" => {
            "is not supported; refer to parts of the schema with #/$defs/NAME"
        }
        "nullable" => "is not a keyword of JSON Schema 2020-12; add \"null\" to `type`",
        "example" => "is not a keyword of JSON Schema 2020-12; use `examples` with a list",
        _ => "is not a supported keyword of JSON Schema 2020-12; correct it, or use x-NAME for annotations",
    }
}

fn refuse(path: &str, reason: impl Into<String>) -> SchemaError {
    SchemaError { path: path.to_owned(), reason: reason.into() }
}
