//! Tool hooks (OpenWOP RFC 0064): the pair of events that every call leaves in the log, content-free, so that consumers
//! never see the content of calls.

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::id::{EventId, InvocationId, SessionId};
use crate::invocation::Invocation;
use crate::principal::PrincipalId;
use crate::text::{SharedText, identifiers};
use crate::trace_context::TraceId;

#[cfg(test)]
mod tests;

identifiers! {
    /// An execution that calls belong to, named by its runner.
    RunId;
}

/// The wire type of [`ToolCalled`].
pub const CALLED: &str = "agent.toolCalled";
/// The wire type of [`ToolReturned`].
pub const RETURNED: &str = "agent.toolReturned";
/// The agent id for calls of principals that are not agents.
pub const NO_AGENT: &str = "core.system";

/// How a tool is reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    #[default]
    Http,
    /// Over the Model Context Protocol.
    Mcp,
    /// Inside Toolgate.
    Native,
}

impl Transport {
    /// The stored and displayed form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Mcp => "mcp",
            Self::Native => "native",
        }
    }

    /// Parses [`Transport::as_str`].
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Http, Self::Mcp, Self::Native].into_iter().find(|transport| transport.as_str() == text)
    }
}

/// What links the events of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallTrace {
    /// The execution that it belongs to; `None` is its own.
    pub run: Option<RunId>,
    /// The multi-step use of a tool that it is part of.
    pub session: Option<SessionId>,
    /// Whether it is made for an agent.
    pub by_agent: bool,
    pub transport: Transport,
    /// The distributed trace of the call. Recorded only in its events.
    pub trace_id: Option<TraceId>,
}

impl Invocation {
    /// The execution that the call belongs to: the named one, or the call itself.
    pub fn run_id(&self) -> String {
        self.trace.run.as_ref().map_or_else(|| self.id.to_string(), |run| run.as_str().to_owned())
    }

    /// The qualified name.
    pub fn tool_name(&self) -> SharedText {
        match &self.service {
            Some(service) => service.with_tool(&self.tool).into(),
            None => self.tool.clone(),
        }
    }

    fn attributed_to(&self) -> SharedText {
        if self.trace.by_agent { agent_label(&self.agent) } else { NO_AGENT.into() }
    }
}

/// An agent in the form of the protocol, with at least three characters.
pub fn agent_label(agent: &PrincipalId) -> SharedText {
    match agent.as_str() {
        short if short.len() < 3 => ["agent:", short].concat().into(),
        _ => agent.into(),
    }
}

/// A call is about to be made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCalled {
    pub agent_id: SharedText,
    /// SHA-256 of the canonical arguments after redaction.
    pub args_hash: SharedText,
    pub call_id: InvocationId,
    /// The arguments, if the tool's logging rule allows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Value>,
    /// The principal whose authority is used.
    pub principal: PrincipalId,
    /// The qualified name.
    pub tool_name: SharedText,
    pub transport: Transport,
}

impl ToolCalled {
    /// The call of this record.
    pub fn of(invocation: &Invocation, inputs: Option<Value>) -> Self {
        Self {
            agent_id: invocation.attributed_to(),
            args_hash: invocation.arguments_hash.clone(),
            call_id: invocation.id,
            inputs,
            principal: invocation.agent.clone(),
            tool_name: invocation.tool_name(),
            transport: invocation.trace.transport,
        }
    }
}

/// How a call returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReturnStatus {
    /// It failed, or its arguments were invalid.
    Error,
    Forbidden,
    Ok,
    RateLimited,
}

impl ReturnStatus {
    /// The displayed form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Forbidden => "forbidden",
            Self::Ok => "ok",
            Self::RateLimited => "rate_limited",
        }
    }
}

/// Why a call failed: only the code, and a sentence that reveals nothing about the content of the call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReturnError {
    pub code: String,
    pub message: String,
}

/// A call returned, or was not made. Part of the RFC-0014 event that records the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolReturned {
    pub agent_id: SharedText,
    pub call_id: InvocationId,
    /// The event of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub causation_id: Option<EventId>,
    /// The duration of the tool, if it was reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// INVARIANT: present if and only if the status is `error`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ReturnError>,
    pub status: ReturnStatus,
    /// The qualified name.
    pub tool_name: SharedText,
    #[serde(default)]
    pub r#type: ReturnedType,
}

/// The type member of a return: always [`RETURNED`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReturnedType;

impl Serialize for ReturnedType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(RETURNED)
    }
}

impl<'de> Deserialize<'de> for ReturnedType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}

impl ToolReturned {
    pub fn ok(invocation: &Invocation, duration_ms: u64) -> Self {
        Self::new(invocation, ReturnStatus::Ok, Some(duration_ms), None)
    }

    /// The call failed, after this time if the tool was reached.
    pub fn error(invocation: &Invocation, code: &str, message: String, duration_ms: Option<u64>) -> Self {
        let error = ReturnError { code: code.to_owned(), message };
        Self::new(invocation, ReturnStatus::Error, duration_ms, Some(error))
    }

    pub fn forbidden(invocation: &Invocation) -> Self {
        Self::new(invocation, ReturnStatus::Forbidden, None, None)
    }

    pub fn rate_limited(invocation: &Invocation) -> Self {
        Self::new(invocation, ReturnStatus::RateLimited, None, None)
    }

    fn new(
        invocation: &Invocation,
        status: ReturnStatus,
        duration_ms: Option<u64>,
        error: Option<ReturnError>,
    ) -> Self {
        Self {
            agent_id: invocation.attributed_to(),
            call_id: invocation.id,
            causation_id: Some(EventId::of_call(invocation.id)),
            duration_ms,
            error,
            status,
            tool_name: invocation.tool_name(),
            r#type: ReturnedType,
        }
    }
}
