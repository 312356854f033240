//! The OpenAPI document of a list of endpoints.

use std::collections::BTreeMap;

use http::StatusCode;
use serde_json::{Map, Value, json};
use thiserror::Error;

use crate::endpoint::{Authentication, Endpoint, ErrorResponse, ErrorStatus, Group, RequestBody};
use crate::schemas::Schemas;

pub(crate) use self::base::refusal;
pub use self::base::{ErrorFormat, Heading};

mod base;
#[cfg(test)]
mod tests;

#[derive(Debug, Error, PartialEq, Eq)]
pub enum DocumentError {
    #[error("there are two different schemas `{0}`; give one of the types another name")]
    Contradiction(String),
    #[error("`{0}` is described twice; declare it once, and give a type another name")]
    Twice(String),
    #[error("the endpoints at {0} disagree about its parameter; give them the same `path` type")]
    PathParameter(String),
}

/// The responses that every operation with a key may have.
const REFUSALS: [(&str, &str); 6] = [
    ("400", "Invalid"),
    ("401", "Unauthenticated"),
    ("403", "Forbidden"),
    ("429", "TooMany"),
    ("500", "Fault"),
    ("503", "Unavailable"),
];

/// The responses that every operation which changes something may have besides.
const REFUSALS_OF_CHANGES: [(&str, &str); 3] = [("409", "Conflict"), ("413", "TooLarge"), ("415", "WrongType")];

/// The document of these endpoints.
pub fn document(heading: &Heading<'_>, groups: &[Group]) -> Result<Value, DocumentError> {
    let mut schemas = Schemas::default();
    let mut document = base::base(heading, &mut schemas);
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for group in groups {
        merge(&mut document, json!({"tags": [{"name": group.tag, "description": group.description}]}));
        for operation in &group.operations {
            let item = paths.entry(operation.path).or_default();
            let method = operation.method.as_str().to_ascii_lowercase();
            if item.insert(method, (operation.describe)(&mut schemas)).is_some() {
                return Err(DocumentError::Twice(format!("{} {}", operation.method, operation.path)));
            }
            let placeholders = (operation.path_parameters)(&mut schemas);
            if !placeholders.is_empty() {
                let parameters = json!(path_parameters(operation.path, &placeholders));
                if item.get("parameters").is_some_and(|others| *others != parameters) {
                    return Err(DocumentError::PathParameter(operation.path.to_owned()));
                }
                item.insert("parameters".to_owned(), parameters);
            }
        }
    }
    let schemas = schemas.finish()?;
    let known = document.pointer("/components/schemas").and_then(Value::as_object);
    if let Some(name) = schemas.keys().find(|name| known.is_some_and(|known| known.contains_key(*name))) {
        return Err(DocumentError::Twice(name.clone()));
    }
    merge(&mut document, json!({"paths": paths, "components": {"schemas": schemas}}));
    complete_all(&mut document);
    Ok(document)
}

