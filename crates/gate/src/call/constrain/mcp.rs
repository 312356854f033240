//! Calls of mounted MCP servers: the request that a server is sent, or that a process could be.

use serde_json::{Map, Value};
use toolgate_model::connection::Connection;
use toolgate_model::service::{McpMapping, RenderedRequest};

use super::{not_executable, parameter_path};
use crate::call::eligible::Candidate;
use crate::refusal::{Code, Refusal};

/// The request to a server over HTTP. It goes where the mount is and nowhere else: what was accepted of the server's
/// tools was accepted of this one.
pub(super) fn render(
    candidate: &Candidate,
    connection: &Connection,
    parameters: &Value,
) -> Result<RenderedRequest, Refusal> {
    // INVARIANT: a tool without an endpoint is that of a process.
    let endpoint = candidate.tool.base_url.as_ref();
    let endpoint = endpoint.ok_or_else(|| not_executable(candidate, "its server has no `base_url`"))?;
    if connection.base_url.as_ref().is_some_and(|other| other != endpoint) {
        let why = "its credential's metadata has another `base_url` than its server; remove it";
        return Err(not_executable(candidate, why));
    }
    with_mapping(candidate, parameters, |mapping, parameters| mapping.render(endpoint, parameters))
}

/// Checks that a process could be sent a request.
pub(super) fn check(candidate: &Candidate, parameters: &Value) -> Result<(), Refusal> {
    with_mapping(candidate, parameters, |mapping, parameters| mapping.check(parameters))
}

fn with_mapping<T>(
    candidate: &Candidate,
    parameters: &Value,
    apply: impl FnOnce(&McpMapping, &Map<String, Value>) -> Result<T, String>,
) -> Result<T, Refusal> {
    let mapping = candidate.tool.definition.mcp.as_ref();
    let mapping = mapping.ok_or_else(|| not_executable(candidate, "it has no `mcp` mapping"))?;
    let nothing = Map::new();
    apply(mapping, parameters.as_object().unwrap_or(&nothing)).map_err(|unknown| {
        let reason = format!("parameter `{unknown}` is none of {}; leave it out", mapping.method.as_str());
        Refusal::new(Code::ParametersInvalid, reason).with("path", parameter_path(&unknown)).with("rule", "mcp")
    })
}
