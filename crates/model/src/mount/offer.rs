//! What a server offers, as far as it can be kept: names that can be written down, definitions of a bounded size.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{McpEra, SeenDefinition, ServerIdentity};
use crate::canonical::to_canonical;
use crate::service::definition_hash;
use crate::text::check_line;
use crate::visible::visible;

/// How many tools one server may list.
pub const TOOL_LIMIT: usize = 512;
/// The largest definition that is kept, in bytes of canonical JSON.
pub const DEFINITION_LIMIT: usize = 64 * 1024;
/// How deep a definition may be nested that is kept.
pub const DEPTH_LIMIT: usize = 64;
/// The largest offer that is kept, in bytes of canonical JSON.
const OFFER_LIMIT: usize = 8 * 1024 * 1024;
/// The longest name of a tool, in bytes.
const NAME_LIMIT: usize = 256;

/// What a server offers.
#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    pub era: McpEra,
    pub server: ServerIdentity,
    /// In the order of their names. What is listed under the same name more than once has all its definitions as an array.
    pub tools: Vec<OfferedDefinition>,
    /// Names that were left out because no tool can have them, with hidden characters shown.
    pub ignored: Vec<String>,
}

/// A definition in the list of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct OfferedDefinition {
    pub name: String,
    pub seen: SeenDefinition,
}

impl Offer {
    /// Reads a list of definitions by name. An error says why the whole offer cannot be kept.
    pub fn read(
        era: McpEra,
        server: ServerIdentity,
        listed: impl IntoIterator<Item = (String, Value)>,
    ) -> Result<Self, String> {
        let mut tools: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        let (mut ignored, mut count, mut total) = (Vec::new(), 0usize, 0usize);
        for (name, definition) in listed {
            if check_line(&name, NAME_LIMIT).is_err() {
                ignored.push(visible(&name).chars().take(64).collect());
                continue;
            }
            let length = to_canonical(&definition).len();
            (count, total) = (count + 1, total + if length <= DEFINITION_LIMIT { length } else { 0 });
            tools.entry(name).or_default().push(definition);
            if count > TOOL_LIMIT || total > OFFER_LIMIT {
                return Err(format!("it lists more than {TOOL_LIMIT} tools, or more than {OFFER_LIMIT} bytes"));
            }
        }
        ignored.truncate(16);
        let tools = tools.into_iter().map(|(name, listed)| OfferedDefinition { name, seen: seen(listed) }).collect();
        Ok(Self { era, server, tools, ignored })
    }
}

/// What was listed under one name.
fn seen(mut listed: Vec<Value>) -> SeenDefinition {
    let (hash, definition) = match (listed.pop(), listed.is_empty()) {
        (Some(only), true) => (definition_hash(&only), only),
        (last, _) => {
            listed.extend(last);
            // Whatever the order.
            listed.sort_by_cached_key(to_canonical);
            let hashes: Vec<String> = listed.iter().map(definition_hash).collect();
            (definition_hash(&json!({"name": hashes})), Value::Array(listed))
        }
    };
    let is_kept = to_canonical(&definition).len() <= DEFINITION_LIMIT && depth(&definition) <= DEPTH_LIMIT;
    SeenDefinition { definition: Some(definition).filter(|_| is_kept), hash }
}

/// How deep a value is nested.
fn depth(value: &Value) -> usize {
    let mut deepest = 0;
    let mut open = vec![(value, 0usize)];
    while let Some((value, depth)) = open.pop() {
        deepest = deepest.max(depth);
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(members) => open.extend(members.values().map(|member| (member, depth + 1))),
            _ => {}
        }
    }
    deepest
}
