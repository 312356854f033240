//! The headers of a request to a server over HTTP, which repeat what its body says so that proxies can route by it.

use http::{HeaderName, HeaderValue, header};
use serde_json::{Map, Value};
use toolgate_model::mirrored::{Mirrored, header_text};

use super::message::{MODERN, Request};

/// A header and its value.
pub(crate) type Header = (HeaderName, HeaderValue);

const ACCEPT: Header = (header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// The headers of a request of the modern era.
pub(crate) fn modern(request: &Request<'_>) -> Vec<Header> {
    let mut headers = Vec::with_capacity(4);
    let version = (VERSION, HeaderValue::from_static(MODERN));
    headers.extend([ACCEPT, version, (METHOD, HeaderValue::from_static(request.method))]);
    headers.extend(request.name.as_ref().and_then(|name| Some((NAME, encoded(name)?))));
    if let Some((mirrored, arguments)) = request.mirrored {
        headers.extend(mirrored.iter().filter_map(|parameter| repeated(parameter, arguments)));
    }
    headers
}

/// The headers of every request of a legacy session; before the handshake there is neither a version nor a session.
pub(crate) fn legacy(version: Option<&str>, session: Option<&str>) -> Vec<Header> {
    let value = |text: &str| HeaderValue::from_str(text).ok();
    let version = version.and_then(|version| Some((VERSION, value(version)?)));
    let session = session.and_then(|session| Some((SESSION, value(session)?)));
    [Some(ACCEPT), version, session].into_iter().flatten().collect()
}

/// The header that repeats a parameter, if there is an argument for it that a header can hold.
fn repeated(parameter: &Mirrored, arguments: &Map<String, Value>) -> Option<Header> {
    let value = encoded(&parameter.value(arguments)?)?;
    let name = HeaderName::from_bytes(format!("mcp-param-{}", parameter.header).as_bytes()).ok()?;
    Some((name, value))
}

fn encoded(value: &str) -> Option<HeaderValue> {
    HeaderValue::try_from(header_text(value)).ok()
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
            "deep": {"properties": {
                "count": {"type": "integer", "x-mcp-header": "Count"}, "on": {"type": "boolean", "x-mcp-header": "On"}
            }},
            "none": {"type": "string", "x-mcp-header": "None"}, "plain": {}
        }});
        let arguments = json!({"region": "é", "deep": {"count": 3, "on": true}, "none": null, "plain": "x"});
        let mirrored = Mirrored::of_schema(&schema);
        let mapping = McpMapping::of_tool("a");
        let mut request = Request::rendered(&mapping, Cow::Borrowed(b""), &arguments);
        request.mirrored = arguments.as_object().map(|arguments| (mirrored.as_slice(), arguments));
        let headers = modern(&request);
        let mut headers: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        headers.retain(|(name, _)| name.starts_with("mcp-param-"));
        headers.sort_unstable();
        let expected = [("mcp-param-count", "3"), ("mcp-param-on", "true"), ("mcp-param-region", "=?base64?w6k=?=")];
        assert_eq!(headers, expected);
    }

    #[test]
    fn what_a_header_cannot_hold_is_encoded() {
        for plain in ["", "us-east 1", "=?base64?", "a=b"] {
            assert_eq!(encoded(plain).unwrap(), plain);
        }
        for (value, expected) in
            [("é", "=?base64?w6k=?="), (" a", "=?base64?IGE=?="), ("a\r\nx: y", "=?base64?YQ0KeDogeQ==?=")]
        {
            assert_eq!(encoded(value).unwrap(), expected);
        }
        assert!(encoded("=?base64?YQ==?=").unwrap().len() > 15);
    }

    #[test]
    fn a_modern_request_says_its_version_method_and_name() {
        let (mapping, arguments) = (McpMapping::of_tool("é"), json!({}));
        let headers = modern(&Request::rendered(&mapping, Cow::Borrowed(b""), &arguments));
        let header = |name: &str| headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.to_str().unwrap());
        assert_eq!(header("mcp-protocol-version"), Some(MODERN));
        assert_eq!((header("mcp-method"), header("mcp-name")), (Some("tools/call"), Some("=?base64?w6k=?=")));
        assert_eq!(header("accept"), Some("application/json, text/event-stream"));
    }
}
