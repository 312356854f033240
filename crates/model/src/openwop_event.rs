//! Stored events as OpenWOP shows them: an envelope around a payload, content-free wherever the log has it so. One leaf
//! of the log may tell a call in two vocabularies; here only the one of RFC 0064 is shown.

use serde::Serialize;
use serde_json::{Map, Value, json};
use thiserror::Error;

use crate::hook::{NO_AGENT, RETURNED};

mod schema;

#[cfg(test)]
mod tests;

/// The run of whatever happens outside every run.
pub const NO_RUN: &str = "core.system";

/// What the log calls the return of a call, besides the name that is shown.
const STORED_RETURNS: [&str; 2] = ["tool.denied", "tool.invoked"];

/// What the log calls the question that is put to a person, and what the protocol calls it.
const ASKED: (&str, &str) = ("approval.requested", "interrupt.requested");

/// Answers of people: the protocol closes what is told of them.
const ANSWERED: [&str; 3] = ["approval.granted", "approval.overridden", "approval.rejected"];

/// What guardians said, and what is told of it: that they did and what came of it, not why and about what.
const DECIDED: (&str, [&str; 9]) = (
    "hook.decided",
    [
        "approval_id",
        "dialect",
        "effective",
        "hash_after",
        "hash_before",
        "hook",
        "invocation_id",
        "policy_version",
        "tool",
    ],
);

/// An event in its envelope. Closed: nothing else stands beside these members.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunEvent {
    /// The event.
    pub event_id: String,
    /// The execution that it belongs to; [`NO_RUN`] where it belongs to none.
    pub run_id: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// What it tells.
    pub payload: Value,
    /// When, as it is stored.
    pub timestamp: String,
    /// Its place: in the log, or in the run, as whoever reads it counts.
    pub sequence: u64,
    /// The event that it follows from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub causation_id: Option<String>,
}

/// A stored event that cannot be shown.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("event {sequence} of the log is damaged; run `toolgate audit verify` on an export")]
pub struct DamagedEvent {
    /// Its place.
    pub sequence: u64,
}

impl RunEvent {
    /// The event that is stored as this canonical JSON, at this place.
    pub fn of_stored(canonical: &str, sequence: u64) -> Result<Self, DamagedEvent> {
        let stored = serde_json::from_str(canonical).map_err(|_| DamagedEvent { sequence })?;
        Self::of_members(stored, sequence).ok_or(DamagedEvent { sequence })
    }

    /// What every such event looks like: a JSON Schema, with the payloads of the types that the protocol knows.
    pub fn schema() -> Value {
        schema::of_event()
    }

    fn of_members(mut stored: Map<String, Value>, sequence: u64) -> Option<Self> {
        let kind = taken_text(&mut stored, "type")?;
        let data = stored.remove("data")?;
        let (kind, mut payload) = match STORED_RETURNS.contains(&kind.as_str()) {
            true => (RETURNED.to_owned(), returned(data, &stored)?),
            false if kind == ASKED.0 => (ASKED.1.to_owned(), data),
            false if ANSWERED.contains(&kind.as_str()) => (kind, answered(data)?),
            false if kind == DECIDED.0 => (kind, only(data, &DECIDED.1)?),
            false => (kind, data),
        };
        let causation_id = payload.as_object_mut().and_then(|members| taken_text(members, "causationId"));
        Some(Self {
            event_id: taken_text(&mut stored, "id")?,
            run_id: taken_text(&mut stored, "run_id").unwrap_or_else(|| NO_RUN.to_owned()),
            kind,
            payload,
            timestamp: taken_text(&mut stored, "timestamp")?,
            sequence,
            causation_id,
        })
    }
}

/// The types under which the log keeps what is shown as this type; `None` for a type that is never shown.
pub fn stored_types(shown: &str) -> Option<Vec<String>> {
    if shown == RETURNED {
        return Some(STORED_RETURNS.into_iter().chain([RETURNED]).map(str::to_owned).collect());
    }
    if shown == ASKED.1 {
        return Some(vec![ASKED.0.to_owned()]);
    }
    (!STORED_RETURNS.contains(&shown) && shown != ASKED.0).then(|| vec![shown.to_owned()])
}

/// The return of a call: what was written down as such, or, for a call from before that or one that its caller reports,
/// what the record of the call says.
fn returned(mut data: Value, stored: &Map<String, Value>) -> Option<Value> {
    let data = data.as_object_mut()?;
    if let Some(Value::Object(mut returned)) = data.remove("returned") {
        returned.remove("type");
        return Some(Value::Object(returned));
    }
    let text = |name: &str| data.get(name).and_then(Value::as_str);
    let tool = text("tool")?;
    let tool_name = text("service").map_or_else(|| tool.to_owned(), |service| format!("{service}.{tool}"));
    let agent = match stored.get("agent_id").and_then(Value::as_str) {
        Some(short) if short.len() < 3 => format!("agent:{short}"),
        agent => agent.unwrap_or(NO_AGENT).to_owned(),
    };
    let mut shown = json!({"agentId": agent, "toolName": tool_name, "callId": text("invocation_id")?});
    let members = shown.as_object_mut()?;
    if text("status") == Some("success") {
        members.insert("status".to_owned(), json!("ok"));
    } else {
        let code = text("error_code").unwrap_or("OUTCOME_UNKNOWN");
        members.insert("status".to_owned(), json!("error"));
        members.insert("error".to_owned(), json!({"code": code, "message": "the call did not succeed"}));
    }
    if let Some(duration) = data.get("duration_ms").and_then(Value::as_u64) {
        members.insert("durationMs".to_owned(), json!(duration));
    }
    Some(shown)
}

/// Which gate was opened or kept shut, by whom and why (RFC 0051).
fn answered(data: Value) -> Option<Value> {
    only(data, &["gateId", "principal", "reason"])
}

/// Those members of an object that have these names.
fn only(data: Value, names: &[&str]) -> Option<Value> {
    let Value::Object(members) = data else { return None };
    Some(Value::Object(members.into_iter().filter(|(name, _)| names.contains(&name.as_str())).collect()))
}

fn taken_text(members: &mut Map<String, Value>, name: &str) -> Option<String> {
    match members.remove(name)? {
        Value::String(text) => Some(text),
        _ => None,
    }
}
