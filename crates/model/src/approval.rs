//! Approvals: a person's decision on one call. An approval is requested, waits, and ends in exactly one way; a decision
//! covers exactly what was shown.
//!
//! This is the state machine only: the ledger runs it inside a transaction.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::{ApprovalId, InvocationId, StandingApprovalId};
use crate::principal::{PrincipalId, TenantId};
use crate::time::Timestamp;

pub use self::action::BoundAction;
pub use self::decision::{Channel, DecideError, Decided, Decider, Decision, Vote};
pub use self::link::{LinkDigest, LinkToken, LinkTokenError};
pub use self::mode::{Category, Mode};
pub use self::rule::{ApprovalRule, Attendance, DEFAULT_WAIT, MAX_WAIT, RuleError};
pub use self::session::{ApprovalSession, CallLabel, SessionName, Workspace};
pub use self::standing::{
    Coverage, Reach, RequestedCoverage, RequestedReach, StandingApproval, StandingRequest, StandingState,
};

mod action;
mod decision;
mod link;
mod mode;
mod rule;
mod session;
mod standing;

#[cfg(test)]
mod tests;

/// The reason of a call whose approval timed out. Programs compare this text: it must never change.
pub const TIMED_OUT: &str = "approval timed out (no host response)";
/// The reason of a call whose host closed its input.
pub const HOST_CLOSED: &str = "host closed the command stream while this approval was pending";
/// The reason of a call that the host denied without one.
pub const DENIED_BY_HOST: &str = "denied by host";

macro_rules! statuses {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)+) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum ApprovalStatus {
            $($(#[$doc])* #[serde(rename = $name)] $variant,)+
        }

        impl ApprovalStatus {
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The stored and displayed form.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// Parses [`ApprovalStatus::as_str`].
            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|status| status.as_str() == text)
            }
        }
    };
}

statuses! {
    /// Requested and not recorded yet: nobody can decide it.
    Requested = "requested",
    /// Recorded and waiting.
    Pending = "pending",
    /// Approved by as many approvers as the rule requires.
    Approved = "approved",
    Denied = "denied",
    /// Nobody decided in time.
    TimedOut = "timed_out",
    /// The caller is gone.
    Cancelled = "cancelled",
    /// The process of the waiting call died.
    Orphaned = "orphaned",
}

impl ApprovalStatus {
    /// Whether it can still change.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Requested | Self::Pending)
    }
}

/// Why an approval is required. Reasons add up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskReason {
    /// What requires it.
    pub source: AskSource,
    /// The reason, for people.
    pub text: String,
}

/// What requires an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskSource {
    /// The definition of the tool.
    Tool,
    /// The mode of the session.
    Mode,
    Guardian,
    /// The call would change something protected.
    Protected,
    /// The tool is a question to a person.
    Question,
    /// A guardrail of a coordinator.
    Guardrail,
}

impl AskSource {
    pub(crate) const ALL: [Self; 6] =
        [Self::Tool, Self::Mode, Self::Guardian, Self::Protected, Self::Question, Self::Guardrail];
}

/// One approval, with everything that approvers are shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Approval {
    /// Public, not a secret.
    pub id: ApprovalId,
    pub tenant: TenantId,
    pub status: ApprovalStatus,
    /// The call that waits.
    pub invocation: InvocationId,
    /// The caller's own name of the call.
    pub call: Option<CallLabel>,
    /// The agent that the call is made for.
    pub agent: PrincipalId,
    /// The principal that makes it.
    pub actor: PrincipalId,
    /// Whether that principal is a person, who may then decide it too.
    pub actor_is_person: bool,
    /// The qualified name.
    pub tool: String,
    /// Whether the client executes it, under tool names of its own choice.
    #[serde(default)]
    pub external: bool,
    /// Whether the call is detached: it waits in the ledger and not on a connection.
    #[serde(default)]
    pub detached: bool,
    pub category: Category,
    /// What the call does, in one line.
    pub description: String,
    /// The arguments that the decision is about; removed some time after the end.
    pub arguments: Option<Value>,
    /// The arguments as sent, if a guardian modified them.
    pub original_arguments: Option<Value>,
    /// What is executed if approved; `None` for a tool without a credential.
    #[serde(default)]
    pub action: Option<BoundAction>,
    /// SHA-256 over tool, action, request, canonical arguments and caller: what the decision covers.
    pub digest: String,
    pub reasons: Vec<AskReason>,
    /// Who must decide.
    pub rule: ApprovalRule,
    /// Whether a decision may cover later calls too.
    pub coverable: bool,
    /// The session of the call.
    pub session: Option<ApprovalSession>,
    /// The decisions so far.
    pub votes: Vec<Vote>,
    /// The answer, if the tool is a question.
    pub answer: Option<String>,
    /// Why it ended as it did.
    pub reason: Option<String>,
    /// Why a requested standing approval was not granted.
    pub notice: Option<String>,
    /// The standing approval that this decision created.
    pub standing: Option<StandingApprovalId>,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    pub resolved_at: Option<Timestamp>,
}

impl Approval {
    /// The number of approvals so far.
    pub fn given(&self) -> u32 {
        let yes = self.votes.iter().filter(|vote| vote.decision == Decision::Approve).count();
        u32::try_from(yes).unwrap_or(u32::MAX)
    }

    /// Ends it without a decision. `None` if it has ended already: the first end wins.
    #[must_use]
    pub fn ended(&self, status: ApprovalStatus, reason: &str, now: Timestamp) -> Option<Self> {
        let ends = matches!(status, ApprovalStatus::TimedOut | ApprovalStatus::Cancelled | ApprovalStatus::Orphaned);
        (self.status == ApprovalStatus::Pending && ends).then(|| Self {
            status,
            reason: Some(reason.to_owned()),
            resolved_at: Some(now),
            ..self.clone()
        })
    }

    /// Ends an approved one whose call died before it was executed. `None` if it was not approved.
    #[must_use]
    pub fn abandoned(&self, reason: &str, now: Timestamp) -> Option<Self> {
        (self.status == ApprovalStatus::Approved).then(|| Self {
            status: ApprovalStatus::Orphaned,
            reason: Some(reason.to_owned()),
            resolved_at: Some(now),
            ..self.clone()
        })
    }

    /// Whether the tool asks a person something, so that the answer is its result.
    pub fn is_question(&self) -> bool {
        self.reasons.iter().any(|reason| reason.source == AskSource::Question)
    }
}
