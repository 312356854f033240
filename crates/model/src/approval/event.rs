//! What the log is told of approvals: that somebody was asked, who said what, how it ended; never the arguments.

use serde_json::{Map, Value, json};

use super::{Approval, ApprovalStatus, Decision, Mode, SessionName, StandingApproval, Vote};
use crate::id::{InvocationId, StandingApprovalId};
use crate::principal::PrincipalId;

/// Something that happened to an approval.
#[derive(Debug, Clone, PartialEq)]
pub enum ApprovalEvent {
    /// A person is asked.
    Requested(Approval),
    /// Somebody said yes, and more must.
    Counted(Approval),
    /// It has ended.
    Ended(Approval),
    /// An answer covers later calls from now on.
    StandingCreated(StandingApproval),
    /// It was taken back.
    StandingRevoked(StandingApproval),
    /// A call was let pass by it.
    StandingUsed {
        /// By which.
        standing: StandingApprovalId,
        /// Which call.
        invocation: InvocationId,
        /// Of which tool.
        tool: String,
        /// How often it was used, with this one.
        used: u64,
    },
    /// The mode of a session was set.
    ModeChanged {
        /// Whose session.
        owner: PrincipalId,
        /// Which.
        session: SessionName,
        /// From which mode.
        from: Mode,
        /// To which.
        to: Mode,
    },
}

impl ApprovalEvent {
    /// What the types of all these events begin with, or one of it.
    pub const NAMES: [&'static str; 12] = [
        "approval.cancelled",
        "approval.counted",
        "approval.granted",
        "approval.orphaned",
        "approval.overridden",
        "approval.rejected",
        "approval.requested",
        "approval.timed_out",
        "approval_session.mode_changed",
        "standing_approval.created",
        "standing_approval.revoked",
        "standing_approval.used",
    ];

    /// The event's type.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Requested(_) => "approval.requested",
            Self::Counted(_) => "approval.counted",
            Self::Ended(approval) => match approval.status {
                ApprovalStatus::Approved if approval.is_overridden() => "approval.overridden",
                ApprovalStatus::Approved => "approval.granted",
                ApprovalStatus::Denied => "approval.rejected",
                ApprovalStatus::TimedOut => "approval.timed_out",
                ApprovalStatus::Orphaned => "approval.orphaned",
                ApprovalStatus::Cancelled | ApprovalStatus::Pending | ApprovalStatus::Requested => "approval.cancelled",
            },
            Self::StandingCreated(_) => "standing_approval.created",
            Self::StandingRevoked(_) => "standing_approval.revoked",
            Self::StandingUsed { .. } => "standing_approval.used",
            Self::ModeChanged { .. } => "approval_session.mode_changed",
        }
    }

    /// What is told.
    pub fn data(&self) -> Value {
        match self {
            Self::Requested(approval) => Value::Object(requested(approval)),
            Self::Counted(approval) | Self::Ended(approval) => Value::Object(answered(approval)),
            Self::StandingCreated(standing) => json!({
                "standing_approval_id": standing.id, "approval_id": standing.source, "tool": standing.tool,
                "agent_id": standing.agent, "coverage": standing.coverage, "reach": standing.reach.as_str(),
                "expires_at": standing.expires_at, "max_uses": standing.max_uses, "created_by": standing.created_by,
            }),
            Self::StandingRevoked(standing) => json!({
                "standing_approval_id": standing.id, "tool": standing.tool, "agent_id": standing.agent,
                "used": standing.used, "revoked_by": standing.revoked_by,
            }),
            Self::StandingUsed { standing, invocation, tool, used } => json!({
                "standing_approval_id": standing, "invocation_id": invocation, "tool": tool, "used": used
            }),
            Self::ModeChanged { owner, session, from, to } => {
                json!({"owner": owner, "session": session, "from": from, "to": to})
            }
        }
    }
}

/// What identifies an approval. `gateId` is the name that OpenWOP has for it.
fn about(approval: &Approval) -> Map<String, Value> {
    let mut data = Map::new();
    data.insert("approval_id".to_owned(), json!(approval.id));
    data.insert("gateId".to_owned(), json!(approval.id));
    data.insert("invocation_id".to_owned(), json!(approval.invocation));
    data.insert("tool".to_owned(), json!(approval.tool));
    data.insert("digest".to_owned(), json!(approval.digest));
    data.insert("status".to_owned(), json!(approval.status));
    data
}

fn requested(approval: &Approval) -> Map<String, Value> {
    let mut data = about(approval);
    data.insert("category".to_owned(), json!(approval.category));
    data.insert("kind".to_owned(), json!("approval"));
    data.insert("asked_by".to_owned(), json!(approval.reasons.iter().map(|reason| reason.source).collect::<Vec<_>>()));
    data.insert("approvers_needed".to_owned(), json!(approval.rule.approvers));
    data.insert("expires_at".to_owned(), json!(approval.expires_at));
    if let Some(session) = &approval.session {
        data.insert("session".to_owned(), json!(session.name));
    }
    data
}

fn answered(approval: &Approval) -> Map<String, Value> {
    let mut data = about(approval);
    let decided =
        matches!(approval.status, ApprovalStatus::Approved | ApprovalStatus::Denied | ApprovalStatus::Pending);
    if let Some(Vote { by, decision, channel, .. }) = approval.votes.last().filter(|_| decided) {
        data.insert("principal".to_owned(), json!(by));
        data.insert("decision".to_owned(), json!(decision));
        data.insert("channel".to_owned(), json!(channel));
        if *decision == Decision::Approve {
            let progress = json!({"given": approval.given(), "needed": approval.rule.approvers});
            data.insert("quorumProgress".to_owned(), progress);
        }
    }
    if let Some(reason) = &approval.reason {
        data.insert("reason".to_owned(), json!(reason));
    }
    if let Some(standing) = approval.standing {
        data.insert("standing_approval_id".to_owned(), json!(standing));
    }
    data
}
