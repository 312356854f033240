//! Hook dialects: codecs between wire formats and the model's `HookEvent` and `VerdictKind`.
//!
//! Pure functions over bytes and JSON, in both directions. No decisions, no storage, no I/O.

use serde_json::Value;
use toolgate_model::guard::{Content, Dialect, FailureClass, HookEvent, PolicyRef};

pub mod aos;
pub mod jsonrpc;

#[derive(Debug, Clone, PartialEq)]
pub enum GuardianDecision {
    Allow,
    Deny,
    /// Allowed with this content instead.
    Modify(Content<'static>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct GuardianResponse {
    pub decision: GuardianDecision,
    /// The reason for people, on one line and limited in length.
    pub reason: Option<String>,
    /// Machine-readable reasons.
    pub codes: Vec<String>,
    /// The rule that decided.
    pub policy: Option<PolicyRef>,
}

/// The dialects that external guardians can use.
pub fn of_guardians() -> impl Iterator<Item = Dialect> {
    Dialect::ALL.into_iter().filter(|dialect| *dialect != Dialect::Native)
}

/// The request to an external guardian about an event. `None` if the dialect cannot express the event.
pub fn ask(dialect: Dialect, event: &HookEvent<'_>, id: &str) -> Option<Value> {
    match dialect {
        Dialect::Aos | Dialect::Joch => aos::ask(event, id, dialect),
        Dialect::Native => None,
    }
}

/// Reads the response to the request `id` about an event. Anything that is not clearly a decision is a failure.
pub fn read_response(
    dialect: Dialect,
    bytes: &[u8],
    id: &str,
    event: &HookEvent<'_>,
) -> Result<GuardianResponse, FailureClass> {
    match dialect {
        Dialect::Aos | Dialect::Joch => aos::read_response(bytes, id, event),
        Dialect::Native => Err(FailureClass::Malformed),
    }
}
