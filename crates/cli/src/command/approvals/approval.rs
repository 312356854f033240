//! An approval as the terminal shows it. Unknown values, from a newer gate, are read as the more dangerous alternative.

use serde::Deserialize;
use serde_json::{Map, Value};
use toolgate_model::time::Timestamp;

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Approval {
    pub(super) id: String,
    pub(super) status: String,
    pub(super) agent_id: String,
    #[serde(default)]
    pub(super) actor_id: Option<String>,
    pub(super) tool: String,
    #[serde(default)]
    pub(super) category: Option<String>,
    #[serde(default)]
    pub(super) description: String,
    #[serde(default)]
    pub(super) arguments: Option<Map<String, Value>>,
    /// The arguments before a guardian modified them.
    #[serde(default)]
    pub(super) original_arguments: Option<Map<String, Value>>,
    /// What is executed if it is approved.
    #[serde(default)]
    pub(super) action: Option<Action>,
    #[serde(default)]
    pub(super) digest: String,
    #[serde(default)]
    pub(super) reasons: Vec<Reason>,
    #[serde(default)]
    pub(super) risk: Risk,
    #[serde(default)]
    pub(super) parts: Option<Vec<Part>>,
    #[serde(default)]
    pub(super) session: Option<Session>,
    #[serde(default)]
    pub(super) approvers: Option<Approvers>,
    #[serde(default)]
    pub(super) groups: Vec<String>,
    #[serde(default)]
    pub(super) separation_of_duties: bool,
    /// Whether a standing approval can cover such a call.
    #[serde(default)]
    pub(super) coverable: bool,
    #[serde(default)]
    pub(super) offers: Vec<Offer>,
    #[serde(default)]
    pub(super) no_offer_reason: Option<String>,
    #[serde(default)]
    pub(super) votes: Vec<Vote>,
    #[serde(default)]
    pub(super) reason: Option<String>,
    #[serde(default)]
    pub(super) notice: Option<String>,
    #[serde(default)]
    pub(super) standing_approval_id: Option<String>,
    pub(super) created_at: Timestamp,
    #[serde(default)]
    pub(super) expires_at: Option<Timestamp>,
    #[serde(default)]
    pub(super) question: Option<Question>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Action {
    pub(super) credential_label: String,
    pub(super) method: String,
    pub(super) host: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Reason {
    pub(super) source: String,
    pub(super) text: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub(super) struct Risk {
    #[serde(default)]
    pub(super) level: Level,
    #[serde(default)]
    pub(super) notes: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Level {
    Low,
    Medium,
    #[default]
    #[serde(other)]
    High,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Part {
    pub(super) text: String,
    pub(super) state: PartState,
    #[serde(default)]
    pub(super) why: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum PartState {
    Granted,
    New,
    #[serde(other)]
    Risky,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Session {
    pub(super) name: String,
    pub(super) owner_id: String,
    #[serde(default)]
    pub(super) workspace: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) struct Approvers {
    pub(super) needed: u64,
    pub(super) given: u64,
}

/// A standing approval that can be created with the decision.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Offer {
    scope: Value,
    #[serde(default)]
    pub(super) matches: Vec<String>,
    #[serde(default)]
    pub(super) does_not_match: Vec<String>,
}

impl Offer {
    /// The prefix of covered commands; `None` if every call of the tool is covered.
    pub(super) fn prefix(&self) -> Option<&str> {
        self.scope.pointer("/always_prefix/prefix").and_then(Value::as_str)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Vote {
    pub(super) by: String,
    pub(super) decision: String,
    #[serde(default)]
    pub(super) channel: String,
    #[serde(default)]
    pub(super) reason: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Question {
    #[serde(default)]
    text: Value,
    #[serde(default)]
    options: Value,
}

impl Question {
    pub(super) fn text(&self) -> String {
        self.text.as_str().map_or_else(|| self.text.to_string(), str::to_owned)
    }

    pub(super) fn options(&self) -> Vec<String> {
        self.options.as_array().map(Vec::as_slice).unwrap_or_default().iter().map(option_text).collect()
    }
}

fn option_text(option: &Value) -> String {
    let label = option.as_str().or_else(|| option.get("label").and_then(Value::as_str));
    label.map_or_else(|| option.to_string(), str::to_owned)
}

impl Approval {
    pub(super) fn read(value: &Value) -> Result<Self, String> {
        Self::deserialize(value).map_err(|error| format!("could not parse an approval of the gate: {error}"))
    }

    pub(super) fn is_pending(&self) -> bool {
        self.status == "pending"
    }

    /// Its status, and who decided it.
    pub(super) fn ending(&self) -> String {
        let status = self.status.replace('_', " ");
        match self.votes.last() {
            Some(vote) if matches!(self.status.as_str(), "approved" | "denied") => {
                format!("{status} by {} ({})", vote.by, vote.channel)
            }
            _ => status,
        }
    }
}
