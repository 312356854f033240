//! Converts schemas of OpenAPI 3.0 and 3.1 to JSON Schema 2020-12 with only keywords that the registry enforces. Other
//! keywords are removed and reported.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use toolgate_model::schema::Schema;

use super::Import;
use super::finding::Kind;
use super::reference::{Part, below, local_pointer};

use self::keyword::{Holds, holds};

mod keyword;

/// Which way a value goes; some members are only for one of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Direction {
    /// From the caller to the service.
    Request,
    /// From the service to the caller.
    Response,
}

/// The parts of the document that schemas refer to, converted once and used by many tools.
#[derive(Debug, Default)]
pub(super) struct Definitions {
    names: BTreeMap<String, String>,
    taken: BTreeSet<String>,
    converted: BTreeMap<(Direction, String), Definition>,
    compiled: BTreeMap<(&'static str, String), bool>,
}

/// One of them.
#[derive(Debug, Default)]
struct Definition {
    schema: Value,
    references: References,
    /// Its bytes as JSON.
    size: usize,
}

/// The pointers that a schema refers to.
pub(super) type References = BTreeSet<String>;

/// What marks a member that only responses have.
const READ_ONLY: &str = "readOnly";
/// How far a mark is looked for behind references.
const MARK_DEPTH: usize = 8;
/// Keywords that do not affect validation.
const REMARKS: [&str; 7] = ["default", "deprecated", "description", "examples", "readOnly", "title", "writeOnly"];
/// What a value must fit besides the type, so that `null` in the type would not be enough.
const COMBINING: [&str; 8] = ["$ref", "allOf", "anyOf", "const", "else", "if", "not", "oneOf"];

impl<'a> Import<'a> {
    /// Converts a schema. References become `#/$defs/NAME` and are written down in `references`.
    pub(super) fn schema(&mut self, part: &Part<'a>, direction: Direction, references: &mut References) -> Value {
        let members = match part.value {
            Value::Bool(_) => return part.value.clone(),
            Value::Object(members) => members,
            _ => {
                self.findings.add(Kind::SchemaKeyword, &part.pointer, "a schema that is not an object");
                return Value::Bool(true);
            }
        };
        let mut converted = Map::new();
        if let Some(reference) = members.get("$ref") {
            match self.reference(reference, &part.pointer, references) {
                Some(target) => drop(converted.insert("$ref".to_owned(), Value::String(target))),
                None if self.is_older => return Value::Bool(true),
                None => {}
            }
        }
        for (name, below) in part.members() {
            if name == "$ref" {
                continue;
            }
            if self.is_older && members.contains_key("$ref") {
                self.findings.add(Kind::ReferenceSibling, &below.pointer, name);
                continue;
            }
            self.keyword(name, &below, direction, references, &mut converted);
        }
        self.bounds(part, &mut converted);
        self.drop_meaningless(part, &mut converted);
        self.drop_one_way(part, direction, &mut converted);
        if part.is("nullable") { with_null(converted) } else { Value::Object(converted) }
    }

    /// The definitions that a schema needs: what it refers to, and what that refers to. If they have more than `limit`
    /// bytes together, their size.
    pub(super) fn definitions(
        &mut self,
        direction: Direction,
        references: References,
        limit: usize,
    ) -> Result<Map<String, Value>, usize> {
        let mut open: Vec<String> = references.into_iter().collect();
        let mut needed = BTreeSet::new();
        let mut size = 0;
        while let Some(pointer) = open.pop() {
            if needed.insert(pointer.clone()) {
                let definition = self.definition(direction, pointer);
                size += definition.size;
                open.extend(definition.references.iter().cloned());
            }
        }
        if size > limit {
            return Err(size);
        }
        let schema = |pointer: String| {
            let name = self.name_of(&pointer);
            (name, self.definition(direction, pointer).schema.clone())
        };
        Ok(needed.into_iter().map(schema).collect())
    }

    fn definition(&mut self, direction: Direction, pointer: String) -> &Definition {
        let key = (direction, pointer);
        if !self.definitions.converted.contains_key(&key) {
            let mut references = References::new();
            let schema = match self.document.pointer(&key.1) {
                Some(value) => self.schema(&Part { value, pointer: key.1.clone() }, direction, &mut references),
                None => Value::Bool(true),
            };
            let size = schema.to_string().len();
            self.definitions.converted.insert(key.clone(), Definition { schema, references, size });
        }
        self.definitions.converted.entry(key).or_default()
    }

