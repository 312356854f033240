//! The result of a tool: any JSON in the model, text parts on the wire. A string is one part, a list of strings is one
//! part each, and anything else is one part with its JSON as text.

use serde_json::Value;
use toolgate_model::strict_json;

use super::fields::{InvalidMember, List};
use super::parts;

/// Reads text parts: a single one becomes a string, any other number a list of strings.
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

/// Writes a result as text parts.
pub(crate) fn write(value: &Value) -> Value {
    let parts = match (value, texts(value)) {
        (_, Some(texts)) => texts.into_iter().map(parts::write_text).collect(),
        (Value::String(text), None) => vec![parts::write_text(text)],
        (other, None) => vec![parts::write_text(&other.to_string())],
    };
    Value::Array(parts)
}

/// Converts modified outputs back to the type of the result that was shown; `None` if that is not possible.
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
