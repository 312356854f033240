//! The closed vocabularies of descriptors (RFC 0078 §C): each a few words, written the same in service definitions and
//! on the wire.

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
            /// All words and what they mean.
            pub const WORDS: &'static [(&'static str, Self)] = &[$(($word, Self::$variant),)+];

            /// As it is written.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            /// Reads the word back.
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
    /// What backs a tool.
    SourceKind {
        /// An installed pack of nodes, and what the host has built in.
        NodePack = "node-pack",
        /// A workflow that is called like a tool.
        Workflow = "workflow",
        /// A server that speaks the Model Context Protocol.
        Mcp = "mcp",
        /// A service of the registry, called over HTTP with a credential.
        Connector = "connector",
        /// Something of this host's own, outside what the protocol vouches for.
        HostExtension = "host-extension",
    }
    /// How dangerous a tool is, from least to most.
    SafetyTier {
        /// No effect outside, and nothing read there.
        Pure = "pure",
        /// Reads what is outside.
        Read = "read",
        /// Changes what is outside.
        Write = "write",
        /// Runs commands of the caller's choice.
        Exec = "exec",
    }
    /// How a tool reaches the network.
    Egress {
        /// Not at all.
        None = "none",
        /// Through the guarded fetch that tools are offered.
        SafeFetch = "safe-fetch",
        /// Through the gate, in another way.
        HostMediated = "host-mediated",
        /// In a way that only the host knows.
        HostOwned = "host-owned",
    }
    /// Whether a person must approve a call.
    ApprovalNeed {
        /// No.
        Never = "never",
        /// Where a rule says so.
        Conditional = "conditional",
        /// Yes.
        Always = "always",
    }
    /// What happens when a call is made again.
    ReplayPolicy {
        /// The same, and nothing else.
        Deterministic = "deterministic",
        /// No more than the first time.
        Idempotent = "idempotent",
        /// Perhaps something else.
        NonDeterministic = "non-deterministic",
    }
    /// How much a call costs or how long it takes, roughly. Advice, not a limit.
    Hint {
        /// Little.
        Low = "low",
        /// Some.
        Medium = "medium",
        /// Much.
        High = "high",
    }
}
