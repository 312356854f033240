//! The scope of an approval: this call, all calls of the tool, or commands with a prefix.

use serde_json::{Map, Value, json};

/// A scope beyond the call applies to the session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Scope {
    #[default]
    Once,
    /// Every call of this tool, by name and never by category.
    Always,
    AlwaysPrefix {
        prefix: String,
    },
}

impl Scope {
    /// Parses `"once"`, `"always"` or `{"always_prefix": {"prefix": "cargo "}}`.
    pub(super) fn parse(value: Value) -> Option<Self> {
        match value {
            Value::String(word) if word == "once" => Some(Self::Once),
            Value::String(word) if word == "always" => Some(Self::Always),
            Value::Object(mut members) => {
                let inner = only(&mut members, "always_prefix")?;
                let Value::Object(mut inner) = inner else { return None };
                match only(&mut inner, "prefix")? {
                    Value::String(prefix) => Some(Self::AlwaysPrefix { prefix }),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// The scope of a decision request.
    pub fn to_decision(&self) -> Value {
        match self {
            Self::Once => json!("once"),
            Self::Always => json!({"always": {"reach": "session"}}),
            Self::AlwaysPrefix { prefix } => json!({"always_prefix": {"prefix": prefix, "reach": "session"}}),
        }
    }
}

/// The member with this name, if it is the only one.
fn only(members: &mut Map<String, Value>, name: &str) -> Option<Value> {
    let value = members.remove(name)?;
    members.is_empty().then_some(value)
}
