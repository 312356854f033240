//! Reading JSON so that no two readers can understand it differently: a key that appears twice, a number that would
//! lose digits, bytes that are no UTF-8, absurd nesting and anything after the value are refused instead of guessed.

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

/// How deep arrays and objects may be nested.
pub const MAX_DEPTH: usize = 64;

/// How deep they may be in what this program wrote itself: a value of a caller, which may be [`MAX_DEPTH`] deep, with
/// everything that an event puts around it. What was written can be read again.
pub const MAX_WRITTEN_DEPTH: usize = MAX_DEPTH + 32;

/// How much of a key is quoted in an error.
const QUOTED_CHARACTERS: usize = 64;

/// A place in the text: line and column (in bytes), both counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The byte within the line.
    pub column: usize,
}

/// Why a text was refused. The message says where and what to do.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StrictJsonError {
    /// The bytes are no text.
    #[error("the JSON text is not UTF-8 at {position}; encode it as UTF-8")]
    Encoding {
        /// The first bad byte.
        position: Position,
    },
    /// An object names a member twice.
    #[error("the key {key:?} appears twice in {place} ({position}); keep one of the two")]
    DuplicateKey {
        /// The key, cut off if it is long.
        key: String,
        /// The object that holds it, as a path.
        place: String,
        /// Where the second one stands.
        position: Position,
    },
    /// Arrays and objects within each other without end.
    #[error("the JSON text is nested deeper than {limit} levels at {position}; flatten it")]
    TooDeep {
        /// The limit.
        limit: usize,
        /// Where the limit is crossed.
        position: Position,
    },
    /// A number that cannot be kept without changing it.
    #[error(
        "the number at {place} ({position}) has more digits or a larger exponent than can be kept exactly; \
         send it as a string"
    )]
    InexactNumber {
        /// The member that is the number, as a path.
        place: String,
        /// Where the number stands.
        position: Position,
    },
    /// Something follows the value.
    #[error("there is more text after the JSON value, at {position}; send a single value")]
    TrailingData {
        /// Where the rest begins.
        position: Position,
    },
    /// The text stops in the middle of the value.
    #[error("the JSON text ends too early, at {position}; send all of it")]
    CutOff {
        /// Where it ends.
        position: Position,
    },
    /// Not JSON at all.
    #[error("not JSON at {position}: {reason}; correct the text there")]
    Malformed {
        /// Where.
        position: Position,
        /// What was found or expected.
        reason: String,
    },
}

/// Reads one JSON value that every reader will understand alike.
pub fn parse(bytes: &[u8]) -> Result<Value, StrictJsonError> {
    parse_within(bytes, MAX_DEPTH)
}

/// Reads one JSON value that this program wrote.
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

/// What is known while reading. The parser's own error type can only carry a sentence, so the reason of a refusal, and
/// the path that unwinding collects from the inside out, are kept here.
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

/// Reads one value, at a known depth.
struct Node<'a, 'text> {
    reading: &'a mut Reading<'text>,
    depth: usize,
}

impl Node<'_, '_> {
    /// The depth of what is inside this array or object.
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
