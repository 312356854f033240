//! Decisions: one person's vote on an approval, and its effect. The first end wins; later votes are refused.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::standing::StandingRequest;
use super::{Approval, ApprovalRule, ApprovalStatus, TIMED_OUT};
use crate::principal::PrincipalId;
use crate::principal_scope::HeldScopes;
use crate::time::Timestamp;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    Approve,
    Deny,
    /// The call may run although its rule is not met: requires a reason, and a rule that allows it.
    Override,
}

/// How a decision was submitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    Http,
    Terminal,
    /// The command stream of a host.
    Host,
    /// The web page of the gate.
    Web,
}

impl Decision {
    pub(crate) const ALL: [Self; 3] = [Self::Approve, Self::Deny, Self::Override];
}

impl Channel {
    pub(crate) const ALL: [Self; 4] = [Self::Http, Self::Terminal, Self::Host, Self::Web];

    /// The stored and displayed form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Terminal => "terminal",
            Self::Host => "host",
            Self::Web => "web",
        }
    }

    /// Parses [`Channel::as_str`].
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|channel| channel.as_str() == text)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vote {
    pub by: PrincipalId,
    pub decision: Decision,
    pub channel: Channel,
    pub reason: Option<String>,
    /// The answer, if the tool is a question.
    pub answer: Option<String>,
    /// The requested standing approval.
    pub wish: Option<StandingRequest>,
    pub at: Timestamp,
}

/// A person who decides, as far as it matters for whether they may.
#[derive(Debug, Clone, Copy)]
pub struct Decider<'a> {
    pub id: &'a PrincipalId,
    /// Scopes also determine the groups.
    pub scopes: &'a HeldScopes,
}

/// The effect of a vote.
#[derive(Debug, Clone, PartialEq)]
pub enum Decided {
    /// The approval has ended.
    Ended(Approval),
    /// More approvals are required.
    Counted(Approval),
}

/// Why a vote does not count.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DecideError {
    #[error("the approval was already {} by {by} over {channel}", .status.as_str())]
    Already { status: ApprovalStatus, by: PrincipalId, channel: &'static str },
    #[error("{TIMED_OUT}")]
    TimedOut,
    #[error("the approval has ended without a decision: it was {}", .0.as_str())]
    Ended(ApprovalStatus),
    /// The agent that the call is made for.
    #[error("`{0}` cannot approve a call that is made for it")]
    OwnCall(PrincipalId),
    /// The principal that made the call.
    #[error("`{0}` cannot approve a call that it made; another person must decide")]
    OwnRequest(PrincipalId),
    #[error("only approvers of {} may decide this call", .0.join(" or "))]
    NotOfGroup(Vec<String>),
    #[error("`{0}` has already decided; another person must decide")]
    AlreadyVoted(PrincipalId),
    #[error("this call asks a question; send an `answer`")]
    AnswerMissing,
    /// The rule allows no override, or not by this approver.
    #[error("`{0}` cannot override the rule of this call; only approvers of its `override_groups` can")]
    NotOverridable(PrincipalId),
    #[error("an override requires a `reason`")]
    ReasonMissing,
    #[error("the answer must be one of: {}", .0.join(", "))]
    AnswerNotOffered(Vec<String>),
}

