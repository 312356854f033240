//! What the log keeps of a call's parameters: by the tool's rule, field by field, and never more than a few kilobytes.

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

/// The maximum length of a text that is kept unchanged, in bytes.
const TEXT_LIMIT: usize = 256;
/// The maximum size of arguments that are kept in full, in bytes.
const INPUTS_LIMIT: usize = 64 * 1024;
/// The size of a summary above which the rest is omitted, in bytes.
const SUMMARY_LIMIT: usize = 4 * 1024;
/// The minimum share of a member, in bytes: enough for the length and the hash of a text.
const MIN_SHARE: usize = 128;
/// The member that counts omitted members.
const LEFT_OUT: &str = "_left_out";

/// Which parameters are kept, and how. A field whose name indicates a secret is omitted, at any depth, unless a rule
/// names the field itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoggingRule {
    /// For fields without their own rule.
    pub default: FieldRule,
    /// By path; lists are processed element by element.
    ///
    /// INVARIANT: none is below another one that hashes or omits.
    pub fields: BTreeMap<ParameterPath, FieldRule>,
    /// Whether the event of a call has its arguments in full, as far as the rules above allow.
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
    Omit,
}

impl LoggingRule {
    /// What may be kept of these parameters.
    pub fn summary(&self, parameters: &Map<String, Value>) -> Map<String, Value> {
        self.summary_of(parameters, &Value::Null)
    }

    /// The same for a tool with this schema: declared members come before all others.
    pub fn summary_of(&self, parameters: &Map<String, Value>, schema: &Value) -> Map<String, Value> {
        let writer = Writer { rule: self, declared: schema.get("properties"), text_limit: TEXT_LIMIT };
        writer.members(parameters, "", self.default, &mut Room::of(SUMMARY_LIMIT))
    }

    /// The arguments in the event of a call, if any.
    pub fn inputs(&self, parameters: &Map<String, Value>) -> Option<Value> {
        let writer = Writer { rule: self, declared: None, text_limit: INPUTS_LIMIT };
        self.inputs.then(|| Value::Object(writer.members(parameters, "", self.default, &mut Room::of(INPUTS_LIMIT))))
    }

    fn of(&self, path: &str) -> Option<FieldRule> {
        self.fields.iter().find(|(own, _)| own.as_str() == path).map(|(_, &rule)| rule)
    }
}

/// Writes a summary within a size limit. Each member has its own share of it: the value or name of one member cannot
/// displace the others.
struct Writer<'a> {
    rule: &'a LoggingRule,
    /// The tool's schema.
    declared: Option<&'a Value>,
    text_limit: usize,
}

/// The remaining and the used number of bytes.
struct Room {
    left: usize,
    taken: usize,
}

impl Room {
    fn of(bytes: usize) -> Self {
        Self { left: bytes, taken: 0 }
    }

    fn take(&mut self, bytes: usize) {
        self.left = self.left.saturating_sub(bytes);
        self.taken = self.taken.saturating_add(bytes);
    }

    /// The share of one of several remaining members; what it does not use is left to the others.
    fn share(&self, of: usize) -> Self {
        Self::of((self.left / of.max(1)).max(MIN_SHARE).min(self.left))
    }
}

