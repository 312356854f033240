//! How a guardian can fail to give a verdict. One table for every transport.

use serde::{Deserialize, Serialize};

/// What went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// No connection.
    Connect,
    /// A connection that cannot be trusted.
    Tls,
    /// No answer in time.
    Timeout,
    /// An answer with another status than 200.
    Status,
    /// An answer that is not said to be JSON.
    ContentType,
    /// An answer, or a question, larger than is taken.
    Oversize,
    /// An answer that is no JSON, or not the envelope of the dialect.
    Malformed,
    /// An answer to another question.
    IdMismatch,
    /// The guardian answered with an error instead of a decision.
    GuardianError,
    /// A decision that there is not.
    UnknownDecision,
    /// A decision without what it needs.
    IncompleteDecision,
    /// A signature that is wrong, a replay, or a refusal to speak.
    Refused,
    /// A change that cannot be applied.
    BadModify,
    /// A change of what must not be changed.
    IdentityChange,
    /// A change by a guardian that may not change anything.
    ModifyNotAllowed,
    /// Too many questions are in flight.
    Busy,
    /// It failed too often and is not asked for a while.
    CircuitOpen,
}

impl FailureClass {
    /// All of them.
    pub const ALL: [Self; 17] = [
        Self::Connect,
        Self::Tls,
        Self::Timeout,
        Self::Status,
        Self::ContentType,
        Self::Oversize,
        Self::Malformed,
        Self::IdMismatch,
        Self::GuardianError,
        Self::UnknownDecision,
        Self::IncompleteDecision,
        Self::Refused,
        Self::BadModify,
        Self::IdentityChange,
        Self::ModifyNotAllowed,
        Self::Busy,
        Self::CircuitOpen,
    ];

    /// As it is stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::Timeout => "timeout",
            Self::Status => "status",
            Self::ContentType => "content_type",
            Self::Oversize => "oversize",
            Self::Malformed => "malformed",
            Self::IdMismatch => "id_mismatch",
            Self::GuardianError => "guardian_error",
            Self::UnknownDecision => "unknown_decision",
            Self::IncompleteDecision => "incomplete_decision",
            Self::Refused => "refused",
            Self::BadModify => "bad_modify",
            Self::IdentityChange => "identity_change",
            Self::ModifyNotAllowed => "modify_not_allowed",
            Self::Busy => "busy",
            Self::CircuitOpen => "circuit_open",
        }
    }

    /// Whether it denies whatever the guardian is configured to do on failure: it did answer, and the answer was no yes.
    pub fn always_denies(self) -> bool {
        match self {
            Self::UnknownDecision
            | Self::IncompleteDecision
            | Self::Refused
            | Self::BadModify
            | Self::IdentityChange
            | Self::ModifyNotAllowed => true,
            Self::Connect
            | Self::Tls
            | Self::Timeout
            | Self::Status
            | Self::ContentType
            | Self::Oversize
            | Self::Malformed
            | Self::IdMismatch
            | Self::GuardianError
            | Self::Busy
            | Self::CircuitOpen => false,
        }
    }
}
