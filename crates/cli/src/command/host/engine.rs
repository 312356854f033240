//! What a session of a host needs of a gate: a way for calls, for answers and for the mode. The real one is over HTTP.

use serde_json::{Map, Value};
use toolgate_model::approval::{CallLabel, Category, Mode};

use super::protocol::{ResultStatus, Scope};

/// A gate, as a session sees it.
pub(super) trait Engine: Send + Sync + 'static {
    /// Makes a call and tells how far it has come; answers how it ended. Dropped, nobody waits for the call any more.
    fn call(&self, call: EngineCall, progress_reporter: impl ProgressReporter) -> impl Future<Output = Ended> + Send;
    /// Answers an approval.
    fn decide(&self, approval: &str, verdict: &Verdict) -> impl Future<Output = Result<Decided, EngineError>> + Send;
    /// Sets the mode of the session; answers the one that is in effect then.
    fn set_mode(&self, mode: Mode) -> impl Future<Output = Result<Mode, EngineError>> + Send;
}

/// Is told how far a call has come.
pub(super) trait ProgressReporter: Send {
    /// Takes the next step.
    fn send(&mut self, progress: Progress) -> impl Future<Output = ()> + Send;
}

/// A call to be made.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct EngineCall {
    /// What the host calls it.
    pub(super) label: CallLabel,
    /// The tool, by its full name.
    pub(super) tool: String,
    /// What it is called with.
    pub(super) arguments: Map<String, Value>,
}

/// How far a call has come.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Progress {
    /// It waits for an answer.
    Asked(Box<Request>),
    /// Earlier answers cover it.
    Covered(Vec<String>),
    /// It is about to be carried out.
    Admitted,
}

/// What a person is asked.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Request {
    /// The id of the approval.
    pub(super) approval: String,
    /// What kind of a call it is, where the gate says.
    pub(super) category: Option<Category>,
    /// What it does, in a line, where the gate says.
    pub(super) description: Option<String>,
    /// What the answer is given for.
    pub(super) arguments: Option<Value>,
    /// Why a person is asked.
    pub(super) reason: String,
    /// More for whoever decides.
    pub(super) details: Map<String, Value>,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Ended {
    /// With an answer, good or bad.
    Answered {
        /// Good or bad.
        status: ResultStatus,
        /// What the tool gave, or why it gave nothing.
        output: String,
        /// More about it.
        metadata: Map<String, Value>,
    },
    /// By a no, or by nobody's yes.
    Cancelled {
        /// Why.
        reason: String,
        /// Whether its time was over.
        expired: bool,
    },
}

/// An answer to an approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Verdict {
    /// Yes or no.
    pub(super) approved: bool,
    /// How far a yes reaches.
    pub(super) scope: Scope,
    /// Why not.
    pub(super) reason: Option<String>,
    /// The answer, where the tool is a question.
    pub(super) answer: Option<String>,
    /// Sent again under the same key, it counts once.
    pub(super) key: String,
}

/// What an answer did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Decided {
    /// The approval has ended.
    Ended {
        /// Yes or no.
        approved: bool,
        /// Why less came of it than was wished for.
        notice: Option<String>,
    },
    /// Others must answer too.
    Counted {
        /// How many have.
        given: u64,
        /// How many must.
        needed: u64,
    },
}

/// Why something was not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum EngineError {
    /// Somebody answered before.
    Already(String),
    /// It can no longer be answered.
    Expired(String),
    /// The gate says no.
    Refused(String),
    /// The gate does not answer.
    Unavailable(String),
}
