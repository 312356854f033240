//! Schemas of parameters and results: the RFC's short form (a map from name to a fragment with a boolean `required`)
//! and full JSON Schema 2020-12 both become the latter.

use serde_json::{Map, Value, json};

use super::reading::{join, object, refuse};
use super::{DefinitionError, HttpMapping, Place, ToolDefinition};
use crate::parameter_name::Spellings;
use crate::schema::{Declared, Schema, SchemaError, SchemaViolation, is_keyword};

const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];
/// The maximum number of parameters of a tool in the short form.
const PARAMETER_LIMIT: usize = 256;

pub(super) fn read_parameters(value: &Value, path: &str) -> Result<Value, DefinitionError> {
    let members = object(value, path)?;
    let mut schema = if is_full(members) { members.clone() } else { from_short_form(members, path)? };
    match schema.get("type") {
        None => drop(schema.insert("type".to_owned(), json!("object"))),
        Some(kind) if kind == "object" => {}
        Some(_) => return Err(refuse(&join(path, "type"), "must be object, because parameters have names")),
    }
    Ok(Value::Object(schema))
}

/// Reads the schema of a tool's result. Here the short form also has bare type names.
pub(super) fn read_returns(value: &Value, path: &str) -> Result<Value, DefinitionError> {
    let members = object(value, path)?;
    let is_type_name = |value: &Value| value.as_str().is_some_and(|name| TYPES.contains(&name));
    // A field named `type` does not make `{"id": "string", "type": "string"}` a schema.
    let bare = members.values().all(is_type_name) && members.keys().any(|name| name != "type");
    if is_full(members) && !bare {
        return Ok(value.clone());
    }
    let property = |(name, value): (&String, &Value)| {
        let schema = if is_type_name(value) { json!({"type": value}) } else { value.clone() };
        (name.clone(), schema)
    };
    let properties: Map<String, Value> = members.iter().map(property).collect();
    Ok(json!({"type": "object", "properties": properties}))
}

/// Checks that a tool's schema and its HTTP mapping have the same parameters, as far as the schema names them.
pub(super) fn check_together(schema: &Value, http: &HttpMapping, path: &str) -> Result<(), DefinitionError> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return Ok(()) };
    let closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
    if let Some(unknown) = http.placements.keys().find(|name| closed && !properties.contains_key(*name)) {
        let at = join(&join(&join(path, "http"), "parameters"), unknown);
        return Err(refuse(&at, "is not a parameter of this tool"));
    }
    let required = schema.get("required").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    for parameter in http.path_parameters().into_values().flatten() {
        if !required.iter().any(|name| name == parameter) || !properties.contains_key(parameter) {
            let reason = format!("must declare `{parameter}` as required, because it is part of the path");
            return Err(refuse(&join(path, "parameters"), reason));
        }
    }
    Ok(())
}

impl ToolDefinition {
    /// Checks that no parameter is another spelling of a name under which a mapping sends another parameter. Exactly
    /// that name is refused when the request is rendered.
    pub fn check_sent_names(&self, parameters: &Value) -> Result<(), SchemaViolation> {
        let (Some(http), Some(given)) = (&self.http, parameters.as_object()) else { return Ok(()) };
        if http.placements.is_empty() {
            return Ok(());
        }
        let declared = Declared::by(self.parameters.as_ref());
        let mut unknown =
            given.keys().filter(|name| !http.placements.contains_key(*name) && !declared.has(name)).peekable();
        if unknown.peek().is_none() {
            return Ok(());
        }
        let sent = http.placements.values().filter(|placed| matches!(placed.place, Place::Body | Place::Query));
        let spellings = Spellings::of(sent.map(|placed| placed.name.as_str()));
        match unknown.find_map(|name| Some((name, spellings.find(name)?))) {
            Some((name, sent)) => Err(SchemaViolation::misspelt(name.chars().take(64).collect(), sent)),
            None => Ok(()),
        }
    }
}

/// Whether this is a schema rather than the short form. In the short form every value is an object, also that of a
/// parameter named `type` or `items`. One named `properties` has a type, or a `required`; a schema has only schemas
/// there.
fn is_full(members: &Map<String, Value>) -> bool {
    let is_stated = |(name, value): (&String, &Value)| !value.is_object() && is_keyword(name);
    let properties = members.get("properties").and_then(Value::as_object);
    members.keys().any(|name| name.starts_with('$'))
        || members.iter().any(is_stated)
        || properties.is_some_and(|properties| properties.values().all(Value::is_object))
}

fn from_short_form(members: &Map<String, Value>, path: &str) -> Result<Map<String, Value>, DefinitionError> {
    if members.len() > PARAMETER_LIMIT {
        return Err(refuse(path, format!("has more than {PARAMETER_LIMIT} parameters")));
    }
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (name, fragment) in members {
        let mut fragment = object(fragment, &join(path, name))?.clone();
        if let Some(&Value::Bool(needed)) = fragment.get("required") {
            fragment.remove("required");
            if needed {
                required.push(Value::from(name.as_str()));
            }
        }
        properties.insert(name.clone(), Value::Object(fragment));
    }
    let mut schema = Map::new();
    schema.insert("type".to_owned(), json!("object"));
    schema.insert("properties".to_owned(), Value::Object(properties));
    if !required.is_empty() {
        schema.insert("required".to_owned(), Value::Array(required));
    }
    schema.insert("additionalProperties".to_owned(), Value::Bool(false));
    Ok(schema)
}

pub(super) fn check_compiles(schema: &Value, path: &str) -> Result<(), DefinitionError> {
    let place = |error: SchemaError| {
        let path = if error.path.is_empty() { path.to_owned() } else { format!("{path}.{}", error.path) };
        refuse(&path, error.reason)
    };
    Schema::compile(schema).map(drop).map_err(place)
}
