//! Selects the fields of a call's arguments to redact: `body`, `address.street`, `items.*.note`, several separated by
//! commas, or `*` for all.

use serde_json::Value;

use super::{Detectors, json, marker};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldSelector {
    All,
    Paths(Vec<FieldPath>),
}

/// The path to a field, step by step. A name applied to a list selects the members of its items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldPath(Vec<Step>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    /// Every member, or every item.
    Every,
    /// The member with this name, or the item with this index.
    Name(String),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    #[error("empty name in the fields `{0}`; use a list such as body,address.street,items.*.note, or * for all")]
    Empty(String),
}

impl FieldPath {
    /// The first name of the path, unless it is a wildcard.
    pub fn first_name(&self) -> Option<&str> {
        match self.0.first()? {
            Step::Name(name) => Some(name),
            Step::Every => None,
        }
    }
}

impl FieldSelector {
    /// Parses comma-separated paths, or `*`.
    pub fn parse(text: &str) -> Result<Self, FieldError> {
        if text.trim() == "*" {
            return Ok(Self::All);
        }
        let path = |path: &str| path.trim().split('.').map(Step::parse).collect::<Option<_>>().map(FieldPath);
        let paths = text.split(',').map(path).collect::<Option<_>>();
        paths.map(Self::Paths).ok_or_else(|| FieldError::Empty(text.to_owned()))
    }
}

impl Step {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "" => None,
            "*" => Some(Self::Every),
            name => Some(Self::Name(name.to_owned())),
        }
    }

    fn fits(&self, name: &str) -> bool {
        match self {
            Self::Every => true,
            Self::Name(own) => own == name,
        }
    }
}

/// Redacts the values of these fields; `None` if nothing changed. Without detectors the whole value of each field
/// becomes `[REDACTED]`. Names of members count as part of the field that contains them.
pub fn redact_fields(value: &Value, fields: &FieldSelector, detectors: Option<&Detectors>) -> Option<Value> {
    match (fields, detectors) {
        (FieldSelector::All, Some(detectors)) => detectors.redact_json(value),
        (FieldSelector::All, None) if value.is_object() || value.is_array() => below(value, &[Step::Every], "", None),
        (FieldSelector::All, None) => whole(value),
        (FieldSelector::Paths(paths), detectors) => {
            let mut redacted = None;
            for FieldPath(steps) in paths {
                let current = redacted.as_ref().unwrap_or(value);
                redacted = below(current, steps, "", detectors).or(redacted);
            }
            redacted
        }
    }
}

/// The value with everything at these steps redacted. `name` is that of the nearest member around it.
fn below(value: &Value, steps: &[Step], name: &str, detectors: Option<&Detectors>) -> Option<Value> {
    let Some((step, rest)) = steps.split_first() else {
        let Some(detectors) = detectors else { return whole(value) };
        return json::redact(detectors, value, json::is_secret_name(detectors, name));
    };
    match value {
        Value::Object(members) => {
            let selected = members.iter().filter(|(name, _)| step.fits(name));
            let changes: Vec<_> =
                selected.filter_map(|(name, value)| Some((name, below(value, rest, name, detectors)?))).collect();
            let mut redacted = (!changes.is_empty()).then(|| members.clone())?;
            redacted.extend(changes.into_iter().map(|(name, value)| (name.clone(), value)));
            Some(Value::Object(redacted))
        }
        Value::Array(items) => {
            let change = |(number, item): (usize, &Value)| {
                if step.fits(&number.to_string()) {
                    return below(item, rest, name, detectors);
                }
                item.is_object().then(|| below(item, steps, name, detectors))?
            };
            let changes: Vec<_> = items.iter().enumerate().map(change).collect();
            let is_changed = changes.iter().any(Option::is_some);
            let items = changes.into_iter().zip(items).map(|(change, item)| change.unwrap_or_else(|| item.clone()));
            is_changed.then(|| items.collect())
        }
        _ => None,
    }
}

fn whole(value: &Value) -> Option<Value> {
    (value.as_str() != Some(marker::PLAIN)).then(|| Value::from(marker::PLAIN))
}
