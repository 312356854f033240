//! Hook dialects: codecs between wire formats and the model's `HookEvent` and `VerdictKind`.
//!
//! Pure functions over bytes and JSON, in both directions. No decisions, no storage, no IO.

use serde_json::Value;
use toolgate_model::guard::{Content, Dialect, FailureClass, HookEvent, PolicyRef};

pub mod aos;
pub mod jsonrpc;

/// What an external guardian decided.
#[derive(Debug, Clone, PartialEq)]
pub enum GuardianDecision {
    Allow,
    Deny,
    /// With this content instead.
    Modify(Content<'static>),
}

/// The response of an external guardian.
#[derive(Debug, Clone, PartialEq)]
pub struct GuardianResponse {
    pub decision: GuardianDecision,
    /// Why, for people: on one line and cut to a length.
    pub reason: Option<String>,
    /// Why, for programs.
    pub codes: Vec<String>,
    /// Its rule.
    pub policy: Option<PolicyRef>,
}

/// The dialects in which external guardians can be asked.
pub fn of_guardians() -> impl Iterator<Item = Dialect> {
    Dialect::ALL.into_iter().filter(|dialect| *dialect != Dialect::Native)
}

/// The request to an external guardian about an event. `None` where the dialect has no words for the event.
pub fn ask(dialect: Dialect, event: &HookEvent<'_>, id: &str) -> Option<Value> {
    match dialect {
        Dialect::Aos | Dialect::Joch => aos::ask(event, id, dialect),
        Dialect::Native => None,
    }
}

/// Reads the response to the request `id` about an event. What is not plainly a decision is a failure.
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
