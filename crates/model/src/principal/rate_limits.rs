//! How often one principal may call which tools.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::rate_limit::RateLimit;

/// Stands for every tool that is not named.
const ANY: &str = "*";
/// The maximum length of a qualified tool name, in bytes.
const NAME_LIMIT: usize = 257;
/// The maximum number of entries.
const LIMIT: usize = 1024;

/// The rate limits of one principal: by the name of a tool (`stripe.charges.create`), and under `*` for all others.
/// Each tool has its own bucket; tools with the same entry do not share tokens.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct ToolRateLimits(BTreeMap<String, RateLimit>);

impl ToolRateLimits {
    /// The limit of this principal for a tool that has `of_tool` as its own.
    ///
    /// An entry for exactly this tool takes precedence, even if it is wider. Otherwise both the tool's limit and the
    /// principal's limit for all tools apply, which is the stricter of the two.
    pub fn for_tool(&self, tool_name: &str, of_tool: Option<RateLimit>) -> Option<RateLimit> {
        // `*` is not a tool, whatever a caller sends.
        if let Some(exact) = self.0.get(tool_name).filter(|_| tool_name != ANY) {
            return Some(*exact);
        }
        match (self.0.get(ANY).copied(), of_tool) {
            (Some(any), Some(own)) => Some(any.stricter(own)),
            (any, own) => any.or(own),
        }
    }
}

impl<'de> Deserialize<'de> for ToolRateLimits {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let entries = BTreeMap::<String, Entry>::deserialize(deserializer)?;
        if entries.len() > LIMIT {
            return Err(D::Error::custom(format_args!("must have at most {LIMIT} tools")));
        }
        if !entries.keys().all(|name| is_tool(name)) {
            return Err(D::Error::custom(
                "must map names such as stripe.charges.create, or * for all others, to limits",
            ));
        }
        Ok(Self(entries.into_iter().map(|(name, Entry(limit))| (name, limit)).collect()))
    }
}

/// A limit written as an object. By itself a limit could also be deserialized from a list of its numbers.
struct Entry(RateLimit);

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EntryVisitor)
    }
}

struct EntryVisitor;

impl<'de> Visitor<'de> for EntryVisitor {
    type Value = Entry;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object such as {\"requests\": 100, \"per_seconds\": 60}")
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Entry, A::Error> {
        RateLimit::deserialize(MapAccessDeserializer::new(members)).map(Entry)
    }
}

fn is_tool(name: &str) -> bool {
    let is_letter = |letter: u8| letter.is_ascii_alphanumeric() || b"._:@-".contains(&letter);
    // A service before a dot, and a tool after it.
    let inner = name.get(1..name.len().saturating_sub(1)).unwrap_or_default();
    name == ANY || (name.len() <= NAME_LIMIT && name.bytes().all(is_letter) && inner.contains('.'))
}