/// Adds the members of objects and the elements of lists; anything else replaces the present value.
pub fn merge(into: &mut Value, from: Value) {
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

/// Gives the success other media types than JSON.
pub(crate) fn replace_content(operation: &mut Value, content: Value) {
    if let Some(response) = operation.pointer_mut("/responses/200").and_then(Value::as_object_mut) {
        response.insert("content".to_owned(), content);
    }
}

/// Leaves the stream as the only media type of the success.
pub(crate) fn only_stream(operation: &mut Value) {
    if let Some(content) = operation.pointer_mut("/responses/200/content").and_then(Value::as_object_mut) {
        content.remove("application/json");
    }
}

/// The operation of an endpoint, without what follows from its kind.
pub(crate) fn describe<E: Endpoint>(schemas: &mut Schemas) -> Value {
    let (summary, description) = E::DOC.split_once("\n\n").unwrap_or((E::DOC, ""));
    let mut operation = json!({
        "operationId": E::ID,
        "tags": [E::TAG],
        "summary": sentence(summary),
        "responses": {
            E::STATUS.as_str(): {
                "description": E::REPLY_DOC,
            },
        },
    });
    if E::STATUS != StatusCode::NO_CONTENT {
        let mut content = json!({"application/json": {"schema": schemas.reply::<E::Reply>()}});
        if let Some(stream) = E::STREAM {
            let schema = json!({"type": "string", "description": stream.description});
            let item = schemas.reply::<E::Item>();
            merge(&mut content, json!({stream.kind.media_type(): {"schema": schema, "x-item-schema": item}}));
        }
        merge(&mut operation, json!({"responses": {E::STATUS.as_str(): {"content": content}}}));
    }
    if !description.trim().is_empty() {
        merge(&mut operation, json!({"description": sentence(description)}));
    }
    if E::AUTHENTICATION == Authentication::Open {
        merge(&mut operation, json!({"security": []}));
    }
    let parameters = query_parameters(&schemas.query::<E::Query>());
    if !parameters.is_empty() {
        merge(&mut operation, json!({"parameters": parameters}));
    }
    let schema = schemas.request::<E::Body>();
    if schema != schemas.request::<crate::parameters::Nothing>() {
        let mut media = json!({"schema": schema});
        if let Some(example) = E::example() {
            merge(&mut media, json!({"example": example}));
        }
        let required = E::Body::absent().is_none();
        merge(&mut operation, json!({"requestBody": {"required": required, "content": {"application/json": media}}}));
    }
    for error in E::ERRORS {
        merge(&mut operation, json!({"responses": error_response(*error)}));
    }
    E::amend(&mut operation, schemas);
    operation
}

fn error_response(error: ErrorResponse) -> Value {
    let (status, shared) = match error.status {
        ErrorStatus::BadGateway => ("502", "BadGateway"),
        ErrorStatus::Conflict => ("409", "Conflict"),
        ErrorStatus::Gone => ("410", "Gone"),
        ErrorStatus::NotFound => ("404", "NotFound"),
        ErrorStatus::TooMany => ("429", "TooMany"),
    };
    let schema = json!({"$ref": "#/components/schemas/Error"});
    match error.description {
        Some(description) => json!({status: base::refusal(description, &schema)}),
        None => json!({status: {"$ref": format!("#/components/responses/{shared}")}}),
    }
}

/// A doc comment as one paragraph.
fn sentence(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn path_parameters(path: &str, placeholders: &[(Option<&str>, Value)]) -> Vec<Value> {
    let names = path.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name);
    names.zip(placeholders).map(|(name, (description, schema))| path_parameter(name, *description, schema)).collect()
}

fn path_parameter(name: &str, description: Option<&str>, schema: &Value) -> Value {
    let usual = || match name.strip_suffix("_id") {
        Some(noun) => format!("The id of the {}.", noun.replace('_', " ")),
        None => format!("The name of the {}.", name.replace('_', " ")),
    };
    let description = description.map_or_else(usual, str::to_owned);
    json!({"name": name, "in": "path", "required": true, "description": description, "schema": schema})
}

/// One parameter for each property. A query cannot express `null`.
fn query_parameters(schema: &Value) -> Vec<Value> {
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let parameters = properties.map(|(name, schema)| {
        let mut schema = without_null(schema);
        let mut parameter = json!({"name": name, "in": "query"});
        if let Some(description) = schema.as_object_mut().and_then(|members| members.remove("description")) {
            merge(&mut parameter, json!({"description": description}));
        }
        if required.contains(&name.as_str()) {
            merge(&mut parameter, json!({"required": true}));
        }
        merge(&mut parameter, json!({"schema": schema}));
        parameter
    });
    let mut parameters: Vec<Value> = parameters.collect();
    parameters.sort_by_key(|parameter| parameter.get("name").and_then(Value::as_str).map(str::to_owned));
    parameters
}

fn without_null(schema: &Value) -> Value {
    let null = json!({"type": "null"});
    let Some(members) = schema.as_object() else { return schema.clone() };
    let mut members = members.clone();
    if let Some(Value::Array(choices)) = members.remove("anyOf") {
        let mut choices: Vec<Value> = choices.into_iter().filter(|choice| *choice != null).collect();
        match (choices.pop(), choices.is_empty()) {
            (Some(Value::Object(only)), true) => {
                for (name, value) in only {
                    members.entry(name).or_insert(value);
                }
            }
            (last, _) => {
                choices.extend(last);
                members.insert("anyOf".to_owned(), Value::Array(choices));
            }
        }
    }
    if let Some(Value::Array(kinds)) = members.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [only] = kinds.as_slice() {
            let only = only.clone();
            members.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(values)) = members.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    Value::Object(members)
}

fn complete_all(document: &mut Value) {
    let paths = document.get_mut("paths").and_then(Value::as_object_mut);
    for (path, item) in paths.into_iter().flatten() {
        let Some(item) = item.as_object_mut() else { continue };
        for (method, operation) in item.iter_mut().filter(|(name, _)| *name != "parameters") {
            if let Some(operation) = operation.as_object_mut() {
                complete(path, method, operation);
            }
        }
    }
}

/// Adds what follows from the kind of the operation: authentication and refusals.
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
