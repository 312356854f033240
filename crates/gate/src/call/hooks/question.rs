//! Hook requests of a runtime, its settings, and the response.

use std::net::IpAddr;
use std::time::Duration;

use toolgate_model::guard::{Content, Dialect, HookEvent, PolicyRef, VerdictKind};
use toolgate_model::id::{ApprovalId, InvocationId};
use toolgate_model::principal::PrincipalId;

use crate::call::CallError;
use crate::refusal::Refusal;

/// A hook request.
#[derive(Debug, Clone)]
pub struct HookQuestion {
    /// The agent that it is about.
    pub agent: PrincipalId,
    pub event: HookEvent<'static>,
    pub dialect: Dialect,
    /// The id of the hook request.
    pub request: Option<String>,
    /// The settings of the calling runtime.
    pub terms: HookTerms,
    pub address: IpAddr,
}

/// The settings of a calling runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookTerms {
    /// How requests that need an approval are handled.
    pub ask: AskForm,
    /// How calls of tools that the gate does not know are handled.
    pub unknown_tools: UnknownTools,
    /// How long an approver has to decide.
    pub wait: Option<Duration>,
}

/// How a request that needs an approval is handled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AskForm {
    /// The response waits for the decision.
    #[default]
    Hold,
    /// It is denied at once, with the pending approval; once that is granted, the same request is allowed once.
    Deny,
}

/// How tools that the gate does not know are handled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UnknownTools {
    /// Guardians and policies decide, without grants, and every call needs an approval.
    #[default]
    Ask,
    /// Guardians and policies decide, without grants.
    Judge,
    Deny,
}

#[derive(Debug, Clone, PartialEq)]
pub struct HookResponse {
    /// Allow, modify or deny.
    pub kind: VerdictKind,
    /// One sentence.
    pub reason: String,
    /// `None` if the request is allowed.
    pub code: Option<String>,
    /// The rule that determined it.
    pub policy: Option<PolicyRef>,
    /// The content to use instead.
    pub content: Option<Content<'static>>,
    /// The approval that it waits for or is based on.
    pub approval: Option<ApprovalId>,
    /// The record, if it is about a tool.
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
