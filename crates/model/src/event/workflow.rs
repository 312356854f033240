//! Workflows from files.

use serde::{Deserialize, Serialize};

use crate::workflow::{WorkflowName, WorkflowVersion};

/// The changes of a file were made. Each of them is also recorded by an event of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkflowApplied {
    /// The number of changes.
    pub changes: u64,
    /// SHA-256 of the file.
    pub digest: String,
    /// Counts the applications of this workflow that changed something.
    pub revision: u64,
    pub version: WorkflowVersion,
    /// The number of changes that widened authority.
    pub widenings: u64,
    pub workflow: WorkflowName,
}