impl Writer<'_> {
    fn members(
        &self,
        members: &Map<String, Value>,
        path: &str,
        inherited: FieldRule,
        room: &mut Room,
    ) -> Map<String, Value> {
        let mut order: Vec<(&String, &Value)> = members.iter().collect();
        // Small members first: they leave the unused part of their share to large ones.
        order.sort_by_cached_key(|(name, value)| (!self.is_declared(path, name), weight(name, value)));
        let mut kept = Map::new();
        for (position, (name, value)) in order.into_iter().enumerate() {
            if room.left == 0 {
                kept.insert(LEFT_OUT.to_owned(), Value::from(members.len() - position));
                break;
            }
            let mut share = room.share(members.len() - position);
            let shown = shown_name(name);
            share.take(shown.len());
            let path = if path.is_empty() { Cow::Borrowed(name) } else { Cow::Owned(format!("{path}.{name}")) };
            if let Some(value) = self.member(&path, name, value, inherited, &mut share) {
                kept.insert(shown.into_owned(), value);
            }
            room.take(share.taken);
        }
        // In the order of canonical JSON, in which the events of the call contain it.
        kept.sort_keys();
        kept
    }

    /// Whether the tool's schema, or its logging rule, names the member.
    fn is_declared(&self, path: &str, name: &str) -> bool {
        path.is_empty()
            && (self.declared.is_some_and(|declared| declared.get(name).is_some())
                || self.rule.fields.keys().any(|own| own.as_str().split('.').next() == Some(name)))
    }

    fn member(&self, path: &str, name: &str, value: &Value, inherited: FieldRule, room: &mut Room) -> Option<Value> {
        match self.rule.of(path) {
            Some(FieldRule::Log) => self.inside(path, value, FieldRule::Log, room),
            Some(FieldRule::Hash) => Some(leaf(Value::from(hash(value)), room)),
            Some(FieldRule::Omit) => None,
            None if is_secret(path.strip_suffix(name).unwrap_or_default(), name) => None,
            None => self.inside(path, value, inherited, room),
        }
    }

    /// Lists and objects are traversed, so that the rules and names inside them count.
    fn inside(&self, path: &str, value: &Value, rule: FieldRule, room: &mut Room) -> Option<Value> {
        match value {
            Value::Object(members) => {
                let kept = self.members(members, path, rule, room);
                (!kept.is_empty() || members.is_empty() && rule != FieldRule::Omit).then_some(Value::Object(kept))
            }
            Value::Array(items) => {
                let kept = self.items(items, path, rule, room);
                (!kept.is_empty() || items.is_empty() && rule != FieldRule::Omit).then_some(Value::Array(kept))
            }
            _ => match rule {
                FieldRule::Log => Some(leaf(shortened(value, self.text_limit.min(room.left)), room)),
                FieldRule::Hash => Some(leaf(Value::from(hash(value)), room)),
                FieldRule::Omit => None,
            },
        }
    }

    /// The first items of a list, each within its share.
    fn items(&self, items: &[Value], path: &str, rule: FieldRule, room: &mut Room) -> Vec<Value> {
        let mut kept = Vec::new();
        for (position, item) in items.iter().enumerate() {
            room.take(1);
            if room.left == 0 {
                kept.push(Value::from(format!("[{} more left out]", items.len() - position)));
                break;
            }
            let mut share = room.share(items.len() - position);
            kept.extend(self.inside(path, item, rule, &mut share));
            room.take(share.taken);
        }
        kept
    }
}

fn leaf(value: Value, room: &mut Room) -> Value {
    room.take(value.as_str().map_or(8, str::len));
    value
}

/// The approximate size of a member: only the order of small and large matters.
fn weight(name: &str, value: &Value) -> usize {
    name.len()
        + match value {
            Value::String(text) => text.len(),
            Value::Array(items) => SUMMARY_LIMIT + items.len(),
            Value::Object(members) => SUMMARY_LIMIT + members.len(),
            Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        }
}

/// The name of a member; one that is longer than any name in a tool is shown as its length and hash.
fn shown_name(name: &str) -> Cow<'_, str> {
    match name.len() > TEXT_LIMIT {
        true => Cow::Owned(format!("[name of {} bytes left out, {}]", name.len(), hash(&Value::from(name)))),
        false => Cow::Borrowed(name),
    }
}

/// A text that is too long is shown as its length and hash, unless it is no longer than those.
fn shortened(value: &Value, limit: usize) -> Value {
    match value {
        Value::String(text) if text.len() > limit.max(MIN_SHARE) => {
            Value::from(format!("[text of {} bytes, {}]", text.len(), hash(value)))
        }
        _ => value.clone(),
    }
}

/// The same for the same value, whatever its spelling.
fn hash(value: &Value) -> String {
    format!("sha256:{}", sha256(&to_canonical(value)).to_hex())
}
