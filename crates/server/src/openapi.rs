//! How OpenAPI documents are put together: from parts, one for each group of routes; what holds for every operation is
//! said here and not repeated in the parts.

use serde_json::{Map, Value, json};

#[cfg(test)]
mod tests;

/// What every operation that needs a key may answer.
const REFUSALS: [(&str, &str); 6] = [
    ("400", "Invalid"),
    ("401", "Unauthenticated"),
    ("403", "Forbidden"),
    ("429", "TooMany"),
    ("500", "Fault"),
    ("503", "Unavailable"),
];

/// What every operation that changes something may answer besides.
const REFUSALS_OF_CHANGES: [(&str, &str); 3] = [("409", "Conflict"), ("413", "TooLarge"), ("415", "WrongType")];

/// The whole document: the parts, and what is known only to the program.
///
/// INVARIANT: each part is a JSON object, and no two say something of the same name. The tests see to both.
pub fn assemble(parts: &[&str], lists: Value) -> Value {
    let mut document = Value::Object(Map::new());
    for part in parts {
        merge(&mut document, serde_json::from_str(part).unwrap_or_default());
    }
    merge(&mut document, json!({"info": {"version": env!("CARGO_PKG_VERSION")}}));
    merge(&mut document, lists);
    for (path, item) in members(&mut document, "paths") {
        let Some(item) = item.as_object_mut() else { continue };
        for (method, operation) in item.iter_mut().filter(|(name, _)| *name != "parameters") {
            if let Some(operation) = operation.as_object_mut() {
                complete(path, method, operation);
            }
        }
    }
    document
}

/// Adds what follows from the kind of the operation: who may ask, and how it is refused.
fn complete(path: &str, method: &str, operation: &mut Map<String, Value>) {
    let mut refusals = Vec::new();
    // The few operations that need no key say so themselves.
    if !operation.contains_key("security") {
        operation.insert("security".to_owned(), json!([{"bearer": []}, {"key": []}]));
        let parameters = operation.entry("parameters").or_insert_with(|| json!([]));
        if let Some(parameters) = parameters.as_array_mut() {
            parameters.push(json!({"$ref": "#/components/parameters/X-Agent-ID"}));
        }
        refusals.extend(REFUSALS);
    }
    if path.contains('{') {
        refusals.push(("404", "NotFound"));
    }
    if method != "get" {
        refusals.extend(REFUSALS_OF_CHANGES);
    }
    let Some(responses) = operation.get_mut("responses").and_then(Value::as_object_mut) else { return };
    for (status, name) in refusals {
        responses.entry(status).or_insert_with(|| json!({"$ref": format!("#/components/responses/{name}")}));
    }
}

fn members<'a>(document: &'a mut Value, name: &str) -> impl Iterator<Item = (&'a String, &'a mut Value)> {
    document.get_mut(name).and_then(Value::as_object_mut).into_iter().flatten()
}

/// Adds the members of objects and the elements of lists; anything else takes the place of what was there.
fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (name, value) in from {
                merge(into.entry(name).or_insert(Value::Null), value);
            }
        }
        (Value::Array(into), Value::Array(from)) => into.extend(from),
        (into, from) => *into = from,
    }
}