impl Approval {
    /// Removes the votes that no longer count: `scopes_of` returns the current scopes of a voter, and `None` for one
    /// who may no longer decide. The log keeps all votes.
    pub fn counting<'a>(mut self, scopes_of: impl Fn(&PrincipalId) -> Option<&'a HeldScopes>) -> Self {
        // An ended approval is not changed.
        if self.status.is_open() {
            let rule = &self.rule;
            self.votes.retain(|vote| scopes_of(&vote.by).is_some_and(|scopes| is_of_groups(rule, scopes)));
        }
        self
    }

    /// Whether it was approved by an override.
    pub fn is_overridden(&self) -> bool {
        self.votes.last().is_some_and(|vote| vote.decision == Decision::Override)
    }

    /// Applies a vote.
    pub fn decide(&self, vote: Vote, decider: Decider<'_>) -> Result<Decided, DecideError> {
        self.require_open(vote.at)?;
        self.require_approver(decider, vote.decision)?;
        let approving = vote.decision != Decision::Deny;
        if vote.decision == Decision::Override && vote.reason.as_ref().is_none_or(|reason| reason.trim().is_empty()) {
            return Err(DecideError::ReasonMissing);
        }
        if approving && self.is_question() {
            self.require_answer(vote.answer.as_deref())?;
        }
        let at = vote.at;
        let mut next = self.clone();
        // Only a question has an answer.
        let answer = vote.answer.clone().filter(|_| self.is_question() && approving);
        let reason = vote.reason.clone();
        next.votes.push(Vote { answer: answer.clone(), ..vote });
        let status = match approving {
            false => ApprovalStatus::Denied,
            true if next.is_overridden() || next.given() >= self.rule.approvers => ApprovalStatus::Approved,
            true => return Ok(Decided::Counted(next)),
        };
        next.status = status;
        next.answer = answer;
        next.reason = reason;
        next.resolved_at = Some(at);
        Ok(Decided::Ended(next))
    }

    fn require_open(&self, now: Timestamp) -> Result<(), DecideError> {
        match self.status {
            ApprovalStatus::Pending if self.expires_at <= now => Err(DecideError::TimedOut),
            ApprovalStatus::Pending => Ok(()),
            ApprovalStatus::TimedOut => Err(DecideError::TimedOut),
            status => match self.votes.last() {
                Some(last) if matches!(status, ApprovalStatus::Approved | ApprovalStatus::Denied) => {
                    Err(DecideError::Already { status, by: last.by.clone(), channel: last.channel.as_str() })
                }
                _ => Err(DecideError::Ended(status)),
            },
        }
    }

    /// Whether a principal may vote this way. Every approver may deny.
    pub fn require_approver(&self, decider: Decider<'_>, decision: Decision) -> Result<(), DecideError> {
        let id = decider.id;
        // A person who calls may approve the call, unless the rule separates duties; an agent never may.
        let own = *id == self.actor;
        if own && (!self.actor_is_person || self.rule.separation_of_duties) {
            return Err(DecideError::OwnRequest(id.clone()));
        }
        if *id == self.agent && !own {
            return Err(DecideError::OwnCall(id.clone()));
        }
        if decision == Decision::Override {
            let groups = self.rule.override_groups.as_ref();
            return match groups.is_some_and(|groups| is_of_any(groups, decider.scopes)) {
                true => Ok(()),
                false => Err(DecideError::NotOverridable(id.clone())),
            };
        }
        if !is_of_groups(&self.rule, decider.scopes) {
            return Err(DecideError::NotOfGroup(self.rule.groups.iter().cloned().collect()));
        }
        if decision == Decision::Approve && self.votes.iter().any(|vote| vote.by == *id) {
            return Err(DecideError::AlreadyVoted(id.clone()));
        }
        Ok(())
    }

    fn require_answer(&self, answer: Option<&str>) -> Result<(), DecideError> {
        let answer = answer.filter(|answer| !answer.trim().is_empty()).ok_or(DecideError::AnswerMissing)?;
        let offered: Vec<String> = self
            .arguments
            .as_ref()
            .and_then(|arguments| arguments.get("options"))
            .and_then(serde_json::Value::as_array)
            .map(|options| options.iter().filter_map(|option| option.as_str().map(str::to_owned)).collect())
            .unwrap_or_default();
        if offered.is_empty() || offered.iter().any(|option| option == answer) {
            return Ok(());
        }
        Err(DecideError::AnswerNotOffered(offered))
    }
}

/// Whether a holder of these scopes is in one of the rule's groups, if it has any.
fn is_of_groups(rule: &ApprovalRule, scopes: &HeldScopes) -> bool {
    is_of_any(&rule.groups, scopes)
}

/// Whether a holder of these scopes is in one of these groups; true if there are none.
fn is_of_any(groups: &BTreeSet<String>, scopes: &HeldScopes) -> bool {
    let is_of = |group: &String| scopes.cover_all([ApprovalRule::scope_of_group(group).as_str()]).is_ok();
    groups.is_empty() || groups.iter().any(is_of)
}
