//! Calls of mounted MCP servers: the request that a server is sent, or that a process could be.

use serde_json::{Map, Value};
use toolgate_model::connection::Connection;
use toolgate_model::service::{McpMapping, RenderedRequest};

use super::{not_executable, parameter_path};
use crate::call::Call;
use crate::call::eligible::Candidate;
use crate::ports::ledger::HeldGrant;
use crate::refusal::{Code, Refusal};

/// The request to a server over HTTP. It goes where the mount is and nowhere else: what was accepted of the server's
/// tools was accepted of this one.
pub(super) fn render(
    call: &Call,
    candidate: &Candidate,
    (held_grant, connection): (&HeldGrant, &Connection),
    parameters: &Value,
) -> Result<RenderedRequest, Refusal> {
    // INVARIANT: a tool without an endpoint is that of a process.
    let endpoint = candidate.tool.base_url.as_ref();
    let endpoint = endpoint.ok_or_else(|| not_executable(candidate, "its server has no `base_url`"))?;
    if connection.base_url.as_ref().is_some_and(|other| other != endpoint) {
        let why = "its credential's metadata has another `base_url` than its server; remove it";
        return Err(not_executable(candidate, why));
    }
    check_origin(call, candidate, held_grant)?;
    let input = call.input.as_deref();
    with_mapping(candidate, parameters, |mapping, parameters| mapping.render(endpoint, parameters, input))
}

/// Checks that a process could be sent a request.
pub(super) fn check(
    call: &Call,
    candidate: &Candidate,
    held_grant: &HeldGrant,
    parameters: &Value,
) -> Result<(), Refusal> {
    check_origin(call, candidate, held_grant)?;
    with_mapping(candidate, parameters, |mapping, parameters| mapping.check(parameters))
}

/// Input goes to the server that has asked for it, with the credential that it was called with, and to no other.
fn check_origin(call: &Call, candidate: &Candidate, held_grant: &HeldGrant) -> Result<(), Refusal> {
    let Some(origin) = call.input.as_ref().and_then(|input| input.origin.as_ref()) else { return Ok(()) };
    let tool = &candidate.tool;
    let endpoint = tool.base_url.as_ref().map(ToString::to_string);
    let is_same = origin.service == tool.service
        && origin.endpoint == endpoint
        && origin.credential == held_grant.credential.id
        && tool.definition.mcp.as_ref().is_some_and(|mapping| mapping.method.asks());
    if is_same {
        return Ok(());
    }
    let reason = "the input was asked for by another server, or through another credential, than this call would use; \
        make the call again without `requestState`";
    Err(Refusal::new(Code::InputStateInvalid, reason).with("grant_id", held_grant.grant()))
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
