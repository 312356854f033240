//! The members of a hook input. A missing member, or one of the wrong type, makes the input invalid, which is a denial.

use std::path::Path;

use serde_json::{Map, Value};

use super::{HookInput, InputError, Reply};

pub struct Fields {
    client: &'static str,
    members: Map<String, Value>,
}

impl Fields {
    pub fn new(client: &'static str, value: Value) -> Result<Self, InputError> {
        match value {
            Value::Object(members) => Ok(Self { client, members }),
            _ => Err(InputError::Missing("hook_event_name")),
        }
    }

    /// Empty text counts as missing.
    pub fn text(&self, name: &str) -> Option<String> {
        self.members.get(name)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
    }

    pub fn need(&self, name: &'static str) -> Result<String, InputError> {
        self.text(name).ok_or(InputError::Missing(name))
    }

    pub fn get(&self, name: &str) -> Option<&Value> {
        self.members.get(name)
    }

    pub fn some(&self, names: &[&str]) -> Map<String, Value> {
        let present = names.iter().filter_map(|name| Some(((*name).to_owned(), self.members.get(*name)?.clone())));
        present.collect()
    }

    /// The arguments. A value that is not an object is shown to approvers as it is.
    pub fn arguments(&mut self) -> Result<Map<String, Value>, InputError> {
        match self.members.remove("tool_input") {
            Some(Value::Object(arguments)) => Ok(arguments),
            Some(other) if !other.is_null() => Ok(Map::from_iter([("input".to_owned(), other)])),
            _ => Err(InputError::Missing("tool_input")),
        }
    }

    /// The working directory, if it is a full path.
    pub fn directory(&self) -> Option<String> {
        self.text("cwd").filter(|path| Path::new(path).is_absolute())
    }

    /// The reply to an event that is not a call: none if the event is known to decide nothing, else an error.
    pub fn no_call(&self, event: String, quiet: &[&str]) -> Result<HookInput, InputError> {
        if quiet.contains(&event.as_str()) {
            return Ok(HookInput::Nothing(Reply::nothing()));
        }
        Err(InputError::Event { client: self.client, event })
    }
}
