//! Mounted MCP servers: what is known of a server, what a person has accepted of it, and what it offers now. A tool is
//! pinned by the hash of the definition that was accepted; any other definition is quarantined until a person accepts it.
//!
//! A peer agent is a mount too: what it says about itself is its card, it has no tools to decide on one by one, and nothing
//! of it can be used while its card is another one than the accepted.

use serde_json::Value;

use crate::connection::BaseUrl;
use crate::credential::ServiceName;
use crate::id::CredentialId;
use crate::principal::TenantId;
use crate::service::{HiddenCharacters, ToolName};
use crate::time::Timestamp;

pub use self::comparison::{ToolChange, compare};
pub use self::conversion::convert;
pub use self::naming::tool_name;
pub use self::offer::{DEFINITION_LIMIT, DEPTH_LIMIT, Offer, OfferedDefinition, TOOL_LIMIT};
pub use self::server::{Capability, ServerIdentity};
pub use self::usable::{service_definition, version};

mod comparison;
mod conversion;
pub mod lint;
mod naming;
mod offer;
mod schema;
mod server;
mod tier;
mod usable;

#[cfg(test)]
mod tests;

/// How many mounts a tenant may have.
pub const MOUNT_LIMIT: usize = 200;

/// A mounted server.
#[derive(Debug, Clone, PartialEq)]
pub struct Mount {
    pub tenant: TenantId,
    /// The service that its tools belong to.
    pub name: ServiceName,
    pub address: MountAddress,
    /// Whether its hints may lower the tier of a tool.
    pub trusted: bool,
    /// What happens to characters that a reader cannot see, in definitions and in results.
    pub hidden_characters: HiddenCharacters,
    /// What the gate inspects the server with; `None` for a server that needs nothing.
    pub credential: Option<CredentialId>,
    /// Whether the operator has declared it in the configuration, which it follows then.
    pub declared: bool,
    /// Which revisions of the protocol it speaks, as of the last check.
    pub era: McpEra,
    /// The server as a person has accepted it; `None` before that.
    pub pinned: Option<ServerIdentity>,
    /// The server as of the last check.
    pub seen: ServerIdentity,
    pub checked_at: Timestamp,
    /// Why the last check found nothing.
    pub failure: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Mount {
    /// Whether another server seems to have taken the place of the accepted one. Then none of its tools is usable.
    pub fn is_replaced(&self) -> bool {
        let is_started_otherwise =
            |pinned: &ServerIdentity| pinned.command.is_some() && pinned.command != self.seen.command;
        self.pinned.as_ref().is_some_and(|pinned| pinned.name != self.seen.name || is_started_otherwise(pinned))
    }

    /// Whether what the server says about itself waits for a person.
    pub fn is_server_quarantined(&self) -> bool {
        self.pinned.as_ref().is_none_or(|pinned| pinned.hash() != self.seen.hash())
    }
}

/// Where a server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MountAddress {
    /// Streamable HTTP at this endpoint.
    Http { url: BaseUrl },
    /// A process that the operator has configured under the name of the mount.
    Stdio,
    /// A peer agent, whose card is below this URL.
    Agent { url: BaseUrl },
}

impl MountAddress {
    /// What is spoken there, as it is stored.
    pub fn protocol(&self) -> &'static str {
        match self {
            Self::Http { .. } | Self::Stdio => "mcp",
            Self::Agent { .. } => "a2a",
        }
    }
}

/// The revisions of the protocol that work alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum McpEra {
    /// 2025-11-25 and before: a handshake, and perhaps a session.
    Legacy,
    /// 2026-07-28: every request stands for itself.
    Modern,
}

impl McpEra {
    /// As it is stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }

    /// Reads [`McpEra::as_str`] back.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Legacy, Self::Modern].into_iter().find(|era| era.as_str() == text)
    }
}

/// A tool of a mounted server.
#[derive(Debug, Clone, PartialEq)]
pub struct MountTool {
    /// Its name at the server.
    pub upstream: String,
    /// Its name here.
    pub name: ToolName,
    /// The definition that a person has accepted last.
    pub pinned: Option<PinnedDefinition>,
    /// The definition that the server lists; `None` where it lists the tool no more.
    pub seen: Option<SeenDefinition>,
    pub state: ToolState,
}

/// A definition that a person has accepted.
#[derive(Debug, Clone, PartialEq)]
pub struct PinnedDefinition {
    pub definition: Value,
    pub hash: String,
}

/// A definition that a server lists.
#[derive(Debug, Clone, PartialEq)]
pub struct SeenDefinition {
    /// `None` where it is larger than [`DEFINITION_LIMIT`] or nested deeper than [`DEPTH_LIMIT`]; an array where the server
    /// lists the tool more than once. Neither can be accepted.
    pub definition: Option<Value>,
    pub hash: String,
}

/// Whether a tool can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolState {
    /// It is offered to agents by its pinned definition.
    Accepted,
    /// It is hidden and refused until a person decides.
    Quarantined(Quarantine),
    /// A person decided against the definition that was seen. It stays hidden and is looked at again when it changes.
    Rejected,
}

/// Why a tool waits for a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quarantine {
    Changed,
    New,
    Removed,
}

impl ToolState {
    pub const ALL: [Self; 5] = [
        Self::Accepted,
        Self::Quarantined(Quarantine::Changed),
        Self::Quarantined(Quarantine::New),
        Self::Quarantined(Quarantine::Removed),
        Self::Rejected,
    ];

    /// As it is stored and shown: quarantined tools by the reason.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Quarantined(Quarantine::Changed) => "changed",
            Self::Quarantined(Quarantine::New) => "new",
            Self::Quarantined(Quarantine::Removed) => "removed",
            Self::Rejected => "rejected",
        }
    }

    /// Reads [`ToolState::as_str`] back.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }

    pub fn is_quarantined(self) -> bool {
        matches!(self, Self::Quarantined(_))
    }
}

impl MountTool {
    /// The hash that a person confirms by accepting or rejecting the tool as it stands: that of the definition that is
    /// listed, or of the pinned one where the server lists none.
    pub fn hash_to_confirm(&self) -> Option<&str> {
        let seen = self.seen.as_ref().map(|seen| seen.hash.as_str());
        seen.or_else(|| self.pinned.as_ref().map(|pinned| pinned.hash.as_str()))
    }

    /// The tool after a person has accepted it as it stands; `None` where that means to forget it.
    ///
    /// An error is the reason why it cannot be accepted.
    pub fn accepted(&self) -> Result<Option<Self>, String> {
        match &self.seen {
            None => Ok(None),
            Some(SeenDefinition { definition: None, .. }) => Err(format!(
                "the definition of `{}` is larger than {DEFINITION_LIMIT} bytes or nested deeper than {DEPTH_LIMIT} \
                 levels, and was not kept",
                crate::visible::visible(&self.upstream)
            )),
            Some(SeenDefinition { definition: Some(Value::Array(listed)), .. }) => Err(format!(
                "the server lists `{}` {} times, so that it is not known which one is called; it must list each tool once",
                crate::visible::visible(&self.upstream),
                listed.len()
            )),
            Some(SeenDefinition { definition: Some(definition), hash }) => {
                let pinned = PinnedDefinition { definition: definition.clone(), hash: hash.clone() };
                Ok(Some(Self { pinned: Some(pinned), state: ToolState::Accepted, ..self.clone() }))
            }
        }
    }

    /// The tool after a person has rejected it as it stands.
    #[must_use]
    pub fn rejected(&self) -> Self {
        Self { state: ToolState::Rejected, ..self.clone() }
    }
}
