//! Events for a host, one per line.

use serde::Serialize;
use serde_json::{Map, Value};
use toolgate_model::approval::{CallLabel, Category, Mode};
use toolgate_model::text::Line;

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Outgoing {
    /// The first event.
    Ready {
        version: String,
        session_id: String,
        /// Whether sessions outlive the process.
        session_persistence: Persistence,
        capabilities: Capabilities,
    },
    ToolRequest {
        msg_id: Line,
        call_id: CallLabel,
        tool: ShownTool,
        /// Details for approvers: reasons, risk, parts, offers and expiry.
        #[serde(skip_serializing_if = "Map::is_empty")]
        approval: Map<String, Value>,
    },
    /// A call that requires no decision.
    CallAnnounced {
        msg_id: Line,
        call_id: CallLabel,
        tool: ShownTool,
        auto: Auto,
    },
    ToolRunning {
        msg_id: Line,
        call_id: CallLabel,
        tool_name: String,
    },
    ToolResult(ToolResult),
    ToolCancelled {
        msg_id: Line,
        call_id: CallLabel,
        reason: String,
    },
    /// A call is suspended until it is decided by token.
    ApprovalRequired {
        call_id: CallLabel,
        /// The secret for the decision.
        resume_token: String,
        /// Identifies the call for display; not a secret.
        correlation_id: String,
        reason: String,
        context: String,
    },
    Suspend {
        reason: String,
        /// The secret for the decision.
        resume_token: String,
    },
    ApprovalResume {
        /// The token, which is no longer valid.
        resume_token: String,
        approved: bool,
    },
    ConfigChanged {
        current_mode: Mode,
    },
    Error(ErrorEvent),
    Info {
        #[serde(skip_serializing_if = "Option::is_none")]
        call_id: Option<CallLabel>,
        message: String,
    },
    Pong,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Persistence {
    Durable,
}

/// The capabilities of the protocol. Those that are false are not implemented.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Capabilities {
    pub tool_approval: bool,
    /// Pending calls are also reported as suspended, with a token.
    pub hitl_suspend: bool,
    pub modes: [Mode; 3],
    pub current_mode: Mode,
    pub max_open_requests: usize,
    pub mcp: bool,
    pub thinking: bool,
    pub effort: bool,
    pub streaming_tools: bool,
    pub sub_agent_traces: bool,
    pub cost_attribution: bool,
}

impl Capabilities {
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

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ShownTool {
    pub name: String,
    pub category: Category,
    pub args: Value,
    pub description: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Auto {
    pub source: AutoSource,
    pub standing_approval_ids: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AutoSource {
    Mode,
    Standing,
    /// No approval was required.
    None,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolResult {
    pub msg_id: Line,
    pub call_id: CallLabel,
    pub tool_name: String,
    pub status: ResultStatus,
    pub output: String,
    pub output_type: &'static str,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultStatus {
    Success,
    Error,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ErrorEvent {
    /// The turn of the command, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub msg_id: Option<Line>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_id: Option<CallLabel>,
    pub code: ErrorCode,
    pub message: String,
    pub retryable: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    AlreadyDecided,
    DuplicateCall,
    EngineError,
    Expired,
    GateUnavailable,
    ModeRefused,
    NotWaiting,
    Refused,
    TooManyCalls,
    UnknownCall,
    UnknownToken,
}

impl Outgoing {
    pub fn to_line(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }
}

impl ErrorEvent {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { msg_id: None, call_id: None, code, message: message.into(), retryable: false }
    }

    #[must_use]
    pub fn about(self, call: &CallLabel) -> Self {
        Self { call_id: Some(call.clone()), ..self }
    }

    #[must_use]
    pub fn for_now(self) -> Self {
        Self { retryable: true, ..self }
    }
}
