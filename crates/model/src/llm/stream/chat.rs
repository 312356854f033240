//! The chunks of chat completions.

use serde_json::Value;

use super::reading::{Closed, Kind, Piece, Reading, Tool};
use crate::llm::response::{REASONING, shown, unreadable};
use crate::step::StepError;

pub(super) fn read(json: &Value) -> Result<Reading, StepError> {
    let mut reading = Reading::default();
    if json.get("error").is_some_and(|error| !error.is_null()) {
        reading.last = true;
        return Ok(reading);
    }
    let choices = json.get("choices").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    reading.is_usage = choices.is_empty() && json.get("usage").is_some_and(Value::is_object);
    for (position, choice) in choices.iter().enumerate() {
        let index = choice.get("index").and_then(Value::as_u64).unwrap_or(0);
        let key = format!("/choices/{index}");
        if let Some(delta) = choice.get("delta").and_then(Value::as_object) {
            for (name, value) in delta.iter().filter(|(_, value)| !value.is_null()) {
                member(name, value, &key, &format!("/choices/{position}/delta/{name}"), &mut reading)?;
            }
        }
        if choice.get("finish_reason").is_some_and(|reason| !reason.is_null()) {
            reading.closes.push(Closed::Below(format!("{key}/")));
            reading.finished = true;
        }
    }
    Ok(reading)
}

fn member(name: &str, value: &Value, key: &str, at: &str, reading: &mut Reading) -> Result<(), StepError> {
    match (name, value) {
        ("role" | "obfuscation", _) => {}
        // The first chunk has an empty text.
        (_, Value::String(text)) if text.is_empty() => {}
        (_, Value::String(text)) if matches!(name, "content" | "refusal") || REASONING.contains(&name) => {
            let (key, at) = (format!("{key}/{name}"), at.to_owned());
            reading.pieces.push(Piece { key, at, text: text.clone(), kind: Kind::Text });
        }
        ("tool_calls", Value::Array(calls)) => {
            for (number, call) in calls.iter().enumerate() {
                let index = call.get("index").and_then(Value::as_u64).unwrap_or(0);
                fragment(call, &format!("{key}/tool_calls/{index}"), &format!("{at}/{number}"), reading)?;
            }
        }
        ("function_call", call @ Value::Object(_)) => {
            fragment_of(call, &format!("{key}/function_call"), at, None, "arguments", reading);
        }
        (_, Value::Array(items)) if items.is_empty() => {}
        // Sound, and whatever else there may be.
        (_, value) => {
            let question = shown(at, value);
            // Each piece of it is another thing to see.
            let key = format!("{key}/{name}/{}", value.to_string().len());
            reading.ready.push((format!("{key}/{}", digest(value)), vec![question]));
        }
    }
    Ok(())
}

/// A fragment of a call: only the first one has the name.
fn fragment(call: &Value, key: &str, at: &str, reading: &mut Reading) -> Result<(), StepError> {
    let id = call.get("id").and_then(Value::as_str);
    match (call.get("function"), call.get("custom")) {
        (Some(function @ Value::Object(_)), _) => {
            fragment_of(function, key, &format!("{at}/function"), id, "arguments", reading)
        }
        (_, Some(custom @ Value::Object(_))) => fragment_of(custom, key, &format!("{at}/custom"), id, "input", reading),
        _ => return Err(unreadable(at, "the call of a function or of a custom tool")),
    }
    Ok(())
}

fn fragment_of(call: &Value, key: &str, at: &str, id: Option<&str>, input: &str, reading: &mut Reading) {
    if let Some(name) = call.get("name").and_then(Value::as_str).filter(|name| !name.is_empty()) {
        let tool = Tool { id: id.map(str::to_owned), name: Some(name.to_owned()), is_free: input == "input" };
        reading.tools.push((key.to_owned(), tool));
        reading.opens.push(key.to_owned());
    }
    if let Some(text) = call.get(input).and_then(Value::as_str) {
        let (key, at) = (key.to_owned(), format!("{at}/{input}"));
        reading.pieces.push(Piece { key, at, text: text.to_owned(), kind: Kind::Call });
    }
}

fn digest(value: &Value) -> String {
    crate::merkle::sha256(&crate::canonical::to_canonical(value)).to_hex()
}
