//! The inputs of a tool: a list of names and values on the wire, an object in the model. Written over what was sent, so
//! that order and ids are kept.

use std::collections::BTreeSet;

use serde_json::map::Entry;
use serde_json::{Map, Value, json};

use super::fields::{InvalidMember, Object};

/// Reads `inputs` of a payload: the list of AOS, or an object of names and values.
pub(crate) fn read(payload: &Object<'_>) -> Result<Map<String, Value>, InvalidMember> {
    if let Some(Value::Object(inputs)) = payload.get("inputs") {
        return Ok(inputs.clone());
    }
    let mut arguments = Map::new();
    for input in payload.list("inputs")?.objects() {
        let input = input?;
        // Here `null` is a value.
        let value = input.members().get("value").ok_or_else(|| input.invalid_member("value", "is missing"))?;
        match arguments.entry(input.text("name")?) {
            Entry::Vacant(vacant) => vacant.insert(value.clone()),
            Entry::Occupied(_) => return Err(input.invalid_member("name", "appears twice; remove one")),
        };
    }
    Ok(arguments)
}

/// Writes arguments in the form and order and with the ids of what was sent. New arguments are appended, removed ones
/// omitted.
pub(crate) fn write(sent: Option<&Value>, arguments: &Map<String, Value>) -> Value {
    let sent = match sent {
        Some(Value::Object(_)) => return Value::Object(arguments.clone()),
        Some(Value::Array(sent)) => sent.as_slice(),
        _ => &[],
    };
    let mut inputs = Vec::with_capacity(arguments.len());
    let mut known = BTreeSet::new();
    for input in sent {
        let (Value::Object(members), Some(name)) = (input, input.get("name").and_then(Value::as_str)) else { continue };
        known.insert(name);
        if let Some(value) = arguments.get(name) {
            let mut members = members.clone();
            members.insert("value".to_owned(), value.clone());
            inputs.push(Value::Object(members));
        }
    }
    let new = arguments.iter().filter(|(name, _)| !known.contains(name.as_str()));
    inputs.extend(new.map(|(name, value)| json!({"name": name, "value": value})));
    Value::Array(inputs)
}
