//! Redaction of a parsed answer: after parsing, it no longer matters how the JSON spelled a string or a number.

use serde_json::{Map, Value};

use super::Redactor;
use super::pattern::Pattern;

impl Redactor {
    /// Replaces every form of every secret in all strings and names, and every number that spells a secret; answers
    /// whether there was any.
    pub fn redact_json(&self, value: &mut Value) -> bool {
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

    /// A secret of digits is found in whatever way the number is written: `1234`, `1234.0`, `1.234e3`.
    fn hides_number(&self, number: &serde_json::Number) -> bool {
        let value = number.as_f64();
        let spelled = |pattern: &Pattern| pattern.as_number().is_some_and(|secret| Some(secret) == value);
        self.patterns.iter().any(spelled) || self.hides(&number.to_string())
    }

    fn redact_names(&self, members: &mut Map<String, Value>) -> bool {
        if !members.keys().any(|name| self.hides(name)) {
            return false;
        }
        for (mut name, member) in std::mem::take(members) {
            self.redact_text(&mut name);
            members.insert(unused(name, members), member);
        }
        true
    }
}

/// Two names can become the same, and neither value may be lost.
fn unused(name: String, members: &Map<String, Value>) -> String {
    if !members.contains_key(&name) {
        return name;
    }
    (2_usize..).map(|count| format!("{name} {count}")).find(|name| !members.contains_key(name)).unwrap_or(name)
}
