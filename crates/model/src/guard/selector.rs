//! How a guardian's word counts.

use serde::{Deserialize, Serialize};

/// Whether a guardian's verdict counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuardMode {
    /// It does.
    #[default]
    Enforce,
    /// It is asked and written down, and changes nothing.
    Shadow,
    /// It is not asked.
    Off,
}

impl GuardMode {
    /// As it is stored, shown and configured.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::Shadow => "shadow",
            Self::Off => "off",
        }
    }

    /// Reads [`GuardMode::as_str`] back.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Enforce, Self::Shadow, Self::Off].into_iter().find(|mode| mode.as_str() == text)
    }
}

/// What happens where a guardian gives no verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// What it was asked about must not be.
    #[default]
    Deny,
    /// It may be, and is marked as passed by failure.
    Allow,
}

impl OnFailure {
    /// As it is stored, shown and configured.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Allow => "allow",
        }
    }

    /// Reads [`OnFailure::as_str`] back.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Deny, Self::Allow].into_iter().find(|posture| posture.as_str() == text)
    }
}
