//! The declarations of a schema about the members of a value: names and lists.

use serde_json::{Map, Value};

use super::recursion::target;
use super::{SchemaViolation, violation};
use crate::parameter_name::Spellings;

/// The schemas that apply to one value.
#[derive(Debug, Clone)]
pub(crate) struct Declared<'a> {
    document: Option<&'a Value>,
    schemas: Vec<&'a Map<String, Value>>,
}

impl<'a> Declared<'a> {
    /// The declarations of a schema; empty without one.
    ///
    /// INVARIANT: the schema compiles, so its references end.
    pub(crate) fn by(document: Option<&'a Value>) -> Self {
        let mut declared = Self { document, schemas: Vec::new() };
        declared.add(document);
        declared
    }

    fn add(&mut self, schema: Option<&'a Value>) {
        let (Some(document), Some(members)) = (self.document, schema.and_then(Value::as_object)) else { return };
        self.schemas.push(members);
        // One pass over the few members of a schema: looking eight keywords up in every call costs more.
        for (keyword, member) in members {
            match keyword.as_str() {
                "$ref" => self.add(member.as_str().and_then(|reference| target(document, reference))),
                "allOf" | "anyOf" | "oneOf" => {
                    member.as_array().into_iter().flatten().for_each(|schema| self.add(Some(schema)));
                }
                "if" | "then" | "else" => self.add(Some(member)),
                "dependentSchemas" => {
                    member.as_object().into_iter().flatten().for_each(|(_, schema)| self.add(Some(schema)));
                }
                _ => {}
            }
        }
    }

    /// The names of members.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'a str> {
        self.properties().flat_map(Map::keys).map(String::as_str)
    }

    /// Whether a member of exactly this name is declared.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.properties().any(|properties| properties.contains_key(name))
    }

    /// The declarations of a member.
    pub(crate) fn member(&self, name: &str) -> Self {
        self.below(self.properties().filter_map(|properties| properties.get(name)))
    }

    /// The declarations of the items of a list.
    pub(crate) fn items(&self) -> Self {
        let prefix = self.schemas.iter().filter_map(|schema| schema.get("prefixItems")?.as_array()).flatten();
        self.below(self.schemas.iter().filter_map(|schema| schema.get("items")).chain(prefix))
    }

    /// Whether it is declared as a list, not only undeclared.
    pub(crate) fn is_list(&self) -> bool {
        self.schemas.iter().any(|schema| match schema.get("type") {
            Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "array"),
            Some(kind) => kind == "array",
            None => schema.contains_key("items") || schema.contains_key("prefixItems"),
        })
    }

    fn properties(&self) -> impl Iterator<Item = &'a Map<String, Value>> {
        self.schemas.iter().filter_map(|schema| schema.get("properties")?.as_object())
    }

    fn below(&self, schemas: impl Iterator<Item = &'a Value>) -> Self {
        let mut declared = Self { document: self.document, schemas: Vec::new() };
        schemas.for_each(|schema| declared.add(Some(schema)));
        declared
    }

    /// Checks that no member is another spelling of a declared name, here and below. A name that is itself declared is
    /// a parameter of its own.
    pub(super) fn check_spelling(&self, value: &Value, path: &str) -> Result<(), SchemaViolation> {
        match value {
            Value::Object(members) => {
                if let Some((name, declared)) = self.first_misspelt(members) {
                    return Err(SchemaViolation::misspelt(violation::below(path, name), declared));
                }
                let nested = members.iter().filter(|(_, member)| member.is_object() || member.is_array());
                nested.into_iter().try_for_each(|(name, member)| {
                    self.member(name).check_spelling(member, &violation::below(path, name))
                })
            }
            Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
                let declared = self.items();
                let mut numbered = items.iter().enumerate();
                numbered.try_for_each(|(position, item)| {
                    declared.check_spelling(item, &violation::below(path, &position.to_string()))
                })
            }
            _ => Ok(()),
        }
    }

    fn first_misspelt<'v>(&self, members: &'v Map<String, Value>) -> Option<(&'v str, &'a str)> {
        let mut undeclared = members.keys().filter(|name| !self.has(name)).peekable();
        undeclared.peek()?;
        let spellings = Spellings::of(self.names());
        undeclared.find_map(|name| Some((name.as_str(), spellings.find(name)?)))
    }
}
