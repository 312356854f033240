//! What a guardian says.

use serde::{Deserialize, Serialize};

use super::content::Content;
use super::failure::FailureClass;

/// What a guardian says about an event, or what several say together.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// It must not be.
    Deny(Denial),
    /// It may be, under these conditions.
    Pass {
        /// With this content in place of what was shown.
        content: Option<Box<Content<'static>>>,
        /// After people said yes, to each of these.
        asks: Vec<Ask>,
    },
}

/// Verdicts in a word, the strictest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VerdictKind {
    /// As it is.
    Allow,
    /// Changed.
    Modify,
    /// After a person said yes.
    Ask,
    /// Not at all.
    Deny,
}

impl VerdictKind {
    /// As it is stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Modify => "modify",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }

    /// Reads [`VerdictKind::as_str`] back.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Allow, Self::Modify, Self::Ask, Self::Deny].into_iter().find(|kind| kind.as_str() == text)
    }
}

/// Why something must not be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// Who or what says so.
    pub cause: DenialCause,
    /// A sentence for the agent and the person.
    pub reason: String,
    /// The rule behind it.
    pub policy: Option<PolicyRef>,
}

/// Who or what denies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DenialCause {
    /// A rule of the gate's own policies.
    Policy,
    /// The gate's own policies could not be evaluated.
    Unevaluable,
    /// Another guardian.
    Guardian(String),
    /// Another guardian did not give a verdict that can be used.
    Failure {
        /// Which guardian.
        guardian: String,
        /// What went wrong.
        class: FailureClass,
    },
    /// The agent has no authority for it.
    Authority {
        /// The code of the refusal.
        code: String,
    },
}

/// A rule, and the version of the set that it stands in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PolicyRef {
    #[serde(rename = "policy_id")]
    pub id: String,
    #[serde(rename = "policy_version")]
    pub version: String,
}

/// A person is to be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// Why.
    pub reason: String,
    /// Who may answer: any of these groups; empty is whoever may answer approvals.
    pub groups: Vec<String>,
    /// How many must say yes.
    pub approvers: u32,
    /// How long they have, in seconds.
    pub ttl_seconds: Option<u64>,
    /// The rule behind it.
    pub policy: Option<PolicyRef>,
}

impl Verdict {
    /// That it may be as it is.
    pub fn allow() -> Self {
        Self::Pass { content: None, asks: Vec::new() }
    }

    /// That it may be with this content instead.
    pub fn modify(content: Content<'static>) -> Self {
        Self::Pass { content: Some(Box::new(content)), asks: Vec::new() }
    }

    /// In a word.
    pub fn kind(&self) -> VerdictKind {
        match self {
            Self::Deny(_) => VerdictKind::Deny,
            Self::Pass { asks, .. } if !asks.is_empty() => VerdictKind::Ask,
            Self::Pass { content: Some(_), .. } => VerdictKind::Modify,
            Self::Pass { .. } => VerdictKind::Allow,
        }
    }
}
