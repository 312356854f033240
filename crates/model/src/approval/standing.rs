//! Standing approvals: answers that also cover later calls. Each belongs to one agent and one tool, reaches as far as
//! somebody chose, and can be looked at and taken back.

use serde::{Deserialize, Serialize};

use super::session::{SessionName, Workspace};
use super::{ApprovalSession, BoundAction};
use crate::id::{ApprovalId, StandingApprovalId};
use crate::principal::{PrincipalId, TenantId};
use crate::time::Timestamp;

/// Which calls of the tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Coverage {
    /// All.
    Tool,
    /// Command lines all of whose commands begin with these words, as the shell recogniser reads them.
    Prefix(Vec<String>),
}

/// How far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// One session.
    Session {
        /// Whose session.
        owner: PrincipalId,
        /// Its name.
        name: SessionName,
    },
    /// All sessions in one directory.
    Workspace(Workspace),
    /// Everywhere.
    User,
}

impl Reach {
    /// As it is stored and shown.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Session { .. } => "session",
            Self::Workspace(_) => "workspace",
            Self::User => "user",
        }
    }

    /// Whether it reaches a call of this session.
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

/// What somebody who says yes wants to be covered besides the call. The words of a prefix are as they were written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StandingRequest {
    /// Which calls.
    pub coverage: RequestedCoverage,
    /// How far: `session`, `workspace` or `user`; where nothing is said, the session, and for a call without one the agent's
    /// calls everywhere.
    pub reach: Option<RequestedReach>,
    /// For how many seconds.
    pub expires_in_seconds: Option<u64>,
    /// How often.
    pub max_uses: Option<u64>,
}

/// Which calls are to be covered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestedCoverage {
    /// All of the tool.
    Tool,
    /// Commands that begin with this.
    Prefix(String),
}

/// How far it is to reach.
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

/// An answer that also covers later calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StandingApproval {
    /// Its id.
    pub id: StandingApprovalId,
    /// The tenant.
    pub tenant: TenantId,
    /// Whose calls.
    pub agent: PrincipalId,
    /// Of which tool, with its service.
    pub tool: String,
    /// Whether somebody else carries them out: what is said of such a tool covers none of the gate's of the same name.
    #[serde(default)]
    pub external: bool,
    /// The action that was approved; it covers no other. `None` for a tool that uses no credential.
    #[serde(default)]
    pub action: Option<BoundAction>,
    /// Which of them.
    pub coverage: Coverage,
    /// How far.
    pub reach: Reach,
    /// By which answer.
    pub source: ApprovalId,
    /// Whose answer.
    pub created_by: PrincipalId,
    /// Since when.
    pub created_at: Timestamp,
    /// Until when.
    pub expires_at: Option<Timestamp>,
    /// How often at most.
    pub max_uses: Option<u64>,
    /// How often so far.
    pub used: u64,
    /// When last.
    pub last_used_at: Option<Timestamp>,
    /// When it was taken back.
    pub revoked_at: Option<Timestamp>,
    /// By whom.
    pub revoked_by: Option<PrincipalId>,
}

/// Whether a standing approval still covers anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StandingState {
    /// It does.
    Active,
    /// Its time is over.
    Expired,
    /// It was taken back.
    Revoked,
    /// It was used as often as it may be.
    UsedUp,
}

impl StandingState {
    pub(crate) const ALL: [Self; 4] = [Self::Active, Self::Expired, Self::Revoked, Self::UsedUp];

    /// As it is shown.
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
    /// How it stands.
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

    /// Used once more.
    #[must_use]
    pub fn used_at(&self, now: Timestamp) -> Self {
        Self { used: self.used.saturating_add(1), last_used_at: Some(now), ..self.clone() }
    }

    /// Whether it is for this action. One that was made before actions were recorded is for none.
    pub fn is_for_action(&self, action: Option<&BoundAction>) -> bool {
        let digest = |action: &BoundAction| action.digest.clone();
        self.action.as_ref().map(digest) == action.map(digest)
    }

    /// The rule, as a sentence for people: exactly what it covers.
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
