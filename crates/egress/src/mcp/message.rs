//! JSON-RPC messages of MCP: written around the bytes that `constrain` has rendered, and read no further than needed.
//! What a server sends is untrusted: everything that is not exactly a response to the request is an error.

use std::borrow::Cow;
use std::io::Write;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};
use toolgate_gate::call::UpstreamProgress;
use toolgate_gate::ports::mount::McpEra;
use toolgate_gate::ports::telemetry::TracedCall;
use toolgate_model::client_input::InputCapabilities;
use toolgate_model::mirrored::Mirrored;
use toolgate_model::service::{McpMapping, McpMethod};
use toolgate_model::strict_json::{self, StrictJsonError};

use super::pruning::pruned;

#[cfg(test)]
mod tests;

/// The revision of the modern era.
pub(crate) const MODERN: &str = "2026-07-28";
/// The revisions of the legacy era, the newest first.
pub(crate) const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// What every message begins with.
const START: &str = "{\"jsonrpc\":\"2.0\",";
/// The longest message about progress, in characters.
const PROGRESS_LIMIT: usize = 1_000;
/// Who the gate says that it is.
const CLIENT_INFO: &str = concat!("{\"name\":\"toolgate\",\"version\":\"", env!("CARGO_PKG_VERSION"), "\"}");
/// The same for all requests of the modern era: its version and who the gate is; the capabilities follow.
const MODERN_META: &str = concat!(
    "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",",
    "\"io.modelcontextprotocol/clientInfo\":{\"name\":\"toolgate\",\"version\":\"",
    env!("CARGO_PKG_VERSION"),
    "\"},\"io.modelcontextprotocol/clientCapabilities\":"
);

/// A request without its id and `_meta`.
pub(crate) struct Request<'a> {
    pub(crate) method: &'static str,
    /// The whole message.
    ///
    /// INVARIANT: begins with [`START`], the method and an open `params` object, up to `params_at`.
    message: Cow<'a, [u8]>,
    params_at: usize,
    /// What the request is about: the name of a tool or prompt, or the URI of a resource.
    pub(crate) name: Option<Cow<'a, str>>,
    /// The parameters of a tool that are repeated in headers, and the arguments of the call.
    pub(crate) mirrored: Option<(&'a [Mirrored], &'a Map<String, Value>)>,
    /// Whether the server is asked to say how far it is.
    pub(crate) observed: bool,
    /// What the server may ask the client of the call for; `None` for requests that are not interrupted.
    pub(crate) input: Option<InputCapabilities>,
}

impl<'a> Request<'a> {
    /// A request that was rendered, see `McpMapping::message`.
    pub(crate) fn rendered(mapping: &'a McpMapping, message: Cow<'a, [u8]>, parameters: &'a Value) -> Self {
        let parameter = |name: &str| parameters.get(name).and_then(Value::as_str).map(Cow::Borrowed);
        let name = match mapping.method {
            McpMethod::CallTool => mapping.name.as_deref().map(Cow::Borrowed),
            McpMethod::GetPrompt => parameter("name"),
            McpMethod::ReadResource => parameter("uri"),
            _ => None,
        };
        let params_at = mapping.method.opening().len();
        let method = mapping.method.as_str();
        Self { method, message, params_at, name, mirrored: None, observed: false, input: None }
    }

    /// One of the protocol itself, with these members of `params`, as JSON without braces.
    pub(crate) fn of_protocol(method: &'static str, members: &str) -> Self {
        let opening = format!("{START}\"method\":\"{method}\",\"params\":{{");
        let params_at = opening.len();
        Self {
            method,
            message: Cow::Owned(format!("{opening}{members}}}}}").into_bytes()),
            params_at,
            name: None,
            mirrored: None,
            observed: false,
            input: None,
        }
    }

    /// The request of the legacy handshake.
    pub(crate) fn initialize(capabilities: InputCapabilities) -> Self {
        let ([newest, ..], capabilities) = (LEGACY, capabilities.to_json());
        Self::of_protocol(
            "initialize",
            &format!("\"protocolVersion\":\"{newest}\",\"capabilities\":{capabilities},\"clientInfo\":{CLIENT_INFO}"),
        )
    }