    /// The reference to a definition. An invalid one accepts any value, and is reported.
    fn reference(&mut self, reference: &Value, pointer: &str, references: &mut References) -> Option<String> {
        let target = reference.as_str().ok_or_else(|| "its $ref is not a string".to_owned());
        match target.and_then(|reference| self.target(reference)) {
            Ok(target) => {
                let name = self.name_of(&target.pointer);
                references.insert(target.pointer);
                Some(format!("#/$defs/{name}"))
            }
            Err(reason) => {
                self.findings.add(Kind::Reference, &below(pointer, "$ref"), reason);
                None
            }
        }
    }

    /// The name of a definition: that of the component, unless another one has it.
    fn name_of(&mut self, pointer: &str) -> String {
        if let Some(name) = self.definitions.names.get(pointer) {
            return name.clone();
        }
        let last = pointer.rsplit('/').next().unwrap_or_default();
        let letter = |letter: char| if letter.is_ascii_alphanumeric() || "._-".contains(letter) { letter } else { '_' };
        let plain: String = last.chars().take(96).map(letter).collect();
        let plain = if plain.is_empty() { "schema".to_owned() } else { plain };
        let mut name = plain.clone();
        for number in 2.. {
            if self.definitions.taken.insert(name.clone()) {
                break;
            }
            name = format!("{plain}_{number}");
        }
        self.definitions.names.insert(pointer.to_owned(), name.clone());
        name
    }

    fn keyword(
        &mut self,
        name: &str,
        part: &Part<'a>,
        direction: Direction,
        references: &mut References,
        converted: &mut Map<String, Value>,
    ) {
        match (name, part.value) {
            // Read together with others, or the default anyway.
            ("exclusiveMaximum" | "exclusiveMinimum" | "nullable", Value::Bool(_)) => return,
            ("example", example) => {
                let examples = converted.entry("examples").or_insert_with(|| json!([]));
                examples.as_array_mut().into_iter().for_each(|examples| examples.push(example.clone()));
                return;
            }
            ("format", Value::String(format)) if !self.compiles("format", format) => {
                self.findings.add(Kind::FormatRemark, &part.pointer, format.as_str());
                converted.insert("x-format".to_owned(), part.value.clone());
                return;
            }
            ("pattern", Value::String(pattern)) if !self.compiles("pattern", pattern) => {
                self.findings.add(Kind::Pattern, &part.pointer, pattern.as_str());
                return;
            }
            (extension, _) if extension.starts_with("x-") => {
                self.findings.add(Kind::Extension, &part.pointer, name);
                return;
            }
            _ => {}
        }
        let value = match holds(name) {
            None => None,
            Some(Holds::Schema) => Some(self.schema(part, direction, references)),
            Some(Holds::SchemaList) if part.value.as_array().is_some_and(|list| !list.is_empty()) => {
                let schemas = part.elements();
                Some(schemas.iter().map(|schema| self.schema(schema, direction, references)).collect())
            }
            Some(Holds::SchemaMap) if part.value.is_object() => {
                let mut schemas = Map::new();
                for (key, below) in part.members() {
                    if name == "patternProperties" && !self.compiles("pattern", key) {
                        self.findings.add(Kind::Pattern, &below.pointer, key);
                        continue;
                    }
                    schemas.insert(key.to_owned(), self.property(name, &below, direction, references));
                }
                Some(Value::Object(schemas))
            }
            Some(plain) => plain.checked(part.value),
        };
        match value {
            Some(Value::Array(mut given)) if name == "examples" => {
                let examples = converted.entry("examples").or_insert_with(|| json!([]));
                examples.as_array_mut().into_iter().for_each(|examples| examples.append(&mut given));
            }
            Some(value) => drop(converted.insert(name.to_owned(), value)),
            None => self.findings.add(Kind::SchemaKeyword, &part.pointer, name),
        }
    }

    /// In OpenAPI 3.0 a boolean makes the bound beside it exclusive.
    fn bounds(&mut self, part: &Part<'a>, converted: &mut Map<String, Value>) {
        for (exclusive, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
            if part.is(exclusive)
                && let Some(value) = converted.remove(bound)
            {
                converted.insert(exclusive.to_owned(), value);
            }
        }
    }

