//! Requests of chat completions.

use serde_json::Value;

use super::{Entry, Found, items, text, unreadable};
use crate::guard::Role;
use crate::step::StepError;

pub(super) fn entries(request: &Value) -> Result<Vec<Entry>, StepError> {
    let messages = items(request.get("messages"), "/messages")?;
    let mut entries = Vec::with_capacity(messages.len());
    for (number, message) in messages.iter().enumerate() {
        let at = format!("/messages/{number}");
        entries.push(match text(message, "role") {
            Some("system" | "developer") => Entry::Said { role: Role::System, parts: content(message, &at)? },
            Some("user") => Entry::Said { role: Role::User, parts: content(message, &at)? },
            Some("assistant") => Entry::Model(calls(message)),
            Some("tool" | "function") => {
                let value = message.get("content").cloned().unwrap_or_default();
                // A function of old has a name and no id.
                let call = text(message, "tool_call_id").or_else(|| text(message, "name")).map(str::to_owned);
                Entry::Result { at: format!("{at}/content"), call, value, is_error: false }
            }
            _ => return Err(unreadable(format!("{at}/role"), "system, developer, user, assistant or tool")),
        });
    }
    Ok(entries)
}

fn calls(message: &Value) -> Vec<(String, String)> {
    let calls = message.get("tool_calls").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let named = |call: &Value| {
        let name = call.pointer("/function/name").or_else(|| call.pointer("/custom/name"))?.as_str()?;
        Some((text(call, "id")?.to_owned(), name.to_owned()))
    };
    calls.iter().filter_map(named).collect()
}

fn content(message: &Value, at: &str) -> Result<Vec<Found>, StepError> {
    let at = format!("{at}/content");
    match message.get("content") {
        Some(Value::String(text)) => Ok(vec![Found::text(at, text)]),
        Some(Value::Array(parts)) => {
            let found = |(number, part): (usize, &Value)| {
                let at = format!("{at}/{number}");
                match (text(part, "type"), text(part, "text")) {
                    (Some("text"), Some(text)) => Ok(Found::text(format!("{at}/text"), text)),
                    (Some("image_url" | "input_audio" | "file"), _) => Ok(Found::medium(at, part)),
                    _ => Err(unreadable(at, "a part of type text, image_url, input_audio or file")),
                }
            };
            parts.iter().enumerate().map(found).collect()
        }
        _ => Err(unreadable(at, "a text or a list of parts")),
    }
}
