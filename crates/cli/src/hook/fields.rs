//! The members of a hook's input, read by name. What is missing or of another kind than documented makes the input
//! unreadable, which is a no.

use std::path::Path;

use serde_json::{Map, Value};

use super::{HookInput, InputError, Reply};

/// The members of one input.
pub struct Fields {
    client: &'static str,
    members: Map<String, Value>,
}

impl Fields {
    /// Those of a JSON object.
    pub fn new(client: &'static str, value: Value) -> Result<Self, InputError> {
        match value {
            Value::Object(members) => Ok(Self { client, members }),
            _ => Err(InputError::Missing("hook_event_name")),
        }
    }

    /// A text that may be missing; an empty one counts as missing.
    pub fn text(&self, name: &str) -> Option<String> {
        self.members.get(name)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
    }

    /// A text that every call has.
    pub fn need(&self, name: &'static str) -> Result<String, InputError> {
        self.text(name).ok_or(InputError::Missing(name))
    }

    /// A member as it is.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.members.get(name)
    }

    /// Those members of these names that are there.
    pub fn some(&self, names: &[&str]) -> Map<String, Value> {
        let present = names.iter().filter_map(|name| Some(((*name).to_owned(), self.members.get(*name)?.clone())));
        present.collect()
    }

    /// What the tool is called with. A value that is no object is shown to whoever decides as it is.
    pub fn arguments(&mut self) -> Result<Map<String, Value>, InputError> {
        match self.members.remove("tool_input") {
            Some(Value::Object(arguments)) => Ok(arguments),
            Some(other) if !other.is_null() => Ok(Map::from_iter([("input".to_owned(), other)])),
            _ => Err(InputError::Missing("tool_input")),
        }
    }

    /// The directory the client works in, if its full path is told.
    pub fn directory(&self) -> Option<String> {
        self.text("cwd").filter(|path| Path::new(path).is_absolute())
    }

    /// The answer to an event that is no call: silence if it is known to decide about none, an error otherwise.
    pub fn no_call(&self, event: String, quiet: &[&str]) -> Result<HookInput, InputError> {
        if quiet.contains(&event.as_str()) {
            return Ok(HookInput::Nothing(Reply::nothing()));
        }
        Err(InputError::Event { client: self.client, event })
    }
}
