//! The path of a rule in a call's parameters, and its violations.

use std::cell::LazyCell;
use std::fmt;

use serde_json::Value;
use thiserror::Error;

use crate::parameter_name::FoldedName;
use crate::schema::Declared;
use crate::text::{TextError, check_line};

/// A dotted path into the parameters (`metadata.test_mode`). Lists are searched element by element.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ParameterPath(String);

/// A parameter that violates a rule of the grant.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("parameter `{path}` {reason}")]
pub struct Violation {
    pub path: ParameterPath,
    /// The violated rule, in words that let the caller fix the call. Never the value that was sent.
    pub reason: String,
}

impl ParameterPath {
    pub fn parse(text: &str) -> Result<Self, TextError> {
        check_line(text, 256)?;
        if text.split('.').any(str::is_empty) {
            return Err(TextError::Character { found: '.', allowed: "names must be joined by single dots" });
        }
        Ok(Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Every value in the parameters that this path can refer to, with its declaration in the tool's schema. A name
    /// that itself contains dots is found too, so that `{"a.b": 1}` does not bypass a rule on `a.b` which a service
    /// would apply to `{"a": {"b": 1}}`. Any other spelling is a violation, unless the schema declares a parameter of
    /// exactly that name.
    pub(super) fn values_in<'a>(
        &self,
        parameters: &'a Value,
        declared: &Declared<'a>,
    ) -> Result<Vec<(&'a Value, Declared<'a>)>, Violation> {
        let mut found = Vec::new();
        match collect(parameters, &self.0, declared, &mut found) {
            Ok(()) => Ok(found),
            Err(OtherSpelling) => {
                let reason = "is present under another spelling of its name, which the service may treat as this one; \
                              use exactly this name";
                Err(Violation { path: self.clone(), reason: reason.to_owned() })
            }
        }
    }
}

/// A parameter has a name that a service may read as that of a rule.
struct OtherSpelling;

fn collect<'a>(
    value: &'a Value,
    rest: &str,
    declared: &Declared<'a>,
    found: &mut Vec<(&'a Value, Declared<'a>)>,
) -> Result<(), OtherSpelling> {
    match value {
        Value::Array(elements) => {
            let declared = declared.items();
            elements.iter().try_for_each(|element| collect(element, rest, &declared, found))
        }
        Value::Object(members) => {
            let path = LazyCell::new(|| FoldedName::of(rest));
            // The declaration matters only for a list.
            let declared_of = |name: &str, member: &Value| match member {
                Value::Array(_) => declared.member(name),
                _ => Declared::by(None),
            };
            members.iter().try_for_each(|(name, member)| {
                let below = rest.strip_prefix(name.as_str());
                match below.map(|below| (below, below.strip_prefix('.'))) {
                    Some(("", _)) => found.push((member, declared_of(name, member))),
                    Some((_, Some(below))) => collect(member, below, &declared.member(name), found)?,
                    _ if is_brackets_for(name, rest) && declared.has(name) => {
                        found.push((member, declared_of(name, member)))
                    }
                    _ if !declared.has(name) && FoldedName::of(name).may_be(&path) => return Err(OtherSpelling),
                    _ => {}
                }
                Ok(())
            })
        }
        _ => Ok(()),
    }
}

/// Whether this name spells the path in brackets: `filter[status]` for `filter.status`, `ids[]` for `ids`.
fn is_brackets_for(name: &str, path: &str) -> bool {
    name.contains('[') && name.replace("[]", "").replace('[', ".").replace(']', "") == path
}

impl fmt::Display for ParameterPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}
