//! What a call of a tool does. Everything that differs between actions and is no business of their source is decided
//! here, so that a new source adds a variant in this file and nothing elsewhere in the gate.

use std::time::Duration;

use toolgate_model::descriptor::SourceKind;
use toolgate_model::hook::Transport;

/// The longest that a call may take.
const LONGEST: Duration = Duration::from_secs(120);
/// The same for a workspace tool, which has limits of its own: this one is for when they fail.
const LONGEST_IN_WORKSPACE: Duration = Duration::from_secs(660);

/// What a call of a tool does. The source that executes it is found by this value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Sends a request to a service, with the credential of a grant. The adapter of the credential decides whether that
    /// is one request, an OAuth exchange followed by one, or a signed webhook.
    Http,
    /// Sends a request as the caller wrote it, without a credential.
    Fetch,
    /// Sends a request to a mounted MCP server, over HTTP or to a process of this machine, with the credential of a grant.
    Mcp,
    /// Uses a tool of the machine that the gate runs on.
    Workspace,
    /// Asks an approver a question, whose answer is the result.
    Question,
    /// Nothing here: the client executes the tool, and the gate only decides whether it may.
    ClientExecuted,
    /// Nothing: a tool of the conformance endpoints, which succeeds or fails as its caller wants.
    Conformance { fails: bool },
}

impl Action {
    /// What a call of a tool of a registered service does, by the source that its definition names.
    pub(crate) fn of_service(source: SourceKind) -> Self {
        match source {
            SourceKind::Mcp => Self::Mcp,
            SourceKind::Connector | SourceKind::HostExtension | SourceKind::NodePack | SourceKind::Workflow => {
                Self::Http
            }
        }
    }

    /// As it is named in messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Fetch => "fetch",
            Self::Mcp => "mcp",
            Self::Workspace => "workspace",
            Self::Question => "question",
            Self::ClientExecuted => "client-executed",
            Self::Conformance { .. } => "conformance",
        }
    }

    /// How the tool is reached.
    pub fn transport(self) -> Transport {
        match self {
            Self::Http | Self::Fetch => Transport::Http,
            Self::Mcp => Transport::Mcp,
            Self::Workspace | Self::Question | Self::ClientExecuted | Self::Conformance { .. } => Transport::Native,
        }
    }

    /// Whether allowlists apply to it. The tools of the conformance endpoints are in no catalog and have no id.
    pub(crate) fn is_listed(self) -> bool {
        !matches!(self, Self::Conformance { .. })
    }

    /// Whether the mode of approvals applies to every call, and not only to those of an approval session: these tools
    /// change the machine that somebody works on.
    pub(crate) fn is_moded(self) -> bool {
        matches!(self, Self::Workspace | Self::ClientExecuted)
    }

    /// Whether something comes back from outside the gate, which guardians look at.
    pub(crate) fn has_result(self) -> bool {
        !matches!(self, Self::ClientExecuted | Self::Conformance { .. })
    }

    /// The longest that a call may take, whatever its definition says.
    pub(crate) fn longest(self) -> Duration {
        match self {
            Self::Workspace => LONGEST_IN_WORKSPACE,
            _ => LONGEST,
        }
    }
}
