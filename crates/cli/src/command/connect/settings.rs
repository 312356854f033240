//! Adds the hook to the settings of a client, and removes it. Works on the text of the file, so that the rest is not changed.

use serde_json::Value;
use thiserror::Error;
use toolgate_model::strict_json::{self, StrictJsonError};

use super::json_text::{JsonText, Step};
use super::wiring::Wiring;

#[derive(Debug, Error)]
pub enum SettingsError {
    #[error("it is not strict JSON ({0}); correct it, or add the hook manually")]
    Json(#[from] StrictJsonError),
    #[error("`{0}` does not have the format of the client; correct it")]
    Shape(String),
}

/// The settings with the hook exactly once; unchanged if that is the case.
pub fn connected(text: &str, wiring: &Wiring) -> Result<String, SettingsError> {
    let blank = text.trim().is_empty();
    let settings = if blank { Value::Object(serde_json::Map::new()) } else { checked(text)? };
    let entries = wiring.entries();
    let own = own_entries(&settings, wiring)?;
    let stands = |(event, entry): &(&str, Value)| {
        let listed = settings.pointer(&format!("/hooks/{event}")).and_then(Value::as_array);
        listed.is_some_and(|listed| listed.contains(entry))
    };
    if own.len() == entries.len() && entries.iter().all(stands) {
        return Ok(text.to_owned());
    }
    let mut text = if blank { "{}\n".to_owned() } else { text.to_owned() };
    while let Some(shorter) = without_one(&text, wiring)? {
        text = shorter.unwrap_or_else(|| "{}\n".to_owned());
    }
    if let Some(version) = wiring.version()
        && checked(&text)?.get("version").is_none()
    {
        text = inserted(&text, &[], Some("version"), &Value::from(version))?;
    }
    for (event, entry) in entries {
        text = with_entry(&text, event, &entry)?;
    }
    Ok(text)
}

/// The settings without the hook; `None` if nothing else is left.
pub fn disconnected(text: &str, wiring: &Wiring) -> Result<Option<String>, SettingsError> {
    let mut text = text.to_owned();
    if text.trim().is_empty() {
        return Ok(Some(text));
    }
    checked(&text)?;
    while let Some(shorter) = without_one(&text, wiring)? {
        let Some(shorter) = shorter else { return Ok(None) };
        text = shorter;
    }
    Ok(Some(text))
}

pub fn checked(text: &str) -> Result<Value, SettingsError> {
    let settings = strict_json::parse(text.as_bytes())?;
    if settings.is_object() { Ok(settings) } else { Err(SettingsError::Shape("the document".to_owned())) }
}

/// Appends an entry to the list of an event, creating missing containers.
fn with_entry(text: &str, event: &str, entry: &Value) -> Result<String, SettingsError> {
    let settings = checked(text)?;
    let list = Value::Array(vec![entry.clone()]);
    let hooks = member("hooks");
    match settings.get("hooks") {
        None => {
            let events = Value::Object([(event.to_owned(), list)].into_iter().collect());
            inserted(text, &[], Some("hooks"), &events)
        }
        Some(Value::Object(events)) => match events.get(event) {
            None => inserted(text, &[hooks], Some(event), &list),
            Some(Value::Array(_)) => inserted(text, &[hooks, member(event)], None, entry),
            Some(_) => Err(SettingsError::Shape(format!("hooks.{event}"))),
        },
        Some(_) => Err(SettingsError::Shape("hooks".to_owned())),
    }
}

/// Removes the first entry of Toolgate: `Some(None)` if nothing is left, `None` if there is no such entry.
fn without_one(text: &str, wiring: &Wiring) -> Result<Option<Option<String>>, SettingsError> {
    let settings = checked(text)?;
    let Some(mut path) = own_entries(&settings, wiring)?.into_iter().next() else { return Ok(None) };
    // Containers that become empty are removed too: the handlers of a group, the group, the event, the hooks.
    while alone(&settings, &path) {
        path.pop();
        if path.len() == 4 {
            path.pop();
        }
    }
    let needed = |name: &str| name != "hooks" && (name != "version" || wiring.version().is_none());
    if path.len() == 1 && !settings.as_object().into_iter().flatten().any(|(name, _)| needed(name)) {
        return Ok(Some(None));
    }
    let shorter = JsonText::parse(text).and_then(|text| text.remove(&path));
    shorter.map(|shorter| Some(Some(shorter))).ok_or_else(|| SettingsError::Shape("hooks".to_owned()))
}

/// Whether the value at this path is the only one in its container, other than the document.
fn alone(settings: &Value, path: &[Step]) -> bool {
    let Some((_, parents)) = path.split_last().filter(|(_, parents)| !parents.is_empty()) else { return false };
    let parent = parents.iter().try_fold(settings, |value, step| match step {
        Step::Member(name) => value.get(name),
        Step::Item(place) => value.get(place),
    });
    match parent {
        Some(Value::Array(items)) => items.len() == 1,
        Some(Value::Object(members)) => members.len() == 1,
        _ => false,
    }
}

/// The paths of the handlers of Toolgate, in all events.
fn own_entries(settings: &Value, wiring: &Wiring) -> Result<Vec<Vec<Step>>, SettingsError> {
    let mut found = Vec::new();
    let is_own =
        |handler: &Value| handler.get("command").and_then(Value::as_str).is_some_and(|text| wiring.is_own(text));
    let events = match settings.get("hooks") {
        None => return Ok(found),
        Some(Value::Object(events)) => events,
        Some(_) => return Err(SettingsError::Shape("hooks".to_owned())),
    };
    for (event, entries) in events {
        for (place, entry) in entries.as_array().into_iter().flatten().enumerate() {
            let path = vec![member("hooks"), member(event), Step::Item(place)];
            if !wiring.grouped() {
                found.extend(is_own(entry).then_some(path));
                continue;
            }
            for (place, handler) in entry.get("hooks").and_then(Value::as_array).into_iter().flatten().enumerate() {
                if is_own(handler) {
                    found.push([path.clone(), vec![member("hooks"), Step::Item(place)]].concat());
                }
            }
        }
    }
    Ok(found)
}

fn inserted(text: &str, path: &[Step], name: Option<&str>, value: &Value) -> Result<String, SettingsError> {
    let longer = JsonText::parse(text).and_then(|text| text.insert(path, name, value));
    longer.ok_or_else(|| SettingsError::Shape("hooks".to_owned()))
}

fn member(name: &str) -> Step {
    Step::Member(name.to_owned())
}
