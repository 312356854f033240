//! Detectors over a JSON value: its strings, numbers and member names. A value without a match is not copied.

use std::collections::HashSet;

use serde_json::{Map, Number, Value};

use super::{DetectorKind, Detectors, marker, secret};

/// The redacted value; `None` if it is unchanged. `is_secret` means that the surrounding name is that of a secret.
pub(super) fn redact(detectors: &Detectors, value: &Value, is_secret: bool) -> Option<Value> {
    match value {
        Value::Null | Value::Bool(_) => None,
        Value::Number(number) => detectors.redact(&digits_of(number)).map(Value::String),
        Value::String(text) => {
            let redacted = detectors.redact(text);
            // The part that was redacted may have been all that did not look random.
            let texts = [Some(text), redacted.as_ref()];
            let is_secret = is_secret && texts.into_iter().flatten().any(|text| secret::is_value(text));
            let redacted = if is_secret { Some(DetectorKind::Secret.marker().to_owned()) } else { redacted };
            redacted.map(Value::String)
        }
        Value::Array(items) => {
            let redacted: Vec<_> = items.iter().map(|item| redact(detectors, item, is_secret)).collect();
            let is_changed = redacted.iter().any(Option::is_some);
            let items =
                redacted.into_iter().zip(items).map(|(redacted, item)| redacted.unwrap_or_else(|| item.clone()));
            is_changed.then(|| items.collect())
        }
        Value::Object(members) => redact_members(detectors, members),
    }
}

/// Whether secrets are looked for, and this is the name of one.
pub(super) fn is_secret_name(detectors: &Detectors, name: &str) -> bool {
    detectors.look_for_secrets() && secret::is_name(&marker::replaced(name, " "))
}

fn redact_members(detectors: &Detectors, members: &Map<String, Value>) -> Option<Value> {
    let names: Vec<_> = members.keys().map(|name| detectors.redact(name)).collect();
    // The redacted name counts too, or a second pass over the output would find more.
    let value_of = |(redacted, (name, value)): (&Option<String>, (&String, &Value))| {
        let names = [Some(name), redacted.as_ref()];
        redact(detectors, value, names.into_iter().flatten().any(|name| is_secret_name(detectors, name)))
    };
    let values: Vec<_> = names.iter().zip(members).map(value_of).collect();
    if names.iter().all(Option::is_none) && values.iter().all(Option::is_none) {
        return None;
    }
    let kept = members.keys().zip(&names).filter(|(_, redacted)| redacted.is_none());
    let mut taken: HashSet<String> = kept.map(|(name, _)| name.clone()).collect();
    let mut numbers = 2..;
    let mut redacted = Map::new();
    for ((name, value), (new_name, new_value)) in members.iter().zip(names.into_iter().zip(values)) {
        // Two names that become equal must not lose a member.
        let name = new_name.map_or_else(
            || name.clone(),
            |name| {
                let mut names = std::iter::once(name).chain(numbers.by_ref().map(marker::numbered));
                names.find(|name| taken.insert(name.clone())).unwrap_or_default()
            },
        );
        redacted.insert(name, new_value.unwrap_or_else(|| value.clone()));
    }
    Some(Value::Object(redacted))
}

/// The number as a person would write it: an integer without a point, whatever its type.
fn digits_of(number: &Number) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 1e20 => format!("{float:.0}"),
        _ => number.to_string(),
    }
}
