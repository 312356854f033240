//! What a call of a tool does. Everything that differs between actions and does not depend on their source is decided
//! here, so that a new source adds a variant in this file and nothing elsewhere in the gate.

use std::time::Duration;

use toolgate_model::descriptor::SourceKind;
use toolgate_model::hook::Transport;
use toolgate_model::service::ToolDefinition;

/// The maximum duration of a call.
const LONGEST: Duration = Duration::from_secs(120);
/// The maximum duration of a call of a workspace tool. Such tools have their own limits; this one applies if those
/// fail.
const LONGEST_IN_WORKSPACE: Duration = Duration::from_secs(660);

/// What a call of a tool does. It selects the source that executes the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Sends a request to a service, with the credential of a grant. The adapter of the credential decides whether that
    /// is one request, an OAuth exchange followed by one, or a signed webhook.
    Http,
    /// Sends a request as the caller wrote it, without a credential.
    Fetch,
    /// Sends a request to a mounted MCP server, over HTTP or to a process of this machine, with the credential of a grant.
    Mcp,
    /// Reads or writes a store of the gate.
    Store,
    /// Uses a workspace tool on the machine of the gate.
    Workspace,
    /// Asks an approver a question. The answer is the result.
    Question,
    /// Does nothing here: the client executes the tool, and the gate only decides whether it may.
    ClientExecuted,
    /// Does nothing: a tool of the conformance endpoints, which succeeds or fails as its caller wants.
    Conformance { fails: bool },
}

impl Action {
    /// The action of a tool of a registered service, from its definition and the source that its service names.
    pub(crate) fn of_service(source: SourceKind, tool: &ToolDefinition) -> Self {
        match source {
            _ if tool.store.is_some() => Self::Store,
            SourceKind::Mcp => Self::Mcp,
            SourceKind::Connector | SourceKind::HostExtension | SourceKind::NodePack | SourceKind::Workflow => {
                Self::Http
            }
        }
    }

    /// The name used in messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Fetch => "fetch",
            Self::Mcp => "mcp",
            Self::Store => "store",
            Self::Workspace => "workspace",
            Self::Question => "question",
            Self::ClientExecuted => "client-executed",
            Self::Conformance { .. } => "conformance",
        }
    }

    pub fn transport(self) -> Transport {
        match self {
            Self::Http | Self::Fetch => Transport::Http,
            Self::Mcp => Transport::Mcp,
            Self::Store | Self::Workspace | Self::Question | Self::ClientExecuted | Self::Conformance { .. } => {
                Transport::Native
            }
        }
    }

    /// Whether allowlists apply. The tools of the conformance endpoints are in no catalog and have no id.
    pub(crate) fn is_listed(self) -> bool {
        !matches!(self, Self::Conformance { .. })
    }

    /// Whether the approval mode applies to every call, and not only to calls of an approval session: these tools
    /// change a machine that a person works on.
    pub(crate) fn is_moded(self) -> bool {
        matches!(self, Self::Workspace | Self::ClientExecuted)
    }

    /// Whether a result comes from outside the gate, so that guardians inspect it.
    pub(crate) fn has_result(self) -> bool {
        !matches!(self, Self::ClientExecuted | Self::Conformance { .. })
    }

    /// The maximum duration of a call, whatever its definition says.
    pub(crate) fn longest(self) -> Duration {
        match self {
            Self::Workspace => LONGEST_IN_WORKSPACE,
            _ => LONGEST,
        }
    }
}
