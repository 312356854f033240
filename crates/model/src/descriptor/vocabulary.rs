//! The closed vocabularies of descriptors (RFC 0078 §C), written the same in service definitions and on the wire.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! vocabularies {
    ($($(#[$doc:meta])* $name:ident { $($(#[$of_word:meta])* $variant:ident = $word:literal,)+ })+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$of_word])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// All words with their variants.
            pub const WORDS: &'static [(&'static str, Self)] = &[$(($word, Self::$variant),)+];

            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            pub fn parse(text: &str) -> Option<Self> {
                Self::WORDS.iter().find(|(word, _)| *word == text).map(|&(_, meaning)| meaning)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(self.as_str())
            }
        }
    )+};
}

vocabularies! {
    /// The source of a tool.
    SourceKind {
        /// An installed pack of nodes, and built-in tools of the host.
        NodePack = "node-pack",
        /// A workflow that is called like a tool.
        Workflow = "workflow",
        /// A server of the Model Context Protocol.
        Mcp = "mcp",
        /// A service of the registry, called over HTTP with a credential.
        Connector = "connector",
        /// A tool of this host, outside the protocol's guarantees.
        HostExtension = "host-extension",
    }
    /// How dangerous a tool is, from least to most.
    SafetyTier {
        /// No external effect, and no external reads.
        Pure = "pure",
        /// Reads external state.
        Read = "read",
        /// Changes external state.
        Write = "write",
        /// Runs commands of the caller's choice.
        Exec = "exec",
    }
    /// How a tool accesses the network.
    Egress {
        /// Not at all.
        None = "none",
        /// Through the guarded fetch for tools.
        SafeFetch = "safe-fetch",
        /// Through the gate, in another way.
        HostMediated = "host-mediated",
        /// In a way that only the host knows.
        HostOwned = "host-owned",
    }
    /// Whether a call needs approval.
    ApprovalNeed {
        Never = "never",
        /// If a rule requires it.
        Conditional = "conditional",
        Always = "always",
    }
    /// The effect of a repeated call.
    ReplayPolicy {
        /// The same result and no other effect.
        Deterministic = "deterministic",
        /// No more effect than the first time.
        Idempotent = "idempotent",
        /// Possibly another effect.
        NonDeterministic = "non-deterministic",
    }
    /// The approximate cost or duration of a call. Advice, not a limit.
    Hint {
        Low = "low",
        Medium = "medium",
        High = "high",
    }
}
