//! Telemetry about finished calls.

use std::fmt;
use std::sync::Arc;

use toolgate_model::credential::ServiceName;
use toolgate_model::id::InvocationId;
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::time::Timestamp;
use toolgate_model::trace_context::{SpanId, TraceParent};

use crate::call::StageTimes;
use crate::refusal::Stage;
use crate::request_context::RequestId;

/// Receives every finished call, on the task of the call: an implementation must not wait.
pub trait Telemetry: Send + Sync {
    fn call_finished(&self, call: &FinishedCall<'_>);
}

/// A call that has finished: executed, refused, or admitted without a known outcome. Without arguments, results and secrets.
#[derive(Debug, Clone, Copy)]
pub struct FinishedCall<'a> {
    pub id: InvocationId,
    pub tenant: &'a TenantId,
    /// `None` if the call failed inside the gate, as for `tool`.
    pub agent: Option<&'a PrincipalId>,
    pub tool: Option<ToolLabel<'a>>,
    /// The HTTP request that it came with. A detached call that another process continues has none.
    pub request: Option<RequestId>,
    pub trace: Option<&'a TracedCall>,
    /// When its run began. A detached call that waited for an approver runs again.
    pub started: Timestamp,
    pub outcome: FinishedAs,
    /// `None` for a success.
    pub code: Option<&'a str>,
    /// The stage that refused it.
    pub stage: Option<Stage>,
    /// Whether it has its own record. If a principal is refused too often, its refusals are only counted.
    pub is_recorded: bool,
    pub times: Option<&'a StageTimes>,
}

/// How a call finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinishedAs {
    Success,
    /// It was executed and failed.
    Error,
    /// It has the stored result of an earlier call with the same idempotency key.
    Replayed,
    Denied,
    /// It was admitted, and its outcome is not recorded.
    Unknown,
}

impl FinishedAs {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Error => "error",
            Self::Replayed => "replayed",
            Self::Denied => "denied",
            Self::Unknown => "unknown",
        }
    }
}

/// A tool with its service, or the name in the call if no tool was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolLabel<'a> {
    pub service: Option<&'a ServiceName>,
    pub name: &'a str,
}

impl fmt::Display for ToolLabel<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.service {
            Some(service) => write!(formatter, "{service}.{}", self.name),
            None => formatter.write_str(self.name),
        }
    }
}

/// The position of a call in its trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracedCall {
    /// What services receive: the trace, the parent of their spans, and whether it is sampled.
    pub context: TraceParent,
    /// The caller's span, if the caller sent one.
    pub parent: Option<SpanId>,
    /// `tracestate` of the caller.
    pub state: Option<Arc<str>>,
    /// Whether the gate exports spans of this call.
    pub is_exported: bool,
}

/// Telemetry that discards everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoTelemetry;

impl Telemetry for NoTelemetry {
    fn call_finished(&self, _call: &FinishedCall<'_>) {}
}
