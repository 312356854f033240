//! The two kinds of rule on one parameter: what it must match, and what it must not match.

use std::collections::BTreeSet;

use serde_json::Value;

use super::number::Number;
use super::parameter::{ParameterPath, Violation};
use super::pattern::Pattern;
use super::value::{DeniedValues, ValueText, read_text, value_text};
use crate::schema::Declared;

/// What a parameter must match if it is present. All criteria must hold.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ParameterRule {
    pub(super) values: Option<BTreeSet<ValueText>>,
    pub(super) min: Option<Number>,
    pub(super) max: Option<Number>,
    pub(super) patterns: BTreeSet<Pattern>,
    pub(super) required: bool,
}

/// What a parameter must not match. Any match is a refusal.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Denial {
    pub(super) any: bool,
    pub(super) values: DeniedValues,
    pub(super) patterns: BTreeSet<Pattern>,
}

impl ParameterRule {
    /// Checks every value at the path. A list is checked as a whole, or element by element if the schema declares a
    /// list: a service that expects one value might add several up, or choose any of them.
    pub(super) fn check(
        &self,
        path: &ParameterPath,
        parameters: &Value,
        declared: &Declared<'_>,
    ) -> Result<(), Violation> {
        let found = path.values_in(parameters, declared)?;
        let broken = if self.required && found.is_empty() {
            Some("is required by the grant".to_owned())
        } else {
            found.into_iter().find_map(|(value, declared)| self.broken_by(value, &declared))
        };
        broken.map_or(Ok(()), |reason| Err(Violation { path: path.clone(), reason }))
    }

    fn broken_by(&self, value: &Value, declared: &Declared<'_>) -> Option<String> {
        let broken = self.broken_by_one(value)?;
        match value {
            Value::Array(elements) if declared.is_list() => {
                let declared = declared.items();
                elements.iter().find_map(|element| self.broken_by(element, &declared))
            }
            Value::Array(_) => Some(format!("{broken}; a list is accepted only if the tool's schema declares one")),
            _ => Some(broken),
        }
    }

    /// Treats every given list as declared: the tools of a grant are not known when it is created.
    fn broken_by_every(&self, value: &Value) -> Option<String> {
        let broken = self.broken_by_one(value)?;
        match value {
            Value::Array(elements) => elements.iter().find_map(|element| self.broken_by_every(element)),
            _ => Some(broken),
        }
    }

    fn broken_by_one(&self, value: &Value) -> Option<String> {
        if let Some(values) = &self.values
            && !values.contains(&value_text(value))
        {
            return Some(format!("must be one of {}", shown(values)));
        }
        let number = Number::from_json(value);
        if let Some(max) = self.max
            && number.is_none_or(|number| number > max)
        {
            return Some(format!("must be a number of at most {max}"));
        }
        if let Some(min) = self.min
            && number.is_none_or(|number| number < min)
        {
            return Some(format!("must be a number of at least {min}"));
        }
        let text = value.as_str();
        let unmatched = self.patterns.iter().find(|pattern| !text.is_some_and(|text| pattern.matches(text)))?;
        Some(format!("must be a string that matches {}", unmatched.text()))
    }

    pub(super) fn widening(&self, source: &Self) -> Option<String> {
        if let (Some(own), Some(values)) = (&self.values, &source.values)
            && let Some(outside) = own.difference(values).next()
        {
            return Some(format!("allows {}, which the source grant does not", String::from_utf8_lossy(outside)));
        }
        // With a list of values, each value that the rule itself allows must satisfy the source. Bounds and patterns
        // that the list leaves open are inherited.
        if let Some(own) = &self.values {
            let without_values = |rule: &Self| Self { values: None, ..rule.clone() };
            let (own_rest, source_rest) = (without_values(self), without_values(source));
            let admitted = own.iter().map(|text| (text, read_text(text)));
            for (text, value) in admitted.filter(|(_, value)| own_rest.broken_by_every(value).is_none()) {
                if let Some(reason) = source_rest.broken_by_every(&value) {
                    let shown = String::from_utf8_lossy(text);
                    return Some(format!("allows {shown}, which {reason} by the source grant"));
                }
            }
        }
        if let (Some(own), Some(max)) = (self.max, source.max)
            && own > max
        {
            return Some(format!("has the maximum {own}; the source grant allows at most {max}"));
        }
        if let (Some(own), Some(min)) = (self.min, source.min)
            && own < min
        {
            return Some(format!("has the minimum {own}; the source grant requires at least {min}"));
        }
        if !self.patterns.is_empty()
            && let Some(missing) = source.patterns.difference(&self.patterns).next()
        {
            return Some(format!("must repeat the pattern {} of the source grant; all patterns apply", missing.text()));
        }
        None
    }

    pub(super) fn meet(&self, other: &Self) -> Self {
        Self {
            values: match (&self.values, &other.values) {
                (Some(left), Some(right)) => Some(left.intersection(right).cloned().collect()),
                (one, another) => one.clone().or_else(|| another.clone()),
            },
            min: self.min.max(other.min),
            max: super::smaller(self.max, other.max),
            patterns: self.patterns.union(&other.patterns).cloned().collect(),
            required: self.required || other.required,
        }
    }
}

impl Denial {
    pub(super) fn check(
        &self,
        path: &ParameterPath,
        parameters: &Value,
        declared: &Declared<'_>,
    ) -> Result<(), Violation> {
        let fits = path.values_in(parameters, declared)?.into_iter().any(|(value, _)| self.fits(value));
        if !fits {
            return Ok(());
        }
        let reason = if self.any { "must be absent" } else { "has a value that the grant denies" };
        Err(Violation { path: path.clone(), reason: reason.to_owned() })
    }

    fn fits(&self, value: &Value) -> bool {
        self.any
            || self.values.contains(value)
            || value.as_str().is_some_and(|text| self.patterns.iter().any(|pattern| pattern.matches(text)))
            || value.as_array().is_some_and(|elements| elements.iter().any(|element| self.fits(element)))
    }

    pub(super) fn widening(&self, source: &Self) -> Option<String> {
        if self.any {
            return None;
        }
        let drops = source.any || !source.values.is_within(&self.values) || !source.patterns.is_subset(&self.patterns);
        drops.then(|| "denies less than the source grant; repeat what it denies, or omit the parameter".to_owned())
    }

    /// What either denies.
    pub(super) fn join(&self, other: &Self) -> Self {
        Self {
            any: self.any || other.any,
            values: self.values.union(&other.values),
            patterns: self.patterns.union(&other.patterns).cloned().collect(),
        }
    }
}

fn shown(values: &BTreeSet<ValueText>) -> String {
    let texts: Vec<_> = values.iter().take(20).map(|text| String::from_utf8_lossy(text)).collect();
    let more = if values.len() > texts.len() { ", ..." } else { "" };
    format!("{}{more}", texts.join(", "))
}
