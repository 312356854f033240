//! Events for a host: ready, asked, running, decided and refused. Each is one line.

use serde::Serialize;
use serde_json::{Map, Value};
use toolgate_model::approval::{CallLabel, Category, Mode};
use toolgate_model::text::Line;

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Outgoing {
    /// The first line: commands are taken from now on.
    Ready {
        version: String,
        /// The session that calls belong to.
        session_id: String,
        /// Whether the state of the session outlives the process.
        session_persistence: Persistence,
        capabilities: Capabilities,
    },
    /// A call waits for a decision.
    ToolRequest {
        /// The turn of the call.
        msg_id: Line,
        call_id: CallLabel,
        tool: ShownTool,
        /// Details for the approver: reasons, risk, parts, offers, and the deadline.
        #[serde(skip_serializing_if = "Map::is_empty")]
        approval: Map<String, Value>,
    },
    /// A call that runs without an approval. There is nothing to decide.
    CallAnnounced {
        /// The turn of the call.
        msg_id: Line,
        call_id: CallLabel,
        tool: ShownTool,
        /// Why no approval was needed.
        auto: Auto,
    },
    ToolRunning {
        /// The turn of the call.
        msg_id: Line,
        call_id: CallLabel,
        tool_name: String,
    },
    /// A call has ended with a result or an error.
    ToolResult(ToolResult),
    /// A call was not run, because it was denied.
    ToolCancelled {
        /// The turn of the call.
        msg_id: Line,
        call_id: CallLabel,
        reason: String,
    },
    /// A call is suspended until a decision by token.
    ApprovalRequired {
        call_id: CallLabel,
        /// The secret to decide with.
        resume_token: String,
        /// An id to distinguish calls; not secret.
        correlation_id: String,
        /// Why an approval is needed.
        reason: String,
        context: String,
    },
    /// Follows `approval_required`.
    Suspend {
        reason: String,
        /// The secret to decide with.
        resume_token: String,
    },
    /// A suspended call was decided.
    ApprovalResume {
        /// The token, now worth nothing.
        resume_token: String,
        approved: bool,
    },
    /// The mode is another now.
    ConfigChanged {
        current_mode: Mode,
    },
    /// Something was not done.
    Error(ErrorEvent),
    Info {
        /// The call that it is about.
        #[serde(skip_serializing_if = "Option::is_none")]
        call_id: Option<CallLabel>,
        message: String,
    },
    Pong,
}

/// Whether the state of a session outlives the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Persistence {
    /// It is in the ledger.
    Durable,
}

/// What a host can expect. A false member is part of the protocol and not supported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Capabilities {
    /// Calls wait for decisions.
    pub tool_approval: bool,
    /// Calls that wait are also shown as suspended, with a token.
    pub hitl_suspend: bool,
    pub modes: [Mode; 3],
    /// The mode that is.
    pub current_mode: Mode,
    /// The maximum number of open calls.
    pub max_open_requests: usize,
    /// Servers of the Model Context Protocol that the host names.
    pub mcp: bool,
    /// Thoughts of a model.
    pub thinking: bool,
    /// How hard a model tries.
    pub effort: bool,
    /// Output of tools piece by piece.
    pub streaming_tools: bool,
    /// Traces of sub-agents.
    pub sub_agent_traces: bool,
    /// The cost of each call.
    pub cost_attribution: bool,
}

impl Capabilities {
    /// The capabilities of this implementation.
    pub fn new(hitl_suspend: bool, current_mode: Mode, max_open_requests: usize) -> Self {
        Self {
            tool_approval: true,
            hitl_suspend,
            modes: Mode::ALL,
            current_mode,
            max_open_requests,
            mcp: false,
            thinking: false,
            effort: false,
            streaming_tools: false,
            sub_agent_traces: false,
            cost_attribution: false,
        }
    }
}

/// A call, as a person is shown it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ShownTool {
    /// The tool, as the host calls it.
    pub name: String,
    pub category: Category,
    pub args: Value,
    /// One line that describes the call.
    pub description: String,
}

/// Why no approval was needed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Auto {
    pub source: AutoSource,
    /// The standing approvals that cover it.
    pub standing_approval_ids: Vec<String>,
}

/// Why a call passed without a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AutoSource {
    Mode,
    Standing,
    /// Nothing requires an approval.
    None,
}

/// The end of a call that was not refused by a person.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolResult {
    /// The turn of the call.
    pub msg_id: Line,
    pub call_id: CallLabel,
    /// The tool, as the host calls it.
    pub tool_name: String,
    pub status: ResultStatus,
    /// The result of the tool, or why there is none.
    pub output: String,
    /// How to read the output.
    pub output_type: &'static str,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultStatus {
    Success,
    /// It did not, or was not allowed to.
    Error,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ErrorEvent {
    /// The turn of the command, if it names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub msg_id: Option<Line>,
    /// The call that the command is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_id: Option<CallLabel>,
    pub code: ErrorCode,
    /// For people.
    pub message: String,
    /// Whether the same command may succeed later.
    pub retryable: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// The call was already decided.
    AlreadyDecided,
    /// A call of this id is open.
    DuplicateCall,
    /// The line is no command.
    EngineError,
    /// The call can no longer be decided.
    Expired,
    /// The gate does not respond.
    GateUnavailable,
    /// The mode may not be raised from here.
    ModeRefused,
    /// The call is open, and no decision was requested.
    NotWaiting,
    Refused,
    /// As many calls are open as may be.
    TooManyCalls,
    UnknownCall,
    /// No suspended call has this token.
    UnknownToken,
}

impl Outgoing {
    /// Its line, without the end.
    pub fn to_line(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }
}

impl ErrorEvent {
    /// An error that stays one.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { msg_id: None, call_id: None, code, message: message.into(), retryable: false }
    }

    /// The same, about this call.
    #[must_use]
    pub fn about(self, call: &CallLabel) -> Self {
        Self { call_id: Some(call.clone()), ..self }
    }

    /// The same, as a temporary error.
    #[must_use]
    pub fn for_now(self) -> Self {
        Self { retryable: true, ..self }
    }
}
