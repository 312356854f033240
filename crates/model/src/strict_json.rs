//! Parses JSON so that no two readers can interpret it differently: duplicate keys, numbers that would lose digits,
//! invalid UTF-8, excessive nesting and trailing text are rejected.

mod doubles;
mod number;

#[cfg(test)]
mod tests;

use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Value};
use thiserror::Error;

use self::doubles::Doubles;
pub(crate) use self::number::exact as exact_number;

/// The maximum nesting of arrays and objects.
pub const MAX_DEPTH: usize = 64;

/// The maximum nesting in text that this program wrote itself: a value of a caller, which may be [`MAX_DEPTH`] deep,
/// with everything that an event puts around it. Written text can be parsed again.
pub const MAX_WRITTEN_DEPTH: usize = MAX_DEPTH + 32;

/// The maximum length of a quoted key in an error.
const QUOTED_CHARACTERS: usize = 64;

/// A position in the text: line and column (in bytes), both counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    pub line: usize,
    /// The byte within the line.
    pub column: usize,
}

/// Why a text is rejected. The message has the position and what to do.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StrictJsonError {
    #[error("the JSON text is not UTF-8 at {position}; encode it as UTF-8")]
    Encoding {
        /// The first invalid byte.
        position: Position,
    },
    #[error("duplicate key {key:?} in {place} ({position}); remove one of the two")]
    DuplicateKey {
        /// The key, truncated if it is long.
        key: String,
        /// The path of the object.
        place: String,
        /// The position of the second one.
        position: Position,
    },
    #[error("the JSON text is nested deeper than {limit} levels at {position}; flatten it")]
    TooDeep { limit: usize, position: Position },
    /// A number that cannot be represented exactly.
    #[error(
        "the number at {place} ({position}) has more digits or a larger exponent than can be represented exactly; \
         send it as a string"
    )]
    InexactNumber {
        /// The path of the number.
        place: String,
        position: Position,
    },
    #[error("unexpected text after the JSON value at {position}; send a single value")]
    TrailingData { position: Position },
    #[error("the JSON text is truncated at {position}; send all of it")]
    CutOff { position: Position },
    #[error("invalid JSON at {position}: {reason}")]
    Malformed { position: Position, reason: String },
}

/// Parses one JSON value that every reader interprets in the same way.
pub fn parse(bytes: &[u8]) -> Result<Value, StrictJsonError> {
    parse_within(bytes, MAX_DEPTH)
}

/// Parses one JSON value that this program wrote.
pub fn parse_written(bytes: &[u8]) -> Result<Value, StrictJsonError> {
    parse_within(bytes, MAX_WRITTEN_DEPTH)
}

fn parse_within(bytes: &[u8], limit: usize) -> Result<Value, StrictJsonError> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| StrictJsonError::Encoding { position: Position::of_offset(bytes, error.valid_up_to()) })?;
    let mut reading = Reading { doubles: Doubles::new(bytes), limit, fault: None, path: Vec::new() };
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = Node { reading: &mut reading, depth: 0 }
        .deserialize(&mut deserializer)
        .map_err(|error| reading.explain(&error))?;
    deserializer.end().map_err(|error| StrictJsonError::TrailingData { position: Position::of_error(&error) })?;
    Ok(value)
}

impl Position {
    fn of_error(error: &serde_json::Error) -> Self {
        Self { line: error.line(), column: error.column() }
    }

    fn of_offset(bytes: &[u8], offset: usize) -> Self {
        let before = bytes.get(..offset).unwrap_or(bytes);
        let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
        let column = before.iter().rev().take_while(|&&byte| byte != b'\n').count() + 1;
        Self { line, column }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "line {}, column {}", self.line, self.column)
    }
}

/// The state of the parser. Its own error type can only contain a sentence, so the reason of a rejection, and the path
/// that unwinding collects from the inside out, are kept here.
struct Reading<'a> {
    doubles: Doubles<'a>,
    limit: usize,
    fault: Option<Fault>,
    path: Vec<Step>,
}

enum Fault {
    DuplicateKey(String),
    TooDeep,
    InexactNumber(Position),
}

enum Step {
    Member(String),
    Item(usize),
}

impl Reading<'_> {
    fn explain(&mut self, error: &serde_json::Error) -> StrictJsonError {
        let position = Position::of_error(error);
        match self.fault.take() {
            Some(Fault::DuplicateKey(key)) => {
                StrictJsonError::DuplicateKey { key, place: self.place("the outermost object"), position }
            }
            Some(Fault::TooDeep) => StrictJsonError::TooDeep { limit: self.limit, position },
            Some(Fault::InexactNumber(position)) => {
                StrictJsonError::InexactNumber { place: self.place("the top"), position }
            }
            None if error.is_eof() => StrictJsonError::CutOff { position },
            None => {
                let sentence = error.to_string();
                let reason = sentence.split_once(" at line ").map_or(sentence.as_str(), |(reason, _)| reason);
                if reason == "number out of range" {
                    return StrictJsonError::InexactNumber { place: self.place("the top"), position };
                }
                StrictJsonError::Malformed { position, reason: reason.to_owned() }
            }
        }
    }

    fn place(&self, top: &str) -> String {
        if self.path.is_empty() {
            return top.to_owned();
        }
        let mut place = String::new();
        for step in self.path.iter().rev() {
            match step {
                Step::Member(key) if place.is_empty() => place.push_str(key),
                Step::Member(key) => place.extend([".", key]),
                Step::Item(position) => place.push_str(&format!("[{position}]")),
            }
        }
        format!("{place:?}")
    }
}

/// Parses one value, at a known depth.
struct Node<'a, 'text> {
    reading: &'a mut Reading<'text>,
    depth: usize,
}

impl Node<'_, '_> {
    /// The depth of the contents of this array or object.
    fn descend<E: serde::de::Error>(&mut self) -> Result<usize, E> {
        if self.depth == self.reading.limit {
            self.reading.fault = Some(Fault::TooDeep);
            return Err(E::custom("too deep"));
        }
        Ok(self.depth + 1)
    }
}

impl<'de> DeserializeSeed<'de> for Node<'_, '_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_, '_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: serde::de::Error>(self, _approximate: f64) -> Result<Value, E> {
        match self.reading.doubles.next() {
            Ok(number) => Ok(Value::Number(number)),
            Err(position) => {
                self.reading.fault = Some(Fault::InexactNumber(position));
                Err(E::custom("inexact number"))
            }
        }
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut access: A) -> Result<Value, A::Error> {
        let depth = self.descend()?;
        let mut items = Vec::new();
        loop {
            match access.next_element_seed(Node { reading: self.reading, depth }) {
                Ok(Some(item)) => items.push(item),
                Ok(None) => return Ok(Value::Array(items)),
                Err(error) => {
                    self.reading.path.push(Step::Item(items.len()));
                    return Err(error);
                }
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut access: A) -> Result<Value, A::Error> {
        let depth = self.descend()?;
        let mut members = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            match members.entry(key) {
                Entry::Vacant(entry) => match access.next_value_seed(Node { reading: self.reading, depth }) {
                    Ok(value) => drop(entry.insert(value)),
                    Err(error) => {
                        self.reading.path.push(Step::Member(quotable(entry.key())));
                        return Err(error);
                    }
                },
                Entry::Occupied(entry) => {
                    self.reading.fault = Some(Fault::DuplicateKey(quotable(entry.key())));
                    return Err(A::Error::custom("duplicate key"));
                }
            }
        }
        Ok(Value::Object(members))
    }
}

fn quotable(key: &str) -> String {
    key.chars().take(QUOTED_CHARACTERS).collect()
}
