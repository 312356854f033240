//! Samples of the events of workflows.

use crate::event::{EventPayload, WorkflowApplied};
use crate::workflow::{WorkflowName, WorkflowVersion};

pub fn workflows() -> Vec<EventPayload> {
    vec![EventPayload::WorkflowApplied(WorkflowApplied {
        changes: 6,
        digest: "ab".repeat(32),
        revision: 2,
        version: WorkflowVersion::parse("1.0").unwrap(),
        widenings: 3,
        workflow: WorkflowName::parse("quarterly-compliance").unwrap(),
    })]
}
