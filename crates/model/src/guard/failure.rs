//! How a guardian can fail to give a decision. One table for every transport.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    Connect,
    /// A connection that cannot be trusted.
    Tls,
    Timeout,
    /// A status other than 200.
    Status,
    /// The content type is not JSON.
    ContentType,
    /// A request or a response above the size limit.
    Oversize,
    /// Invalid JSON, or not the envelope of the dialect.
    Malformed,
    /// A response to another request.
    IdMismatch,
    /// An error instead of a decision.
    GuardianError,
    UnknownDecision,
    /// A decision without required members.
    IncompleteDecision,
    /// A wrong signature, a replay, or refused communication.
    Refused,
    /// A modification that cannot be applied.
    BadModify,
    /// A modification of members that must not change.
    IdentityChange,
    /// A modification by a guardian that is not allowed to modify.
    ModifyNotAllowed,
    /// Too many requests in flight.
    Busy,
    /// It failed too often and is not asked for a while.
    CircuitOpen,
}

impl FailureClass {
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

    /// The stored and displayed form.
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

    /// Whether it denies whatever is configured for failures: the guardian did respond, and did not allow.
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
