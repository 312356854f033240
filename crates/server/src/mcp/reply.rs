//! Responses: one JSON-RPC message each. In the modern era the status follows from the code of an error; legacy clients take
//! a status other than 200 for a failure of the connection.

use std::borrow::Cow;

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value, json};
use toolgate_gate::refusal::{Code, Kind, Refusal};

use super::era::{Era, supported};
use super::message::RequestId;
use crate::challenge;
use crate::openintent::error::status as status_of;

/// Names this server in the results of the modern era.
pub(super) const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// An error of the protocol.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RpcError {
    pub(super) code: i64,
    pub(super) message: Cow<'static, str>,
    pub(super) data: Option<Value>,
}

impl RpcError {
    fn new(code: i64, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    pub(super) fn parse(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(-32700, message)
    }

    pub(super) fn invalid_request(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(-32600, message)
    }

    pub(super) fn unknown_method() -> Self {
        Self::new(-32601, "this server has no such method")
    }

    pub(super) fn invalid_params(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(-32602, message)
    }

    /// The same for every tool that is not there for the caller, whatever the reason.
    pub(super) fn unknown_tool() -> Self {
        Self::invalid_params("unknown tool: list the tools again, and call one of them by its name")
    }

    /// The same for every `requestState` that is of no use, whatever the reason.
    pub(super) fn unknown_state() -> Self {
        Self::invalid_params("`requestState` is not one that was given for this call, or it was used")
    }

    /// The same for every cursor that is of no use, whatever the reason.
    pub(super) fn unknown_cursor() -> Self {
        Self::invalid_params(
            "`params.cursor` is not one that this list gave, or it is outdated: list from the beginning",
        )
    }

    pub(super) fn internal(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(-32603, message)
    }

    pub(super) fn header_mismatch(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(-32020, message)
    }

    /// A capability that the client has not declared for this request, as the client would declare it.
    pub(super) fn missing_capability(capability: Value) -> Self {
        let error = Self::new(-32021, "the request needs a capability that the client has not declared");
        Self { data: Some(json!({"requiredCapabilities": capability})), ..error }
    }

    pub(super) fn unsupported_version(requested: &str) -> Self {
        let error = Self::new(-32022, "this version of the protocol is not supported");
        Self { data: Some(json!({"supported": supported(), "requested": requested})), ..error }
    }

    pub(super) fn of_refusal(refusal: &Refusal) -> Self {
        let error = match refusal.code().kind() {
            Kind::Internal | Kind::Unavailable | Kind::BadGateway => Self::internal(refusal.reason().to_owned()),
            _ => Self::invalid_request(refusal.reason().to_owned()),
        };
        Self { data: Some(json!({"code": refusal.code().as_str()})), ..error }
    }

    fn status(&self) -> StatusCode {
        match self.code {
            -32700 | -32600 | -32602 | -32020 | -32021 | -32022 => StatusCode::BAD_REQUEST,
            -32601 => StatusCode::NOT_FOUND,
            _ => StatusCode::OK,
        }
    }

    pub(super) fn body(&self, id: Option<&RequestId>) -> Value {
        let mut error = Map::new();
        error.insert("code".to_owned(), json!(self.code));
        error.insert("message".to_owned(), json!(self.message));
        if let Some(data) = &self.data {
            error.insert("data".to_owned(), data.clone());
        }
        json!({"jsonrpc": "2.0", "id": id.map(|RequestId(id)| id), "error": error})
    }

    pub(super) fn response(&self, era: Era, id: Option<&RequestId>) -> Response {
        let status = match era {
            Era::Legacy(_) if id.is_some() => StatusCode::OK,
            _ => self.status(),
        };
        self.with_status(status, id)
    }

    pub(super) fn with_status(&self, status: StatusCode, id: Option<&RequestId>) -> Response {
        (status, JSON, self.body(id).to_string()).into_response()
    }
}

const JSON: [(header::HeaderName, HeaderValue); 2] = [
    (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
    (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
];

/// A refusal of the request itself, before its message is looked at.
pub(super) fn refused(refusal: &Refusal) -> Response {
    challenged(refusal, challenge::Request::default())
}

/// The refusal of a request whose message was read.
pub(super) fn refused_request(refusal: &Refusal, id: &RequestId) -> Response {
    refusal_of(refusal, challenge::Request::default(), Some(id))
}

/// The refusal of a caller, which tells how it gets a credential.
pub(super) fn challenged(refusal: &Refusal, request: challenge::Request<'_>) -> Response {
    refusal_of(refusal, request, None)
}

fn refusal_of(refusal: &Refusal, request: challenge::Request<'_>, id: Option<&RequestId>) -> Response {
    let mut response = RpcError::of_refusal(refusal).with_status(status_of(refusal.code()), id);
    let headers = response.headers_mut();
    challenge::add(headers, refusal, request);
    let retry_after = refusal.details().find(|(name, _)| *name == "retry_after_seconds");
    if let Some(value) = retry_after.and_then(|(_, seconds)| HeaderValue::try_from(seconds.to_string()).ok()) {
        headers.insert(header::RETRY_AFTER, value);
    }
    response
}

pub(super) fn forbidden(reason: &'static str) -> Response {
    RpcError::invalid_request(reason).with_status(StatusCode::FORBIDDEN, None)
}

/// A method that this address does not take.
pub(super) fn only_post() -> Response {
    let refusal = Refusal::new(Code::MethodNotAllowed, "send messages with POST");
    let mut response = refused(&refusal);
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
    response
}

/// The result of a request.
#[derive(Debug)]
pub(super) enum Reply {
    /// The members of the result.
    Result(Map<String, Value>),
    /// The result as JSON, with all its members.
    Written(String),
    /// A response that is not one message.
    Whole(Box<Response>),
}

impl Reply {
    /// As the response to a request.
    pub(super) fn response(self, era: Era, id: &RequestId) -> Response {
        let written = match self {
            Self::Whole(response) => return *response,
            Self::Result(members) => message(id, &completed(era, &members)),
            Self::Written(result) => Ok(enclosed(id, &result)),
        };
        match written {
            Ok(body) => (StatusCode::OK, JSON, body).into_response(),
            Err(error) => error.response(era, Some(id)),
        }
    }
}

/// A result with the members that every result of the modern era has besides its own. They are written, not inserted:
/// they are the same in every result.
pub(super) struct Completed<'a> {
    era: Era,
    members: &'a Map<String, Value>,
}

pub(super) fn completed(era: Era, members: &Map<String, Value>) -> Completed<'_> {
    Completed { era, members }
}

impl Serialize for Completed<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !self.era.is_modern() {
            return self.members.serialize(serializer);
        }
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in self.members.iter().filter(|(name, _)| *name != META) {
            map.serialize_entry(name, value)?;
        }
        if !self.members.contains_key("resultType") {
            map.serialize_entry("resultType", "complete")?;
        }
        match self.members.get(META) {
            Some(other) if !other.is_object() => map.serialize_entry(META, other)?,
            meta => map.serialize_entry(META, &Meta(meta.and_then(Value::as_object)))?,
        }
        map.end()
    }
}

