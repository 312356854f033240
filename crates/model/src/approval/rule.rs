//! Rules: who must decide a call, how long they have, and whether the decision may cover more than the call.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The default timeout.
pub const DEFAULT_WAIT: Duration = Duration::from_secs(300);
/// The longest timeout.
pub const MAX_WAIT: Duration = Duration::from_secs(7 * 24 * 3600);
/// The maximum number of approvers in a rule.
pub const MAX_APPROVERS: u32 = 16;

/// The requirements of an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ApprovalRule {
    /// The number of distinct approvers required; one denial ends it.
    pub approvers: u32,
    /// If not empty, approvers must be in one of these groups. A holder of the scope `approver:NAME` is in the group
    /// NAME.
    pub groups: BTreeSet<String>,
    /// Whether the principal that made the call may not approve it, even if it is a person.
    pub separation_of_duties: bool,
    /// The timeout in seconds; by default that of the session or the gate.
    pub ttl_seconds: Option<u64>,
    /// Whether an approver must be connected.
    pub attendance: Option<Attendance>,
    /// Whether a decision may cover later calls.
    pub standing: bool,
    /// Who may override the rule alone, with a reason: nobody if absent; otherwise every approver of one of these
    /// groups, or every approver if it is empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub override_groups: Option<BTreeSet<String>>,
}

impl ApprovalRule {
    /// The rule that satisfies both; `None` if that is impossible because they name different groups.
    pub fn stricter(&self, other: &Self) -> Option<Self> {
        // A rule without requirements forbids no override either.
        let usual = Self::default();
        if *self == usual || *other == usual {
            return Some(if *self == usual { other.clone() } else { self.clone() });
        }
        let groups: BTreeSet<String> = match (self.groups.is_empty(), other.groups.is_empty()) {
            (true, _) => other.groups.clone(),
            (false, true) => self.groups.clone(),
            (false, false) => self.groups.intersection(&other.groups).cloned().collect(),
        };
        if groups.is_empty() && !(self.groups.is_empty() && other.groups.is_empty()) {
            return None;
        }
        let shorter = |left: Option<u64>, right: Option<u64>| match (left, right) {
            (Some(left), Some(right)) => Some(left.min(right)),
            (one, other) => one.or(other),
        };
        let attendance = match (self.attendance, other.attendance) {
            (Some(Attendance::Required), _) | (_, Some(Attendance::Required)) => Some(Attendance::Required),
            (one, other) => one.or(other),
        };
        Some(Self {
            approvers: self.approvers.max(other.approvers),
            groups,
            separation_of_duties: self.separation_of_duties || other.separation_of_duties,
            ttl_seconds: shorter(self.ttl_seconds, other.ttl_seconds),
            attendance,
            standing: self.standing && other.standing,
            override_groups: self.overridden_by_both(other),
        })
    }
}

impl ApprovalRule {
    /// Who may override both rules: both must allow it, to a common group.
    fn overridden_by_both(&self, other: &Self) -> Option<BTreeSet<String>> {
        let (own, others) = (self.override_groups.as_ref()?, other.override_groups.as_ref()?);
        match (own.is_empty(), others.is_empty()) {
            (true, _) => Some(others.clone()),
            (_, true) => Some(own.clone()),
            _ => Some(own & others).filter(|both| !both.is_empty()),
        }
    }
}

/// Whether a call waits if no approver is connected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Attendance {
    /// It waits.
    #[default]
    Inbox,
    /// It is denied at once.
    Required,
}

impl Attendance {
    /// The wire names.
    pub const WORDS: [(&'static str, Self); 2] = [("inbox", Self::Inbox), ("required", Self::Required)];

    /// The stored and displayed form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Inbox => "inbox",
            Self::Required => "required",
        }
    }

    /// Parses [`Attendance::as_str`].
    pub fn parse(text: &str) -> Option<Self> {
        Self::WORDS.into_iter().find(|(word, _)| *word == text).map(|(_, attendance)| attendance)
    }
}

/// What is wrong with a rule. The message follows the name of the field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RuleError {
    #[error("must be 1 to {MAX_APPROVERS}")]
    Approvers,
    #[error("must contain group names of at most 64 letters, digits and . _ -")]
    Group,
    #[error("must be 1 to {} seconds", MAX_WAIT.as_secs())]
    Ttl,
}

impl Default for ApprovalRule {
    fn default() -> Self {
        Self {
            approvers: 1,
            groups: BTreeSet::new(),
            separation_of_duties: false,
            ttl_seconds: None,
            attendance: None,
            standing: true,
            override_groups: None,
        }
    }
}

impl ApprovalRule {
    /// The scope whose holders are in a group.
    pub fn scope_of_group(group: &str) -> String {
        format!("approver:{group}")
    }

    /// Validates the rule; returns the invalid field and the error.
    pub fn check(&self) -> Result<(), (&'static str, RuleError)> {
        if self.approvers == 0 || self.approvers > MAX_APPROVERS {
            return Err(("approvers", RuleError::Approvers));
        }
        let is_name = |group: &String| {
            (1..=64).contains(&group.len())
                && group.chars().all(|letter| letter.is_ascii_alphanumeric() || "._-".contains(letter))
        };
        if self.groups.len() > 64 || !self.groups.iter().all(is_name) {
            return Err(("groups", RuleError::Group));
        }
        if self.override_groups.as_ref().is_some_and(|groups| groups.len() > 64 || !groups.iter().all(is_name)) {
            return Err(("override_groups", RuleError::Group));
        }
        match self.ttl_seconds {
            Some(seconds) if seconds == 0 || seconds > MAX_WAIT.as_secs() => Err(("ttl_seconds", RuleError::Ttl)),
            _ => Ok(()),
        }
    }
}
