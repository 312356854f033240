//! Reads the JSON of a definition member by member: unknown members are rejected by their path, `null` is not set.

use std::time::Duration;

use serde_json::{Map, Value};

use super::DefinitionError;
use crate::text::{TextError, check_line};

/// The maximum length of a description, in bytes.
const DESCRIPTION_LIMIT: usize = 8 * 1024;
/// The minimum and maximum timeout of a call, in milliseconds.
const TIMEOUT: std::ops::RangeInclusive<u64> = 1_000..=120_000;

/// The members of one object, with its path.
pub(crate) struct Fields<'a> {
    path: String,
    members: &'a Map<String, Value>,
}

impl<'a> Fields<'a> {
    /// The members of an object with no others than `known`.
    pub(crate) fn of(value: &'a Value, path: &str, known: &[&str]) -> Result<Self, DefinitionError> {
        let fields = Self { path: path.to_owned(), members: object(value, path)? };
        match fields.members.keys().find(|name| !known.contains(&name.as_str())) {
            Some(unknown) => {
                let reason = format!("is unknown; use {}", known.join(", "));
                Err(refuse(&fields.at(unknown), reason))
            }
            None => Ok(fields),
        }
    }

    /// The members of an object that may have others, which are ignored.
    pub(crate) fn among(members: &'a Map<String, Value>, path: &str) -> Self {
        Self { path: path.to_owned(), members }
    }

    /// The path of a member.
    pub(crate) fn at(&self, name: &str) -> String {
        join(&self.path, name)
    }

    /// A member that is set.
    pub(crate) fn get(&self, name: &str) -> Option<&'a Value> {
        self.members.get(name).filter(|value| !value.is_null())
    }

    /// The first of these members that is set.
    pub(crate) fn first_set<'n>(&self, names: &[&'n str]) -> Option<&'n str> {
        names.iter().copied().find(|name| self.get(name).is_some())
    }

    /// Reads an optional member; `read` gets its path.
    pub(crate) fn read<T>(
        &self,
        name: &str,
        read: impl FnOnce(&'a Value, &str) -> Result<T, DefinitionError>,
    ) -> Result<Option<T>, DefinitionError> {
        self.get(name).map(|value| read(value, &self.at(name))).transpose()
    }

    /// Reads a required member.
    pub(crate) fn need<T>(
        &self,
        name: &str,
        read: impl FnOnce(&'a Value, &str) -> Result<T, DefinitionError>,
    ) -> Result<T, DefinitionError> {
        self.read(name, read)?.ok_or_else(|| refuse(&self.at(name), "is missing"))
    }
}

/// The path of a member below `path`, which is empty at the top.
pub(crate) fn join(path: &str, name: &str) -> String {
    // An unknown name may be anything; the quote in the error is kept short.
    let name: String = name.chars().take(64).collect();
    if path.is_empty() { name } else { format!("{path}.{name}") }
}

pub(crate) fn object<'a>(value: &'a Value, path: &str) -> Result<&'a Map<String, Value>, DefinitionError> {
    value.as_object().ok_or_else(|| refuse(path, "must be an object"))
}

pub(crate) fn text<'a>(value: &'a Value, path: &str) -> Result<&'a str, DefinitionError> {
    value.as_str().ok_or_else(|| refuse(path, "must be a string"))
}

pub(crate) fn texts<'a>(value: &'a Value, path: &str) -> Result<Vec<&'a str>, DefinitionError> {
    let values = value.as_array().filter(|values| values.len() <= 1024);
    let values = values.ok_or_else(|| refuse(path, "must be a list of at most 1024 strings"))?;
    values.iter().map(|value| value.as_str().ok_or_else(|| refuse(path, "must be a list of strings"))).collect()
}

/// A string that `parse` accepts.
pub(crate) fn parsed<T, E: ToString>(
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> impl FnOnce(&Value, &str) -> Result<T, DefinitionError> {
    |value, path| parse(text(value, path)?).map_err(|error| refuse(path, error.to_string()))
}

/// One of a few words.
pub(crate) fn word<T: Copy>(value: &Value, path: &str, words: &[(&str, T)]) -> Result<T, DefinitionError> {
    let found = value.as_str().and_then(|text| words.iter().find(|(word, _)| *word == text));
    let known = || words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
    found.map(|&(_, meaning)| meaning).ok_or_else(|| refuse(path, format!("must be one of {}", known())))
}

pub(crate) fn flag(value: &Value, path: &str) -> Result<bool, DefinitionError> {
    value.as_bool().ok_or_else(|| refuse(path, "must be true or false"))
}

/// A description, on one line or several.
pub(crate) fn description(value: &Value, path: &str) -> Result<String, DefinitionError> {
    let text = text(value, path)?;
    let refuse = |error: TextError| refuse(path, error.to_string());
    if text.len() > DESCRIPTION_LIMIT {
        return Err(refuse(TextError::TooLong { limit: DESCRIPTION_LIMIT, length: text.len() }));
    }
    let lines = text.lines().filter(|line| !line.is_empty());
    lines.into_iter().try_for_each(|line| check_line(&line.replace('\t', " "), DESCRIPTION_LIMIT)).map_err(refuse)?;
    Ok(text.to_owned())
}

/// A timeout in milliseconds, within the limits.
pub(crate) fn timeout(value: &Value, path: &str) -> Result<Duration, DefinitionError> {
    let milliseconds = value.as_u64().filter(|milliseconds| TIMEOUT.contains(milliseconds));
    let reason = format!("must be an integer of milliseconds from {} to {}", TIMEOUT.start(), TIMEOUT.end());
    milliseconds.map(Duration::from_millis).ok_or_else(|| refuse(path, reason))
}

/// A timeout in milliseconds, clamped to the limits.
pub(crate) fn clamped_timeout(value: &Value, path: &str) -> Result<Duration, DefinitionError> {
    let milliseconds = match (value.as_u64(), value.as_f64()) {
        (Some(milliseconds), _) => milliseconds.clamp(*TIMEOUT.start(), *TIMEOUT.end()),
        (None, Some(negative)) if negative < 0.0 => *TIMEOUT.start(),
        _ => return Err(refuse(path, "must be an integer of milliseconds")),
    };
    Ok(Duration::from_millis(milliseconds))
}

pub(crate) fn refuse(path: &str, reason: impl Into<String>) -> DefinitionError {
    DefinitionError { path: path.to_owned(), reason: reason.into() }
}
