//! Results of mounted servers are untrusted content: every form of the secret is redacted, hidden characters are shown or
//! removed, the text that repeats the structured content is kept in step with it, and what belongs to the connection with
//! the server is taken out. Members that mean nothing here stay as they are.

use serde_json::{Map, Value, json};
use toolgate_gate::ports::source::{FailureKind, ServiceResponse, SourceFailure};
use toolgate_model::client_input::InputCapabilities;
use toolgate_model::hidden_text::revealed;
use toolgate_model::redaction::Redactor;
use toolgate_model::service::HiddenCharacters;

use super::input;
use super::message::{self, RpcError};

#[cfg(test)]
mod tests;

/// Members of a result that are between the gate and the server. Whether a call is a task, the gate decides.
const OF_CONNECTION: [&str; 5] = ["cacheScope", "requestState", "resultType", "task", "ttlMs"];
/// The prefix of what the gate itself says in `_meta`: a server must not speak for it.
const OF_GATE: &str = "toolgate/";

/// A message of a server, as it came.
pub(crate) struct Raw {
    pub(crate) message: Vec<u8>,
    /// The id of the request.
    pub(crate) id: u64,
    pub(crate) http_status: u16,
}

/// What a call came to, without any secret.
pub(crate) fn conclude(
    raw: &Raw,
    redactor: &Redactor,
    rule: HiddenCharacters,
    declared: Option<InputCapabilities>,
) -> Result<ServiceResponse, SourceFailure> {
    let status = raw.http_status;
    match message::response(&raw.message, raw.id) {
        Err(reason) => Err(malformed(status, &format!("the server's response {reason}"))),
        Ok(Err(error)) => match input::lacking(&error, declared) {
            Some(needs) => Err(input::unavailable(status, needs)),
            None => Err(refused(status, error, redactor, rule)),
        },
        Ok(Ok(result)) if input::is_asked_for(&result) => Err(input::asked(status, result, redactor, rule, declared)),
        Ok(Ok(result)) => {
            let result = clean(result, redactor, rule).map_err(|reason| malformed(status, reason))?;
            if result.get("isError") == Some(&Value::Bool(true)) {
                let failure = SourceFailure::not_sent(FailureKind::Service, "the tool reported an error");
                return Err(SourceFailure {
                    http_status: Some(status),
                    result: Some(Value::Object(result)),
                    sent: true,
                    ..failure
                });
            }
            Ok(ServiceResponse { http_status: status, result: Value::Object(result), truncated: false })
        }
    }
}

/// A response that breaks the protocol. The reason says nothing that the server sent.
pub(crate) fn malformed(status: u16, reason: &str) -> SourceFailure {
    SourceFailure { http_status: Some(status), sent: true, ..SourceFailure::not_sent(FailureKind::Proxy, reason) }
}

/// An error of the protocol, as the server gave it.
fn refused(status: u16, refused: RpcError, redactor: &Redactor, rule: HiddenCharacters) -> SourceFailure {
    let RpcError { code, mut error } = refused;
    redactor.redact_json(&mut error);
    let shown = reveal(&mut error, rule).is_ok();
    let reason = format!("the server responded with error {code}");
    SourceFailure {
        http_status: Some(status),
        result: shown.then(|| json!({"error": error})),
        sent: true,
        ..SourceFailure::not_sent(FailureKind::Service, reason)
    }
}

fn clean(
    mut result: Map<String, Value>,
    redactor: &Redactor,
    rule: HiddenCharacters,
) -> Result<Map<String, Value>, &'static str> {
    match result.get("resultType").map(Value::as_str) {
        None | Some(Some("complete")) => {}
        Some(_) => return Err("the server's result has an unexpected result type"),
    }
    OF_CONNECTION.iter().for_each(|member| drop(result.remove(*member)));
    let repeating = repeating(&result);
    let mut changed = false;
    if let Some(structured) = result.get_mut("structuredContent") {
        changed |= redactor.redact_json(structured);
        changed |= reveal(structured, rule)?;
    }
    for (member, value) in result.iter_mut().filter(|(member, _)| *member != "structuredContent") {
        debug_assert!(!OF_CONNECTION.contains(&member.as_str()));
        redactor.redact_json(value);
        reveal(value, rule)?;
    }
    if changed && let Some(structured) = result.get("structuredContent") {
        let text = structured.to_string();
        let blocks = result.get_mut("content").and_then(Value::as_array_mut);
        for (_, block) in blocks.into_iter().flatten().enumerate().filter(|(at, _)| repeating.contains(at)) {
            if let Some(slot) = block.get_mut("text") {
                *slot = Value::String(text.clone());
            }
        }
    }
    // After hidden characters were removed, which may make such a name.
    if let Some(Value::Object(meta)) = result.get_mut("_meta") {
        meta.retain(|name, _| !name.starts_with(OF_GATE));
    }
    // Last, because a secret may also be the name of a member.
    if result.keys().any(|name| redactor.hides(name) || revealed(name, rule).is_some()) {
        return Err("the server's result has a member whose name cannot be shown");
    }
    Ok(result)
}

/// The blocks of text that say the same as the structured content.
fn repeating(result: &Map<String, Value>) -> Vec<usize> {
    let (Some(structured), Some(Value::Array(blocks))) = (result.get("structuredContent"), result.get("content"))
    else {
        return Vec::new();
    };
    let repeats = |block: &Value| {
        let text = block.get("text").and_then(Value::as_str);
        text.and_then(|text| serde_json::from_str::<Value>(text).ok()).as_ref() == Some(structured)
    };
    blocks.iter().enumerate().filter(|(_, block)| repeats(block)).map(|(at, _)| at).collect()
}

/// Applies the rule to all texts, and to the names of members; answers whether anything changed.
pub(super) fn reveal(value: &mut Value, rule: HiddenCharacters) -> Result<bool, &'static str> {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(false),
        Value::String(text) => Ok(revealed(text, rule).map(|shown| *text = shown).is_some()),
        Value::Array(items) => items.iter_mut().try_fold(false, |changed, item| Ok(reveal(item, rule)? | changed)),
        Value::Object(members) => {
            let mut changed = false;
            for member in members.values_mut() {
                changed |= reveal(member, rule)?;
            }
            if members.keys().any(|name| revealed(name, rule).is_some()) {
                changed = true;
                let shown = |(name, value): (String, Value)| (revealed(&name, rule).unwrap_or(name), value);
                let count = members.len();
                *members = std::mem::take(members).into_iter().map(shown).collect();
                if members.len() != count {
                    return Err("the server's result has two member names that differ only in hidden characters");
                }
            }
            Ok(changed)
        }
    }
}
