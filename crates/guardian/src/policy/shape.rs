//! What rules see of a tool's arguments: a shape that Cedar has a type for, made of the tool's JSON Schema. What has no
//! such type is seen as text, so that no argument is hidden from rules.

use std::collections::BTreeMap;

use serde_json::Value;

mod reading;

#[cfg(test)]
mod tests;

/// How a value looks to rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// A string.
    Text,
    /// A whole number.
    Long,
    /// True or false.
    Bool,
    /// A number of up to four digits after the point.
    Decimal,
    /// A list of values that look alike. Rules see neither its order nor that something is in it twice.
    Set(Box<Shape>),
    /// An object of which the members are known.
    Record(BTreeMap<String, Member>),
    /// Anything else, as text: a string as itself, every other value as its canonical JSON.
    Json,
}

/// A member of a [`Shape::Record`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// How its value looks.
    pub shape: Shape,
    /// Whether it is always there and never null.
    pub required: bool,
}

impl Shape {
    /// How the arguments of a tool look, which is always a record. Without a schema no member is known.
    pub fn of_parameters(schema: Option<&Value>) -> Self {
        schema.map_or_else(|| Self::Record(BTreeMap::new()), reading::arguments)
    }
}
