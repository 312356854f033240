//! Reads the members of an object and rejects unknown ones.

use serde_json::{Map, Value};

/// All members of a policy input.
const KNOWN: [&str; 21] = [
    "hook",
    "agent",
    "actor",
    "tool",
    "arguments",
    "result",
    "is_error",
    "text",
    "method",
    "reasoning",
    "has_reasoning",
    "session",
    "run",
    "user",
    "marks",
    "spent",
    "calls",
    "time",
    "address",
    "dialect",
    "found",
];

/// The members of an object.
pub(super) struct Members<'a>(Option<&'a Map<String, Value>>);

impl<'a> Members<'a> {
    /// The members of a policy input.
    pub(super) fn of(given: &'a Value) -> Result<Self, String> {
        Self::with(given, &KNOWN)
    }

    /// An object with no other members than these.
    pub(super) fn with(given: &'a Value, known: &[&str]) -> Result<Self, String> {
        let members = given.as_object().ok_or("must be an object")?;
        match members.keys().find(|name| !known.contains(&name.as_str())) {
            Some(name) => Err(format!("unknown member `{name}`; use {}", known.join(", "))),
            None => Ok(Self(Some(members))),
        }
    }

    /// A nested object with amounts per day and per run.
    pub(super) fn below(around: &Self, name: &str) -> Result<Self, String> {
        match around.get(name) {
            None => Ok(Self(None)),
            Some(given) => Self::with(given, &["today", "run", "today_micros", "run_micros"]),
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<&'a Value> {
        self.0?.get(name).filter(|value| !value.is_null())
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<&'a str>, String> {
        self.get(name).map(|value| value.as_str().ok_or_else(|| format!("`{name}` must be a string"))).transpose()
    }

    pub(super) fn flag(&self, name: &str) -> Result<Option<bool>, String> {
        self.get(name).map(|value| value.as_bool().ok_or_else(|| format!("`{name}` must be true or false"))).transpose()
    }

    pub(super) fn object(&self, name: &str) -> Result<Option<&'a Map<String, Value>>, String> {
        self.get(name).map(|value| value.as_object().ok_or_else(|| format!("`{name}` must be an object"))).transpose()
    }

    pub(super) fn texts(&self, name: &str) -> Result<Vec<&'a str>, String> {
        let wrong = || format!("`{name}` must be a list of strings");
        let Some(value) = self.get(name) else { return Ok(Vec::new()) };
        let items = value.as_array().ok_or_else(wrong)?;
        items.iter().map(|item| item.as_str().ok_or_else(wrong)).collect()
    }

    pub(super) fn count(&self, name: &str) -> Result<u64, String> {
        let wrong = || format!("`{name}` must be an integer");
        self.get(name).map_or(Ok(0), |value| value.as_u64().ok_or_else(wrong))
    }

    /// An amount in millionths, given as an amount or as recorded.
    pub(super) fn micros(&self, name: &str) -> Result<u64, String> {
        let recorded = format!("{name}_micros");
        if self.get(&recorded).is_some() {
            return self.count(&recorded);
        }
        let wrong = || format!("`{name}` must be an amount such as 12.50");
        let Some(value) = self.get(name) else { return Ok(0) };
        let amount = value.as_f64().filter(|amount| (0.0..1e12).contains(amount)).ok_or_else(wrong)?;
        let cost = toolgate_model::constraint::Cost::from_dollars(amount).ok_or_else(wrong)?;
        Ok(cost.micros())
    }
}
