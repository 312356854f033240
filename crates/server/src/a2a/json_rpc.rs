//! Requests over JSON-RPC. The name of the method says which version is spoken.

use http::request::Parts;
use serde_json::{Map, Value};
use toolgate_model::a2a::{A2aError, Binding, ErrorKind, Operation, Version};
use toolgate_model::strict_json;

use super::call::Asked;
use super::spoken::Spoken;
use super::version;

/// The error for a request that cannot be understood.
pub(super) type Unreadable = (Spoken, A2aError);

/// Reads a request.
pub(super) fn read(parts: &Parts, bytes: &[u8]) -> Result<Asked, Box<Unreadable>> {
    let spoken = |id: Value| Spoken { binding: Binding::JsonRpc, version: Version::V1_0, id };
    let wrong =
        |id: Value, kind: ErrorKind, reason: &str| Box::new((spoken(id), A2aError::new(kind, reason, Map::new())));
    let message = strict_json::parse(bytes)
        .map_err(|error| wrong(Value::Null, ErrorKind::ParseError, &format!("the body is not valid JSON: {error}")))?;
    let Value::Object(mut message) = message else {
        let reason = "send one request object in each POST; batches are not supported";
        return Err(wrong(Value::Null, ErrorKind::InvalidRequest, reason));
    };
    let id = match message.remove("id") {
        Some(id @ (Value::String(_) | Value::Number(_))) => id,
        _ => {
            let reason = "the request needs an `id`, a string or a number";
            return Err(wrong(Value::Null, ErrorKind::InvalidRequest, reason));
        }
    };
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(wrong(id, ErrorKind::InvalidRequest, "`jsonrpc` must be \"2.0\""));
    }
    let Some(method) = message.get("method").and_then(Value::as_str) else {
        return Err(wrong(id, ErrorKind::InvalidRequest, "the request needs a `method`"));
    };
    let Some((operation, speaks)) = Operation::of_method(method) else {
        let reason = "there is no such method in A2A 1.0 or 0.3";
        return Err(wrong(id, ErrorKind::MethodNotFound, reason));
    };
    let spoken = Spoken { version: speaks, ..spoken(id) };
    version::check(parts, speaks).map_err(|error| Box::new((spoken.clone(), error)))?;
    let params = match message.remove("params") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(params)) => params,
        Some(_) => {
            let error = A2aError::new(ErrorKind::InvalidParams, "`params` must be an object", Map::new());
            return Err(Box::new((spoken, error)));
        }
    };
    Ok(Asked { operation, params, spoken })
}
