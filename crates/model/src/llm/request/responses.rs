//! Requests of responses.

use serde_json::Value;

use super::{Entry, Found, text, unreadable};
use crate::guard::Role;
use crate::step::StepError;

/// Items that the model wrote, besides messages and the calls of tools.
const WRITTEN: [&str; 13] = [
    "apply_patch_call",
    "code_interpreter_call",
    "compaction",
    "computer_call",
    "file_search_call",
    "image_generation_call",
    "local_shell_call",
    "mcp_approval_request",
    "mcp_call",
    "mcp_list_tools",
    "reasoning",
    "shell_call",
    "web_search_call",
];

pub(super) fn entries(request: &Value) -> Result<Vec<Entry>, StepError> {
    let mut entries = Vec::new();
    match request.get("instructions") {
        None | Some(Value::Null) => {}
        Some(Value::String(text)) => {
            entries.push(Entry::Said { role: Role::System, parts: vec![Found::text("/instructions", text)] });
        }
        Some(_) => return Err(unreadable("/instructions", "a text")),
    }
    match request.get("input") {
        Some(Value::String(text)) => {
            entries.push(Entry::Said { role: Role::User, parts: vec![Found::text("/input", text)] });
        }
        Some(Value::Array(items)) => {
            for (number, item) in items.iter().enumerate() {
                entries.push(entry(item, &format!("/input/{number}"))?);
            }
        }
        None | Some(Value::Null) => {}
        Some(_) => return Err(unreadable("/input", "a text or a list of items")),
    }
    Ok(entries)
}

fn entry(item: &Value, at: &str) -> Result<Entry, StepError> {
    let kind = text(item, "type");
    match (kind, text(item, "role")) {
        (None | Some("message"), Some("user")) => Ok(Entry::Said { role: Role::User, parts: content(item, at)? }),
        (None | Some("message"), Some("system" | "developer")) => {
            Ok(Entry::Said { role: Role::System, parts: content(item, at)? })
        }
        (None | Some("message"), Some("assistant")) => Ok(Entry::Model(Vec::new())),
        (Some("function_call" | "custom_tool_call"), _) => {
            let call = text(item, "call_id").zip(text(item, "name"));
            Ok(Entry::Model(call.map(|(id, name)| (id.to_owned(), name.to_owned())).into_iter().collect()))
        }
        (Some(kind), _) if WRITTEN.contains(&kind) => Ok(Entry::Model(Vec::new())),
        (Some(kind), _) if kind.ends_with("_call_output") || kind == "mcp_approval_response" => Ok(Entry::Result {
            at: format!("{at}/output"),
            call: text(item, "call_id").map(str::to_owned),
            value: item.get("output").cloned().unwrap_or_default(),
            is_error: text(item, "status") == Some("failed"),
        }),
        _ => Err(unreadable(at, "a message, a call of a tool or its result")),
    }
}

fn content(item: &Value, at: &str) -> Result<Vec<Found>, StepError> {
    let at = format!("{at}/content");
    match item.get("content") {
        Some(Value::String(text)) => Ok(vec![Found::text(at, text)]),
        Some(Value::Array(parts)) => {
            let found = |(number, part): (usize, &Value)| {
                let at = format!("{at}/{number}");
                match (text(part, "type"), text(part, "text")) {
                    (Some("input_text" | "output_text" | "text"), Some(text)) => {
                        Ok(Found::text(format!("{at}/text"), text))
                    }
                    (Some("input_image" | "input_file" | "input_audio"), _) => Ok(Found::medium(at, part)),
                    _ => Err(unreadable(at, "a part of type input_text, input_image, input_file or input_audio")),
                }
            };
            parts.iter().enumerate().map(found).collect()
        }
        _ => Err(unreadable(at, "a text or a list of parts")),
    }
}