    /// Keywords that mean nothing without another one.
    fn drop_meaningless(&mut self, part: &Part<'a>, converted: &mut Map<String, Value>) {
        for (keyword, other) in
            [("then", "if"), ("else", "if"), ("minContains", "contains"), ("maxContains", "contains")]
        {
            if !converted.contains_key(other) && converted.remove(keyword).is_some() {
                let note = format!("{keyword} without {other}");
                self.findings.add(Kind::SchemaKeyword, &below(&part.pointer, keyword), note);
            }
        }
    }

    /// A read-only member is not required in requests, nor a write-only member in responses.
    pub(super) fn drop_one_way(&mut self, part: &Part<'a>, direction: Direction, converted: &mut Map<String, Value>) {
        let mark = if direction == Direction::Request { READ_ONLY } else { "writeOnly" };
        let Some(Value::Array(required)) = converted.get_mut("required") else { return };
        let Some(properties) = part.get("properties") else { return };
        let required = std::mem::take(required);
        let (one_way, required): (Vec<Value>, Vec<Value>) = required.into_iter().partition(|name| {
            let property = name.as_str().and_then(|name| properties.get(name));
            property.is_some_and(|property| self.is_marked(property.value, mark, 0))
        });
        for property in one_way.iter().filter_map(|name| properties.get(name.as_str()?)) {
            self.findings.add(Kind::RequiredOneWay, &property.pointer, mark);
        }
        if required.is_empty() {
            converted.remove("required");
        } else {
            converted.insert("required".to_owned(), Value::Array(required));
        }
    }

    /// A schema under a keyword that has them by name. No request may carry a member that only responses have: a service
    /// that takes it over from the body would let the caller set what is the service's own.
    fn property(&mut self, keyword: &str, part: &Part<'a>, direction: Direction, references: &mut References) -> Value {
        if keyword == "properties" && self.is_read_only(part, direction) {
            return Value::Bool(false);
        }
        self.schema(part, direction, references)
    }

    /// Whether a member is omitted from requests, which is reported.
    pub(super) fn is_read_only(&mut self, property: &Part<'a>, direction: Direction) -> bool {
        let is_read_only = direction == Direction::Request && self.is_marked(property.value, READ_ONLY, 0);
        if is_read_only {
            self.findings.add(Kind::ReadOnly, &property.pointer, READ_ONLY);
        }
        is_read_only
    }

    /// Whether a schema has a mark: itself, by reference, or by one of the parts that it is put together of.
    fn is_marked(&self, schema: &Value, mark: &str, depth: usize) -> bool {
        let below = |schema: &Value| depth < MARK_DEPTH && self.is_marked(schema, mark, depth + 1);
        let reference = schema.get("$ref").and_then(Value::as_str).and_then(local_pointer);
        schema.get(mark) == Some(&Value::Bool(true))
            || reference.and_then(|pointer| self.document.pointer(&pointer)).is_some_and(below)
            || schema.get("allOf").and_then(Value::as_array).is_some_and(|parts| parts.iter().any(below))
    }

    /// Whether the model takes a keyword with this value. The same few come up again and again.
    fn compiles(&mut self, keyword: &'static str, value: &str) -> bool {
        let check = || Schema::compile(&json!({ keyword: value })).is_ok();
        *self.definitions.compiled.entry((keyword, value.to_owned())).or_insert_with(check)
    }
}

/// The same schema, which `null` fits too.
pub(super) fn with_null(mut schema: Map<String, Value>) -> Value {
    if !schema.keys().any(|name| COMBINING.contains(&name.as_str())) {
        if let Some(kinds) = schema.get_mut("type") {
            let mut list = kinds.as_array().cloned().unwrap_or_else(|| vec![kinds.clone()]);
            if !list.contains(&json!("null")) {
                list.push(json!("null"));
            }
            *kinds = Value::Array(list);
        }
        if let Some(Value::Array(values)) = schema.get_mut("enum")
            && !values.contains(&Value::Null)
        {
            values.push(Value::Null);
        }
        return Value::Object(schema);
    }
    let (mut outer, inner): (Map<_, _>, Map<_, _>) =
        schema.into_iter().partition(|(name, _)| REMARKS.contains(&name.as_str()));
    outer.insert("anyOf".to_owned(), json!([inner, {"type": "null"}]));
    Value::Object(outer)
}
