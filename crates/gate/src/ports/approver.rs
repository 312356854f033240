//! The approver: obtains a person's decision on a call that needs one, and knows what standing approvals cover.

use std::future::Future;
use std::pin::Pin;

use async_trait::async_trait;
use serde::Serialize;
use serde_json::Value;
use toolgate_model::approval::{
    Approval, ApprovalSession, ApprovalStatus, BoundAction, Channel, Coverage, Decision, Reach, StandingApproval,
    StandingRequest, TIMED_OUT,
};
use toolgate_model::id::{ApprovalId, StandingApprovalId};
use toolgate_model::principal::TenantId;

use super::ledger::{AuditContext, Consent, GrantRates, ParkCall};
use crate::refusal::{Code, Refusal};

/// A request for an approval.
#[derive(Debug, Clone)]
pub struct Ask {
    pub audit: AuditContext,
    /// What the approver is shown, including its deadline.
    pub approval: Approval,
    /// Whether an approver must be connected.
    pub attended: bool,
    /// Whether the call waits for the decision. Otherwise the approval stays open, and the call is refused with its id.
    pub waits: bool,
    /// The grants that the call may use, in order of preference.
    pub grants: Vec<GrantRates>,
    /// The maximum number of open approvals per agent.
    pub most_of_agent: u32,
    /// Set if the call is detached: it waits in the ledger from then on.
    pub parks: Option<ParkCall>,
    /// Whether the call is to be detached before an approver is asked.
    pub detach: bool,
}

/// The outcome of a request for an approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalOutcome {
    Consent(Consent),
    /// An approver is asked, and nothing waits here for the decision.
    Open(ApprovalId),
    /// Nobody is asked yet: the call must be detached first.
    Detach,
}

/// The reason for a call whose caller has disconnected.
pub const GONE: &str = "the caller has disconnected";

/// The meaning of an ended approval for its call.
pub fn consent_of(approval: &Approval) -> Result<Consent, Refusal> {
    let reason = |otherwise: &str| approval.reason.clone().unwrap_or_else(|| otherwise.to_owned());
    let (code, reason) = match approval.status {
        ApprovalStatus::Approved => {
            return Ok(Consent { approval: Some(approval.id), standing: Vec::new(), answer: approval.answer.clone() });
        }
        ApprovalStatus::Denied => return Err(denial(approval)),
        ApprovalStatus::TimedOut => (Code::ApprovalTimedOut, TIMED_OUT.to_owned()),
        ApprovalStatus::Cancelled | ApprovalStatus::Orphaned => (Code::ApprovalCancelled, reason(GONE)),
        // INVARIANT: only ended approvals reach this; anything else is not an approval.
        ApprovalStatus::Requested | ApprovalStatus::Pending => {
            (Code::ApprovalRequired, "the approval has not ended".to_owned())
        }
    };
    Err(Refusal::new(code, reason).with("approval_id", approval.id))
}

/// Who denied the call, and why. A host's own text is returned unchanged: programs compare it.
fn denial(approval: &Approval) -> Refusal {
    let vote = approval.votes.iter().rev().find(|vote| vote.decision == Decision::Deny);
    let said = match (vote.filter(|vote| vote.channel != Channel::Host), &approval.reason) {
        (Some(vote), Some(reason)) => format!("denied by {}: {reason}", vote.by),
        (Some(vote), None) => format!("denied by {}", vote.by),
        (None, Some(reason)) => reason.clone(),
        (None, None) => "an approver denied this call".to_owned(),
    };
    let refusal = Refusal::new(Code::ApprovalDenied, said).with("approval_id", approval.id);
    match vote {
        Some(vote) => refusal.with("denied_by", &vote.by),
        None => refusal,
    }
}

/// Completes when the caller has disconnected.
pub type Gone = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Notified of an approval that now waits for a decision.
pub type Asked<'a> = &'a (dyn Fn(&Approval) + Send + Sync);

#[async_trait]
pub trait Approver: Send + Sync {
    /// Requests an approval and waits for the decision; a refusal is a denial. If standing approvals cover the call,
    /// nobody is asked.
    async fn approve(&self, ask: Ask, asked: Asked<'_>, gone: Gone) -> Result<ApprovalOutcome, Refusal>;
    /// Notifies local waiters that an approval has ended.
    fn resolved(&self, approval: &Approval);
    /// What a decision with this standing request would cover, or why it cannot.
    fn standing(&self, approval: &Approval, wish: &StandingRequest) -> Result<(Coverage, Reach), String>;
    /// The standing approvals among these that together cover a call; or why they do not.
    fn covering(&self, standing: &[StandingApproval], call: &Covered<'_>) -> Result<Vec<StandingApprovalId>, String>;
    /// Why a call needs an approval, whatever the mode and standing approvals are.
    fn protects(&self, call: &Covered<'_>) -> Option<String>;
    /// What a person should know before deciding, including what is already covered.
    fn present(&self, approval: &Approval, standing: &[StandingApproval]) -> Presentation;
    /// Registers a connected approver of a tenant until the returned value is dropped.
    fn attach(&self, tenant: &TenantId) -> Attached;
    /// Ends all waits: they have expired, or this process stops.
    async fn close(&self);
}

/// A connected approver, until it is dropped.
pub type Attached = Box<dyn std::any::Any + Send + Sync>;

/// The parts of a call that decide what covers it.
#[derive(Debug, Clone, Copy)]
pub struct Covered<'a> {
    /// With its service.
    pub tool: &'a str,
    /// Whether the client executes it.
    pub external: bool,
    /// `None` for a tool without a credential.
    pub action: Option<&'a BoundAction>,
    pub arguments: &'a Value,
    pub session: Option<&'a ApprovalSession>,
}

/// What a person should know before deciding.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Presentation {
    pub risk: Risk,
    /// The commands of a command line, each with its state.
    pub parts: Vec<Part>,
    /// What a decision could cover besides the call.
    pub offers: Vec<Offer>,
    /// Why it can cover nothing else, if so.
    pub no_offer_reason: Option<String>,
}

/// A risk assessment by fixed rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Risk {
    pub level: RiskLevel,
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RiskLevel {
    Low,
    Medium,
    High,
}

/// One command of a command line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Part {
    pub text: String,
    pub state: PartState,
    pub why: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PartState {
    /// A standing approval covers it.
    Granted,
    /// No standing approval covers it.
    New,
    /// No standing approval covers it, and it can do harm.
    Risky,
}

/// Something that a decision could cover besides the call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Offer {
    /// As `scope` of a decision.
    pub scope: Value,
    /// The resulting rule, as a sentence.
    pub rule: String,
    /// Examples of calls that it would cover.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<String>,
    /// Examples of calls that it would not cover.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub does_not_match: Vec<String>,
}
