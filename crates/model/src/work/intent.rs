//! Intents: goals that several agents work on, with a shared state.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use thiserror::Error;

use super::text_choice::choices;
use crate::id::IntentId;
use crate::principal::{PrincipalId, TenantId};
use crate::time::Timestamp;

choices! {
    IntentStatus {
        Draft = "draft",
        Active = "active",
        Blocked = "blocked",
        SuspendedAwaitingInput = "suspended_awaiting_input",
        /// Terminal.
        Completed = "completed",
        /// Terminal.
        Abandoned = "abandoned",
    }
}

impl IntentStatus {
    /// Whether nothing below it can be created or started any more.
    pub fn has_ended(self) -> bool {
        matches!(self, Self::Completed | Self::Abandoned)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Intent {
    pub id: IntentId,
    pub tenant: TenantId,
    pub version: u64,
    pub status: IntentStatus,
    pub title: String,
    pub description: String,
    pub state: Map<String, Value>,
    /// Free text for the agents; the gate enforces nothing of it.
    pub constraints: Map<String, Value>,
    pub parent: Option<IntentId>,
    pub depends_on: Vec<IntentId>,
    pub created_by: PrincipalId,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// An agent that is assigned to an intent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Participant {
    pub intent: IntentId,
    pub agent: PrincipalId,
    /// As stated, for the agents: it decides nothing.
    pub role: String,
    pub assigned_by: PrincipalId,
    pub assigned_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq)]
pub enum IntentChange {
    Status { status: IntentStatus, reason: Option<String> },
    State(Vec<StatePatch>),
}

/// One change of an intent's state. The path is the name of a member, or names separated by dots or slashes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum StatePatch {
    #[serde(alias = "add", alias = "replace")]
    Set { path: String, value: Value },
    #[serde(alias = "delete")]
    Remove { path: String },
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{path}` {reason}")]
pub struct StatePatchError {
    pub path: String,
    pub reason: &'static str,
}

impl StatePatch {
    pub fn path(&self) -> &str {
        match self {
            Self::Set { path, .. } | Self::Remove { path } => path,
        }
    }

    /// Applies the patch. Objects on the way to the member are created; anything else on the way is an error.
    pub fn apply(&self, state: &mut Map<String, Value>) -> Result<(), StatePatchError> {
        let error = |reason| StatePatchError { path: self.path().to_owned(), reason };
        let path = self.path();
        let parts: Vec<&str> = match path.strip_prefix('/') {
            Some(rest) => rest.split('/').collect(),
            // A member that is there is meant, whatever its name.
            None if state.contains_key(path) => vec![path],
            None => path.split('.').collect(),
        };
        if parts.len() > 32 || parts.iter().any(|part| part.is_empty()) {
            return Err(error("must name at most 32 members, none of them empty"));
        }
        let Some((last, above)) = parts.split_last() else { return Err(error("must not be empty")) };
        let mut here = state;
        for part in above {
            let next = here.entry((*part).to_owned()).or_insert_with(|| Value::Object(Map::new()));
            here = next.as_object_mut().ok_or_else(|| error("leads through a value that is not an object"))?;
        }
        match self {
            Self::Set { value, .. } => drop(here.insert((*last).to_owned(), value.clone())),
            Self::Remove { .. } => drop(here.remove(*last)),
        }
        Ok(())
    }
}
