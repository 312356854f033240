//! The arguments of a call as they may be hashed and shown: without secrets. Hidden is what the caller knows to be one,
//! what has the shape of one, and what stands under a name that looks like one's.
//!
//! Every call comes through here, and most have nothing to hide: they are looked at in place and not copied.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Number, Value};

use crate::canonical::to_canonical;
use crate::merkle::sha256;
use crate::secret_name::is_secret;
use crate::strict_json::exact_number;

mod shape;
mod spelling;

#[cfg(test)]
mod tests;

/// What stands in the place of a secret.
pub const REDACTED: &str = "[redacted]";

/// Shorter ones are not looked for by value: they would be found in ordinary words.
const SHORTEST_SECRET: usize = 6;

/// The SHA-256 of the canonical text of the arguments after redaction, in lower case hexadecimal.
///
/// Calls that differ only in a secret have the same hash, and calls that differ elsewhere have not.
pub fn arguments_hash(parameters: &Value, secrets: &[&[u8]]) -> String {
    sha256(&to_canonical(&redacted(parameters, secrets))).to_hex()
}

/// The arguments without secrets; redacting them once more changes nothing. A text that holds a secret is replaced as a
/// whole, so that nothing is told about where it stood or how long it was. A name that holds one is replaced together
/// with its value.
pub fn redacted<'a>(parameters: &'a Value, secrets: &[&[u8]]) -> Cow<'a, Value> {
    Redaction { secrets, by_looks: true }.value(parameters, "").map_or(Cow::Borrowed(parameters), Cow::Owned)
}

/// The arguments without these secrets, whatever they look like and wherever they stand. What only looks like a secret
/// stays: whether it is kept is for the tool's logging rule to say.
pub fn without<'a>(parameters: &'a Value, secrets: &[&[u8]]) -> Cow<'a, Value> {
    if secrets.is_empty() {
        return Cow::Borrowed(parameters);
    }
    Redaction { secrets, by_looks: false }.value(parameters, "").map_or(Cow::Borrowed(parameters), Cow::Owned)
}

struct Redaction<'a> {
    secrets: &'a [&'a [u8]],
    /// Whether what has the shape or the name of a secret is hidden too.
    by_looks: bool,
}

/// What becomes of a member that does not stay as it is.
enum Change {
    /// Its value is another one.
    Value(Value),
    /// Nothing of it is shown.
    Whole,
}

impl Redaction<'_> {
    /// What this value becomes; `None` where it stays. `name` is that of the nearest member around it.
    fn value(&self, value: &Value, name: &str) -> Option<Value> {
        match value {
            Value::String(text) => self.hides(text).then(marker),
            Value::Number(number) => self.hides_number(number).then(marker),
            Value::Array(items) => self.items(items, name).map(Value::Array),
            Value::Object(members) => self.members(members, name).map(Value::Object),
            Value::Null | Value::Bool(_) => None,
        }
    }

    fn items(&self, items: &[Value], name: &str) -> Option<Vec<Value>> {
        let change = |(position, item)| Some((position, self.value(item, name)?));
        let mut changes: BTreeMap<usize, Value> = items.iter().enumerate().filter_map(change).collect();
        if changes.is_empty() {
            return None;
        }
        let item = |(position, item): (usize, &Value)| changes.remove(&position).unwrap_or_else(|| item.clone());
        Some(items.iter().enumerate().map(item).collect())
    }

    fn members<'a>(&self, members: &'a Map<String, Value>, around: &str) -> Option<Map<String, Value>> {
        let change = |(name, value): (&'a String, &Value)| Some((name, self.member(name, value, around)?));
        let mut changes: BTreeMap<&String, Change> = members.iter().filter_map(change).collect();
        if changes.is_empty() {
            return None;
        }
        let member = |(name, value): (&String, &Value)| match changes.remove(name) {
            None => (name.clone(), value.clone()),
            Some(Change::Value(value)) => (name.clone(), value),
            Some(Change::Whole) => (REDACTED.to_owned(), marker()),
        };
        Some(members.iter().map(member).collect())
    }

    fn member(&self, name: &str, value: &Value, around: &str) -> Option<Change> {
        let is_redacted = value.as_str() == Some(REDACTED);
        if name == REDACTED {
            // Other members may get this name too; which of them comes last must not matter.
            return (!is_redacted).then_some(Change::Whole);
        }
        if self.hides(name) {
            return Some(Change::Whole);
        }
        if self.by_looks && is_secret(around, name) {
            return (!is_redacted).then(|| Change::Value(marker()));
        }
        self.value(value, name).map(Change::Value)
    }

    fn hides(&self, text: &str) -> bool {
        self.known().any(|secret| spelling::occurs(secret, text)) || (self.by_looks && shape::occurs(text))
    }

    fn hides_number(&self, number: &Number) -> bool {
        let is_number = |secret| std::str::from_utf8(secret).ok().and_then(exact_number);
        let is_same = |secret| to_canonical(&Value::Number(secret)) == to_canonical(&Value::Number(number.clone()));
        self.known().filter_map(is_number).any(is_same)
    }

    fn known(&self) -> impl Iterator<Item = &[u8]> {
        self.secrets.iter().copied().filter(|secret| secret.len() >= SHORTEST_SECRET)
    }
}

fn marker() -> Value {
    Value::from(REDACTED)
}
