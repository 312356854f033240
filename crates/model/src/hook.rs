//! Tool hooks (OpenWOP RFC 0064): the pair that every call leaves in the log, content-free, so that whoever follows calls
//! never needs to see what was in them.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::id::{EventId, InvocationId, SessionId};
use crate::invocation::Invocation;
use crate::principal::PrincipalId;
use crate::text::identifiers;
use crate::trace_context::TraceId;

#[cfg(test)]
mod tests;

identifiers! {
    /// An execution that calls belong to, as whoever runs it names it.
    RunId;
}

/// The type of [`ToolCalled`] on the wire.
pub const CALLED: &str = "agent.toolCalled";
/// The type of [`ToolReturned`] on the wire.
pub const RETURNED: &str = "agent.toolReturned";
/// Under which agent the calls of those stand who are none.
pub const NO_AGENT: &str = "core.system";

/// How a tool is reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// Over HTTP.
    #[default]
    Http,
    /// Over the Model Context Protocol.
    Mcp,
    /// Inside Toolgate.
    Native,
}

impl Transport {
    /// As it is stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Mcp => "mcp",
            Self::Native => "native",
        }
    }

    /// Reads [`Transport::as_str`] back.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Http, Self::Mcp, Self::Native].into_iter().find(|transport| transport.as_str() == text)
    }
}

/// What ties the events of a call together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallTrace {
    /// The execution that it belongs to; `None` is one of its own.
    pub run: Option<RunId>,
    /// The multi-step use of a tool that it is part of.
    pub session: Option<SessionId>,
    /// Whether it is made for an agent.
    pub by_agent: bool,
    /// How the tool is reached.
    pub transport: Transport,
    /// The distributed trace that the call belongs to. Only its events say so.
    pub trace_id: Option<TraceId>,
}

impl Invocation {
    /// The execution that the call belongs to: the one that was named, or the call itself.
    pub fn run_id(&self) -> String {
        self.trace.run.as_ref().map_or_else(|| self.id.to_string(), |run| run.as_str().to_owned())
    }

    /// The tool with its service.
    pub fn tool_name(&self) -> String {
        match &self.service {
            Some(service) => service.with_tool(&self.tool),
            None => self.tool.clone(),
        }
    }

    fn attributed_to(&self) -> String {
        if self.trace.by_agent { agent_label(&self.agent).into_owned() } else { NO_AGENT.to_owned() }
    }
}

/// An agent as the protocol names it, in three characters at least.
pub fn agent_label(agent: &PrincipalId) -> Cow<'_, str> {
    match agent.as_str() {
        short if short.len() < 3 => Cow::Owned(["agent:", short].concat()),
        long => Cow::Borrowed(long),
    }
}

/// A call is about to be made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCalled {
    /// For which agent.
    pub agent_id: String,
    /// SHA-256 of the canonical arguments, with every secret redacted before.
    pub args_hash: String,
    pub call_id: InvocationId,
    /// The arguments, where the tool's logging rule says that they may be kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Value>,
    /// Under whose authority.
    pub principal: PrincipalId,
    /// The tool with its service.
    pub tool_name: String,
    pub transport: Transport,
}

impl ToolCalled {
    /// The call that is recorded like this.
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

/// How a call came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReturnStatus {
    /// It failed, or it could not be made of what was given.
    Error,
    /// It was not allowed.
    Forbidden,
    Ok,
    /// There were too many.
    RateLimited,
}

impl ReturnStatus {
    /// As it is shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Forbidden => "forbidden",
            Self::Ok => "ok",
            Self::RateLimited => "rate_limited",
        }
    }
}

/// Why a call failed: no more than the code, and a sentence that says nothing about what was in the call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReturnError {
    pub code: String,
    pub message: String,
}

/// A call came back, or was not made. Stands inside the event of RFC-0014 that records the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolReturned {
    /// For which agent.
    pub agent_id: String,
    pub call_id: InvocationId,
    /// The event of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub causation_id: Option<EventId>,
    /// How long the tool took, where it was reached at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// INVARIANT: there is one if and only if the status is `error`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ReturnError>,
    pub status: ReturnStatus,
    /// The tool with its service.
    pub tool_name: String,
    #[serde(default)]
    pub r#type: ReturnedType,
}

/// The member that says that this is a return: always [`RETURNED`].
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
    /// The call succeeded.
    pub fn ok(invocation: &Invocation, duration_ms: u64) -> Self {
        Self::new(invocation, ReturnStatus::Ok, Some(duration_ms), None)
    }

    /// The call failed, after this time where the tool was reached.
    pub fn error(invocation: &Invocation, code: &str, message: String, duration_ms: Option<u64>) -> Self {
        let error = ReturnError { code: code.to_owned(), message };
        Self::new(invocation, ReturnStatus::Error, duration_ms, Some(error))
    }

    /// The call was not allowed.
    pub fn forbidden(invocation: &Invocation) -> Self {
        Self::new(invocation, ReturnStatus::Forbidden, None, None)
    }

    /// There were too many.
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
