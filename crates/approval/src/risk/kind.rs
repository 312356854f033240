//! Kinds of risk, their level, and their texts for approvers.

use toolgate_gate::ports::approver::RiskLevel;

use toolgate_model::visible::visible;

/// The maximum length of quoted text in a note.
const SHOWN: usize = 60;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Harmless,
    /// It executes something.
    Runs,
    /// It accesses the network.
    Network,
    /// It accesses paths outside the workspace.
    Outside,
    /// A guardian modified it.
    Changed,
    Deletes,
    /// It gains or grants privileges.
    Privilege,
    /// It accesses secrets.
    Secrets,
    /// It changes settings that start code later.
    Settings,
    /// It hides what it does.
    Hidden,
    /// It cannot be undone.
    Final,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) kind: Kind,
    /// For approvers; empty if there is nothing to say.
    pub(crate) note: String,
}

impl Kind {
    pub(crate) fn level(self) -> RiskLevel {
        match self {
            Self::Harmless => RiskLevel::Low,
            Self::Runs | Self::Network | Self::Outside | Self::Changed => RiskLevel::Medium,
            Self::Deletes | Self::Privilege | Self::Secrets | Self::Settings | Self::Hidden | Self::Final => {
                RiskLevel::High
            }
        }
    }

    /// A finding that names the word that caused it.
    pub(crate) fn because(self, word: &str) -> Finding {
        let what = match self {
            Self::Harmless => "no particular risk",
            Self::Runs => "it executes something",
            Self::Network => "it accesses the network",
            Self::Outside => "it accesses paths outside the workspace",
            Self::Changed => "it was modified by a guardian",
            Self::Deletes => "it deletes or overwrites something",
            Self::Privilege => "it gains or grants privileges",
            Self::Secrets => "it accesses secrets",
            Self::Settings => "it changes what runs later",
            Self::Hidden => "it hides what it does",
            Self::Final => "it cannot be undone",
        };
        let word = visible(word);
        let mut shown: String = word.chars().take(SHOWN).collect();
        if shown.len() < word.len() {
            shown.push('…');
        }
        Finding { kind: self, note: format!("{what} (`{shown}`)") }
    }
}
