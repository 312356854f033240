//! Where in a call's parameters a rule looks, and what it reports when the rule is broken.

use std::fmt;

use serde_json::Value;
use thiserror::Error;

use crate::text::{TextError, check_line};

/// A dotted path into the parameters (`metadata.test_mode`). Lists are looked into element by element.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ParameterPath(String);

/// A parameter that breaks a rule of the grant.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("parameter `{path}` {reason}")]
pub struct Violation {
    /// The rule's path.
    pub path: ParameterPath,
    /// Which rule, in words that let the caller correct itself. Never the value that was sent.
    pub reason: String,
}

impl ParameterPath {
    /// Checks and wraps the path.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        check_line(text, 256)?;
        if text.split('.').any(str::is_empty) {
            return Err(TextError::Character { found: '.', allowed: "write names joined by single dots" });
        }
        Ok(Self(text.to_owned()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Every value in the parameters that this path can mean. A name that itself contains dots is found too, so that
    /// `{"a.b": 1}` does not slip past a rule on `a.b` which a service would apply to `{"a": {"b": 1}}`.
    pub(super) fn values_in<'a>(&self, parameters: &'a Value) -> Vec<&'a Value> {
        let mut found = Vec::new();
        collect(parameters, &self.0, &mut found);
        found
    }
}

fn collect<'a>(value: &'a Value, rest: &str, found: &mut Vec<&'a Value>) {
    match value {
        Value::Array(elements) => elements.iter().for_each(|element| collect(element, rest, found)),
        Value::Object(members) => {
            if let Some(member) = members.get(rest) {
                found.push(member);
            }
            for (position, _) in rest.match_indices('.') {
                let (Some(name), Some(below)) = (rest.get(..position), rest.get(position + 1..)) else { continue };
                if let Some(member) = members.get(name) {
                    collect(member, below, found);
                }
            }
        }
        _ => {}
    }
}

impl fmt::Display for ParameterPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}
