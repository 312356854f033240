//! Messages of the Model Context Protocol inside AOS: their direction, method and tool. AOS does not send the
//! direction, so it is derived from who may send such a message.

use serde_json::{Map, Value};
use toolgate_model::guard::Direction;

use super::fields::{InvalidMember, Object};

/// The members of `params` that belong to AOS if the rest of it is the message itself.
const WRAPPER: [&str; 3] = ["context", "direction", "reasoning"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct About {
    pub(crate) direction: Direction,
    pub(crate) method: Option<String>,
    pub(crate) tool: Option<String>,
}

/// Whether `params` is the message itself, as in AOS's examples.
pub(crate) fn is_bare(params: &Object<'_>) -> Result<bool, InvalidMember> {
    let bare = params.has("jsonrpc");
    if bare && params.has("message") {
        return Err(params.invalid_member("message", "conflicts with another message in `params`; send only one"));
    }
    Ok(bare)
}

/// Extracts the message from a `params` that is the message itself.
pub(crate) fn unwrap(params: &Map<String, Value>) -> Map<String, Value> {
    params
        .iter()
        .filter(|(name, _)| !WRAPPER.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// Puts a modified message back into such a `params`.
pub(crate) fn rewrap(params: &Map<String, Value>, message: &Map<String, Value>) -> Map<String, Value> {
    let kept = params.iter().filter(|(name, _)| WRAPPER.contains(&name.as_str()));
    message.iter().chain(kept).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Reads the subject of a message. `params` may contain the direction.
pub(crate) fn about(params: &Object<'_>, message: &Object<'_>) -> Result<About, InvalidMember> {
    let method = message.optional_text("method")?;
    if method.is_none() && !message.has("error") && !message.members().contains_key("result") {
        return Err(message.invalid_member("method", "is missing; a message without a result or an error needs one"));
    }
    let direction = match params.optional_text("direction")? {
        Some("outbound") => Direction::Outbound,
        Some("inbound") => Direction::Inbound,
        Some(_) => return Err(params.invalid_member("direction", "must be \"outbound\" or \"inbound\"")),
        None => method.map_or(Direction::Inbound, direction_of),
    };
    let tool = match method {
        Some("tools/call") => Some(message.object("params")?.name("name")?.to_owned()),
        _ => None,
    };
    Ok(About { direction, method: method.map(str::to_owned), tool })
}

/// Messages of servers are inbound; everything else is outbound, which is the stricter choice.
fn direction_of(method: &str) -> Direction {
    match method {
        "sampling/createMessage"
        | "elicitation/create"
        | "roots/list"
        | "notifications/message"
        | "notifications/progress"
        | "notifications/resources/updated"
        | "notifications/elicitation/complete"
        | "notifications/tasks/status" => Direction::Inbound,
        // Roots belong to the client, which sends this notification.
        "notifications/roots/list_changed" => Direction::Outbound,
        other if other.starts_with("notifications/") && other.ends_with("/list_changed") => Direction::Inbound,
        _ => Direction::Outbound,
    }
}
