//! Tool hooks (OpenWOP RFC 0064): the pair that every call leaves in the log, content-free, so that whoever follows calls
//! never needs to see what was in them.

use std::borrow::Cow;

use serde_json::Value;

use crate::canonical::ObjectWriter;
use crate::id::{EventId, InvocationId, SessionId};
use crate::invocation::Invocation;
use crate::principal::PrincipalId;
use crate::text::identifiers;

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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
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
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCalled {
    /// For which agent.
    pub agent: String,
    /// SHA-256 of the canonical arguments, with every secret taken out before.
    pub args_hash: String,
    /// Which call.
    pub call: InvocationId,
    /// The arguments, where the tool's logging rule says that they may be kept.
    pub inputs: Option<Value>,
    /// Under whose authority.
    pub principal: PrincipalId,
    /// Which tool.
    pub tool: String,
    /// How the tool is reached.
    pub transport: Transport,
}

impl ToolCalled {
    /// The call that is written down like this.
    pub fn of(invocation: &Invocation, inputs: Option<Value>) -> Self {
        Self {
            agent: invocation.attributed_to(),
            args_hash: invocation.arguments_hash.clone(),
            call: invocation.id,
            inputs,
            principal: invocation.agent.clone(),
            tool: invocation.tool_name(),
            transport: invocation.trace.transport,
        }
    }

    pub(crate) fn write(&self, data: &mut ObjectWriter<'_>) {
        data.text("agentId", &self.agent);
        data.text("argsHash", &self.args_hash);
        data.shown("callId", self.call);
        if let Some(inputs) = &self.inputs {
            data.value("inputs", inputs);
        }
        data.text("principal", self.principal.as_str());
        data.text("toolName", &self.tool);
        data.text("transport", self.transport.as_str());
    }
}

/// How a call came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReturnStatus {
    /// It failed, or it could not be made of what was given.
    Error,
    /// It was not allowed.
    Forbidden,
    /// It succeeded.
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReturnError {
    /// The stable code.
    pub code: String,
    /// The sentence.
    pub message: String,
}

/// A call came back, or was not made.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolReturned {
    /// For which agent.
    pub agent: String,
    /// Which call.
    pub call: InvocationId,
    /// How long the tool took, where it was reached at all.
    pub duration_ms: Option<u64>,
    /// Why it failed.
    ///
    /// INVARIANT: there is one if and only if the status is `error`.
    pub error: Option<ReturnError>,
    /// How.
    pub status: ReturnStatus,
    /// Which tool.
    pub tool: String,
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
        let (agent, tool) = (invocation.attributed_to(), invocation.tool_name());
        Self { agent, call: invocation.id, duration_ms, error, status, tool }
    }

    pub(crate) fn write(&self, data: &mut ObjectWriter<'_>) {
        data.text("agentId", &self.agent);
        data.shown("callId", self.call);
        data.shown("causationId", EventId::of_call(self.call));
        if let Some(duration) = self.duration_ms {
            data.value("durationMs", &Value::from(duration));
        }
        if let Some(error) = &self.error {
            data.object("error", |data| {
                data.text("code", &error.code);
                data.text("message", &error.message);
            });
        }
        data.text("status", self.status.as_str());
        data.text("toolName", &self.tool);
        data.text("type", RETURNED);
    }
}
