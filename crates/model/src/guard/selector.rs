//! How a guardian's decision counts.

use serde::{Deserialize, Serialize};

/// Whether a guardian's decision counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuardMode {
    #[default]
    Enforce,
    /// It is asked and recorded, without effect.
    Shadow,
    /// It is not asked.
    Off,
}

impl GuardMode {
    /// The form that is stored, shown and configured.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::Shadow => "shadow",
            Self::Off => "off",
        }
    }

    /// Parses [`GuardMode::as_str`].
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Enforce, Self::Shadow, Self::Off].into_iter().find(|mode| mode.as_str() == text)
    }
}

/// What happens if a guardian gives no decision.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnFailure {
    #[default]
    Deny,
    /// The call passes and is marked as failed open.
    Allow,
}

impl OnFailure {
    /// The form that is stored, shown and configured.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Allow => "allow",
        }
    }

    /// Parses [`OnFailure::as_str`].
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Deny, Self::Allow].into_iter().find(|posture| posture.as_str() == text)
    }
}
