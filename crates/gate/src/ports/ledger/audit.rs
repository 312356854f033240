//! Reading the audit log.

use toolgate_model::checkpoint::TreeHead;
use toolgate_model::context::ContextId;
use toolgate_model::principal::PrincipalId;
use toolgate_model::time::Timestamp;

/// Which events to read. What is absent does not filter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// By type: any of these; none means all.
    pub kinds: Vec<String>,
    /// By the execution that it belongs to.
    pub run: Option<String>,
    /// By tool, with its service.
    pub tool: Option<String>,
    /// By who did it.
    pub actor: Option<PrincipalId>,
    /// By the agent that it concerns.
    pub agent: Option<PrincipalId>,
    /// By intent.
    pub intent: Option<ContextId>,
    /// By task.
    pub task: Option<ContextId>,
    /// Not before.
    pub since: Option<Timestamp>,
    /// Not at or after.
    pub until: Option<Timestamp>,
}

/// An event with its place in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedEvent {
    /// Its place, counted from zero without gaps: the index of its leaf.
    pub sequence: u64,
    /// Its canonical JSON, as it was hashed.
    pub canonical: String,
}

/// A signed head of a tenant's log.
#[derive(Debug, Clone, PartialEq)]
pub struct LogHead {
    /// What is signed.
    pub head: TreeHead,
    /// The signed text.
    pub checkpoint: String,
}
