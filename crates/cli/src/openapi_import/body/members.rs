//! The members of a request body, from all parts of its schema. A body that is not an object cannot become parameters.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::openapi_import::Import;
use crate::openapi_import::finding::Kind;
use crate::openapi_import::reference::Part;
use crate::openapi_import::schema::{Direction, References};

/// How deep a body may be put together.
const DEPTH_LIMIT: usize = 16;

/// The members of an object.
#[derive(Debug, Default)]
pub(super) struct Members {
    /// Where the document has the object.
    pub(super) pointer: String,
    /// By name: the schema, and where the document has it.
    pub(super) properties: BTreeMap<String, (Value, String)>,
    /// Those that must be there.
    pub(super) required: BTreeSet<String>,
    /// What is said about members without a name.
    pub(super) rest: Rest,
    /// Lists of names of which one must be there in full.
    pub(super) alternatives: Vec<Vec<BTreeSet<String>>>,
}

/// What a schema says about members that it does not name.
#[derive(Debug, Default, PartialEq)]
pub(super) enum Rest {
    /// Nothing.
    #[default]
    Silent,
    /// There are none.
    Closed,
    /// What they must look like.
    Open(Value),
}

impl<'a> Import<'a> {
    /// Reads the schema of a body.
    pub(super) fn body_members(
        &mut self,
        schema: &Part<'a>,
        references: &mut References,
        depth: usize,
    ) -> Result<Members, String> {
        let part =
            self.resolve_schema(schema.clone()).map_err(|reason| format!("could not read its body: {reason}"))?;
        if depth > DEPTH_LIMIT {
            return Err("the schema of its body is circular".to_owned());
        }
        self.check_is_object(&part)?;
        let mut members = Members { pointer: part.pointer.clone(), ..Members::default() };
        let object = self.own_schema(&part, references);
        for (name, property) in part.get("properties").map(|properties| properties.members()).unwrap_or_default() {
            let schema = object.get("properties").and_then(|properties| properties.get(name)).cloned();
            members.properties.insert(name.to_owned(), (schema.unwrap_or_else(|| json!({})), property.pointer));
        }
        let required = object.get("required").and_then(Value::as_array).into_iter().flatten();
        members.required = required.filter_map(Value::as_str).map(str::to_owned).collect();
        members.rest = match object.get("additionalProperties") {
            Some(Value::Bool(false)) => Rest::Closed,
            Some(said) => Rest::Open(said.clone()),
            None if part.get("unevaluatedProperties").is_some_and(|said| said.value == &Value::Bool(false)) => {
                Rest::Closed
            }
            None if part.get("patternProperties").is_some() => Rest::Open(Value::Bool(true)),
            None => Rest::Silent,
        };
        for (keyword, below) in part.members() {
            match keyword {
                "additionalProperties" | "properties" | "required" | "type" => {}
                "unevaluatedProperties" if below.value == &Value::Bool(false) => {}
                "$ref" => {
                    let reference = below.value.as_str().ok_or("its body has a $ref that is not a string")?;
                    let target =
                        self.target(reference).map_err(|reason| format!("could not read its body: {reason}"))?;
                    self.join_part(&target, references, depth, &mut members)?;
                }
                "allOf" => {
                    for all in below.elements() {
                        self.join_part(&all, references, depth, &mut members)?;
                    }
                }
                "anyOf" | "oneOf" => self.choose_members(&below, references, depth, &mut members)?,
                extension if extension.starts_with("x-") => {
                    self.findings.add(Kind::Extension, &below.pointer, extension);
                }
                other => self.findings.add(Kind::BodyKeyword, &below.pointer, other),
            }
        }
        // A body without any keywords may have any members; otherwise only the named ones.
        if depth == 0 && members.is_silent() {
            members.rest = Rest::Open(Value::Bool(true));
        }
        let Members { properties, required, .. } = &mut members;
        required.retain(|name| properties.get(name).is_none_or(|(schema, _)| schema != &Value::Bool(false)));
        Ok(members)
    }

