//! Commands of a host, parsed strictly: an ambiguous line is refused.

use serde_json::{Map, Value};
use thiserror::Error;
use toolgate_model::approval::{CallLabel, Mode};
use toolgate_model::strict_json;
use toolgate_model::text::{Line, check_identifier};

use super::echo::echoed;
use super::fields::Fields;
use super::{MAX_LINE, ResumeToken, Scope};

#[derive(Debug)]
pub enum Incoming {
    ToolCall(ToolCall),
    ToolApprove(ToolApprove),
    ToolDeny(ToolDeny),
    ApprovalResume(ApprovalResume),
    SetMode(Mode),
    Ping,
    Stop,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// The turn of the conversation.
    pub message: Line,
    /// The id that the host gave the call.
    pub call: CallLabel,
    pub tool: String,
    pub arguments: Map<String, Value>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolApprove {
    pub call: CallLabel,
    pub scope: Scope,
    /// The answer, if the tool is a question.
    pub answer: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolDeny {
    pub call: CallLabel,
    pub reason: Option<String>,
}

#[derive(Debug)]
pub struct ApprovalResume {
    pub token: ResumeToken,
    pub approved: bool,
    /// The answer, if the tool is a question.
    pub answer: Option<String>,
}

/// Quoted input is short and escaped.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LineError {
    #[error("invalid line: {reason}; it starts with `{begin}`")]
    Json { reason: String, begin: String },
    #[error("invalid line: a command is an object with a `type`; it starts with `{begin}`")]
    NoCommand { begin: String },
    #[error("no command `{0}`")]
    UnknownType(String),
    #[error("`{command}` requires `{name}`")]
    Missing { command: &'static str, name: &'static str },
    #[error("`{command}` has no member `{name}`")]
    UnknownField { command: &'static str, name: String },
    #[error("`{name}` of `{command}` {reason}")]
    Wrong { command: &'static str, name: &'static str, reason: String },
    #[error("the line is longer than {MAX_LINE} bytes; send a shorter command")]
    TooLong,
}

impl Incoming {
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
