//! Descriptors for models (RFC 0112): few members, and arguments in the part of JSON Schema that every model provider
//! supports. Everything else is omitted, so the schema is a hint; the gate checks the full one.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{DescriptorFields, SafetyTier, SourceKind, ToolId};
use crate::schema::referenced;
use crate::text::Line;

#[cfg(test)]
mod tests;

/// Keys that never occur in a compact schema.
const FORBIDDEN: [&str; 7] = ["$ref", "allOf", "anyOf", "dependentSchemas", "not", "oneOf", "patternProperties"];
/// Keywords that are kept unchanged. Each only restricts, so that any of them can be omitted.
const PLAIN: [&str; 28] = [
    "const",
    "contentEncoding",
    "contentMediaType",
    "default",
    "dependentRequired",
    "deprecated",
    "description",
    "enum",
    "examples",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "pattern",
    "readOnly",
    "required",
    "title",
    "type",
    "uniqueItems",
    "writeOnly",
];
/// The approximate size limit of a compact schema, and of one keyword's value, in bytes. References that fan out are
/// cut off there.
const ROOM: usize = 64 * 1024;
const VALUE_ROOM: usize = 8 * 1024;
/// The size of anything besides its text.
const OVERHEAD: usize = 8;
/// The maximum nesting of schemas after references were followed.
const DEPTH_LIMIT: usize = 24;

/// A tool as a model needs to know it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactDescriptor {
    tool_id: ToolId,
    source: SourceKind,
    safety_tier: SafetyTier,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<Line>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    input_schema: Value,
}

impl CompactDescriptor {
    pub(super) fn of(fields: &DescriptorFields) -> Self {
        Self {
            tool_id: fields.tool_id.clone(),
            source: fields.source,
            safety_tier: fields.safety_tier,
            title: fields.title.clone(),
            description: fields.description.clone(),
            input_schema: compact_schema(fields.input_schema.as_ref().unwrap_or(&Value::Null)),
        }
    }
}

/// A schema for an object, without the forbidden keys.
///
/// INVARIANT: every object that is valid by the full schema is valid by this one.
fn compact_schema(document: &Value) -> Value {
    let mut reduction = Reduction { document, open: vec![std::ptr::from_ref(document)], room: ROOM };
    let mut schema = document.as_object().map(|members| reduction.members(members, 0)).unwrap_or_default();
    schema.insert("type".to_owned(), json!("object"));
    schema.entry("properties").or_insert_with(|| json!({}));
    Value::Object(schema)
}

struct Reduction<'a> {
    document: &'a Value,
    /// The referenced schemas that are being written, identified by their address.
    open: Vec<*const Value>,
    room: usize,
}

impl<'a> Reduction<'a> {
    fn schema(&mut self, schema: &'a Value, depth: usize) -> Value {
        match schema {
            Value::Bool(false) => Value::Bool(false),
            Value::Object(members) => Value::Object(self.members(members, depth)),
            _ => json!({}),
        }
    }

    fn members(&mut self, members: &'a Map<String, Value>, depth: usize) -> Map<String, Value> {
        let mut kept = Map::new();
        if depth > DEPTH_LIMIT || !self.take(OVERHEAD) {
            return kept;
        }
        for (keyword, value) in members {
            if PLAIN.contains(&keyword.as_str()) && self.take_value(value) {
                kept.insert(keyword.clone(), value.clone());
            }
        }
        let all_named = self.properties(members, depth, &mut kept);
        if let Some(others) = members.get("additionalProperties").filter(|_| all_named) {
            kept.insert("additionalProperties".to_owned(), self.schema(others, depth + 1));
        }
        if let Some(Value::Array(first)) = members.get("prefixItems") {
            let first = first.iter().map(|schema| self.schema(schema, depth + 1)).collect();
            kept.insert("prefixItems".to_owned(), Value::Array(first));
        }
        if let Some(items) = members.get("items") {
            kept.insert("items".to_owned(), self.schema(items, depth + 1));
        }
        self.in_place(members, depth, &mut kept);
        kept
    }

