//! What can go wrong, how bad that is, and how a person is told.

use toolgate_gate::ports::approver::RiskLevel;

use toolgate_model::visible::visible;

/// How much of a text a note repeats.
const SHOWN: usize = 60;

/// What can go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nothing in particular.
    Harmless,
    /// It runs something.
    Runs,
    /// It reaches the network.
    Network,
    /// It reaches out of the workspace.
    Outside,
    /// A guardian changed it.
    Changed,
    /// It deletes.
    Deletes,
    /// It gains rights, or gives them away.
    Privilege,
    /// It reaches secrets.
    Secrets,
    /// It changes what starts code later.
    Settings,
    /// It hides what it does.
    Hidden,
    /// It cannot be taken back.
    Final,
}

/// One thing that can go wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) kind: Kind,
    /// For people; empty where there is nothing to say.
    pub(crate) note: String,
}

impl Kind {
    /// How bad it is.
    pub(crate) fn level(self) -> RiskLevel {
        match self {
            Self::Harmless => RiskLevel::Low,
            Self::Runs | Self::Network | Self::Outside | Self::Changed => RiskLevel::Medium,
            Self::Deletes | Self::Privilege | Self::Secrets | Self::Settings | Self::Hidden | Self::Final => {
                RiskLevel::High
            }
        }
    }

    /// A finding, with the word that gave rise to it.
    pub(crate) fn because(self, word: &str) -> Finding {
        let what = match self {
            Self::Harmless => "nothing in particular can go wrong",
            Self::Runs => "it runs something",
            Self::Network => "it reaches the network",
            Self::Outside => "it reaches out of the workspace",
            Self::Changed => "it was changed on its way",
            Self::Deletes => "it deletes or overwrites something",
            Self::Privilege => "it gains rights or gives them away",
            Self::Secrets => "it touches secrets",
            Self::Settings => "it changes what runs later",
            Self::Hidden => "it hides what it does",
            Self::Final => "it cannot be taken back",
        };
        let word = visible(word);
        let mut shown: String = word.chars().take(SHOWN).collect();
        if shown.len() < word.len() {
            shown.push('…');
        }
        Finding { kind: self, note: format!("{what} (`{shown}`)") }
    }
}
