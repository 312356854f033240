//! The extent of an approval: this call, all calls of the tool, or commands with the same prefix.

use serde_json::{Map, Value, json};

/// The extent of an approval. A wider one holds for the session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Scope {
    #[default]
    Once,
    /// Every call of this tool, by its name and never by its category.
    Always,
    /// Commands of this tool that begin with these words.
    AlwaysPrefix { prefix: String },
}

impl Scope {
    /// Reads `"once"`, `"always"` or `{"always_prefix": {"prefix": "cargo "}}`.
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

    /// In the form of an approval decision.
    pub fn to_decision(&self) -> Value {
        match self {
            Self::Once => json!("once"),
            Self::Always => json!({"always": {"reach": "session"}}),
            Self::AlwaysPrefix { prefix } => json!({"always_prefix": {"prefix": prefix, "reach": "session"}}),
        }
    }
}

/// The member of that name, if there is no other.
fn only(members: &mut Map<String, Value>, name: &str) -> Option<Value> {
    let value = members.remove(name)?;
    members.is_empty().then_some(value)
}