    /// Writes the properties. False if some were omitted, so that a rule for all others would apply to them too.
    fn properties(&mut self, members: &'a Map<String, Value>, depth: usize, kept: &mut Map<String, Value>) -> bool {
        let Some(properties) = members.get("properties").and_then(Value::as_object) else {
            return !members.contains_key("patternProperties");
        };
        let mut named = Map::new();
        for (name, schema) in properties {
            if !FORBIDDEN.contains(&name.as_str()) && self.take(name.len() + OVERHEAD) {
                named.insert(name.clone(), self.schema(schema, depth + 1));
            }
        }
        let all_named = named.len() == properties.len() && !members.contains_key("patternProperties");
        kept.insert("properties".to_owned(), Value::Object(named));
        all_named
    }

    /// Adds the constraints of a reference and of the parts of an `allOf`. A reference to a schema that is being
    /// written adds nothing.
    fn in_place(&mut self, members: &'a Map<String, Value>, depth: usize, kept: &mut Map<String, Value>) {
        let target = members.get("$ref").and_then(Value::as_str).and_then(|to| referenced(self.document, to));
        if let Some(target) = target.filter(|target| !self.open.contains(&std::ptr::from_ref(*target))) {
            self.open.push(std::ptr::from_ref(target));
            if let Value::Object(more) = self.schema(target, depth + 1) {
                merge(kept, more);
            }
            self.open.pop();
        }
        for part in members.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            if let Value::Object(more) = self.schema(part, depth + 1) {
                merge(kept, more);
            }
        }
    }

    fn take(&mut self, bytes: usize) -> bool {
        let fits = bytes <= self.room;
        self.room = self.room.saturating_sub(bytes);
        fits
    }

    /// A value that is too large counts as far as it was visited: visiting is what takes the time.
    fn take_value(&mut self, value: &Value) -> bool {
        let before = self.room.min(VALUE_ROOM);
        let mut left = before;
        let fits = is_plain(value, &mut left);
        self.room = self.room.saturating_sub(before - left);
        fits
    }
}

/// Whether a value has no forbidden key and fits.
fn is_plain(value: &Value, left: &mut usize) -> bool {
    let length = OVERHEAD + value.as_str().map_or(0, str::len);
    if length > *left {
        *left = 0;
        return false;
    }
    *left -= length;
    match value {
        Value::Array(items) => items.iter().all(|item| is_plain(item, left)),
        Value::Object(members) => members.iter().all(|(name, value)| {
            *left = left.saturating_sub(name.len());
            !FORBIDDEN.contains(&name.as_str()) && is_plain(value, left)
        }),
        _ => true,
    }
}

/// Adds another schema for the same value. If both have a keyword the first is kept, which restricts less than both.
fn merge(own: &mut Map<String, Value>, mut more: Map<String, Value>) {
    // These two have a meaning only together: `items` applies to what `prefixItems` does not.
    if own.contains_key("items") || own.contains_key("prefixItems") {
        more.remove("items");
        more.remove("prefixItems");
    }
    for (keyword, value) in more {
        match (own.get_mut(&keyword), value) {
            (None, value) => drop(own.insert(keyword, value)),
            (Some(Value::Object(own)), Value::Object(more)) if keyword == "properties" => merge_properties(own, more),
            (Some(Value::Array(own)), Value::Array(more)) if keyword == "required" => merge_names(own, more),
            _ => {}
        }
    }
}

fn merge_properties(own: &mut Map<String, Value>, more: Map<String, Value>) {
    for (name, schema) in more {
        match (own.get_mut(&name), schema) {
            (None, schema) => drop(own.insert(name, schema)),
            (Some(Value::Object(own)), Value::Object(more)) => merge(own, more),
            _ => {}
        }
    }
}

fn merge_names(own: &mut Vec<Value>, more: Vec<Value>) {
    let known: BTreeSet<String> = own.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    own.extend(more.into_iter().filter(|name| name.as_str().is_some_and(|name| !known.contains(name))));
}
