//! Standing approvals: decisions that also cover later calls. Each belongs to one agent and one tool, has a chosen
//! reach, and can be listed and revoked.

use serde::{Deserialize, Serialize};

use super::session::{SessionName, Workspace};
use super::{ApprovalSession, BoundAction};
use crate::id::{ApprovalId, StandingApprovalId};
use crate::principal::{PrincipalId, TenantId};
use crate::time::Timestamp;

/// Which calls of the tool are covered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Coverage {
    Tool,
    /// Command lines all of whose commands begin with these words, as the shell recognizer parses them.
    Prefix(Vec<String>),
}

/// Where a standing approval applies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    Session {
        owner: PrincipalId,
        name: SessionName,
    },
    /// All sessions in one directory.
    Workspace(Workspace),
    /// Everywhere.
    User,
}

impl Reach {
    /// The stored and displayed form.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Session { .. } => "session",
            Self::Workspace(_) => "workspace",
            Self::User => "user",
        }
    }

    /// Whether it applies to a call of this session.
    pub fn reaches(&self, session: Option<&ApprovalSession>) -> bool {
        match self {
            Self::Session { owner, name } => {
                session.is_some_and(|session| session.owner == *owner && session.name == *name)
            }
            Self::Workspace(workspace) => {
                session.and_then(|session| session.workspace.as_ref()).is_some_and(|own| own == workspace)
            }
            Self::User => true,
        }
    }
}

/// The standing approval that an approver requests with a decision. A prefix is kept as it was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StandingRequest {
    pub coverage: RequestedCoverage,
    /// `session`, `workspace` or `user`; by default the session, and for a call without one all calls of the agent.
    pub reach: Option<RequestedReach>,
    pub expires_in_seconds: Option<u64>,
    pub max_uses: Option<u64>,
}

/// Which calls are to be covered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestedCoverage {
    /// All calls of the tool.
    Tool,
    /// Commands that begin with these words.
    Prefix(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestedReach {
    /// The session of the call.
    Session,
    /// The directory of the call's session.
    Workspace,
    /// Everywhere.
    User,
}

impl RequestedReach {
    pub(crate) const ALL: [Self; 3] = [Self::Session, Self::Workspace, Self::User];
}

/// A decision that also covers later calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StandingApproval {
    pub id: StandingApprovalId,
    pub tenant: TenantId,
    /// The agent whose calls it covers.
    pub agent: PrincipalId,
    /// The qualified name.
    pub tool: String,
    /// Whether the client executes the calls: an approval of such a tool does not cover a tool of the gate with the
    /// same name.
    #[serde(default)]
    pub external: bool,
    /// The approved action; it covers no other. `None` for a tool without a credential.
    #[serde(default)]
    pub action: Option<BoundAction>,
    pub coverage: Coverage,
    pub reach: Reach,
    /// The approval that created it.
    pub source: ApprovalId,
    /// The approver.
    pub created_by: PrincipalId,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    pub max_uses: Option<u64>,
    /// The number of uses so far.
    pub used: u64,
    pub last_used_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
    pub revoked_by: Option<PrincipalId>,
}

/// Whether a standing approval still covers anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StandingState {
    Active,
    Expired,
    Revoked,
    /// It has reached its maximum number of uses.
    UsedUp,
}

impl StandingState {
    pub(crate) const ALL: [Self; 4] = [Self::Active, Self::Expired, Self::Revoked, Self::UsedUp];

    /// The displayed form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Expired => "expired",
            Self::Revoked => "revoked",
            Self::UsedUp => "used_up",
        }
    }
}

impl StandingApproval {
    pub fn state(&self, now: Timestamp) -> StandingState {
        if self.revoked_at.is_some() {
            StandingState::Revoked
        } else if self.expires_at.is_some_and(|end| end <= now) {
            StandingState::Expired
        } else if self.max_uses.is_some_and(|most| self.used >= most) {
            StandingState::UsedUp
        } else {
            StandingState::Active
        }
    }

    /// Counts one more use.
    #[must_use]
    pub fn used_at(&self, now: Timestamp) -> Self {
        Self { used: self.used.saturating_add(1), last_used_at: Some(now), ..self.clone() }
    }

    /// Whether it is for this action. One from before actions were recorded is for none.
    pub fn is_for_action(&self, action: Option<&BoundAction>) -> bool {
        let digest = |action: &BoundAction| action.digest.clone();
        self.action.as_ref().map(digest) == action.map(digest)
    }

    /// The rule as a sentence for people: exactly what it covers.
    pub fn rule(&self) -> String {
        let which = match &self.coverage {
            Coverage::Tool => format!("every call of {}", self.tool),
            Coverage::Prefix(words) => {
                format!("commands of {} that begin with `{}`", self.tool, words.join(" "))
            }
        };
        let far = match &self.reach {
            Reach::Session { name, .. } => format!("in session {name}"),
            Reach::Workspace(workspace) => format!("in {}", workspace.as_str()),
            Reach::User => "everywhere".to_owned(),
        };
        let by_what = self.action.as_ref().map_or_else(String::new, |action| format!(" as {}", action.describe()));
        format!("{which}{by_what} by {}, {far}", self.agent)
    }
}
