//! Approvals: requests, decisions and ends; never the arguments.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::EventPayload;
use crate::approval::{
    Approval, ApprovalStatus, AskSource, Category, Channel, Coverage, Decision, Mode, SessionName, StandingApproval,
};
use crate::id::{ApprovalId, InvocationId, StandingApprovalId};
use crate::principal::PrincipalId;
use crate::time::Timestamp;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApprovalRequested {
    pub approval_id: ApprovalId,
    pub approvers_needed: u32,
    pub asked_by: Vec<AskSource>,
    pub category: Category,
    pub digest: String,
    pub expires_at: Timestamp,
    /// OpenWOP's name of the approval.
    #[serde(rename = "gateId")]
    pub gate_id: ApprovalId,
    pub invocation_id: InvocationId,
    /// `approval`: the kind of OpenWOP interrupt.
    pub kind: Cow<'static, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionName>,
    pub status: ApprovalStatus,
    pub tool: String,
}

/// A vote was counted, or the approval ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApprovalDecided {
    pub approval_id: ApprovalId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<Channel>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    pub digest: String,
    /// OpenWOP's name of the approval.
    #[serde(rename = "gateId")]
    pub gate_id: ApprovalId,
    pub invocation_id: InvocationId,
    /// Who decided; `None` if it ended without a decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub principal: Option<PrincipalId>,
    #[serde(rename = "quorumProgress", skip_serializing_if = "Option::is_none")]
    pub quorum_progress: Option<QuorumProgress>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The standing approval that this decision created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standing_approval_id: Option<StandingApprovalId>,
    pub status: ApprovalStatus,
    pub tool: String,
}

/// The number of approvals so far and required.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuorumProgress {
    pub given: u32,
    pub needed: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StandingApprovalCreated {
    pub agent_id: PrincipalId,
    pub approval_id: ApprovalId,
    pub coverage: Coverage,
    pub created_by: PrincipalId,
    pub expires_at: Option<Timestamp>,
    pub max_uses: Option<u64>,
    /// `session`, `workspace` or `user`.
    pub reach: Cow<'static, str>,
    pub standing_approval_id: StandingApprovalId,
    pub tool: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StandingApprovalRevoked {
    pub agent_id: PrincipalId,
    pub revoked_by: Option<PrincipalId>,
    pub standing_approval_id: StandingApprovalId,
    pub tool: String,
    pub used: u64,
}

/// A call passed by it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StandingApprovalUsed {
    pub invocation_id: InvocationId,
    pub standing_approval_id: StandingApprovalId,
    pub tool: String,
    /// The number of uses, including this one.
    pub used: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApprovalModeChanged {
    pub from: Mode,
    pub owner: PrincipalId,
    pub session: SessionName,
    pub to: Mode,
}

impl EventPayload {
    /// An approval was requested.
    pub fn approval_requested(approval: &Approval) -> Self {
        Self::ApprovalRequested(Box::new(ApprovalRequested {
            approval_id: approval.id,
            approvers_needed: approval.rule.approvers,
            asked_by: approval.reasons.iter().map(|reason| reason.source).collect(),
            category: approval.category,
            digest: approval.digest.clone(),
            expires_at: approval.expires_at,
            gate_id: approval.id,
            invocation_id: approval.invocation,
            kind: Cow::Borrowed("approval"),
            session: approval.session.as_ref().map(|session| session.name.clone()),
            status: approval.status,
            tool: approval.tool.clone(),
        }))
    }

    /// One approver approved, and more approvals are required.
    pub fn approval_counted(approval: &Approval) -> Self {
        Self::ApprovalCounted(Box::new(decided(approval)))
    }

    /// The approval has ended.
    pub fn approval_ended(approval: &Approval) -> Self {
        let decided = Box::new(decided(approval));
        match approval.status {
            ApprovalStatus::Approved if approval.is_overridden() => Self::ApprovalOverridden(decided),
            ApprovalStatus::Approved => Self::ApprovalGranted(decided),
            ApprovalStatus::Denied => Self::ApprovalRejected(decided),
            ApprovalStatus::TimedOut => Self::ApprovalTimedOut(decided),
            ApprovalStatus::Orphaned => Self::ApprovalOrphaned(decided),
            ApprovalStatus::Cancelled | ApprovalStatus::Pending | ApprovalStatus::Requested => {
                Self::ApprovalCancelled(decided)
            }
        }
    }

    /// A decision covers later calls from now on.
    pub fn standing_approval_created(standing: &StandingApproval) -> Self {
        Self::StandingApprovalCreated(Box::new(StandingApprovalCreated {
            agent_id: standing.agent.clone(),
            approval_id: standing.source,
            coverage: standing.coverage.clone(),
            created_by: standing.created_by.clone(),
            expires_at: standing.expires_at,
            max_uses: standing.max_uses,
            reach: Cow::Borrowed(standing.reach.as_str()),
            standing_approval_id: standing.id,
            tool: standing.tool.clone(),
        }))
    }

    pub fn standing_approval_revoked(standing: &StandingApproval) -> Self {
        Self::StandingApprovalRevoked(StandingApprovalRevoked {
            agent_id: standing.agent.clone(),
            revoked_by: standing.revoked_by.clone(),
            standing_approval_id: standing.id,
            tool: standing.tool.clone(),
            used: standing.used,
        })
    }

    /// The approval that an event is about or that it names.
    pub fn approval_id(&self) -> Option<ApprovalId> {
        match self {
            Self::ApprovalRequested(requested) => Some(requested.approval_id),
            Self::HookDecided(decision) => decision.approval,
            Self::StandingApprovalCreated(created) => Some(created.approval_id),
            other => other.approval_decided().map(|decided| decided.approval_id),
        }
    }

    /// A counted vote, or the end of an approval.
    pub fn approval_decided(&self) -> Option<&ApprovalDecided> {
        match self {
            Self::ApprovalCancelled(decided)
            | Self::ApprovalCounted(decided)
            | Self::ApprovalGranted(decided)
            | Self::ApprovalOrphaned(decided)
            | Self::ApprovalOverridden(decided)
            | Self::ApprovalRejected(decided)
            | Self::ApprovalTimedOut(decided) => Some(decided),
            _ => None,
        }
    }
}

fn decided(approval: &Approval) -> ApprovalDecided {
    let decides =
        matches!(approval.status, ApprovalStatus::Approved | ApprovalStatus::Denied | ApprovalStatus::Pending);
    let vote = approval.votes.last().filter(|_| decides);
    let approves = vote.is_some_and(|vote| vote.decision == Decision::Approve);
    ApprovalDecided {
        approval_id: approval.id,
        channel: vote.map(|vote| vote.channel),
        decision: vote.map(|vote| vote.decision),
        digest: approval.digest.clone(),
        gate_id: approval.id,
        invocation_id: approval.invocation,
        principal: vote.map(|vote| vote.by.clone()),
        quorum_progress: approves.then(|| QuorumProgress { given: approval.given(), needed: approval.rule.approvers }),
        reason: approval.reason.clone(),
        standing_approval_id: approval.standing,
        status: approval.status,
        tool: approval.tool.clone(),
    }
}
