//! Commands of a host: one line, read strictly. A line that could be understood in two ways is understood in none.

use serde_json::{Map, Value};
use thiserror::Error;
use toolgate_model::approval::{CallLabel, Mode};
use toolgate_model::strict_json;
use toolgate_model::text::{Line, check_identifier};

use super::echo::echoed;
use super::fields::Fields;
use super::{MAX_LINE, ResumeToken, Scope};

/// The commands of a host.
#[derive(Debug)]
pub enum Incoming {
    /// Its agent wants a tool.
    ToolCall(ToolCall),
    /// A call may run.
    ToolApprove(ToolApprove),
    /// A call may not run.
    ToolDeny(ToolDeny),
    /// A decision on a suspended call.
    ApprovalResume(ApprovalResume),
    /// Which calls pass without asking.
    SetMode(Mode),
    Ping,
    Stop,
}

/// A tool, wanted by the host's agent.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// The turn of the conversation that it belongs to.
    pub message: Line,
    /// The host's name for the call.
    pub call: CallLabel,
    /// The tool, as the host calls it.
    pub tool: String,
    pub arguments: Map<String, Value>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolApprove {
    pub call: CallLabel,
    /// What the approval covers.
    pub scope: Scope,
    /// The answer, if the tool is a question.
    pub answer: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolDeny {
    pub call: CallLabel,
    pub reason: Option<String>,
}

/// A decision by token.
#[derive(Debug)]
pub struct ApprovalResume {
    /// The token of the suspended call.
    pub token: ResumeToken,
    pub approved: bool,
    /// The answer, if the tool is a question.
    pub answer: Option<String>,
}

/// Why a line is not a command. Quoted input is short and escaped.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LineError {
    /// Not valid JSON.
    #[error("the line is not understood: {reason}; it begins `{begin}`")]
    Json { reason: String, begin: String },
    /// Not an object with a `type`.
    #[error("the line is not understood: a command is an object with a `type`; it begins `{begin}`")]
    NoCommand { begin: String },
    #[error("there is no command `{0}`")]
    UnknownType(String),
    /// A member that must be there.
    #[error("`{command}` needs `{name}`")]
    Missing { command: &'static str, name: &'static str },
    /// A member that means nothing.
    #[error("`{command}` takes no `{name}`")]
    UnknownField { command: &'static str, name: String },
    /// A member of another kind or form.
    #[error("`{name}` of `{command}` {reason}")]
    Wrong { command: &'static str, name: &'static str, reason: String },
    /// Longer than the limit; it was discarded.
    #[error("the line is longer than {MAX_LINE} bytes; send less in one command")]
    TooLong,
}

impl Incoming {
    /// Reads one line, without its end.
    pub fn parse(line: &[u8]) -> Result<Self, LineError> {
        let begin = || echoed(&String::from_utf8_lossy(line.get(..512).unwrap_or(line)));
        let value = strict_json::parse(line)
            .map_err(|error| LineError::Json { reason: echoed(&error.to_string()), begin: begin() })?;
        let Value::Object(mut members) = value else { return Err(LineError::NoCommand { begin: begin() }) };
        let Some(Value::String(kind)) = members.remove("type") else {
            return Err(LineError::NoCommand { begin: begin() });
        };
        match kind.as_str() {
            "tool_call" => tool_call(Fields::new("tool_call", members)),
            "tool_approve" => tool_approve(Fields::new("tool_approve", members)),
            "tool_deny" => tool_deny(Fields::new("tool_deny", members)),
            "approval_resume" => approval_resume(Fields::new("approval_resume", members)),
            "set_mode" => set_mode(Fields::new("set_mode", members)),
            "ping" => Fields::new("ping", members).end().map(|()| Self::Ping),
            "stop" => Fields::new("stop", members).end().map(|()| Self::Stop),
            other => Err(LineError::UnknownType(echoed(other))),
        }
    }
}

fn tool_call(mut fields: Fields) -> Result<Incoming, LineError> {
    let call = ToolCall {
        message: fields.need_as("msg_id", Line::parse)?,
        call: fields.need_as("call_id", CallLabel::parse)?,
        tool: fields.need_as("tool", |text| check_identifier(text).map(|()| text.to_owned()))?,
        arguments: fields.need_object("arguments")?,
    };
    fields.end()?;
    Ok(Incoming::ToolCall(call))
}

fn tool_approve(mut fields: Fields) -> Result<Incoming, LineError> {
    let call = fields.need_as("call_id", CallLabel::parse)?;
    let scope = match fields.take("scope") {
        None => Scope::Once,
        Some(scope) => Scope::parse(scope).ok_or_else(|| {
            fields.wrong("scope", "must be \"once\", \"always\" or {\"always_prefix\":{\"prefix\":\"...\"}}")
        })?,
    };
    let answer = fields.take_text("answer")?;
    fields.end()?;
    Ok(Incoming::ToolApprove(ToolApprove { call, scope, answer }))
}

fn tool_deny(mut fields: Fields) -> Result<Incoming, LineError> {
    let call = fields.need_as("call_id", CallLabel::parse)?;
    let reason = fields.take_text("reason")?.filter(|reason| !reason.trim().is_empty());
    fields.end()?;
    Ok(Incoming::ToolDeny(ToolDeny { call, reason }))
}

fn approval_resume(mut fields: Fields) -> Result<Incoming, LineError> {
    let token = ResumeToken::parse(fields.need_text("resume_token")?);
    let token = token.ok_or_else(|| fields.wrong("resume_token", "must not be empty"))?;
    let approved = fields.need_flag("approved")?;
    let answer = match fields.take("modifications") {
        None => None,
        Some(Value::Object(members)) => {
            let mut modifications = Fields::new("modifications", members);
            let answer = modifications.take_text("answer")?;
            modifications.end()?;
            answer
        }
        Some(_) => return Err(fields.wrong("modifications", "must be an object")),
    };
    fields.end()?;
    Ok(Incoming::ApprovalResume(ApprovalResume { token, approved, answer }))
}

fn set_mode(mut fields: Fields) -> Result<Incoming, LineError> {
    let word = fields.need_text("mode")?;
    let mode = Mode::parse(&word).map_err(|_| {
        fields.wrong("mode", &format!("must be default, auto_edit or force, and is `{}`", echoed(&word)))
    })?;
    fields.end()?;
    Ok(Incoming::SetMode(mode))
}
