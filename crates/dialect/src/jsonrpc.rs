//! The JSON-RPC 2.0 envelope: request ids, success and error objects. The dialects interpret the contents.

use std::fmt;

use serde_json::{Map, Number, Value, json};
use thiserror::Error;

/// The only supported version.
pub const VERSION: &str = "2.0";

/// A request id, kept as it was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Id {
    Text(String),
    Integer(Number),
}

/// A JSON-RPC error. It never repeats a value from the request.
#[derive(Debug, Clone, PartialEq, Error)]
#[error("{message}")]
pub struct RpcError {
    /// The code of the specification.
    pub code: i64,
    /// What is wrong, and what to do.
    pub message: String,
    /// The location of the error.
    pub data: Option<Value>,
}

/// A valid envelope.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Envelope<'v> {
    /// `None` for a notification, which gets no response.
    pub(crate) id: Option<Id>,
    pub(crate) method: &'v str,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BadEnvelope {
    pub(crate) id: Option<Id>,
    pub(crate) error: RpcError,
}

impl Id {
    /// Reads an id: a string or an integer, nothing else.
    pub fn read(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Some(Self::Text(text.clone())),
            Value::Number(number) if number.is_i64() || number.is_u64() => Some(Self::Integer(number.clone())),
            _ => None,
        }
    }

    pub fn to_value(&self) -> Value {
        match self {
            Self::Text(text) => Value::String(text.clone()),
            Self::Integer(number) => Value::Number(number.clone()),
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => formatter.write_str(text),
            Self::Integer(number) => number.fmt(formatter),
        }
    }
}

impl RpcError {
    pub fn parse_error(reason: impl fmt::Display) -> Self {
        Self { code: -32700, message: format!("parse error: {reason}"), data: None }
    }

    pub fn invalid_request(reason: impl fmt::Display) -> Self {
        Self { code: -32600, message: format!("invalid request: {reason}"), data: None }
    }

    pub fn method_not_found() -> Self {
        let message = "method not found: use a hook of AOS 0.1.0, a method of A2A or `ping`".to_owned();
        Self { code: -32601, message, data: None }
    }

    pub fn invalid_params(path: &str, problem: &str) -> Self {
        let message = format!("invalid params: `{path}` {problem}");
        Self { code: -32602, message, data: Some(json!({"path": path})) }
    }

    pub fn internal(reason: impl fmt::Display) -> Self {
        Self { code: -32603, message: format!("internal error: {reason}"), data: None }
    }
}

pub fn success(id: &Id, result: Value) -> Value {
    json!({"jsonrpc": VERSION, "id": id.to_value(), "result": result})
}

/// `id` is `None` if it could not be read.
pub fn failure(id: Option<&Id>, error: &RpcError) -> Value {
    let mut body = Map::new();
    body.insert("code".to_owned(), json!(error.code));
    body.insert("message".to_owned(), json!(error.message));
    if let Some(data) = &error.data {
        body.insert("data".to_owned(), data.clone());
    }
    json!({"jsonrpc": VERSION, "id": id.map(Id::to_value), "error": body})
}

/// Reads the envelope of one request or notification.
pub(crate) fn read_envelope(members: &Map<String, Value>) -> Result<Envelope<'_>, Box<BadEnvelope>> {
    let bad = |id: Option<Id>, reason: &str| Box::new(BadEnvelope { id, error: RpcError::invalid_request(reason) });
    let id = match members.get("id") {
        None => None,
        Some(value) => match Id::read(value) {
            Some(id) => Some(id),
            None => return Err(bad(None, "`id` must be a string or an integer")),
        },
    };
    if members.get("jsonrpc").and_then(Value::as_str) != Some(VERSION) {
        return Err(bad(id, "`jsonrpc` must be \"2.0\""));
    }
    match members.get("method").and_then(Value::as_str) {
        Some(method) => Ok(Envelope { id, method }),
        None => Err(bad(id, "`method` must be a string")),
    }
}
