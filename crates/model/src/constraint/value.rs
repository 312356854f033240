//! Comparison of JSON values in rules: by their canonical text, in which `1` and `1.0` are equal.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::canonical::to_canonical;
use crate::strict_json;

/// A value as its canonical text.
pub(super) type ValueText = Vec<u8>;

pub(super) fn value_text(value: &Value) -> ValueText {
    to_canonical(value)
}

/// Parses a text.
///
/// INVARIANT: the texts were written by this module from valid JSON.
pub(super) fn read_text(text: &ValueText) -> Value {
    strict_json::parse(text).unwrap_or(Value::Null)
}

/// Denied values. Numbers that are equal to a service that reads doubles are equal here, so that none passes in place
/// of another; they are kept as given.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct DeniedValues {
    given: BTreeSet<ValueText>,
    rounded: BTreeSet<ValueText>,
}

impl DeniedValues {
    pub(super) fn of<'a>(values: impl IntoIterator<Item = &'a Value>) -> Self {
        values.into_iter().fold(Self::default(), |mut denied, value| {
            denied.given.insert(value_text(value));
            denied.rounded.insert(rounded_text(value));
            denied
        })
    }

    pub(super) fn contains(&self, value: &Value) -> bool {
        !self.rounded.is_empty() && self.rounded.contains(&rounded_text(value))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.given.is_empty()
    }

    /// Whether the others deny everything that these deny.
    pub(super) fn is_within(&self, others: &Self) -> bool {
        self.rounded.is_subset(&others.rounded)
    }

    pub(super) fn union(&self, others: &Self) -> Self {
        Self {
            given: self.given.union(&others.given).cloned().collect(),
            rounded: self.rounded.union(&others.rounded).cloned().collect(),
        }
    }

    pub(super) fn to_json(&self) -> Value {
        self.given.iter().map(read_text).collect()
    }
}

fn rounded_text(value: &Value) -> ValueText {
    to_canonical(&rounded(value))
}

/// The value as a reader of doubles sees it.
fn rounded(value: &Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().map_or_else(|| value.clone(), Value::from),
        Value::Array(items) => items.iter().map(rounded).collect(),
        Value::Object(members) => members.iter().map(|(name, value)| (name.clone(), rounded(value))).collect(),
        Value::Null | Value::Bool(_) | Value::String(_) => value.clone(),
    }
}
