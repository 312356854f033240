//! Decision records of the gate itself: every hook request of another runtime has a recorded decision.

use serde_json::Value;
use toolgate_model::arguments::arguments_hash;
use toolgate_model::guard::{Dialect, GuardMode, GuardianRecord, Hook, HookDecision, Outcome, TraceIds, VerdictKind};
use toolgate_model::id::{ApprovalId, InvocationId};

use super::HookQuestion;
use crate::call::AskedHook;
use crate::refusal::{Code, Refusal};

/// The name of the gate in decision records.
const GATE: &str = "gate";

/// The decision on a hook request that guardians were not consulted about.
pub(super) fn decision_on(question: &HookQuestion, refusal: Option<&Refusal>) -> HookDecision {
    let event = &question.event;
    let decision = HookDecision {
        hook: event.hook,
        dialect: question.dialect,
        invocation: None,
        ids: trace_ids(question),
        tool: event.tool.as_deref().map(str::to_owned),
        guardians: Vec::new(),
        shadow: Vec::new(),
        hash_before: arguments_hash(&event.content.to_json(), &[]),
        hash_after: None,
        effective: VerdictKind::Allow,
        approval: None,
        policy_version: None,
        facts: None,
    };
    match refusal {
        Some(refusal) => refused(decision, refusal),
        None => decision,
    }
}

impl AskedHook {
    /// The decision on a refused hook request, with the guardians' decisions so far. The parameters are redacted.
    pub(in crate::call) fn refused(
        &self,
        said: Option<Box<HookDecision>>,
        call: InvocationId,
        parameters: &Value,
        refusal: &Refusal,
    ) -> Box<HookDecision> {
        let no_decision = || {
            let hash_before = match self.hook {
                Hook::ToolCallRequest => arguments_hash(parameters, &[]),
                _ => arguments_hash(&self.content.to_json(), &[]),
            };
            Box::new(HookDecision {
                hook: self.hook,
                dialect: self.dialect,
                invocation: Some(call),
                ids: self.ids.clone(),
                tool: self.tool.clone(),
                guardians: Vec::new(),
                shadow: Vec::new(),
                hash_before,
                hash_after: None,
                effective: VerdictKind::Allow,
                approval: None,
                policy_version: None,
                facts: None,
            })
        };
        Box::new(refused(*said.unwrap_or_else(no_decision), refusal))
    }
}

/// The same, with the denial of the gate if no guardian had denied it.
fn refused(decision: HookDecision, refusal: &Refusal) -> HookDecision {
    if decision.effective == VerdictKind::Deny {
        return decision;
    }
    let approval = refusal.details().find(|(name, _)| *name == "approval_id");
    let approval = approval.and_then(|(_, id)| ApprovalId::parse(id.as_str()?).ok());
    // A runtime that does not wait gets a denial for now, with the pending approval.
    let waits = refusal.code() == Code::ApprovalRequired && approval.is_some();
    let effective = if waits { VerdictKind::Ask } else { VerdictKind::Deny };
    let mut guardians = decision.guardians;
    guardians.push(GuardianRecord {
        guardian: GATE.to_owned(),
        dialect: Dialect::Native,
        mode: GuardMode::Enforce,
        verdict: Some(effective),
        outcome: Outcome::Enforced,
        reason: Some(refusal.reason().to_owned()),
        policies: Vec::new(),
        failure: None,
        latency_us: 0,
    });
    HookDecision { guardians, effective, hash_after: None, approval: approval.or(decision.approval), ..decision }
}

pub(super) fn trace_ids(question: &HookQuestion) -> TraceIds {
    let owned = |text: &Option<std::borrow::Cow<'static, str>>| text.as_deref().map(str::to_owned);
    let event = &question.event;
    TraceIds {
        execution: owned(&event.execution),
        session: owned(&event.session),
        turn: owned(&event.turn),
        step: owned(&event.step),
        request: question.request.clone(),
    }
}
