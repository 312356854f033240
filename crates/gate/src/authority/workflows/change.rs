//! The changes of a file, as they are shown.

use serde_json::{Value, json};
use toolgate_model::workflow::Place;

#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    pub action: ChangeAction,
    pub object: ChangedObject,
    /// The object: its id, or what it is about if it has none yet.
    pub name: String,
    /// What differs.
    pub details: Vec<String>,
    /// How it widens access; empty if it does not.
    pub widens: Vec<String>,
    /// Where the file declares it; `None` for what it no longer declares.
    pub at: Option<Place>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeAction {
    Create,
    Update,
    /// Ended and created again with other terms.
    Replace,
    Remove,
    Revoke,
}

impl ChangeAction {
    /// The displayed form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Replace => "replace",
            Self::Remove => "remove",
            Self::Revoke => "revoke",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangedObject {
    Agent,
    Budget,
    Coordinator,
    Grant,
    Plan,
    Policies,
    Service,
    Workflow,
}

impl ChangedObject {
    /// The displayed form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Budget => "budget",
            Self::Coordinator => "coordinator",
            Self::Grant => "grant",
            Self::Plan => "plan",
            Self::Policies => "policies",
            Self::Service => "service",
            Self::Workflow => "workflow",
        }
    }
}

impl Change {
    /// As it is shown in a refusal.
    pub fn to_json(&self) -> Value {
        json!({
            "action": self.action.as_str(), "object": self.object.as_str(), "name": self.name, "details": self.details,
            "widens": self.widens, "line": self.at.map(|at| at.line), "column": self.at.map(|at| at.column),
        })
    }
}
