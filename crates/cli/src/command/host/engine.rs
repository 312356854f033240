//! The gate as a session uses it: calls, decisions and the mode. The implementation is over HTTP; tests have another.

use serde_json::{Map, Value};
use toolgate_model::approval::{CallLabel, Category, Mode};

use super::protocol::{ResultStatus, Scope};

pub(super) trait Engine: Send + Sync + 'static {
    /// Makes a call, reports its progress, and returns how it ended. Dropping it withdraws the call.
    fn call(&self, call: EngineCall, progress_reporter: impl ProgressReporter) -> impl Future<Output = Ended> + Send;
    fn decide(&self, approval: &str, verdict: &Verdict) -> impl Future<Output = Result<Decided, EngineError>> + Send;
    /// Sets the mode of the session, and returns the effective mode.
    fn set_mode(&self, mode: Mode) -> impl Future<Output = Result<Mode, EngineError>> + Send;
}

pub(super) trait ProgressReporter: Send {
    fn send(&mut self, progress: Progress) -> impl Future<Output = ()> + Send;
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct EngineCall {
    /// The id that the host gave it.
    pub(super) label: CallLabel,
    /// The qualified name.
    pub(super) tool: String,
    pub(super) arguments: Map<String, Value>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Progress {
    Asked(Box<Request>),
    /// Standing approvals cover it.
    Covered(Vec<String>),
    Admitted,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Request {
    pub(super) approval: String,
    pub(super) category: Option<Category>,
    pub(super) description: Option<String>,
    /// The arguments that the decision is about.
    pub(super) arguments: Option<Value>,
    pub(super) reason: String,
    /// Details for approvers.
    pub(super) details: Map<String, Value>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Ended {
    Finished {
        status: ResultStatus,
        output: String,
        metadata: Map<String, Value>,
    },
    /// It was not approved.
    Cancelled {
        reason: String,
        expired: bool,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) approved: bool,
    pub(super) scope: Scope,
    pub(super) reason: Option<String>,
    pub(super) answer: Option<String>,
    /// The decision counts once per key.
    pub(super) key: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Decided {
    Ended {
        approved: bool,
        /// Why no standing approval was created.
        notice: Option<String>,
    },
    /// More approvers are required.
    Counted { given: u64, needed: u64 },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum EngineError {
    Already(String),
    Expired(String),
    Refused(String),
    Unavailable(String),
}