    /// One page of the list of tools.
    pub(crate) fn list_tools(cursor: Option<&str>) -> Self {
        let members = cursor.map(|cursor| format!("\"cursor\":{}", Value::from(cursor))).unwrap_or_default();
        Self::of_protocol("tools/list", &members)
    }

    /// The message without what belongs to the connection.
    pub(crate) fn as_json(&self) -> Value {
        serde_json::from_slice(&self.message).unwrap_or_default()
    }

    /// The message as it is sent.
    pub(crate) fn write(&self, id: u64, era: McpEra, traced: Option<&TracedCall>) -> Vec<u8> {
        let (head, rest) = self.message.split_at_checked(self.params_at).unwrap_or((&self.message, b""));
        let head = head.get(START.len()..).unwrap_or_default();
        let mut message = Vec::with_capacity(self.message.len() + 400);
        message.extend_from_slice(START.as_bytes());
        // Writing to a vector does not fail.
        let _ = write!(message, "\"id\":{id},");
        message.extend_from_slice(head);
        let before = message.len();
        write_meta(&mut message, era, traced, self.observed.then_some(id), self.input.unwrap_or_default());
        if message.len() > before {
            message.extend_from_slice(if rest.starts_with(b"}") { b"}" } else { b"}," });
        }
        message.extend_from_slice(rest);
        message
    }
}

/// The members of `_meta` that a request has, as its first member without the closing brace; nothing where it has none.
fn write_meta(
    message: &mut Vec<u8>,
    era: McpEra,
    traced: Option<&TracedCall>,
    progress_token: Option<u64>,
    capabilities: InputCapabilities,
) {
    let mut separator = "\"_meta\":{";
    let mut next = |message: &mut Vec<u8>| {
        message.extend_from_slice(std::mem::replace(&mut separator, ",").as_bytes());
    };
    // Writing to a vector does not fail.
    if era == McpEra::Modern {
        next(message);
        message.extend_from_slice(MODERN_META.as_bytes());
        match capabilities == InputCapabilities::default() {
            true => message.extend_from_slice(b"{}"),
            false => message.extend_from_slice(capabilities.to_json().to_string().as_bytes()),
        }
    }
    if let Some(token) = progress_token {
        next(message);
        let _ = write!(message, "\"progressToken\":{token}");
    }
    if let Some(traced) = traced {
        next(message);
        let _ = write!(message, "\"traceparent\":\"{}\"", traced.context);
        if let Some(state) = &traced.state {
            next(message);
            let _ = write!(message, "\"tracestate\":{}", Value::from(&**state));
        }
    }
}

/// A notification with these members of `params`, as JSON without braces.
pub(crate) fn notification(method: &str, members: &str) -> Vec<u8> {
    match members {
        "" => format!("{START}\"method\":\"{method}\"}}"),
        members => format!("{START}\"method\":\"{method}\",\"params\":{{{members}}}}}"),
    }
    .into_bytes()
}

/// Tells a server of the legacy era, or one that is a process, that the caller no longer waits for the response.
pub(crate) fn cancelled(id: u64) -> Vec<u8> {
    notification("notifications/cancelled", &format!("\"requestId\":{id},\"reason\":\"the caller no longer waits\""))
}

/// The response to a request of a server that is passed on to nobody: the gate itself only shows that it is alive.
pub(crate) fn refusal(id: &Value, method: &str) -> Vec<u8> {
    match method {
        "ping" => result(id, &Map::new()),
        _ => error(id, -32601, "this client takes no such requests of servers"),
    }
}

/// The response to a request of a server.
pub(crate) fn result(id: &Value, result: &Map<String, Value>) -> Vec<u8> {
    format!("{START}\"id\":{id},\"result\":{}}}", json!(result)).into_bytes()
}

/// The response to a request of a server that has no result.
pub(crate) fn error(id: &Value, code: i64, message: &str) -> Vec<u8> {
    format!("{START}\"id\":{id},\"error\":{}}}", json!({"code": code, "message": message})).into_bytes()
}

/// What a message is, as far as it is needed to route it.
#[derive(Debug, PartialEq)]
pub(crate) enum Envelope {
    /// The response to a request of this id; `None` where it has none that the gate could have given.
    Response(Option<u64>),
    /// A request of the server.
    Request {
        id: Value,
        method: String,
    },
    Notification {
        method: String,
    },
}

/// A message that is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed;

