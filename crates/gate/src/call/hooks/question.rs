//! What a runtime asks, what is agreed with it, and what it is told.

use std::net::IpAddr;
use std::time::Duration;

use toolgate_model::guard::{Content, Dialect, HookEvent, PolicyRef, VerdictKind};
use toolgate_model::id::{ApprovalId, InvocationId};
use toolgate_model::principal::PrincipalId;

use crate::call::CallError;
use crate::refusal::Refusal;

/// What a runtime asks.
#[derive(Debug, Clone)]
pub struct HookQuestion {
    /// The agent that it is about.
    pub agent: PrincipalId,
    /// What is about to happen.
    pub event: HookEvent<'static>,
    /// In whose words it was asked.
    pub dialect: Dialect,
    /// The id of the question.
    pub request: Option<String>,
    /// What is agreed with whoever asks.
    pub terms: HookTerms,
    /// From where it comes.
    pub address: IpAddr,
}

/// What is agreed with a runtime that asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookTerms {
    /// What becomes of a question that a person must answer.
    pub ask: AskForm,
    /// What becomes of calls of tools that the gate does not know.
    pub unknown_tools: UnknownTools,
    /// How long a person has to answer.
    pub wait: Option<Duration>,
}

/// What becomes of a question that a person must answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AskForm {
    /// It is answered when the person has.
    #[default]
    Hold,
    /// It is denied at once, with the approval to wait for; once that is given, the same question is allowed once.
    Deny,
}

/// What becomes of tools that the gate does not know.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UnknownTools {
    /// They are judged by guardians and policies, without grants, and an approver must agree to every call.
    #[default]
    Ask,
    /// They are judged by guardians and policies, without grants.
    Judge,
    /// They are denied.
    Deny,
}

/// What the runtime is told.
#[derive(Debug, Clone, PartialEq)]
pub struct HookResponse {
    /// Allow, modify or deny.
    pub kind: VerdictKind,
    /// Why, in a sentence.
    pub reason: String,
    /// Why, in a word; `None` where nothing is in the way.
    pub code: Option<String>,
    /// The rule behind it.
    pub policy: Option<PolicyRef>,
    /// What is to be used instead.
    pub content: Option<Content<'static>>,
    /// The approval that it waits for, or rests on.
    pub approval: Option<ApprovalId>,
    /// The record of it, where it is about a tool.
    pub invocation: Option<InvocationId>,
}

impl HookResponse {
    pub(super) fn denied(refusal: &Refusal) -> Self {
        let text = |name: &str| refusal.details().find(|(key, _)| *key == name).and_then(|(_, value)| value.as_str());
        let policy = text("policy_id").zip(text("policy_version"));
        Self {
            kind: VerdictKind::Deny,
            reason: refusal.reason().to_owned(),
            code: Some(refusal.code().as_str().to_ascii_lowercase()),
            policy: policy.map(|(id, version)| PolicyRef { id: id.to_owned(), version: version.to_owned() }),
            content: None,
            approval: text("approval_id").and_then(|id| ApprovalId::parse(id).ok()),
            invocation: None,
        }
    }

    /// The call was admitted and ended in an error.
    pub(super) fn failed(error: &CallError) -> Self {
        let code = Some(error.code.to_ascii_lowercase());
        Self { kind: VerdictKind::Deny, reason: error.message.clone(), code, ..Self::allowed() }
    }

    pub(super) fn allowed() -> Self {
        Self {
            kind: VerdictKind::Allow,
            reason: "allowed".to_owned(),
            code: None,
            policy: None,
            content: None,
            approval: None,
            invocation: None,
        }
    }

    pub(super) fn changed(content: Content<'static>, reason: Option<String>, policy: Option<PolicyRef>) -> Self {
        let reason = reason.unwrap_or_else(|| "allowed with changes".to_owned());
        Self { kind: VerdictKind::Modify, reason, policy, content: Some(content), ..Self::allowed() }
    }
}
