//! What a client says about itself with a request: what it can do, how it wants to hear of progress, which trace the request
//! belongs to. None of it is authority.

use std::sync::Arc;

use serde_json::{Map, Value};
use toolgate_gate::request_context::CallerTrace;
use toolgate_model::client_input::InputCapabilities;
use toolgate_model::trace_context::{TraceParent, trace_state};

use super::message::Params;

/// Names what the client can do, in the `_meta` of a modern request.
pub(super) const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The extension for calls that take long.
pub(super) const TASKS: &str = "io.modelcontextprotocol/tasks";

/// What a client can do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Capabilities {
    /// What it can be asked for during a call.
    pub(super) input: InputCapabilities,
    pub(super) follows_tasks: bool,
}

impl Capabilities {
    pub(super) fn of(declared: Option<&Value>) -> Self {
        let has = |path: [&str; 2]| {
            let found = declared.and_then(|declared| declared.get(path[0])).and_then(|inner| inner.get(path[1]));
            found.is_some_and(Value::is_object)
        };
        Self { input: InputCapabilities::of(declared), follows_tasks: has(["extensions", TASKS]) }
    }

    /// Those of a modern request.
    pub(super) fn of_request(params: &Params) -> Self {
        Self::of(params.meta().and_then(|meta| meta.get(CAPABILITIES)))
    }
}

/// The name under which the client wants to hear of the progress of its request.
pub(super) fn progress_token(params: &Params) -> Option<Value> {
    let token = params.meta()?.get("progressToken")?;
    (token.is_string() || token.is_i64() || token.is_u64()).then(|| token.clone())
}

/// The trace that the request belongs to.
pub(super) fn trace(params: &Params) -> Option<CallerTrace> {
    let meta = params.meta()?;
    let parent = TraceParent::parse(text(meta, "traceparent")?)?;
    let state = text(meta, "tracestate").and_then(trace_state).map(Arc::from);
    Some(CallerTrace { parent, state, is_trusted: false })
}

fn text<'a>(meta: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    meta.get(name).and_then(Value::as_str)
}