#[derive(Deserialize)]
struct Members {
    #[serde(default, deserialize_with = "present")]
    id: Option<Value>,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    result: Option<IgnoredAny>,
    #[serde(default)]
    error: Option<IgnoredAny>,
}

/// A member that is there, even if it is `null`.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl Envelope {
    /// Looks at a message without reading what is in it.
    pub(crate) fn of(message: &[u8]) -> Result<Self, Malformed> {
        let Members { id, method, result, error } = serde_json::from_slice(message).map_err(|_| Malformed)?;
        let is_id = |id: &Value| id.is_string() || id.is_number();
        match (method, id) {
            (Some(method), None) => Ok(Self::Notification { method }),
            (Some(method), Some(id)) if is_id(&id) => Ok(Self::Request { id, method }),
            (None, id) if result.is_some() || error.is_some() => {
                Ok(Self::Response(id.as_ref().and_then(Value::as_u64)))
            }
            _ => Err(Malformed),
        }
    }
}

/// The method by which a server logs to the client.
pub(crate) const LOG: &str = "notifications/message";
/// The method by which a server says how far it is.
pub(crate) const PROGRESS: &str = "notifications/progress";

#[derive(Deserialize)]
struct ProgressNotification {
    params: ProgressParams,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ProgressParams {
    progress_token: u64,
    progress: f64,
    #[serde(default)]
    total: Option<f64>,
    #[serde(default)]
    message: Option<String>,
}

/// How far a server says that it is, and with which request. What cannot be read is passed over.
pub(crate) fn progress(message: &[u8]) -> Option<(u64, UpstreamProgress)> {
    let ProgressParams { progress_token, progress, total, message } =
        serde_json::from_slice::<ProgressNotification>(message).ok()?.params;
    let message = message.map(|message| message.chars().take(PROGRESS_LIMIT).collect());
    Some((progress_token, UpstreamProgress { progress, total, message }))
}

/// What a server answered to a request.
pub(crate) type Outcome = Result<Map<String, Value>, RpcError>;

/// An error of a server.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RpcError {
    pub(crate) code: i64,
    /// The whole error object.
    pub(crate) error: Value,
}

/// Reads the response to the request of this id: strictly, because two readers must not understand it differently.
pub(crate) fn response(message: &[u8], id: u64) -> Result<Outcome, &'static str> {
    outcome(strict_json::parse(message), id)
}

/// The same for a page of a list, without the parts that are nested too deep for anything.
pub(crate) fn response_with_list(message: &[u8], id: u64) -> Result<Outcome, &'static str> {
    outcome(strict_json::parse_written(&pruned(message)), id)
}

fn outcome(message: Result<Value, StrictJsonError>, id: u64) -> Result<Outcome, &'static str> {
    let message = message.map_err(|error| unreadable(&error))?;
    // A server of 2025-03-26 may send a batch.
    let message = match message {
        Value::Array(mut messages) if messages.len() == 1 => messages.pop().unwrap_or_default(),
        message => message,
    };
    let Value::Object(mut members) = message else { return Err("is not a JSON-RPC message") };
    if members.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err("is not a JSON-RPC 2.0 message");
    }
    let (result, error) = (members.remove("result"), members.remove("error"));
    // The id of a request that could not be read is null, which only an error may have.
    let own_id = members.get("id");
    let is_own = own_id.and_then(Value::as_u64) == Some(id);
    let is_unread = error.is_some() && own_id.is_none_or(Value::is_null);
    if !is_own && !is_unread {
        return Err("has the id of another request");
    }
    match (result, error) {
        (Some(Value::Object(result)), None) => Ok(Ok(result)),
        (None, Some(error @ Value::Object(_))) => {
            let code = error.get("code").and_then(Value::as_i64).ok_or("has an error without a code")?;
            Ok(Err(RpcError { code, error }))
        }
        _ => Err("has neither a result nor an error that are objects"),
    }
}

/// Why a message cannot be read, without anything that is in it.
fn unreadable(error: &StrictJsonError) -> &'static str {
    match error {
        StrictJsonError::DuplicateKey { .. } => "has the same key twice in an object",
        StrictJsonError::InexactNumber { .. } => "has a number that cannot be kept exactly",
        StrictJsonError::TooDeep { .. } => "is nested too deep",
        _ => "is not valid JSON",
    }
}
