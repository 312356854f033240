//! Names of tools, and of prompts of mounted servers, for clients that take only letters, digits, `_` and `-`, at most 64
//! of them. A name depends on nothing but the tool, so that it stays the same when other tools come and go, and no two
//! tools have the same.
//!
//! `SERVICE_TOOL`, in which each dot of the tool is two underscores: tool `charges.read` of service `payments` is
//! `payments_charges__read`. Where that could be read in two ways, is too long or has other characters, the name is cut and
//! ends with three underscores, which no other name has, and a hash of the tool's full name. A built-in tool has a name
//! without underscores.

use std::fmt;

use serde::Serialize;

use crate::credential::ServiceName;
use crate::merkle::sha256;
use crate::mount::tool_name;
use crate::service::ToolName;

#[cfg(test)]
mod tests;

/// The longest name, in bytes.
pub const MAX_LENGTH: usize = 64;
/// Stands for a dot in the name of a tool.
const DOT: &str = "__";
/// Stands before the hash.
const HASHED: &str = "___";
/// Digits of the hash; each has 5 bits.
const HASH_DIGITS: usize = 12;
const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// The name of a tool for such clients.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct ToolAlias(String);

/// What a name says about its tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meaning {
    /// The tool of a service.
    Tool(ServiceName, ToolName),
    /// A built-in tool; there may be none of this name.
    BuiltIn,
    /// A tool that is found only by comparing its name.
    Hashed,
}

impl ToolAlias {
    /// The name of a service's tool.
    pub fn of(service: &ServiceName, tool: &ToolName) -> Self {
        let (service, tool) = (service.as_str(), tool.as_str());
        let plain = [service, "_", &tool.replace('.', DOT)].concat();
        match plain.len() <= MAX_LENGTH && is_plain_service(service) && is_plain_tool(tool) {
            true => Self(plain),
            false => Self(hashed(service, tool)),
        }
    }

    /// The name of what a mounted server calls `upstream`: a tool or a prompt.
    pub fn of_upstream(service: &ServiceName, upstream: &str) -> Self {
        Self::of(service, &tool_name(upstream))
    }

    /// The name of a built-in tool: what is no letter or digit becomes a hyphen.
    pub fn of_built_in(name: &str) -> Self {
        let safe = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
        Self(name.chars().map(safe).take(MAX_LENGTH).collect())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ToolAlias {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Reads a name; `None` where no tool can have it.
pub fn read(name: &str) -> Option<Meaning> {
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if name.is_empty() || name.len() > MAX_LENGTH || !name.bytes().all(is_safe) {
        return None;
    }
    let Some((service, tool)) = name.split_once('_') else { return Some(Meaning::BuiltIn) };
    if name.contains(HASHED) {
        return Some(Meaning::Hashed);
    }
    let tool = tool.replace(DOT, ".");
    if !is_plain_service(service) || !is_plain_tool(&tool) {
        return None;
    }
    Some(Meaning::Tool(ServiceName::parse(service).ok()?, ToolName::parse(&tool).ok()?))
}

/// Whether a name can be one of this service. A hashed name of another service may look the same.
pub fn may_be_of(name: &str, service: &ServiceName) -> bool {
    match read(name) {
        Some(Meaning::Tool(named, _)) => named == *service,
        Some(Meaning::Hashed) => name.starts_with(&readable(service.as_str(), "")),
        Some(Meaning::BuiltIn) | None => false,
    }
}

/// What the server of a mount calls what has this name; `None` where that is found only by comparing the names of all that
/// it lists.
pub fn upstream_name(name: &ToolName) -> Option<&str> {
    (tool_name(name.as_str()) == *name).then(|| name.as_str())
}

/// Without an underscore, the first one of a name ends the service.
fn is_plain_service(service: &str) -> bool {
    !service.is_empty() && service.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// Dots and underscores stand alone between other characters, so that two underscores are always a dot and there are never
/// three.
fn is_plain_tool(tool: &str) -> bool {
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    !tool.is_empty() && tool.split(['.', '_']).all(|part| !part.is_empty() && part.bytes().all(is_safe))
}

fn hashed(service: &str, tool: &str) -> String {
    // No name has a line break, so that no two tools are hashed alike.
    let hash = sha256(format!("{service}\n{tool}").as_bytes());
    let bits = hash.as_bytes().iter().take(8).fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
    let digit = |number: usize| {
        let index = usize::try_from(bits >> (5 * number) & 31).unwrap_or(0);
        char::from(DIGITS.get(index).copied().unwrap_or(b'0'))
    };
    let mut name = readable(service, tool);
    name.push_str(HASHED);
    name.extend((0..HASH_DIGITS).map(digit));
    name
}

/// What is kept of the names before the hash.
fn readable(service: &str, tool: &str) -> String {
    let safe = |letter: char| if letter.is_ascii_alphanumeric() || letter == '-' { letter } else { '_' };
    let room = MAX_LENGTH - HASHED.len() - HASH_DIGITS;
    [service, "_", tool].concat().chars().map(safe).take(room).collect()
}
