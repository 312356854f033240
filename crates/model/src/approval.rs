//! Approvals: a person's answer to one call. An approval is asked for, waits, and ends in exactly one way; what the
//! answer covers is what was shown.
//!
//! This is the state machine and nothing else: whoever keeps approvals runs it inside of a transaction.

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

/// What a call is told whose time is over. Programs compare this text: not a letter of it may change.
pub const TIMED_OUT: &str = "approval timed out (no host response)";
/// What a call is told whose host ended its input.
pub const HOST_CLOSED: &str = "host closed the command stream while this approval was pending";
/// What a call is told whose host gave no reason.
pub const DENIED_BY_HOST: &str = "denied by host";

macro_rules! statuses {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)+) => {
        /// Where an approval stands.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum ApprovalStatus {
            $($(#[$doc])* #[serde(rename = $name)] $variant,)+
        }

        impl ApprovalStatus {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// As it is stored and shown.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// Reads [`ApprovalStatus::as_str`] back.
            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|status| status.as_str() == text)
            }
        }
    };
}

statuses! {
    /// Asked for, and not written down yet: nobody can answer it.
    Requested = "requested",
    /// Written down and waiting.
    Pending = "pending",
    /// Somebody said yes, or as many as the rule asks for.
    Approved = "approved",
    /// Somebody said no.
    Denied = "denied",
    /// Nobody answered in time.
    TimedOut = "timed_out",
    /// Whoever waited for it is gone.
    Cancelled = "cancelled",
    /// The process that waited for it died.
    Orphaned = "orphaned",
}

impl ApprovalStatus {
    /// Whether it can still change.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Requested | Self::Pending)
    }
}

/// Why a person is asked. Reasons add up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskReason {
    /// Who asks.
    pub source: AskSource,
    /// Why, for people.
    pub text: String,
}

/// Who asks for a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskSource {
    /// The tool's definition.
    Tool,
    /// The mode of the session.
    Mode,
    /// A guardian.
    Guardian,
    /// What the call would change must not be changed without a person.
    Protected,
    /// The tool is a question to a person.
    Question,
}

impl AskSource {
    pub(crate) const ALL: [Self; 5] = [Self::Tool, Self::Mode, Self::Guardian, Self::Protected, Self::Question];
}

/// One approval, with all that a person is shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Approval {
    /// Its id: public, and no secret.
    pub id: ApprovalId,
    /// The tenant.
    pub tenant: TenantId,
    /// Where it stands.
    pub status: ApprovalStatus,
    /// The call that waits.
    pub invocation: InvocationId,
    /// What the caller calls its call.
    pub call: Option<CallLabel>,
    /// For whom the call is made.
    pub agent: PrincipalId,
    /// Who makes it.
    pub actor: PrincipalId,
    /// Whether whoever makes it is a person, who may then answer it too.
    pub actor_is_person: bool,
    /// The tool, with its service.
    pub tool: String,
    /// Whether somebody else carries it out, who may call its tools as they like.
    #[serde(default)]
    pub external: bool,
    /// Whether the call is detached: it waits in the ledger, and nobody's connection waits with it.
    #[serde(default)]
    pub detached: bool,
    /// What kind of a call it is.
    pub category: Category,
    /// What it does, in a line.
    pub description: String,
    /// The arguments that are answered for; gone some time after the end.
    pub arguments: Option<Value>,
    /// What the caller sent, where a guardian changed it.
    pub original_arguments: Option<Value>,
    /// What is executed after a yes; `None` for a tool that uses no credential.
    #[serde(default)]
    pub action: Option<BoundAction>,
    /// SHA-256 over tool, action, request, canonical arguments and caller: what the decision covers.
    pub digest: String,
    /// Why a person is asked.
    pub reasons: Vec<AskReason>,
    /// Who must answer.
    pub rule: ApprovalRule,
    /// Whether an answer may cover later calls too.
    pub coverable: bool,
    /// The session that the call belongs to.
    pub session: Option<ApprovalSession>,
    /// Who has answered so far.
    pub votes: Vec<Vote>,
    /// What was answered, where the tool is a question.
    pub answer: Option<String>,
    /// Why it ended as it did.
    pub reason: Option<String>,
    /// What became of the wish to cover later calls, where it was not granted.
    pub notice: Option<String>,
    /// What covers later calls by this answer.
    pub standing: Option<StandingApprovalId>,
    /// Since when.
    pub created_at: Timestamp,
    /// Until when it can be answered.
    pub expires_at: Timestamp,
    /// When it ended.
    pub resolved_at: Option<Timestamp>,
}

impl Approval {
    /// How many have said yes.
    pub fn given(&self) -> u32 {
        let yes = self.votes.iter().filter(|vote| vote.decision == Decision::Approve).count();
        u32::try_from(yes).unwrap_or(u32::MAX)
    }

    /// Ends it without an answer. `None` where it has ended already: the first ending stays.
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

    /// Ends one that was approved, and whose call died before it was made. `None` where it was not approved.
    #[must_use]
    pub fn abandoned(&self, reason: &str, now: Timestamp) -> Option<Self> {
        (self.status == ApprovalStatus::Approved).then(|| Self {
            status: ApprovalStatus::Orphaned,
            reason: Some(reason.to_owned()),
            resolved_at: Some(now),
            ..self.clone()
        })
    }

    /// Whether the tool asks a person something, so that the answer is what it gives.
    pub fn is_question(&self) -> bool {
        self.reasons.iter().any(|reason| reason.source == AskSource::Question)
    }
}
