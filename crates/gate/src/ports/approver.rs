//! The approver: brings a person's answer to a call that needs one, and knows what earlier answers cover.

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

/// What is put before a person.
#[derive(Debug, Clone)]
pub struct Ask {
    /// Who calls, and when.
    pub audit: AuditContext,
    /// What the person is shown. How long it waits is in it already.
    pub approval: Approval,
    /// Whether somebody must be there to answer.
    pub attended: bool,
    /// Whether the call waits for the decision. Otherwise the approval stays open, and the call is refused with its id.
    pub waits: bool,
    /// The grants that the call may go through, in the order of preference.
    pub grants: Vec<GrantRates>,
    /// How many approvals of one agent may be open at a time.
    pub most_of_agent: u32,
    /// Where the call is detached: it waits in the ledger from then on.
    pub parks: Option<ParkCall>,
    /// Whether the call is to be detached before anybody is asked.
    pub detach: bool,
}

/// What came of asking for an approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalOutcome {
    /// The call may go on.
    Consent(Consent),
    /// An approver is asked, and nothing waits here for the decision.
    Open(ApprovalId),
    /// Nobody is asked yet: the call must be detached first.
    Detach,
}

/// What a call is told whose caller is gone.
pub const GONE: &str = "whoever made the call is gone";

/// What an approval that has ended means for its call.
pub fn consent_of(approval: &Approval) -> Result<Consent, Refusal> {
    let reason = |otherwise: &str| approval.reason.clone().unwrap_or_else(|| otherwise.to_owned());
    let (code, reason) = match approval.status {
        ApprovalStatus::Approved => {
            return Ok(Consent { approval: Some(approval.id), standing: Vec::new(), answer: approval.answer.clone() });
        }
        ApprovalStatus::Denied => return Err(denial(approval)),
        ApprovalStatus::TimedOut => (Code::ApprovalTimedOut, TIMED_OUT.to_owned()),
        ApprovalStatus::Cancelled | ApprovalStatus::Orphaned => (Code::ApprovalCancelled, reason(GONE)),
        // INVARIANT: only what has ended comes here; anything else is no yes.
        ApprovalStatus::Requested | ApprovalStatus::Pending => {
            (Code::ApprovalRequired, "the approval has not ended".to_owned())
        }
    };
    Err(Refusal::new(code, reason).with("approval_id", approval.id))
}

/// Who denied the call, and why. A host's own words go back to it as they are: programs compare them.
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

/// Ready when whoever waits for the answer is gone.
pub type Gone = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Told of an approval that now waits for an answer.
pub type Asked<'a> = &'a (dyn Fn(&Approval) + Send + Sync);

/// Brings answers.
#[async_trait]
pub trait Approver: Send + Sync {
    /// Asks, and waits for the answer; a refusal is a no. Where earlier answers cover the call nobody is asked.
    async fn approve(&self, ask: Ask, asked: Asked<'_>, gone: Gone) -> Result<ApprovalOutcome, Refusal>;
    /// Tells that an approval has ended, to whoever waits for it here.
    fn resolved(&self, approval: &Approval);
    /// What a decision with this standing request would cover, or why it cannot.
    fn standing(&self, approval: &Approval, wish: &StandingRequest) -> Result<(Coverage, Reach), String>;
    /// Which of these cover a call, all that are needed; or why they do not.
    fn covering(&self, standing: &[StandingApproval], call: &Covered<'_>) -> Result<Vec<StandingApprovalId>, String>;
    /// Why a person must be asked for a call, whatever the mode and whatever was answered before.
    fn protects(&self, call: &Covered<'_>) -> Option<String>;
    /// What a person should know before answering, with what covers parts of it already.
    fn present(&self, approval: &Approval, standing: &[StandingApproval]) -> Presentation;
    /// Attaches somebody who can answer for a tenant, until it is dropped.
    fn attach(&self, tenant: &TenantId) -> Attached;
    /// Brings what waits here to its end: its time is over, or this process ends.
    async fn close(&self);
}

/// Somebody who can answer, as long as it is kept.
pub type Attached = Box<dyn std::any::Any + Send + Sync>;

/// A call, as far as it matters for what covers it.
#[derive(Debug, Clone, Copy)]
pub struct Covered<'a> {
    /// The tool, with its service.
    pub tool: &'a str,
    /// Whether somebody else carries it out.
    pub external: bool,
    /// What is executed; `None` for a tool that uses no credential.
    pub action: Option<&'a BoundAction>,
    /// The arguments.
    pub arguments: &'a Value,
    /// The session.
    pub session: Option<&'a ApprovalSession>,
}

/// What a person should know before answering.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Presentation {
    /// How much can go wrong.
    pub risk: Risk,
    /// The commands of a command line, each with what is known of it.
    pub parts: Vec<Part>,
    /// What an answer could cover besides the call.
    pub offers: Vec<Offer>,
    /// Why it can cover nothing else, where that is so.
    pub no_offer_reason: Option<String>,
}

/// How much can go wrong, by fixed rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Risk {
    /// How much.
    pub level: RiskLevel,
    /// Why.
    pub notes: Vec<String>,
}

/// How much can go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RiskLevel {
    /// Little.
    Low,
    /// Something.
    Medium,
    /// Much.
    High,
}

/// One command of a command line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Part {
    /// Its text.
    pub text: String,
    /// What is known of it.
    pub state: PartState,
    /// Why.
    pub why: String,
}

/// What is known of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PartState {
    /// An earlier answer covers it.
    Granted,
    /// None does.
    New,
    /// None does, and it can do harm.
    Risky,
}

/// Something that an answer could cover besides the call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Offer {
    /// As `scope` of a decision.
    pub scope: Value,
    /// The rule that would stand, as a sentence.
    pub rule: String,
    /// Calls that it would cover.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<String>,
    /// Calls that it would not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub does_not_match: Vec<String>,
}
