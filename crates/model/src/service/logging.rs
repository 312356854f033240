//! What the log keeps of a call's parameters: by rule of the tool, field by field, and never more than a few kilobytes.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::canonical::to_canonical;
use crate::constraint::ParameterPath;
use crate::merkle::sha256;
use crate::secret_name::is_secret;

mod wire;

#[cfg(test)]
mod tests;

/// How long a text may be to be kept as it is, in bytes.
const TEXT_LIMIT: usize = 256;
/// How large the arguments may be that are kept in full, in bytes.
const INPUTS_LIMIT: usize = 64 * 1024;
/// How large a summary may grow before the rest is left out, in bytes.
const SUMMARY_LIMIT: usize = 4 * 1024;
/// The member that counts what found no room.
const LEFT_OUT: &str = "_left_out";

/// Which parameters are kept, and how. A field whose name looks like that of a secret is left out, at any depth, unless
/// a rule names the field itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoggingRule {
    /// For fields without a rule of their own.
    pub default: FieldRule,
    /// By path; lists are looked into element by element.
    ///
    /// INVARIANT: none stands below another one that hashes or omits.
    pub fields: BTreeMap<ParameterPath, FieldRule>,
    /// Whether the event of a call carries its arguments in full, as far as the rules above let it.
    pub inputs: bool,
}

/// What is kept of a field.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FieldRule {
    /// Its value.
    #[default]
    Log,
    /// A hash of its canonical value, enough to compare.
    Hash,
    /// Nothing.
    Omit,
}

impl LoggingRule {
    /// What may be kept of these parameters.
    pub fn summary(&self, parameters: &Map<String, Value>) -> Map<String, Value> {
        Writer { rule: self, room: SUMMARY_LIMIT, text_limit: TEXT_LIMIT }.members(parameters, "", self.default)
    }

    /// The arguments that the event of a call carries, where it carries any.
    pub fn inputs(&self, parameters: &Map<String, Value>) -> Option<Value> {
        let mut writer = Writer { rule: self, room: INPUTS_LIMIT, text_limit: INPUTS_LIMIT };
        self.inputs.then(|| Value::Object(writer.members(parameters, "", self.default)))
    }

    fn of(&self, path: &str) -> Option<FieldRule> {
        self.fields.iter().find(|(own, _)| own.as_str() == path).map(|(_, &rule)| rule)
    }
}

/// Writes a summary into limited room.
struct Writer<'a> {
    rule: &'a LoggingRule,
    room: usize,
    text_limit: usize,
}

impl Writer<'_> {
    fn members(&mut self, members: &Map<String, Value>, path: &str, inherited: FieldRule) -> Map<String, Value> {
        let mut kept = Map::new();
        for (position, (name, value)) in members.iter().enumerate() {
            self.take(name.len());
            if self.room == 0 {
                kept.insert(LEFT_OUT.to_owned(), Value::from(members.len() - position));
                break;
            }
            let path = if path.is_empty() { Cow::Borrowed(name) } else { Cow::Owned(format!("{path}.{name}")) };
            if let Some(value) = self.member(&path, name, value, inherited) {
                kept.insert(name.clone(), value);
            }
        }
        kept
    }

    fn member(&mut self, path: &str, name: &str, value: &Value, inherited: FieldRule) -> Option<Value> {
        match self.rule.of(path) {
            Some(FieldRule::Log) => self.inside(path, value, FieldRule::Log),
            Some(FieldRule::Hash) => Some(self.leaf(Value::from(hash(value)))),
            Some(FieldRule::Omit) => None,
            None if is_secret(path.strip_suffix(name).unwrap_or_default(), name) => None,
            None => self.inside(path, value, inherited),
        }
    }

    /// Lists and objects are gone through, so that the rules and names inside them count.
    fn inside(&mut self, path: &str, value: &Value, rule: FieldRule) -> Option<Value> {
        match value {
            Value::Object(members) => {
                let kept = self.members(members, path, rule);
                (!kept.is_empty() || members.is_empty() && rule != FieldRule::Omit).then_some(Value::Object(kept))
            }
            Value::Array(items) => {
                let kept = self.items(items, path, rule);
                (!kept.is_empty() || items.is_empty() && rule != FieldRule::Omit).then_some(Value::Array(kept))
            }
            _ => match rule {
                FieldRule::Log => Some(self.leaf(shortened(value, self.text_limit))),
                FieldRule::Hash => Some(self.leaf(Value::from(hash(value)))),
                FieldRule::Omit => None,
            },
        }
    }

    fn items(&mut self, items: &[Value], path: &str, rule: FieldRule) -> Vec<Value> {
        let mut kept = Vec::new();
        for (position, item) in items.iter().enumerate() {
            self.take(1);
            if self.room == 0 {
                kept.push(Value::from(format!("[{} more left out]", items.len() - position)));
                break;
            }
            kept.extend(self.inside(path, item, rule));
        }
        kept
    }

    fn leaf(&mut self, value: Value) -> Value {
        self.take(value.as_str().map_or(8, str::len));
        value
    }

    fn take(&mut self, bytes: usize) {
        self.room = self.room.saturating_sub(bytes);
    }
}

fn shortened(value: &Value, limit: usize) -> Value {
    match value {
        Value::String(text) if text.len() > limit => {
            Value::from(format!("[text of {} bytes, {}]", text.len(), hash(value)))
        }
        _ => value.clone(),
    }
}

/// The same for the same value, whatever its spelling.
fn hash(value: &Value) -> String {
    format!("sha256:{}", sha256(&to_canonical(value)).to_hex())
}
