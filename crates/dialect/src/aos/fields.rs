//! Reads members of JSON objects and tracks the path of each, so that an error names the exact location. A `null`
//! member counts as absent: typed programs send null for missing values.

use serde_json::{Map, Value};

use crate::jsonrpc::RpcError;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InvalidMember {
    pub(crate) path: String,
    pub(crate) problem: &'static str,
}

/// An object with its path.
#[derive(Debug, Clone)]
pub(crate) struct Object<'v> {
    members: &'v Map<String, Value>,
    path: String,
}

/// A list with its path.
#[derive(Debug, Clone)]
pub(crate) struct List<'v> {
    items: &'v [Value],
    path: String,
}

impl From<InvalidMember> for RpcError {
    fn from(invalid_member: InvalidMember) -> Self {
        Self::invalid_params(&invalid_member.path, invalid_member.problem)
    }
}

impl<'v> Object<'v> {
    /// The empty path is the whole message.
    pub(crate) fn new(members: &'v Map<String, Value>, path: &str) -> Self {
        Self { members, path: path.to_owned() }
    }

    pub(crate) fn members(&self) -> &'v Map<String, Value> {
        self.members
    }

    pub(crate) fn get(&self, name: &str) -> Option<&'v Value> {
        self.members.get(name).filter(|value| !value.is_null())
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub(crate) fn invalid_member(&self, name: &str, problem: &'static str) -> InvalidMember {
        InvalidMember { path: self.path_of(name), problem }
    }

    pub(crate) fn required(&self, name: &str) -> Result<&'v Value, InvalidMember> {
        self.get(name).ok_or_else(|| self.invalid_member(name, "is missing"))
    }

    pub(crate) fn object(&self, name: &str) -> Result<Self, InvalidMember> {
        match self.required(name)? {
            Value::Object(members) => Ok(Self { members, path: self.path_of(name) }),
            _ => Err(self.invalid_member(name, "must be an object")),
        }
    }

    pub(crate) fn optional_object(&self, name: &str) -> Result<Option<Self>, InvalidMember> {
        self.has(name).then(|| self.object(name)).transpose()
    }

    pub(crate) fn list(&self, name: &str) -> Result<List<'v>, InvalidMember> {
        match self.required(name)? {
            Value::Array(items) => Ok(List { items, path: self.path_of(name) }),
            _ => Err(self.invalid_member(name, "must be a list")),
        }
    }

    pub(crate) fn optional_list(&self, name: &str) -> Result<Option<List<'v>>, InvalidMember> {
        self.has(name).then(|| self.list(name)).transpose()
    }

    pub(crate) fn text(&self, name: &str) -> Result<&'v str, InvalidMember> {
        match self.required(name)? {
            Value::String(text) => Ok(text),
            _ => Err(self.invalid_member(name, "must be a string")),
        }
    }

    pub(crate) fn optional_text(&self, name: &str) -> Result<Option<&'v str>, InvalidMember> {
        self.has(name).then(|| self.text(name)).transpose()
    }

    /// A non-empty string.
    pub(crate) fn name(&self, name: &str) -> Result<&'v str, InvalidMember> {
        match self.text(name)? {
            "" => Err(self.invalid_member(name, "must not be empty")),
            text => Ok(text),
        }
    }

    pub(crate) fn flag(&self, name: &str) -> Result<Option<bool>, InvalidMember> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(_) => Err(self.invalid_member(name, "must be true or false")),
        }
    }

    fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }
}

impl<'v> List<'v> {
    /// Each item as an object.
    pub(crate) fn objects(&self) -> impl Iterator<Item = Result<Object<'v>, InvalidMember>> {
        self.items.iter().enumerate().map(|(index, item)| match item {
            Value::Object(members) => Ok(Object { members, path: self.path_of(index) }),
            _ => Err(InvalidMember { path: self.path_of(index), problem: "must be an object" }),
        })
    }

    /// Each item as a string.
    pub(crate) fn texts(&self) -> Result<Vec<String>, InvalidMember> {
        let text = |(index, item): (usize, &Value)| match item {
            Value::String(text) => Ok(text.clone()),
            _ => Err(InvalidMember { path: self.path_of(index), problem: "must be a string" }),
        };
        self.items.iter().enumerate().map(text).collect()
    }

    fn path_of(&self, index: usize) -> String {
        format!("{}[{index}]", self.path)
    }
}
