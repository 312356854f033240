//! The events of Anthropic's messages.

use serde_json::Value;

use super::reading::{Closed, Kind, Piece, Reading, Tool};
use crate::llm::response::{shown, unreadable};
use crate::step::StepError;

pub(super) fn read(json: &Value) -> Result<Reading, StepError> {
    let mut reading = Reading::default();
    let index = json.get("index").and_then(Value::as_u64);
    let key = format!("/content/{}", index.unwrap_or_default());
    match json.get("type").and_then(Value::as_str) {
        Some("message_stop") => (reading.last, reading.finished) = (true, true),
        Some("error") => reading.last = true,
        Some("content_block_start") => begin(json, &key, &mut reading)?,
        Some("content_block_delta") => delta(json, &key, &mut reading)?,
        Some("content_block_stop") => reading.closes.push(Closed::One(key)),
        Some("message_start") => {
            let content = json.pointer("/message/content").and_then(Value::as_array);
            if content.is_some_and(|content| !content.is_empty()) {
                return Err(unreadable("/message/content", "empty at the beginning"));
            }
        }
        // Pings, counts, and whatever else has no content.
        _ => {}
    }
    Ok(reading)
}

fn begin(json: &Value, key: &str, reading: &mut Reading) -> Result<(), StepError> {
    let block = json.get("content_block").unwrap_or(&Value::Null);
    let text = |name: &str| block.get(name).and_then(Value::as_str);
    match text("type") {
        Some(kind @ ("text" | "thinking")) => {
            if let Some(text) = text(kind).filter(|text| !text.is_empty()) {
                let (at, text) = (format!("/content_block/{kind}"), text.to_owned());
                let kind = if kind == "text" { Kind::Text } else { Kind::Fixed };
                reading.pieces.push(Piece { key: key.to_owned(), at, text, kind });
            }
        }
        Some("tool_use") => {
            let (id, name) = (text("id").map(str::to_owned), text("name").map(str::to_owned));
            reading.tools.push((key.to_owned(), Tool { id, name, is_free: false }));
            reading.opens.push(key.to_owned());
            let given = match block.get("input") {
                Some(Value::Object(input)) if !input.is_empty() => Value::Object(input.clone()).to_string(),
                _ => String::new(),
            };
            let at = "/content_block/input".to_owned();
            reading.pieces.push(Piece { key: key.to_owned(), at, text: given, kind: Kind::Call });
        }
        // It is encrypted.
        Some("redacted_thinking") => {}
        Some(_) => reading.ready.push((format!("{key}/block"), vec![shown("/content_block", block)])),
        None => return Err(unreadable("/content_block", "a block with a type")),
    }
    Ok(())
}

fn delta(json: &Value, key: &str, reading: &mut Reading) -> Result<(), StepError> {
    let delta = json.get("delta").unwrap_or(&Value::Null);
    let (name, kind) = match delta.get("type").and_then(Value::as_str) {
        Some("text_delta") => ("text", Kind::Text),
        Some("thinking_delta") => ("thinking", Kind::Fixed),
        Some("input_json_delta") => ("partial_json", Kind::Call),
        Some("signature_delta") => return Ok(()),
        _ => {
            let digest = crate::merkle::sha256(&crate::canonical::to_canonical(delta)).to_hex();
            reading.ready.push((format!("{key}/delta/{digest}"), vec![shown("/delta", delta)]));
            return Ok(());
        }
    };
    let at = format!("/delta/{name}");
    let text = delta.get(name).and_then(Value::as_str).ok_or_else(|| unreadable(&at, "a text"))?.to_owned();
    reading.pieces.push(Piece { key: key.to_owned(), at, text, kind });
    Ok(())
}
