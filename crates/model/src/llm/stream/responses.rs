//! The events of responses, in which every text comes several times: in pieces, and again as a whole with its part, its
//! item and the response.

use serde_json::Value;

use super::reading::{Closed, Kind, Piece, Reading, Tool};
use crate::llm::response::{Questions, shown, unreadable};
use crate::step::StepError;

pub(super) fn read(json: &Value) -> Result<Reading, StepError> {
    let mut reading = Reading::default();
    let number = |name: &str| json.get(name).and_then(Value::as_u64).unwrap_or_default();
    let item = format!("/output/{}", number("output_index"));
    let of_content = || format!("{item}/content/{}", number("content_index"));
    let of_summary = || format!("{item}/summary/{}", number("summary_index"));
    let of_reasoning = || format!("{item}/reasoning/{}", number("content_index"));
    let call = || format!("{item}/call");
    let kind = json.get("type").and_then(Value::as_str).unwrap_or_default();
    match kind {
        "response.output_text.delta" | "response.refusal.delta" => {
            piece(json, of_content(), "/delta", Kind::Text, &mut reading.pieces)?;
        }
        "response.output_text.done" => done(json, of_content(), "/text", Kind::Text, &mut reading)?,
        "response.refusal.done" => done(json, of_content(), "/refusal", Kind::Text, &mut reading)?,
        "response.reasoning_summary_text.delta" => {
            piece(json, of_summary(), "/delta", Kind::Fixed, &mut reading.pieces)?;
        }
        "response.reasoning_summary_text.done" => done(json, of_summary(), "/text", Kind::Fixed, &mut reading)?,
        "response.reasoning_text.delta" => piece(json, of_reasoning(), "/delta", Kind::Fixed, &mut reading.pieces)?,
        "response.reasoning_text.done" => done(json, of_reasoning(), "/text", Kind::Fixed, &mut reading)?,
        "response.reasoning_summary_part.added" | "response.reasoning_summary_part.done" => {
            piece(json, of_summary(), "/part/text", Kind::Fixed, &mut reading.copies)?;
        }
        "response.content_part.added" | "response.content_part.done" => {
            let part = json.get("part").unwrap_or(&Value::Null);
            let key = if is(part, "reasoning_text") { of_reasoning() } else { of_content() };
            part_of_message(part, key, "/part", &mut reading);
        }
        "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
            piece(json, call(), "/delta", Kind::Call, &mut reading.pieces)?;
        }
        "response.function_call_arguments.done" => {
            piece(json, call(), "/arguments", Kind::Call, &mut reading.copies)?;
        }
        "response.custom_tool_call_input.done" => piece(json, call(), "/input", Kind::Call, &mut reading.copies)?,
        "response.output_item.added" => {
            let value = json.get("item").unwrap_or(&Value::Null);
            whole_item(value, &item, "/item", false, &mut reading)?;
        }
        "response.output_item.done" => {
            let value = json.get("item").unwrap_or(&Value::Null);
            whole_item(value, &item, "/item", true, &mut reading)?;
            reading.closes.push(Closed::Below(format!("{item}/")));
        }
        "response.completed" | "response.incomplete" | "response.failed" | "error" => reading.last = true,
        "response.output_text.annotation.added" => {}
        // What the provider's own tools do is shown with their items.
        _ if json.get("delta").is_some() && !kind.contains("_call") => {
            let delta = json.get("delta").unwrap_or(&Value::Null);
            let digest = crate::merkle::sha256(&crate::canonical::to_canonical(json)).to_hex();
            reading.ready.push((format!("{item}/delta/{digest}"), vec![shown("/delta", delta)]));
        }
        _ => {}
    }
    let output = json.pointer("/response/output").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    for (index, item) in output.iter().enumerate() {
        whole_item(item, &format!("/output/{index}"), &format!("/response/output/{index}"), true, &mut reading)?;
    }
    Ok(reading)
}

fn piece(json: &Value, key: String, at: &str, kind: Kind, into: &mut Vec<Piece>) -> Result<(), StepError> {
    let text = json.pointer(at).and_then(Value::as_str).ok_or_else(|| unreadable(at, "a text"))?.to_owned();
    into.push(Piece { key, at: at.to_owned(), text, kind });
    Ok(())
}

fn done(json: &Value, key: String, at: &str, kind: Kind, reading: &mut Reading) -> Result<(), StepError> {
    reading.closes.push(Closed::One(key.clone()));
    piece(json, key, at, kind, &mut reading.copies)
}

fn is(value: &Value, kind: &str) -> bool {
    value.get("type").is_some_and(|own| own == kind)
}

fn part_of_message(part: &Value, key: String, at: &str, reading: &mut Reading) {
    let name = if is(part, "refusal") { "refusal" } else { "text" };
    match part.get(name).and_then(Value::as_str) {
        Some(text) => {
            let kind = if is(part, "reasoning_text") { Kind::Fixed } else { Kind::Text };
            reading.copies.push(Piece { key, at: format!("{at}/{name}"), text: text.to_owned(), kind });
        }
        None => reading.ready.push((format!("{key}/part"), vec![shown(at, part)])),
    }
}

/// An item as a whole: the texts and inputs in it are copies of what came in pieces.
fn whole_item(item: &Value, key: &str, at: &str, complete: bool, reading: &mut Reading) -> Result<(), StepError> {
    let list = |name: &str| item.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let text = |name: &str| item.get(name).and_then(Value::as_str).map(str::to_owned);
    match item.get("type").and_then(Value::as_str) {
        Some("message") => {
            for (number, part) in list("content").iter().enumerate() {
                part_of_message(part, format!("{key}/content/{number}"), &format!("{at}/content/{number}"), reading);
            }
        }
        Some("reasoning") => {
            for (name, named) in [("summary", "summary"), ("content", "reasoning")] {
                for (number, part) in list(name).iter().enumerate() {
                    let text = part.get("text").and_then(Value::as_str).unwrap_or_default().to_owned();
                    let (key, at) = (format!("{key}/{named}/{number}"), format!("{at}/{name}/{number}/text"));
                    reading.copies.push(Piece { key, at, text, kind: Kind::Fixed });
                }
            }
        }
        Some(kind @ ("function_call" | "custom_tool_call")) => {
            let name = if kind == "function_call" { "arguments" } else { "input" };
            let (key, is_free) = (format!("{key}/call"), kind == "custom_tool_call");
            let id = text("call_id").or_else(|| text("id"));
            reading.tools.push((key.clone(), Tool { id, name: text("name"), is_free }));
            if !complete {
                reading.opens.push(key.clone());
            }
            let text = text(name).unwrap_or_default();
            reading.copies.push(Piece { key, at: format!("{at}/{name}"), text, kind: Kind::Call });
        }
        // The provider takes it back only as it is, and it is encrypted.
        Some("compaction") => {}
        // Everything else is complete, and can be shown, only at its end.
        Some(_) if !complete => reading.opens.push(format!("{key}/item")),
        Some(_) => {
            let mut questions = Questions::default();
            questions.item(item, at)?;
            let fixed = questions.0.into_iter().map(|question| {
                let question = crate::step::StepQuestion { modifiable: false, ..question };
                crate::step::StepQuestion { at: vec![format!("{key}/item")], ..question }
            });
            reading.ready.push((format!("{key}/item"), fixed.collect()));
        }
        None => return Err(unreadable(at, "an item with a type")),
    }
    Ok(())
}
