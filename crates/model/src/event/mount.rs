//! Mounted MCP servers: what was added, what is quarantined, and what people decided about it.

use serde::{Deserialize, Serialize};

use crate::credential::ServiceName;
use crate::service::ToolName;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MountAdded {
    /// The endpoint, or `stdio`.
    pub address: String,
    pub mount: ServiceName,
    /// How many tools it offers; all of them are quarantined.
    pub tools: u64,
    pub trusted: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MountRemoved {
    pub mount: ServiceName,
}

/// A person has accepted what a server says about itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MountServerAccepted {
    pub hash: String,
    pub mount: ServiceName,
    /// The codes of blocking findings that were overridden.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overridden: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous_hash: Option<String>,
}

/// A server says something else about itself than what was accepted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MountServerQuarantined {
    pub hash: String,
    pub mount: ServiceName,
    pub pinned_hash: String,
    /// Whether it has another name. Then none of its tools can be used.
    pub replaced: bool,
}

/// A person has accepted a definition, or that a tool is gone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MountToolAccepted {
    /// `changed`, `new`, `removed` or `rejected`: the state that was accepted.
    pub change: String,
    pub hash: String,
    pub mount: ServiceName,
    /// The codes of blocking findings that were overridden.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overridden: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous_hash: Option<String>,
    pub tool: ToolName,
    /// Its name at the server.
    pub upstream: String,
}

/// A tool was hidden until a person decides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MountToolQuarantined {
    /// `changed`, `new` or `removed`.
    pub change: String,
    /// Of the definition that is listed now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    pub mount: ServiceName,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pinned_hash: Option<String>,
    pub tool: ToolName,
    /// Its name at the server.
    pub upstream: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MountToolRejected {
    pub hash: String,
    pub mount: ServiceName,
    pub tool: ToolName,
    /// Its name at the server.
    pub upstream: String,
}

/// A tool that was no longer listed is listed again as it was accepted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MountToolRestored {
    pub hash: String,
    pub mount: ServiceName,
    pub tool: ToolName,
    /// Its name at the server.
    pub upstream: String,
}
