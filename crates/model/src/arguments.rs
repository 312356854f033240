//! The arguments of a call without secrets, as they may be hashed and shown. Redacts known secrets wherever and in
//! whatever form they occur, values with the format of a secret, and values whose name indicates one.
//!
//! Every call passes through here, and most have nothing to redact: they are scanned in place and not copied.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::canonical::to_canonical;
use crate::merkle::sha256;
use crate::redaction::Redactor;
use crate::secret_name::is_secret;

pub(crate) mod shape;

#[cfg(test)]
mod tests;

/// The replacement for a secret.
pub const REDACTED: &str = "[redacted]";

/// Shorter secrets are not searched for by value: they would occur in ordinary words.
pub(crate) const MIN_SECRET: usize = 6;

/// The arguments of a call as they may be recorded, without the secrets of the call. Canonical text, redacted form and
/// hash are computed once.
pub struct Arguments<'a> {
    shown: Cow<'a, Value>,
    canonical: Vec<u8>,
    redacted: Option<Value>,
}

impl<'a> Arguments<'a> {
    /// INVARIANT: no secret of the call occurs in `shown`.
    pub fn new(shown: Cow<'a, Value>) -> Self {
        Self { canonical: to_canonical(&shown), redacted: value(&shown, ""), shown }
    }

    pub fn shown(&self) -> &Value {
        &self.shown
    }

    pub fn canonical(&self) -> &[u8] {
        &self.canonical
    }

    /// Also without values that only look like a secret.
    pub fn redacted(&self) -> &Value {
        self.redacted.as_ref().unwrap_or(&self.shown)
    }

    /// The SHA-256 of the canonical text after redaction, in lower case hexadecimal.
    ///
    /// Calls that differ only in a secret have the same hash; calls that differ elsewhere do not.
    pub fn hash(&self) -> String {
        match &self.redacted {
            Some(redacted) => sha256(&to_canonical(redacted)).to_hex(),
            None => sha256(&self.canonical).to_hex(),
        }
    }
}

/// [`Arguments::hash`] of arguments in which these secrets may occur.
pub fn arguments_hash(parameters: &Value, secrets: &[&[u8]]) -> String {
    Arguments::new(without(parameters, secrets)).hash()
}

/// The arguments without secrets; redacting them again changes nothing. Of a known secret only the occurrence is
/// replaced, so that nobody can hide a text by adding one. A string with the format of a secret is replaced as a whole,
/// and a name with that format together with its value.
pub fn redacted<'a>(parameters: &'a Value, secrets: &[&[u8]]) -> Cow<'a, Value> {
    let known = without(parameters, secrets);
    match value(&known, "") {
        Some(redacted) => Cow::Owned(redacted),
        None => known,
    }
}

/// The arguments without these secrets, whatever they look like and wherever they occur. Values that only look like a
/// secret are kept: the tool's logging rule decides about them.
pub fn without<'a>(parameters: &'a Value, secrets: &[&[u8]]) -> Cow<'a, Value> {
    let long_enough = |secret: &&&[u8]| secret.len() >= MIN_SECRET;
    let mut known = secrets.iter().filter(long_enough).filter_map(|secret| std::str::from_utf8(secret).ok()).peekable();
    if known.peek().is_none() {
        return Cow::Borrowed(parameters);
    }
    Redactor::of(known).arguments(parameters)
}

/// The change of a member.
enum Change {
    Value(Value),
    /// Name and value are redacted.
    Whole,
}

/// The redacted value; `None` if it is unchanged. `name` is that of the nearest member around it.
fn value(value: &Value, name: &str) -> Option<Value> {
    match value {
        Value::String(text) => shape::occurs(text).then(marker),
        Value::Array(list) => items(list, name).map(Value::Array),
        Value::Object(object) => members(object, name).map(Value::Object),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

fn items(items: &[Value], name: &str) -> Option<Vec<Value>> {
    let change = |(position, item)| Some((position, value(item, name)?));
    let mut changes: BTreeMap<usize, Value> = items.iter().enumerate().filter_map(change).collect();
    if changes.is_empty() {
        return None;
    }
    let item = |(position, item): (usize, &Value)| changes.remove(&position).unwrap_or_else(|| item.clone());
    Some(items.iter().enumerate().map(item).collect())
}

fn members<'a>(members: &'a Map<String, Value>, around: &str) -> Option<Map<String, Value>> {
    let change = |(name, value): (&'a String, &Value)| Some((name, member(name, value, around)?));
    let mut changes: BTreeMap<&String, Change> = members.iter().filter_map(change).collect();
    if changes.is_empty() {
        return None;
    }
    // Names and values are hidden, and neither may reveal which of several it was. A member that really has this name
    // keeps its value.
    let mut numbers = 2_usize..;
    let mut changed = Map::new();
    for (name, value) in members {
        match changes.remove(name) {
            None => changed.insert(name.clone(), value.clone()),
            Some(Change::Value(value)) => changed.insert(name.clone(), value),
            Some(Change::Whole) => {
                let numbered = numbers.by_ref().map(|number| format!("{REDACTED} {number}"));
                let mut names = std::iter::once(REDACTED.to_owned()).chain(numbered);
                let is_free = |name: &String| !members.contains_key(name) && !changed.contains_key(name);
                names.find(is_free).and_then(|name| changed.insert(name, marker()))
            }
        };
    }
    Some(changed)
}

fn member(name: &str, member: &Value, around: &str) -> Option<Change> {
    if shape::occurs(name) {
        return Some(Change::Whole);
    }
    if is_secret(around, name) {
        return (member.as_str() != Some(REDACTED)).then(|| Change::Value(marker()));
    }
    value(member, name).map(Change::Value)
}

fn marker() -> Value {
    Value::from(REDACTED)
}
