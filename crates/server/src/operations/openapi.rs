//! The description of everything that is served, as an OpenAPI 3.1 document. It is kept in parts, one for each group of
//! routes, and put together once; what holds for every operation is said here and not repeated in the parts.

use std::sync::LazyLock;

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header;
use serde_json::{Map, Value, json};
use toolgate_gate::refusal::Code;
use toolgate_model::permission::Permission;

#[cfg(test)]
mod tests;

/// INVARIANT: each is a JSON object, and no two say something of the same name. The tests see to both.
const PARTS: [&str; 12] = [
    include_str!("../../openapi/common.json"),
    include_str!("../../openapi/tenants.json"),
    include_str!("../../openapi/agents.json"),
    include_str!("../../openapi/vaults.json"),
    include_str!("../../openapi/credentials.json"),
    include_str!("../../openapi/grants.json"),
    include_str!("../../openapi/services.json"),
    include_str!("../../openapi/tools.json"),
    include_str!("../../openapi/invocations.json"),
    include_str!("../../openapi/audit.json"),
    include_str!("../../openapi/master_keys.json"),
    include_str!("../../openapi/operations.json"),
];

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

static TEXT: LazyLock<Bytes> = LazyLock::new(|| Bytes::from(document().to_string()));

/// Shows the document.
pub async fn show() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], TEXT.clone()).into_response()
}

/// The whole document.
pub fn document() -> Value {
    let mut document = Value::Object(Map::new());
    for part in PARTS {
        merge(&mut document, serde_json::from_str(part).unwrap_or_default());
    }
    let lists = json!({
        "info": {"version": env!("CARGO_PKG_VERSION")},
        "components": {"schemas": {
            "ErrorCode": {"enum": Code::ALL.iter().map(|code| code.as_str()).collect::<Vec<_>>()},
            "Permission": {"enum": Permission::ALL},
        }},
    });
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
