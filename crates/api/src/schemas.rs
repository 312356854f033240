//! The schemas of one document: requests as they are parsed, replies as they are written, in one namespace.

use std::collections::BTreeSet;

use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::transform::{ReplaceBoolSchemas, RestrictFormats, Transform, transform_subschemas};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value};

use crate::document::DocumentError;

/// An `Option` is optional in a request and nullable in a reply, so there are two generators.
pub struct Schemas {
    requests: SchemaGenerator,
    replies: SchemaGenerator,
}

impl Default for Schemas {
    fn default() -> Self {
        let mut settings = SchemaSettings::draft2020_12();
        settings.meta_schema = None;
        settings.definitions_path = "/components/schemas".into();
        Self {
            requests: settings.clone().for_deserialize().into_generator(),
            replies: settings.for_serialize().into_generator(),
        }
    }
}

impl Schemas {
    /// The schema of what a client sends, or a reference to it.
    pub fn request<T: JsonSchema>(&mut self) -> Value {
        polished(self.requests.subschema_for::<T>(), Side::Request)
    }

    /// The schema of what the gate sends, or a reference to it.
    pub fn reply<T: JsonSchema>(&mut self) -> Value {
        polished(self.replies.subschema_for::<T>(), Side::Reply)
    }

    /// The schema of a query, whose properties are parameters and never a schema of the document.
    pub(crate) fn query<T: JsonSchema>(&mut self) -> Value {
        polished(T::json_schema(&mut self.requests), Side::Request)
    }

    /// The schemas by name. A type that differs between requests and replies must be two types.
    pub(crate) fn finish(mut self) -> Result<Map<String, Value>, DocumentError> {
        let mut all: Map<String, Value> = Map::new();
        let requests = self.requests.take_definitions(false);
        let replies = self.replies.take_definitions(false);
        let read: BTreeSet<String> = requests.keys().cloned().collect();
        for (name, schema) in requests.into_iter().chain(replies) {
            let side = if read.contains(&name) { Side::Request } else { Side::Reply };
            let schema = polished(Schema::try_from(schema).unwrap_or_default(), side);
            if all.get(&name).is_some_and(|other| *other != schema) {
                return Err(DocumentError::Contradiction(name));
            }
            all.insert(name, schema);
        }
        // schemars silently numbers types with the same name.
        let numbered = all.keys().find(|name| name.strip_suffix('2').is_some_and(|base| all.contains_key(base)));
        match numbered {
            Some(name) => Err(DocumentError::Contradiction(name.trim_end_matches('2').to_owned())),
            None => Ok(all),
        }
    }
}

/// Removes what client generators and schemathesis do not support, or what the server does not check.
fn polished(mut schema: Schema, side: Side) -> Value {
    Bounds.transform(&mut schema);
    let mut formats = RestrictFormats::default();
    formats.infer_from_meta_schema = false;
    formats.allowed_formats.insert("date-time".into());
    formats.transform(&mut schema);
    let mut bools = ReplaceBoolSchemas::default();
    bools.skip_additional_properties = true;
    bools.transform(&mut schema);
    Polish(side).transform(&mut schema);
    schema.to_value()
}

/// The range of an integer, which schemars expresses only by a `format` that is not a standard.
struct Bounds;

impl Transform for Bounds {
    fn transform(&mut self, schema: &mut Schema) {
        if let Some(members) = schema.as_object_mut() {
            let maximum = match members.get("format").and_then(Value::as_str) {
                Some("uint32") => Some(u64::from(u32::MAX)),
                Some("uint64") => Some(u64::MAX),
                _ => None,
            };
            if let Some(maximum) = maximum {
                members.entry("maximum").or_insert(maximum.into());
            }
        }
        transform_subschemas(self, schema);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Request,
    Reply,
}

struct Polish(Side);

impl Transform for Polish {
    fn transform(&mut self, schema: &mut Schema) {
        if let Some(members) = schema.as_object_mut() {
            // A set is parsed from a list with repetitions, and written without.
            if self.0 == Side::Request {
                members.remove("uniqueItems");
            }
            if let Some(Value::Array(required)) = members.get_mut("required") {
                required.sort_by_key(|name| name.as_str().map(str::to_owned));
            }
            // Generators of clients know no defaults but texts, numbers and truth values.
            let simple = |value: &Value| value.is_string() || value.is_number() || value.is_boolean();
            members.retain(|name, value| name != "default" || simple(value));
            if let Some(Value::String(text)) = members.get_mut("description") {
                *text = text.split("\n\n").map(|part| part.replace('\n', " ")).collect::<Vec<_>>().join("\n\n");
            }
        }
        transform_subschemas(self, schema);
    }
}
