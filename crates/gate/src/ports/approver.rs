//! The approver: brings a person's answer to a call that needs one.

use async_trait::async_trait;

use super::guardian::CallView;
use crate::refusal::{Code, Refusal};

/// What is put before a person.
pub struct Ask<'a> {
    /// The call.
    pub call: CallView<'a>,
    /// Why it needs a person; never empty.
    pub reasons: &'a [String],
    /// SHA-256 over tool, canonical arguments and caller: what the answer covers.
    pub digest: &'a str,
}

/// Brings answers.
#[async_trait]
pub trait Approver: Send + Sync {
    /// Waits for the answer; a refusal is a no.
    async fn approve(&self, ask: Ask<'_>) -> Result<(), Refusal>;
}

/// The approver of a gate where nobody can be asked: what needs a person is refused.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unattended;

#[async_trait]
impl Approver for Unattended {
    async fn approve(&self, ask: Ask<'_>) -> Result<(), Refusal> {
        let reason =
            format!("this call needs a person's approval ({}), and nobody can be asked", ask.reasons.join("; "));
        Err(Refusal::new(Code::ApprovalRequired, reason))
    }
}
