//! Decisions: one person's word on an approval, and what becomes of the approval by it. The first end wins; whatever comes
//! later is told so.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::standing::StandingRequest;
use super::{Approval, ApprovalRule, ApprovalStatus, TIMED_OUT};
use crate::principal::PrincipalId;
use crate::principal_scope::HeldScopes;
use crate::time::Timestamp;

/// Yes or no.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// The call may run.
    Approve,
    /// It may not.
    Deny,
    /// The call may run although its rule is not met: with a reason, and only where the rule itself says who may.
    Override,
}

/// By which way an answer came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    /// The HTTP interface.
    Http,
    /// A terminal.
    Terminal,
    /// A host's command stream.
    Host,
    /// The web page of the gate.
    Web,
}

impl Decision {
    pub(crate) const ALL: [Self; 3] = [Self::Approve, Self::Deny, Self::Override];
}

impl Channel {
    pub(crate) const ALL: [Self; 4] = [Self::Http, Self::Terminal, Self::Host, Self::Web];

    /// As it is stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Terminal => "terminal",
            Self::Host => "host",
            Self::Web => "web",
        }
    }

    /// Reads [`Channel::as_str`] back.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|channel| channel.as_str() == text)
    }
}

/// One person's word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vote {
    /// Whose.
    pub by: PrincipalId,
    /// Which.
    pub decision: Decision,
    /// By which way.
    pub channel: Channel,
    /// Why.
    pub reason: Option<String>,
    /// What is answered, where the tool is a question.
    pub answer: Option<String>,
    /// What is to be covered besides the call.
    pub wish: Option<StandingRequest>,
    /// When.
    pub at: Timestamp,
}

/// Who answers, as far as it decides whether they may.
#[derive(Debug, Clone, Copy)]
pub struct Decider<'a> {
    /// Who.
    pub id: &'a PrincipalId,
    /// The scopes that it holds, and so the groups that it is of.
    pub scopes: &'a HeldScopes,
}

/// What became of an approval by a word.
#[derive(Debug, Clone, PartialEq)]
pub enum Decided {
    /// It has ended.
    Ended(Approval),
    /// More must say yes.
    Counted(Approval),
}

/// Why a word does not count.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DecideError {
    /// Somebody was first.
    #[error("it was {} already, by {by} over {channel}", .status.as_str())]
    Already {
        /// How it ended.
        status: ApprovalStatus,
        /// By whom.
        by: PrincipalId,
        /// Over which way.
        channel: &'static str,
    },
    /// Its time is over.
    #[error("{TIMED_OUT}")]
    TimedOut,
    /// Nobody waits for it any more.
    #[error("nobody waits for it any more: it was {}", .0.as_str())]
    Ended(ApprovalStatus),
    /// The requesting agent.
    #[error("whoever asks cannot answer: the call was made for `{0}`")]
    OwnCall(PrincipalId),
    /// Whoever made the call.
    #[error("whoever made the call cannot answer it: `{0}` did")]
    OwnRequest(PrincipalId),
    /// Not of the group.
    #[error("this call is for the approvers of {}", .0.join(" or "))]
    NotOfGroup(Vec<String>),
    /// Has said so before.
    #[error("`{0}` has answered already; another person must")]
    AlreadyVoted(PrincipalId),
    /// A question wants an answer.
    #[error("this call asks a question; give an `answer`")]
    AnswerMissing,
    /// The rule of the call knows no override, or not by this approver.
    #[error("the rule of this call cannot be overridden by `{0}`; its `override_groups` say who can")]
    NotOverridable(PrincipalId),
    /// An override says why.
    #[error("an override needs a `reason`")]
    ReasonMissing,
    /// An answer that was not offered.
    #[error("the answer is none of those that were offered: {}", .0.join(", "))]
    AnswerNotOffered(Vec<String>),
}

impl Approval {
    /// The same with those votes only whose voters may still give them: `scopes_of` tells what a voter holds now, and
    /// `None` for one who may not decide any more. The log keeps the others.
    pub fn counting<'a>(mut self, scopes_of: impl Fn(&PrincipalId) -> Option<&'a HeldScopes>) -> Self {
        // What has ended stays as it ended.
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

    /// Counts a word.
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
        // An answer is the output of a question and of nothing else.
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

    /// Whether somebody may say this. Saying no is open to whoever may say yes.
    pub fn require_approver(&self, decider: Decider<'_>, decision: Decision) -> Result<(), DecideError> {
        let id = decider.id;
        // A person who calls may answer for it, unless the rule wants two; an agent never.
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

/// Whether somebody who holds these is of a group that the rule names, where it names any.
fn is_of_groups(rule: &ApprovalRule, scopes: &HeldScopes) -> bool {
    is_of_any(&rule.groups, scopes)
}

/// Whether somebody who holds these is of one of these groups; everybody is, where there are none.
fn is_of_any(groups: &BTreeSet<String>, scopes: &HeldScopes) -> bool {
    let is_of = |group: &String| scopes.cover_all([ApprovalRule::scope_of_group(group).as_str()]).is_ok();
    groups.is_empty() || groups.iter().any(is_of)
}