    /// Takes over what another schema for the same object says.
    fn join_part(
        &mut self,
        part: &Part<'a>,
        references: &mut References,
        depth: usize,
        members: &mut Members,
    ) -> Result<(), String> {
        let other = self.body_members(part, references, depth + 1)?;
        // Strictly, the closed part refuses the members of the others, and no value would be valid. The union is what
        // such documents mean.
        let is_one_closed = (members.rest == Rest::Closed) != (other.rest == Rest::Closed);
        let has_other =
            |one: &Members| one.rest != Rest::Closed && !(one.properties.is_empty() && one.rest == Rest::Silent);
        if is_one_closed && (has_other(members) || has_other(&other)) {
            self.findings.add(Kind::BodyClosed, &other.pointer, "no members other than the named ones");
        }
        members.join(other);
        Ok(())
    }

    fn check_is_object(&mut self, part: &Part<'a>) -> Result<(), String> {
        if !part.value.is_object() && part.value != &Value::Bool(true) {
            return Err("its body has no valid schema".to_owned());
        }
        let Some(kinds) = part.get("type") else { return Ok(()) };
        let is_object = |kind: &Value| kind == "object";
        if is_object(kinds.value) || kinds.value.as_array().is_some_and(|kinds| kinds.iter().any(is_object)) {
            return Ok(());
        }
        Err(format!("its body has type {}; only objects can become parameters", kinds.value))
    }

    /// The object alone, converted, without what it is put together of.
    fn own_schema(&mut self, part: &Part<'a>, references: &mut References) -> Value {
        let mut converted = serde_json::Map::new();
        if let Some(properties) = part.get("properties") {
            let mut schemas = serde_json::Map::new();
            for (name, property) in properties.members() {
                let schema = match self.is_read_only(&property, Direction::Request) {
                    true => Value::Bool(false),
                    false => self.schema(&property, Direction::Request, references),
                };
                schemas.insert(name.to_owned(), schema);
            }
            converted.insert("properties".to_owned(), Value::Object(schemas));
        }
        if let Some(more) = part.get("additionalProperties") {
            converted.insert("additionalProperties".to_owned(), self.schema(&more, Direction::Request, references));
        }
        if let Some(required) = part.get("required") {
            match required.value.as_array().filter(|names| names.iter().all(Value::is_string)) {
                Some(names) => drop(converted.insert("required".to_owned(), json!(names))),
                None => self.findings.add(Kind::SchemaKeyword, &required.pointer, "required"),
            }
        }
        self.drop_one_way(part, Direction::Request, &mut converted);
        Value::Object(converted)
    }

