//! Requests of Anthropic's messages.

use serde_json::Value;

use super::{Entry, Found, items, text, unreadable};
use crate::guard::Role;
use crate::step::StepError;

pub(super) fn entries(request: &Value) -> Result<Vec<Entry>, StepError> {
    let mut entries = Vec::new();
    match request.get("system") {
        None | Some(Value::Null) => {}
        Some(Value::String(text)) => {
            entries.push(Entry::Said { role: Role::System, parts: vec![Found::text("/system", text)] });
        }
        Some(blocks) => {
            let blocks = items(Some(blocks), "/system")?;
            let parts = blocks.iter().enumerate().map(|(number, block)| system(block, &format!("/system/{number}")));
            entries.push(Entry::Said { role: Role::System, parts: parts.collect::<Result<_, _>>()? });
        }
    }
    for (number, message) in items(request.get("messages"), "/messages")?.iter().enumerate() {
        let at = format!("/messages/{number}");
        match text(message, "role") {
            Some("user") => said(message, &at, Role::User, &mut entries)?,
            Some("system") => said(message, &at, Role::System, &mut entries)?,
            Some("assistant") => entries.push(Entry::Model(calls(message))),
            _ => return Err(unreadable(format!("{at}/role"), "user, assistant or system")),
        }
    }
    Ok(entries)
}

fn system(block: &Value, at: &str) -> Result<Found, StepError> {
    let text = text(block, "text").ok_or_else(|| unreadable(at, "a block of text"))?;
    Ok(Found::text(format!("{at}/text"), text))
}

fn calls(message: &Value) -> Vec<(String, String)> {
    let blocks = message.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let used = blocks.iter().filter(|block| text(block, "type") == Some("tool_use"));
    used.filter_map(|block| Some((text(block, "id")?.to_owned(), text(block, "name")?.to_owned()))).collect()
}

fn said(message: &Value, at: &str, role: Role, entries: &mut Vec<Entry>) -> Result<(), StepError> {
    let at = format!("{at}/content");
    let blocks = match message.get("content") {
        Some(Value::String(text)) => {
            entries.push(Entry::Said { role, parts: vec![Found::text(at, text)] });
            return Ok(());
        }
        blocks => items(blocks, &at)?,
    };
    let mut parts = Vec::new();
    for (number, block) in blocks.iter().enumerate() {
        let at = format!("{at}/{number}");
        match text(block, "type") {
            Some("tool_result") => entries.push(Entry::Result {
                at: format!("{at}/content"),
                call: text(block, "tool_use_id").map(str::to_owned),
                value: block.get("content").cloned().unwrap_or_default(),
                is_error: block.get("is_error") == Some(&Value::Bool(true)),
            }),
            Some("text") => parts.push(system(block, &at)?),
            Some("image") => parts.push(Found::medium(at, block)),
            Some("document") => document(block, &at, &mut parts)?,
            Some("search_result") => {
                for (number, block) in items(block.get("content"), &at)?.iter().enumerate() {
                    parts.push(system(block, &format!("{at}/content/{number}"))?);
                }
            }
            _ => return Err(unreadable(at, "a block of type text, image, document, search_result or tool_result")),
        }
    }
    entries.push(Entry::Said { role, parts });
    Ok(())
}

fn document(block: &Value, at: &str, parts: &mut Vec<Found>) -> Result<(), StepError> {
    for name in ["context", "title"] {
        if let Some(text) = text(block, name) {
            parts.push(Found::text(format!("{at}/{name}"), text));
        }
    }
    match block.pointer("/source/type").and_then(Value::as_str) {
        Some("text") => {
            let data = block.pointer("/source/data").and_then(Value::as_str);
            parts.push(Found::text(format!("{at}/source/data"), data.ok_or_else(|| unreadable(at, "text"))?));
        }
        Some("content") => match block.pointer("/source/content") {
            Some(Value::String(text)) => parts.push(Found::text(format!("{at}/source/content"), text)),
            blocks => {
                let at = format!("{at}/source/content");
                for (number, block) in items(blocks, &at)?.iter().enumerate() {
                    let at = format!("{at}/{number}");
                    match text(block, "type") {
                        Some("image") => parts.push(Found::medium(at, block)),
                        _ => parts.push(system(block, &at)?),
                    }
                }
            }
        },
        _ => parts.push(Found::medium(at, block)),
    }
    Ok(())
}
