//! What a tool answered: any JSON in the model, parts of text on the wire. A text is one part, a list of texts is one
//! part each, and anything else is one part whose text is the JSON.

use serde_json::Value;
use toolgate_model::strict_json;

use super::fields::{InvalidMember, List};
use super::parts;

/// Reads parts of text: one is a text, any other number a list of texts.
pub(crate) fn read(outputs: &List<'_>) -> Result<Value, InvalidMember> {
    let mut texts: Vec<Value> = outputs
        .objects()
        .map(|part| Ok(Value::String(parts::read_text(&part?)?)))
        .collect::<Result<_, InvalidMember>>()?;
    Ok(match (texts.pop(), texts.is_empty()) {
        (Some(only), true) => only,
        (last, _) => Value::Array(texts.into_iter().chain(last).collect()),
    })
}

/// Writes an answer as parts of text.
pub(crate) fn write(value: &Value) -> Value {
    let parts = match (value, texts(value)) {
        (_, Some(texts)) => texts.into_iter().map(parts::write_text).collect(),
        (Value::String(text), None) => vec![parts::write_text(text)],
        (other, None) => vec![parts::write_text(&other.to_string())],
    };
    Value::Array(parts)
}

/// What `read` made of changed outputs, as the kind of answer that was shown; `None` where it cannot be that.
pub(crate) fn restore(read: Value, shown: &Value) -> Option<Value> {
    match (read, shown, texts(shown)) {
        (Value::String(text), _, Some(_)) => Some(Value::Array(vec![Value::String(text)])),
        (read, _, Some(_)) => Some(read),
        (read @ Value::String(_), Value::String(_), None) => Some(read),
        (Value::String(text), _, None) => strict_json::parse(text.as_bytes()).ok(),
        _ => None,
    }
}

fn texts(value: &Value) -> Option<Vec<&str>> {
    value.as_array()?.iter().map(Value::as_str).collect()
}