const META: &str = "_meta";

/// The `_meta` of a result, with the name of this server.
struct Meta<'a>(Option<&'a Map<String, Value>>);

impl Serialize for Meta<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in self.0.into_iter().flatten().filter(|(name, _)| *name != SERVER_INFO) {
            map.serialize_entry(name, value)?;
        }
        map.serialize_entry(SERVER_INFO, &ServerInfo::OWN)?;
        map.end()
    }
}

/// What this server calls itself.
#[derive(serde::Serialize)]
pub(super) struct ServerInfo {
    name: &'static str,
    title: &'static str,
    version: &'static str,
}

impl ServerInfo {
    pub(super) const OWN: Self = Self { name: "toolgate", title: "Toolgate", version: env!("CARGO_PKG_VERSION") };
}

/// The message with a result.
pub(super) fn message(id: &RequestId, result: &impl Serialize) -> Result<String, RpcError> {
    let unwritable = || RpcError::internal("the result cannot be written as JSON");
    let mut message = opening(id);
    serde_json::to_writer(&mut message, result).map_err(|_| unwritable())?;
    message.push(b'}');
    String::from_utf8(message).map_err(|_| unwritable())
}

fn enclosed(id: &RequestId, result: &str) -> String {
    let mut message = opening(id);
    message.reserve(result.len() + 1);
    message.extend_from_slice(result.as_bytes());
    message.push(b'}');
    // INVARIANT: JSON is UTF-8.
    String::from_utf8(message).unwrap_or_default()
}

/// A message up to its result.
fn opening(RequestId(id): &RequestId) -> Vec<u8> {
    let mut message = Vec::with_capacity(512);
    message.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    // INVARIANT: a string or an integer can be written, and a vector takes it.
    let _ = serde_json::to_writer(&mut message, id);
    message.extend_from_slice(b",\"result\":");
    message
}
