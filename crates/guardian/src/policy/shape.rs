//! The arguments of a tool as rules see them: a shape with a Cedar type, derived from the tool's JSON Schema. A value
//! without such a type is visible as text, so that no argument is hidden from rules.

use std::collections::BTreeMap;

use serde_json::Value;

mod reading;

#[cfg(test)]
mod tests;

/// The type of a value in rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    Text,
    Long,
    Bool,
    /// A number with up to four decimal places.
    Decimal,
    /// A list of values of one shape. Rules see neither order nor duplicates.
    Set(Box<Shape>),
    /// An object with known members.
    Record(BTreeMap<String, Member>),
    /// Anything else, as text: a string as it is, every other value as its canonical JSON.
    Json,
}

/// A member of a [`Shape::Record`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    pub shape: Shape,
    /// Whether it is always present and never null.
    pub required: bool,
}

impl Shape {
    /// The shape of a tool's arguments, which is always a record. Without a schema no member is known.
    pub fn of_parameters(schema: Option<&Value>) -> Self {
        schema.map_or_else(|| Self::Record(BTreeMap::new()), reading::arguments)
    }
}
