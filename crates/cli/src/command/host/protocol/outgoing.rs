//! Events for a host: what is ready, asked, run, answered and refused. Each is one line.

use serde::Serialize;
use serde_json::{Map, Value};
use toolgate_model::approval::{CallLabel, Category, Mode};
use toolgate_model::text::Line;

/// What a host is told.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Outgoing {
    /// The first line: commands are taken from now on.
    Ready {
        /// The program's version.
        version: String,
        /// The session that calls belong to.
        session_id: String,
        /// Whether what happens outlives the process.
        session_persistence: Persistence,
        /// What can be expected.
        capabilities: Capabilities,
    },
    /// A call waits for an answer.
    ToolRequest {
        /// The turn of the call.
        msg_id: Line,
        /// The call.
        call_id: CallLabel,
        /// What is to be answered for.
        tool: ShownTool,
        /// More for a person who decides: reasons, risk, parts, offers, and until when.
        #[serde(skip_serializing_if = "Map::is_empty")]
        approval: Map<String, Value>,
    },
    /// A call that runs without having been asked for. There is nothing to answer.
    CallAnnounced {
        /// The turn of the call.
        msg_id: Line,
        /// The call.
        call_id: CallLabel,
        /// What runs.
        tool: ShownTool,
        /// Why nobody was asked.
        auto: Auto,
    },
    /// A call runs.
    ToolRunning {
        /// The turn of the call.
        msg_id: Line,
        /// The call.
        call_id: CallLabel,
        /// The tool.
        tool_name: String,
    },
    /// A call has ended with an answer, good or bad.
    ToolResult(ToolResult),
    /// A call was not run, because the answer was no.
    ToolCancelled {
        /// The turn of the call.
        msg_id: Line,
        /// The call.
        call_id: CallLabel,
        /// Why.
        reason: String,
    },
    /// A call is suspended until an answer by token.
    ApprovalRequired {
        /// The call.
        call_id: CallLabel,
        /// The secret to answer with.
        resume_token: String,
        /// What may be shown to tell calls apart; no secret.
        correlation_id: String,
        /// Why a person is asked.
        reason: String,
        /// What is asked.
        context: String,
    },
    /// Follows `approval_required`.
    Suspend {
        /// What is waited for.
        reason: String,
        /// The secret to answer with.
        resume_token: String,
    },
    /// A suspended call was answered, whichever way.
    ApprovalResume {
        /// The token, now worth nothing.
        resume_token: String,
        /// Yes or no.
        approved: bool,
    },
    /// The mode is another now.
    ConfigChanged {
        /// Which.
        current_mode: Mode,
    },
    /// Something was not done.
    Error(ErrorEvent),
    /// Something to know.
    Info {
        /// The call that it is about.
        #[serde(skip_serializing_if = "Option::is_none")]
        call_id: Option<CallLabel>,
        /// What.
        message: String,
    },
    /// The answer to `ping`.
    Pong,
}

/// Whether what happens in a session outlives the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Persistence {
    /// It is in the ledger.
    Durable,
}

/// What a host can expect. What is false is part of the protocol and not offered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Capabilities {
    /// Calls wait for answers.
    pub tool_approval: bool,
    /// Calls that wait are also shown as suspended, with a token.
    pub hitl_suspend: bool,
    /// The modes that there are.
    pub modes: [Mode; 3],
    /// The mode that is.
    pub current_mode: Mode,
    /// How many calls may be open at once.
    pub max_open_requests: usize,
    /// Servers of the Model Context Protocol that the host names.
    pub mcp: bool,
    /// Thoughts of a model.
    pub thinking: bool,
    /// How hard a model tries.
    pub effort: bool,
    /// Output of tools piece by piece.
    pub streaming_tools: bool,
    /// What agents below the agent do.
    pub sub_agent_traces: bool,
    /// What each call costs.
    pub cost_attribution: bool,
}

impl Capabilities {
    /// What this implementation offers.
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
    /// What kind of a call it is.
    pub category: Category,
    /// What it is called with.
    pub args: Value,
    /// What it does, in a line.
    pub description: String,
}

/// Why nobody was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Auto {
    /// By what the call passed.
    pub source: AutoSource,
    /// The earlier answers that cover it.
    pub standing_approval_ids: Vec<String>,
}

/// By what a call passed without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AutoSource {
    /// The session's mode.
    Mode,
    /// Earlier answers.
    Standing,
    /// Nothing asks for a person.
    None,
}

/// The end of a call that was not refused by a person.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolResult {
    /// The turn of the call.
    pub msg_id: Line,
    /// The call.
    pub call_id: CallLabel,
    /// The tool, as the host calls it.
    pub tool_name: String,
    /// Good or bad.
    pub status: ResultStatus,
    /// What the tool gave, or why it gave nothing.
    pub output: String,
    /// How to read the output.
    pub output_type: &'static str,
    /// More about it.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

/// Good or bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultStatus {
    /// The tool did what it should.
    Success,
    /// It did not, or was not allowed to.
    Error,
}

/// What was not done, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ErrorEvent {
    /// The turn of the command, where it names one that is to be told apart from another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub msg_id: Option<Line>,
    /// The call that the command is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_id: Option<CallLabel>,
    /// What kind of an error it is.
    pub code: ErrorCode,
    /// Why, for people.
    pub message: String,
    /// Whether the same command may succeed later.
    pub retryable: bool,
}

/// What kind of an error it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// The call was answered before.
    AlreadyDecided,
    /// A call of this id is open.
    DuplicateCall,
    /// The line is no command.
    EngineError,
    /// The call can no longer be answered.
    Expired,
    /// The gate does not answer.
    GateUnavailable,
    /// The mode may not be raised from here.
    ModeRefused,
    /// The call is open, and nobody was asked for an answer.
    NotWaiting,
    /// The gate says no.
    Refused,
    /// As many calls are open as may be.
    TooManyCalls,
    /// There is no such call.
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

    /// The same, which may be gone later.
    #[must_use]
    pub fn for_now(self) -> Self {
        Self { retryable: true, ..self }
    }
}
