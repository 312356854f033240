//! JSON-RPC messages as clients send them. Everything in them is read strictly, as in every body; members that are not
//! needed are left alone.

use serde_json::{Map, Value};
use toolgate_model::strict_json;

use super::reply::RpcError;

#[derive(Debug, PartialEq)]
pub(super) enum Message {
    Request {
        id: RequestId,
        method: String,
        params: Params,
    },
    Notification {
        method: String,
        params: Params,
    },
    /// The response to a request of the server, with its result or the code of its error.
    Response {
        id: Option<RequestId>,
        result: Result<Map<String, Value>, i64>,
    },
}

/// The id of a request, which its response repeats: a string or an integer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RequestId(pub(super) Value);

/// The parameters of a message.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Params {
    members: Map<String, Value>,
    meta: Option<Map<String, Value>>,
}

impl Params {
    fn of(value: Option<Value>) -> Result<Self, RpcError> {
        let mut members = match value {
            None => Map::new(),
            Some(Value::Object(members)) => members,
            Some(_) => return Err(RpcError::invalid_params("`params` must be an object")),
        };
        let meta = match members.remove("_meta") {
            None => None,
            Some(Value::Object(meta)) => Some(meta),
            Some(_) => return Err(RpcError::invalid_params("`params._meta` must be an object")),
        };
        Ok(Self { members, meta })
    }

    pub(super) fn meta(&self) -> Option<&Map<String, Value>> {
        self.meta.as_ref()
    }

    pub(super) fn has_meta(&self, key: &str) -> bool {
        self.meta.as_ref().is_some_and(|meta| meta.contains_key(key))
    }

    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.members.get(name)
    }

    pub(super) fn take(&mut self, name: &str) -> Option<Value> {
        self.members.remove(name)
    }

    /// A text that must be there.
    pub(super) fn take_text(&mut self, name: &str) -> Result<String, RpcError> {
        match self.take(name) {
            Some(Value::String(text)) => Ok(text),
            _ => Err(RpcError::invalid_params(format!("`params.{name}` must be a string"))),
        }
    }

    /// A text that may be there.
    pub(super) fn take_optional_text(&mut self, name: &str) -> Result<Option<String>, RpcError> {
        match self.take(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(RpcError::invalid_params(format!("`params.{name}` must be a string"))),
        }
    }

    /// An object that may be there.
    pub(super) fn take_object(&mut self, name: &str) -> Result<Map<String, Value>, RpcError> {
        match self.take(name) {
            None | Some(Value::Null) => Ok(Map::new()),
            Some(Value::Object(members)) => Ok(members),
            Some(_) => Err(RpcError::invalid_params(format!("`params.{name}` must be an object"))),
        }
    }
}

/// Why a message was refused, with the id that the response repeats, where that could be read.
#[derive(Debug, PartialEq)]
pub(super) struct Unreadable {
    pub(super) id: Option<RequestId>,
    pub(super) error: RpcError,
}

fn unreadable(id: Option<RequestId>, error: RpcError) -> Box<Unreadable> {
    Box::new(Unreadable { id, error })
}

/// Reads a message.
pub(super) fn read(bytes: &[u8]) -> Result<Message, Box<Unreadable>> {
    let value = strict_json::parse(bytes).map_err(|error| unreadable(None, RpcError::parse(error.to_string())))?;
    let mut members = match value {
        Value::Object(members) => members,
        Value::Array(_) => {
            let reason = "batches are not taken: send one message in one request";
            return Err(unreadable(None, RpcError::invalid_request(reason)));
        }
        _ => return Err(unreadable(None, RpcError::invalid_request("a message must be an object"))),
    };
    let id = match members.remove("id") {
        None => None,
        Some(id) if id.is_string() || id.is_i64() || id.is_u64() => Some(RequestId(id)),
        Some(_) => return Err(unreadable(None, RpcError::invalid_request("`id` must be a string or an integer"))),
    };
    if members.get("jsonrpc") != Some(&Value::from("2.0")) {
        return Err(unreadable(id, RpcError::invalid_request("`jsonrpc` must be \"2.0\"")));
    }
    let method = match members.remove("method") {
        Some(Value::String(method)) => method,
        None if members.contains_key("result") || members.contains_key("error") => {
            let result = match members.remove("result") {
                Some(Value::Object(result)) => Ok(result),
                _ => Err(members.get("error").and_then(|error| error.get("code")?.as_i64()).unwrap_or(-32603)),
            };
            return Ok(Message::Response { id, result });
        }
        _ => return Err(unreadable(id, RpcError::invalid_request("`method` must be a string"))),
    };
    match (Params::of(members.remove("params")), id) {
        (Ok(params), Some(id)) => Ok(Message::Request { id, method, params }),
        (Ok(params), None) => Ok(Message::Notification { method, params }),
        (Err(error), id) => Err(unreadable(id, error)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(text: &str) -> (Option<Value>, i64) {
        let Unreadable { id, error } = *read(text.as_bytes()).unwrap_err();
        (id.map(|RequestId(id)| id), error.code)
    }

    #[test]
    fn requests_notifications_and_responses_are_told_apart() {
        let text =
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"cursor":"a","_meta":{"x":1}},"more":[]}"#;
        let Ok(Message::Request { id, method, mut params }) = read(text.as_bytes()) else { panic!("a request") };
        assert_eq!((id, method.as_str()), (RequestId(json!(7)), "tools/list"));
        assert!(params.has_meta("x") && !params.has_meta("cursor"));
        assert_eq!(params.take_optional_text("cursor").unwrap().as_deref(), Some("a"));
        let text = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        assert!(matches!(read(text), Ok(Message::Notification { .. })));
        let response = |text: &str| match read(text.as_bytes()) {
            Ok(Message::Response { id, result }) => (id.map(|RequestId(id)| id), result),
            _ => panic!("a response"),
        };
        assert_eq!(response(r#"{"jsonrpc":"2.0","id":"a","result":{}}"#), (Some(json!("a")), Ok(Map::new())));
        assert_eq!(response(r#"{"jsonrpc":"2.0","id":"a","error":{"code":-1}}"#), (Some(json!("a")), Err(-1)));
        assert_eq!(response(r#"{"jsonrpc":"2.0","id":"a","result":7}"#), (Some(json!("a")), Err(-32603)));
        assert_eq!(response(r#"{"jsonrpc":"2.0","error":null}"#), (None, Err(-32603)));
    }

    #[test]
    fn what_is_no_message_is_refused_with_its_id_where_that_can_be_read() {
        assert_eq!(refused("{"), (None, -32700));
        assert_eq!(refused(r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"a"}"#), (None, -32700));
        assert_eq!(refused("[]"), (None, -32600));
        assert_eq!(refused("7"), (None, -32600));
        assert_eq!(refused(r#"{"jsonrpc":"2.0","id":null,"method":"a"}"#), (None, -32600));
        assert_eq!(refused(r#"{"jsonrpc":"2.0","id":1.5,"method":"a"}"#), (None, -32600));
        assert_eq!(refused(r#"{"jsonrpc":"1.0","id":1,"method":"a"}"#), (Some(json!(1)), -32600));
        assert_eq!(refused(r#"{"jsonrpc":"2.0","id":1,"method":7}"#), (Some(json!(1)), -32600));
        assert_eq!(refused(r#"{"jsonrpc":"2.0","id":1,"method":"a","params":[]}"#), (Some(json!(1)), -32602));
        assert_eq!(refused(r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"_meta":1}}"#), (Some(json!(1)), -32602));
    }
}
