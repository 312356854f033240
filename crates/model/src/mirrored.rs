//! Parameters that clients of the Model Context Protocol repeat in headers (`x-mcp-header`), so that proxies can route by them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

/// The annotation of a schema that names the header.
const ANNOTATION: &str = "x-mcp-header";
/// How deep objects within objects are looked through.
const MAX_DEPTH: usize = 16;

/// A parameter that is repeated in a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mirrored {
    /// Where it stands in the arguments.
    pub path: Vec<String>,
    /// What the header is called, behind `Mcp-Param-`.
    pub header: String,
    is_integer: bool,
}

impl Mirrored {
    /// The parameters that this schema says are repeated. A schema whose annotations cannot be followed has none: clients
    /// do not offer such a tool.
    pub fn of_schema(schema: &Value) -> Vec<Self> {
        let mut found = Vec::new();
        match collect(schema, &mut Vec::new(), &mut found) {
            Some(()) if are_different(&found) => found,
            _ => Vec::new(),
        }
    }

    /// The value among these arguments, as the header writes it; `None` where there is none, or none that a header can hold.
    pub fn value(&self, arguments: &Map<String, Value>) -> Option<String> {
        let (first, rest) = self.path.split_first()?;
        let value = rest.iter().try_fold(arguments.get(first)?, |value, name| value.get(name))?;
        match value {
            Value::Bool(value) => Some(value.to_string()),
            Value::Number(number) => Some(number.to_string()),
            Value::String(text) => Some(text.clone()),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        }
    }

    /// Whether a header says the same as the value.
    pub fn is_same(&self, header: &str, value: &str) -> bool {
        header == value || (self.is_integer && whole(header).is_some_and(|number| whole(value) == Some(number)))
    }
}

/// A value as a header holds it: in base64 where it could not be written or read as it is.
pub fn header_text(value: &str) -> String {
    let is_blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    let bytes = value.as_bytes();
    let looks_encoded = value.starts_with("=?base64?") && value.ends_with("?=");
    let is_writable = bytes.iter().all(|byte| (0x20..=0x7e).contains(byte));
    let is_plain = is_writable && !looks_encoded && !is_blank(bytes.first()) && !is_blank(bytes.last());
    if is_plain { value.to_owned() } else { format!("=?base64?{}?=", STANDARD.encode(bytes)) }
}

/// A whole number, which may have zeros behind a point.
fn whole(text: &str) -> Option<&str> {
    let (number, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = number.strip_prefix('-').unwrap_or(number);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && fraction.bytes().all(|byte| byte == b'0')).then_some(number)
}

fn collect(schema: &Value, path: &mut Vec<String>, found: &mut Vec<Mirrored>) -> Option<()> {
    if path.len() > MAX_DEPTH {
        return Some(());
    }
    if let Some(annotation) = schema.get(ANNOTATION) {
        let kind = schema.get("type").and_then(Value::as_str);
        let header = annotation.as_str().filter(|header| is_token(header))?;
        if path.is_empty() || !matches!(kind, Some("string" | "integer" | "boolean")) {
            return None;
        }
        let (path, header) = (path.clone(), header.to_ascii_lowercase());
        found.push(Mirrored { path, header, is_integer: kind == Some("integer") });
    }
    for (name, inner) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        path.push(name.clone());
        collect(inner, path, found)?;
        path.pop();
    }
    Some(())
}

fn are_different(found: &[Mirrored]) -> bool {
    found.iter().enumerate().all(|(number, one)| found.iter().skip(number + 1).all(|other| other.header != one.header))
}

/// What the name of a header may be made of (RFC 9110).
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn annotated_parameters_are_found_at_any_depth_of_objects() {
        let schema = json!({"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "page": {"type": "object", "properties": {"size": {"type": "integer", "x-mcp-header": "Size"}}},
            "other": {"type": "string"}
        }});
        let mut found = Mirrored::of_schema(&schema);
        found.sort_by(|one, other| one.path.cmp(&other.path));
        let named: Vec<_> = found.iter().map(|one| (one.path.join("."), one.header.as_str())).collect();
        assert_eq!(named, [("page.size".to_owned(), "size"), ("region".to_owned(), "region")]);
        let arguments = json!({"region": "eu", "page": {"size": 42}});
        let values: Vec<_> = found.iter().map(|one| one.value(arguments.as_object().unwrap()).unwrap()).collect();
        assert_eq!(values, ["42", "eu"]);
        assert!(found[0].is_same("42.0", "42") && !found[0].is_same("42.5", "42") && !found[1].is_same("EU", "eu"));
        assert_eq!(found[1].value(&Map::new()), None);
    }

    #[test]
    fn annotations_that_cannot_be_followed_make_none_of_them_count() {
        for property in [
            json!({"type": "number", "x-mcp-header": "A"}),
            json!({"type": "string", "x-mcp-header": "a b"}),
            json!({"type": "string", "x-mcp-header": 7}),
            json!({"x-mcp-header": "A"}),
        ] {
            let schema = json!({"properties": {"good": {"type": "string", "x-mcp-header": "B"}, "bad": property}});
            assert_eq!(Mirrored::of_schema(&schema), []);
        }
        let twice = json!({"type": "string", "x-mcp-header": "Same"});
        assert_eq!(Mirrored::of_schema(&json!({"properties": {"a": twice, "b": twice}})), []);
    }
}