    /// Merges the members of all alternatives. Their grouping is reported, and required members are kept.
    fn choose_members(
        &mut self,
        list: &Part<'a>,
        references: &mut References,
        depth: usize,
        members: &mut Members,
    ) -> Result<(), String> {
        let mut found = Vec::new();
        let mut reason = format!("its body is empty at {}", list.pointer);
        for alternative in list.elements() {
            match self.body_members(&alternative, references, depth + 1) {
                Ok(alternative) => found.push(alternative),
                Err(why) => {
                    self.findings.add(Kind::BodyAlternative, &alternative.pointer, why.as_str());
                    reason = why;
                }
            }
        }
        if found.is_empty() {
            return Err(reason);
        }
        self.findings.add(Kind::BodyAlternatives, &list.pointer, format!("{} alternatives", found.len()));
        let own: BTreeSet<String> = members.properties.keys().cloned().collect();
        let needs: Vec<BTreeSet<String>> = found.iter().map(|one| one.required.clone()).collect();
        let first = needs.first().cloned().unwrap_or_default();
        let common: BTreeSet<String> =
            first.into_iter().filter(|name| needs.iter().all(|names| names.contains(name))).collect();
        let more: Vec<BTreeSet<String>> =
            needs.iter().map(|names| names.difference(&common).cloned().collect()).collect();
        // An alternative without required members makes the others optional.
        if more.iter().all(|names: &BTreeSet<String>| !names.is_empty()) {
            members.alternatives.push(more);
        }
        members.required.extend(common);
        let rest_of = |one: &mut Members| match one.is_silent() && own.is_empty() {
            true => Rest::Open(Value::Bool(true)),
            false => std::mem::take(&mut one.rest),
        };
        let rest = found.iter_mut().map(rest_of).reduce(Rest::either).unwrap_or_default();
        members.rest = std::mem::take(&mut members.rest).and(rest);
        for (position, alternative) in found.into_iter().enumerate() {
            for (name, (schema, pointer)) in alternative.properties {
                match members.properties.get_mut(&name) {
                    None => drop(members.properties.insert(name, (schema, pointer))),
                    // The object itself applies to every alternative.
                    Some(_) if own.contains(&name) => {
                        let note = format!("{name} in alternative {position}");
                        self.findings.add(Kind::BodyAlternative, &pointer, note);
                    }
                    Some((known, _)) if *known == schema => {}
                    Some((known, _)) => *known = either(known.take(), schema),
                }
            }
        }
        Ok(())
    }
}

impl Members {
    /// Whether nothing is said about any member.
    fn is_silent(&self) -> bool {
        self.properties.is_empty()
            && self.required.is_empty()
            && self.alternatives.is_empty()
            && self.rest == Rest::Silent
    }

    /// Takes over what another schema for the same object says.
    fn join(&mut self, other: Self) {
        for (name, (schema, pointer)) in other.properties {
            match self.properties.get_mut(&name) {
                None => drop(self.properties.insert(name, (schema, pointer))),
                Some((known, _)) => *known = all_of(known.take(), schema),
            }
        }
        self.required.extend(other.required);
        self.alternatives.extend(other.alternatives);
        self.rest = std::mem::take(&mut self.rest).and(other.rest);
    }
}

impl Rest {
    /// What two schemas for the same object say together.
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Closed, _) | (_, Self::Closed) => Self::Closed,
            (Self::Silent, rest) | (rest, Self::Silent) => rest,
            (Self::Open(one), Self::Open(other)) => Self::Open(all_of(one, other)),
        }
    }

    /// What two alternatives say.
    fn either(self, other: Self) -> Self {
        match (self, other) {
            (Self::Open(one), Self::Open(other)) if one == other => Self::Open(one),
            (Self::Open(one), Self::Open(other)) => Self::Open(either(one, other)),
            (Self::Open(rest), _) | (_, Self::Open(rest)) => Self::Open(rest),
            (Self::Closed, Self::Closed) => Self::Closed,
            (Self::Silent | Self::Closed, Self::Silent | Self::Closed) => Self::Silent,
        }
    }

    /// The schema of members without a name, where there may be some.
    pub(super) fn into_schema(self) -> Option<Value> {
        match self {
            Self::Silent | Self::Closed => None,
            Self::Open(schema) => Some(schema),
        }
    }
}

/// A schema for what fits both.
fn all_of(one: Value, other: Value) -> Value {
    match (one, other) {
        (Value::Bool(false), _) | (_, Value::Bool(false)) => Value::Bool(false),
        (one, other) if one == other => one,
        (one, other) => json!({"allOf": [one, other]}),
    }
}

/// A schema for what fits one of two, without growing a tree of them.
fn either(known: Value, other: Value) -> Value {
    match known {
        Value::Object(mut members) if members.len() == 1 && members.contains_key("anyOf") => {
            if let Some(Value::Array(list)) = members.get_mut("anyOf")
                && !list.contains(&other)
            {
                list.push(other);
            }
            Value::Object(members)
        }
        known => json!({"anyOf": [known, other]}),
    }
}
