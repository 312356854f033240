//! Redaction of parsed JSON: after parsing, the spelling of strings and numbers no longer matters.

use std::collections::{HashMap, HashSet};
use std::fmt::{self, Write};

use serde_json::{Map, Value};

use super::Search;
use crate::arguments::MIN_SECRET;

impl Search<'_> {
    pub(super) fn redact_json(&self, value: &mut Value) -> bool {
        match value {
            Value::Null | Value::Bool(_) => false,
            Value::Number(number) => {
                let found = self.hides_number(number);
                if found {
                    *value = Value::String(self.marker.to_owned());
                }
                found
            }
            Value::String(text) => self.redact_text(text),
            Value::Array(items) => items.iter_mut().fold(false, |found, item| self.redact_json(item) | found),
            Value::Object(members) => {
                let found = members.values_mut().fold(false, |found, member| self.redact_json(member) | found);
                self.redact_names(members) | found
            }
        }
    }

    pub(super) fn occurs_in(&self, value: &Value) -> bool {
        match value {
            Value::Null | Value::Bool(_) => false,
            Value::Number(number) => self.hides_number(number),
            Value::String(text) => self.hides(text),
            Value::Array(items) => items.iter().any(|item| self.occurs_in(item)),
            Value::Object(members) => members.iter().any(|(name, member)| self.hides(name) || self.occurs_in(member)),
        }
    }

    /// A secret of digits is found in any notation of the number: `1234`, `1234.0`, `1.234e3`.
    fn hides_number(&self, number: &serde_json::Number) -> bool {
        let mut text = NumberText::default();
        // Writing cannot fail: a number of 64 bits is shorter.
        let _ = write!(text, "{number}");
        let text = text.as_bytes();
        if self.in_arguments && text.len() < MIN_SECRET {
            return false;
        }
        let value = number.as_f64();
        let is_spelled = self.secrets.numbers(self.in_arguments).any(|secret| Some(secret) == value);
        is_spelled || !self.occurrences(text).is_empty()
    }

    fn redact_names(&self, members: &mut Map<String, Value>) -> bool {
        if !members.keys().any(|name| self.hides(name)) {
            return false;
        }
        // How often each name occurred, so that many equal ones are not counted repeatedly.
        let mut given: HashMap<String, usize> = HashMap::new();
        let all = std::mem::take(members);
        let kept: HashSet<String> = all.keys().filter(|name| !self.hides(name)).cloned().collect();
        for (mut name, member) in all {
            if self.redact_text(&mut name) {
                let count = given.entry(name.clone()).or_insert(1);
                name = unused(name, count, |name| kept.contains(name) || members.contains_key(name));
            }
            members.insert(name, member);
        }
        true
    }
}

/// The text of a number, which is written for each number of a response.
#[derive(Default)]
struct NumberText {
    bytes: [u8; 32],
    length: usize,
}

impl NumberText {
    fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

impl Write for NumberText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length + text.len();
        self.bytes.get_mut(self.length..end).ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

/// Two names can become equal, and neither value may be lost.
fn unused(name: String, count: &mut usize, is_taken: impl Fn(&str) -> bool) -> String {
    let mut free = name.clone();
    while is_taken(&free) {
        *count += 1;
        free = format!("{name} {count}");
    }
    free
}
