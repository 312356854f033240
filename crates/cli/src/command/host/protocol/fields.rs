//! The members of a command. Members that are left over at the end are unknown, and refused.

use serde_json::{Map, Value};
use toolgate_model::text::TextError;

use super::LineError;
use super::echo::echoed;

pub(super) struct Fields {
    command: &'static str,
    members: Map<String, Value>,
}

impl Fields {
    pub(super) fn new(command: &'static str, members: Map<String, Value>) -> Self {
        Self { command, members }
    }

    /// A required member. `null` counts as missing.
    pub(super) fn need(&mut self, name: &'static str) -> Result<Value, LineError> {
        self.take(name).ok_or(LineError::Missing { command: self.command, name })
    }

    pub(super) fn take(&mut self, name: &'static str) -> Option<Value> {
        self.members.remove(name).filter(|value| !value.is_null())
    }

    pub(super) fn need_text(&mut self, name: &'static str) -> Result<String, LineError> {
        let value = self.need(name)?;
        self.text(name, value)
    }

    pub(super) fn take_text(&mut self, name: &'static str) -> Result<Option<String>, LineError> {
        self.take(name).map(|value| self.text(name, value)).transpose()
    }

    pub(super) fn need_object(&mut self, name: &'static str) -> Result<Map<String, Value>, LineError> {
        match self.need(name)? {
            Value::Object(members) => Ok(members),
            _ => Err(self.wrong(name, "must be an object")),
        }
    }

    pub(super) fn need_flag(&mut self, name: &'static str) -> Result<bool, LineError> {
        self.need(name)?.as_bool().ok_or_else(|| self.wrong(name, "must be true or false"))
    }

    pub(super) fn need_as<T>(
        &mut self,
        name: &'static str,
        parse: impl FnOnce(&str) -> Result<T, TextError>,
    ) -> Result<T, LineError> {
        let text = self.need_text(name)?;
        parse(&text).map_err(|error| self.wrong(name, &error.to_string()))
    }

    pub(super) fn end(self) -> Result<(), LineError> {
        match self.members.keys().next() {
            None => Ok(()),
            Some(name) => Err(LineError::UnknownField { command: self.command, name: echoed(name) }),
        }
    }

    pub(super) fn wrong(&self, name: &'static str, reason: &str) -> LineError {
        LineError::Wrong { command: self.command, name, reason: reason.to_owned() }
    }

    fn text(&self, name: &'static str, value: Value) -> Result<String, LineError> {
        match value {
            Value::String(text) => Ok(text),
            _ => Err(self.wrong(name, "must be a string")),
        }
    }
}
