//! Verdicts of guardians.

use serde::{Deserialize, Serialize};

use super::content::Content;
use super::failure::FailureClass;

/// The verdict of one guardian, or of several together.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    Deny(Denial),
    /// Allowed under these conditions.
    Pass {
        /// Replaces the content that was shown.
        content: Option<Box<Content<'static>>>,
        /// Each of these must be approved.
        asks: Vec<Ask>,
    },
}

/// The kinds of verdicts, the strictest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VerdictKind {
    Allow,
    /// Allowed with modified content.
    Modify,
    /// Allowed after approval.
    Ask,
    Deny,
}

impl VerdictKind {
    /// The stored and displayed form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Modify => "modify",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }

    /// Parses [`VerdictKind::as_str`].
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Allow, Self::Modify, Self::Ask, Self::Deny].into_iter().find(|kind| kind.as_str() == text)
    }
}

/// Why an event is denied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    pub cause: DenialCause,
    /// A sentence for the agent and the user.
    pub reason: String,
    /// The rule that decided.
    pub policy: Option<PolicyRef>,
}

/// Who or what denies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DenialCause {
    /// A rule of the gate's own policies.
    Policy,
    /// The gate's own policies could not be evaluated.
    Unevaluable,
    /// An external guardian.
    Guardian(String),
    /// An external guardian gave no usable decision.
    Failure { guardian: String, class: FailureClass },
    /// The agent has no authority for it.
    Authority {
        /// The code of the refusal.
        code: String,
    },
}

/// A rule, and the version of its set.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PolicyRef {
    #[serde(rename = "policy_id")]
    pub id: String,
    #[serde(rename = "policy_version")]
    pub version: String,
}

/// A required approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    pub reason: String,
    /// Groups whose members may decide; if empty, all approvers may.
    pub groups: Vec<String>,
    /// The number of required approvals.
    pub approvers: u32,
    /// The timeout in seconds.
    pub ttl_seconds: Option<u64>,
    /// The rule that asks.
    pub policy: Option<PolicyRef>,
}

impl Verdict {
    /// Allowed as it is.
    pub fn allow() -> Self {
        Self::Pass { content: None, asks: Vec::new() }
    }

    /// Allowed with this content instead.
    pub fn modify(content: Content<'static>) -> Self {
        Self::Pass { content: Some(Box::new(content)), asks: Vec::new() }
    }

    pub fn kind(&self) -> VerdictKind {
        match self {
            Self::Deny(_) => VerdictKind::Deny,
            Self::Pass { asks, .. } if !asks.is_empty() => VerdictKind::Ask,
            Self::Pass { content: Some(_), .. } => VerdictKind::Modify,
            Self::Pass { .. } => VerdictKind::Allow,
        }
    }
}
