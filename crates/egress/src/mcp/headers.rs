//! The headers of a request to a server over HTTP, which repeat what its body says so that proxies can route by it.

use serde_json::Value;
use toolgate_model::mirrored::header_text;

use super::message::{MODERN, Request};

/// A header and its value.
pub(crate) type Header = (String, String);

/// The property of a schema that says that a parameter is repeated in a header.
const MARK: &str = "x-mcp-header";
/// How deep parameters are looked for.
const DEPTH_LIMIT: usize = 16;

/// The headers of a request of the modern era.
pub(crate) fn modern(request: &Request<'_>) -> Vec<Header> {
    let mut headers = common();
    headers.push(("mcp-protocol-version".to_owned(), MODERN.to_owned()));
    headers.push(("mcp-method".to_owned(), request.method.to_owned()));
    headers.extend(request.name.as_ref().map(|name| ("mcp-name".to_owned(), header_text(name))));
    if let Some((schema, arguments)) = request.marked {
        marked(schema, arguments, 0, &mut headers);
    }
    headers
}

/// The headers of a request of the legacy era; before the handshake there is neither a version nor a session.
pub(crate) fn legacy(version: Option<&str>, session: Option<&str>) -> Vec<Header> {
    let mut headers = common();
    headers.extend(version.map(|version| ("mcp-protocol-version".to_owned(), version.to_owned())));
    headers.extend(session.map(|session| ("mcp-session-id".to_owned(), session.to_owned())));
    headers
}

fn common() -> Vec<Header> {
    vec![("accept".to_owned(), "application/json, text/event-stream".to_owned())]
}

fn marked(schema: &Value, arguments: &Value, depth: usize, headers: &mut Vec<Header>) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object).filter(|_| depth < DEPTH_LIMIT) else {
        return;
    };
    for (name, property) in properties {
        let Some(argument) = arguments.get(name) else { continue };
        if let (Some(mark), Some(value)) = (property.get(MARK).and_then(Value::as_str), plain(argument)) {
            let header = format!("mcp-param-{}", mark.to_ascii_lowercase());
            // A name that is none, or that stands twice, is a fault of the definition: the server will say so.
            if is_token(mark) && !headers.iter().any(|(taken, _)| *taken == header) {
                headers.push((header, header_text(&value)));
            }
        }
        marked(property, argument, depth + 1, headers);
    }
}

fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn is_token(name: &str) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_token)
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use serde_json::json;
    use toolgate_model::service::McpMapping;

    use super::*;

    #[test]
    fn marked_parameters_are_repeated_at_any_depth_as_headers_can_hold_them() {
        let schema = json!({"properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "deep": {"properties": {"count": {"type": "integer", "x-mcp-header": "Count"}, "on": {"x-mcp-header": "On"}}},
            "list": {"x-mcp-header": "List"}, "bad": {"x-mcp-header": "a b"}, "none": {"x-mcp-header": "None"},
            "again": {"x-mcp-header": "REGION"}, "plain": {}
        }});
        let arguments = json!({
            "region": "é", "deep": {"count": 3, "on": true}, "list": [1], "bad": "x", "none": null, "again": "x", "plain": "x"
        });
        let mut headers = Vec::new();
        marked(&schema, &arguments, 0, &mut headers);
        headers.sort();
        let expected = [("mcp-param-count", "3"), ("mcp-param-on", "true")];
        let (region, rest) = headers.split_last().unwrap();
        assert_eq!(rest, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!(region.0, "mcp-param-region");
    }

    #[test]
    fn what_a_header_cannot_hold_is_encoded() {
        for plain in ["", "us-east 1", "=?base64?", "a=b"] {
            assert_eq!(header_text(plain), plain);
        }
        for (value, expected) in
            [("é", "=?base64?w6k=?="), (" a", "=?base64?IGE=?="), ("a\r\nx: y", "=?base64?YQ0KeDogeQ==?=")]
        {
            assert_eq!(header_text(value), expected);
        }
        assert!(header_text("=?base64?YQ==?=").len() > 15);
    }

    #[test]
    fn a_modern_request_says_its_version_method_and_name() {
        let (mapping, arguments) = (McpMapping::of_tool("é"), json!({}));
        let headers = modern(&Request::rendered(&mapping, Cow::Borrowed(b""), &arguments));
        let header = |name: &str| headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str());
        assert_eq!(header("mcp-protocol-version"), Some(MODERN));
        assert_eq!((header("mcp-method"), header("mcp-name")), (Some("tools/call"), Some("=?base64?w6k=?=")));
        assert_eq!(header("accept"), Some("application/json, text/event-stream"));
    }
}
