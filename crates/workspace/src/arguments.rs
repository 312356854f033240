//! The arguments of a call: checks their types and rejects unknown ones. Errors never repeat a value.

use serde_json::{Map, Value};

use crate::error::WorkspaceError;

#[derive(Debug, Clone, Copy)]
pub struct Arguments<'a> {
    values: &'a Map<String, Value>,
}

impl<'a> Arguments<'a> {
    /// Fails if a name is not among `known`.
    pub fn new(values: &'a Map<String, Value>, known: &[&str]) -> Result<Self, WorkspaceError> {
        match values.keys().find(|name| !known.contains(&name.as_str())) {
            Some(name) => Err(WorkspaceError::UnknownArgument { name: name.clone() }),
            None => Ok(Self { values }),
        }
    }

    /// A required string.
    pub fn text(self, name: &'static str) -> Result<&'a str, WorkspaceError> {
        self.optional_text(name)?.ok_or(WorkspaceError::MissingArgument { name })
    }

    /// An optional string.
    pub fn optional_text(self, name: &'static str) -> Result<Option<&'a str>, WorkspaceError> {
        self.read(name, "a string", Value::as_str)
    }

    /// An optional integer of 1 or more.
    pub fn optional_count(self, name: &'static str) -> Result<Option<u64>, WorkspaceError> {
        self.read(name, "an integer of 1 or more", |value| value.as_u64().filter(|count| *count > 0))
    }

    /// An optional boolean; false if absent.
    pub fn flag(self, name: &'static str) -> Result<bool, WorkspaceError> {
        Ok(self.read(name, "true or false", Value::as_bool)?.unwrap_or(false))
    }

    fn read<T>(
        self,
        name: &'static str,
        expected: &'static str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, WorkspaceError> {
        match self.values.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => read(value).map(Some).ok_or(WorkspaceError::BadArgument { name, expected }),
        }
    }
}
