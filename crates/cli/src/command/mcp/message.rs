//! The messages of the client, read as far as the bridge needs. The gate, to which they are passed on as they are, reads them
//! strictly.

use bytes::Bytes;
use serde_json::{Value, json};

/// Names the version in the `_meta` of a modern request.
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";

#[derive(Debug)]
pub(super) enum Message {
    Request(Request),
    Notification(Notification),
    /// The response to a request of the server.
    Response(Bytes),
}

#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) id: Value,
    pub(super) method: String,
    pub(super) params: Value,
    /// The message as the client wrote it.
    pub(super) bytes: Bytes,
}

#[derive(Debug)]
pub(super) struct Notification {
    pub(super) method: String,
    pub(super) params: Value,
    pub(super) bytes: Bytes,
}

/// Why a line is no message, with the id that the response repeats.
#[derive(Debug, PartialEq)]
pub(super) struct Unreadable {
    pub(super) id: Value,
    pub(super) code: i64,
    pub(super) reason: &'static str,
}

impl Message {
    pub(super) fn read(line: Vec<u8>) -> Result<Self, Unreadable> {
        let invalid = |id, reason| Unreadable { id, code: -32600, reason };
        let Ok(value) = serde_json::from_slice(&line) else {
            return Err(Unreadable { id: Value::Null, code: -32700, reason: "the line is not a message in JSON" });
        };
        let bytes = Bytes::from(line);
        let mut members = match value {
            Value::Object(members) => members,
            Value::Array(_) => {
                return Err(invalid(Value::Null, "batches are not accepted: write one message on each line"));
            }
            _ => return Err(invalid(Value::Null, "a message must be an object")),
        };
        let id = members.remove("id");
        let params = members.remove("params").unwrap_or(Value::Null);
        match (members.remove("method"), id) {
            (Some(Value::String(method)), None) => Ok(Self::Notification(Notification { method, params, bytes })),
            (Some(Value::String(method)), Some(id)) if is_id(&id) => {
                Ok(Self::Request(Request { id, method, params, bytes }))
            }
            (Some(_), Some(id)) if is_id(&id) => Err(invalid(id, "`method` must be a string")),
            (Some(_), _) => Err(invalid(Value::Null, "`id` must be a string or an integer")),
            (None, _) if members.contains_key("result") || members.contains_key("error") => Ok(Self::Response(bytes)),
            (None, id) => Err(invalid(id.filter(is_id).unwrap_or_default(), "`method` is missing")),
        }
    }
}

impl Request {
    /// The version that a modern request names; `None` for a request of a session.
    pub(super) fn version(&self) -> Option<&str> {
        version(&self.params)
    }
}

impl Notification {
    pub(super) fn version(&self) -> Option<&str> {
        version(&self.params)
    }
}

fn version(params: &Value) -> Option<&str> {
    params.get("_meta")?.get(VERSION_KEY)?.as_str()
}

fn is_id(id: &Value) -> bool {
    id.is_string() || id.is_i64() || id.is_u64()
}

/// The error response to a request, on one line.
pub(super) fn error(id: &Value, code: i64, reason: &str) -> String {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": reason}}).to_string()
}

/// A message of the gate on one line, with the id of its request where the gate could not tell it.
pub(super) fn on_one_line(message: &[u8], id: &Value) -> Option<String> {
    let text = std::str::from_utf8(message).ok()?;
    // INVARIANT: in JSON, line ends are only between tokens.
    let line = text.trim().replace(['\r', '\n'], " ");
    let value: Value = serde_json::from_str(&line).ok()?;
    let Value::Object(mut members) = value else { return None };
    if members.contains_key("error") && members.get("id").is_none_or(Value::is_null) && !id.is_null() {
        members.insert("id".to_owned(), id.clone());
        return Some(Value::Object(members).to_string());
    }
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Message, Unreadable> {
        Message::read(text.as_bytes().to_vec())
    }

    #[test]
    fn the_era_of_a_request_is_what_its_body_says() {
        let modern = json!({"jsonrpc": "2.0", "id": "a", "method": "tools/list", "params": {"_meta": {VERSION_KEY: "2026-07-28"}}});
        let Ok(Message::Request(request)) = read(&modern.to_string()) else { panic!("a request") };
        assert_eq!((request.id.as_str(), request.version()), (Some("a"), Some("2026-07-28")));
        let Ok(Message::Request(request)) = read(r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#) else {
            panic!("a request")
        };
        assert_eq!(request.version(), None);
        assert!(matches!(
            read(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#),
            Ok(Message::Notification(_))
        ));
        assert!(matches!(read(r#"{"jsonrpc":"2.0","id":7,"result":{}}"#), Ok(Message::Response(_))));
    }

    #[test]
    fn what_is_no_message_has_a_code_and_the_id_that_can_be_read() {
        for (text, id, code) in [
            ("{", Value::Null, -32700),
            ("", Value::Null, -32700),
            ("[]", Value::Null, -32600),
            ("7", Value::Null, -32600),
            (r#"{"id":1}"#, json!(1), -32600),
            (r#"{"id":1,"method":7}"#, json!(1), -32600),
            (r#"{"id":null,"method":"a"}"#, Value::Null, -32600),
            (r#"{"id":1.5,"method":"a"}"#, Value::Null, -32600),
        ] {
            let unreadable = read(text).unwrap_err();
            assert_eq!((unreadable.id, unreadable.code), (id, code), "{text}");
        }
    }

    #[test]
    fn a_message_of_the_gate_is_one_line_with_the_id_of_its_request() {
        assert_eq!(on_one_line(b"{\"id\":1,\n \"result\":{}}\n", &json!(1)).unwrap(), "{\"id\":1,  \"result\":{}}");
        let refused = br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600}}"#;
        assert_eq!(on_one_line(refused, &json!("a")).unwrap(), r#"{"jsonrpc":"2.0","id":"a","error":{"code":-32600}}"#);
        assert_eq!(on_one_line(b"<html>", &json!(1)), None);
        assert_eq!(on_one_line(b"[]", &json!(1)), None);
    }
}
