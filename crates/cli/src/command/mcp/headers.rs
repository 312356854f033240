//! The headers of modern requests, which repeat their bodies. Arguments are repeated where the schema of the tool says so,
//! which the bridge learns from the lists of tools that pass through it.

use std::collections::HashMap;

use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use toolgate_model::mirrored::{Mirrored, header_text};

const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// The arguments of each tool that are repeated, for tools that have any.
#[derive(Debug, Default)]
pub(super) struct MirroredTools(HashMap<String, Vec<Mirrored>>);

impl MirroredTools {
    /// Takes over the tools of a list, which replace those of the same name.
    pub(super) fn learn(&mut self, tools: &[Value]) {
        for tool in tools {
            let Some(name) = tool.get("name").and_then(Value::as_str) else { continue };
            let mirrored = tool.get("inputSchema").map(Mirrored::of_schema).unwrap_or_default();
            if mirrored.is_empty() {
                self.0.remove(name);
            } else {
                self.0.insert(name.to_owned(), mirrored);
            }
        }
    }

    fn of_call(&self, params: &Value) -> Vec<(HeaderName, HeaderValue)> {
        let named = params.get("name").and_then(Value::as_str).and_then(|name| self.0.get(name));
        let arguments = params.get("arguments").and_then(Value::as_object);
        let (Some(mirrored), Some(arguments)) = (named, arguments) else { return Vec::new() };
        let header = |one: &Mirrored| {
            let name = HeaderName::try_from(format!("mcp-param-{}", one.header)).ok()?;
            Some((name, HeaderValue::try_from(header_text(&one.value(arguments)?)).ok()?))
        };
        mirrored.iter().filter_map(header).collect()
    }
}

/// The headers of a request or notification of the modern era.
pub(super) fn modern(version: &str, method: &str, params: &Value, tools: &MirroredTools) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let mut insert = |name: HeaderName, text: &str| {
        if let Ok(value) = HeaderValue::try_from(text) {
            headers.insert(name, value);
        }
    };
    insert(VERSION, version);
    insert(METHOD, method);
    if let Some(name) = named(method).and_then(|member| params.get(member)?.as_str()) {
        insert(NAME, &header_text(name));
    }
    if method == "tools/call" {
        headers.extend(tools.of_call(params));
    }
    headers
}

/// The headers of a message in a session.
pub(super) fn legacy(version: &str, session: &HeaderValue) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(SESSION, session.clone());
    if let Ok(version) = HeaderValue::try_from(version) {
        headers.insert(VERSION, version);
    }
    headers
}

/// The member of the parameters that `Mcp-Name` repeats.
fn named(method: &str) -> Option<&'static str> {
    match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" => Some("uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" => Some("taskId"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
        headers.get(name).map(|value| value.to_str().unwrap())
    }

    #[test]
    fn a_modern_request_repeats_method_name_and_marked_arguments() {
        let mut tools = MirroredTools::default();
        let schema =
            json!({"properties": {"region": {"type": "string", "x-mcp-header": "Region"}, "text": {"type": "string"}}});
        tools.learn(&[json!({"name": "notes_add", "inputSchema": schema})]);
        let params = json!({"name": "notes_add", "arguments": {"region": "Zürich", "text": "x"}});
        let headers = modern("2026-07-28", "tools/call", &params, &tools);
        assert_eq!(text(&headers, "mcp-protocol-version"), Some("2026-07-28"));
        assert_eq!((text(&headers, "mcp-method"), text(&headers, "mcp-name")), (Some("tools/call"), Some("notes_add")));
        assert_eq!(text(&headers, "mcp-param-region"), Some("=?base64?WsO8cmljaA==?="));
        assert_eq!(headers.len(), 4);
        tools.learn(&[json!({"name": "notes_add", "inputSchema": {}})]);
        assert_eq!(modern("2026-07-28", "tools/call", &params, &tools).len(), 3);
        let read = modern("2026-07-28", "resources/read", &json!({"uri": "file:///a"}), &tools);
        assert_eq!(text(&read, "mcp-name"), Some("file:///a"));
        assert_eq!(modern("2026-07-28", "tools/list", &json!({"name": "x"}), &tools).len(), 2);
    }

    #[test]
    fn a_value_that_a_header_cannot_hold_is_left_out_for_the_gate_to_refuse() {
        let headers = modern("2026\n", "a\r\nb", &Value::Null, &MirroredTools::default());
        assert!(headers.is_empty(), "{headers:?}");
    }
}
