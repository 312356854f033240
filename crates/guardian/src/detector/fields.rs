//! Which fields of a call's arguments are redacted: `body`, `address.street`, `items.*.note`, several with commas
//! between, or `*` for all of them.

use serde_json::Value;

use super::{Detectors, json, marker};

/// Some fields of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldSelector {
    /// Every field.
    All,
    /// Those on these paths.
    Paths(Vec<FieldPath>),
}

/// The way to a field, step by step. A name goes through a list to the members of its items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldPath(Vec<Step>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    /// Every member, or every item.
    Every,
    /// The member with this name, or the item with this number.
    Name(String),
}

/// Why a text selects no fields.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// There is nothing between two commas or two points.
    #[error("a name is missing in the fields `{0}`: write them as body,address.street,items.*.note or * for all")]
    Empty(String),
}

impl FieldPath {
    /// The name that it begins with, unless it begins everywhere.
    pub fn first_name(&self) -> Option<&str> {
        match self.0.first()? {
            Step::Name(name) => Some(name),
            Step::Every => None,
        }
    }
}

impl FieldSelector {
    /// Reads paths with commas between them, or `*`.
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

/// Redacts what stands below these fields; `None` where nothing changed. Without detectors the whole value of each field
/// becomes `[REDACTED]`. Names of members count as part of the field that they stand below.
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

/// What the value becomes when what these steps lead to is redacted. `name` is that of the nearest member around it.
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
