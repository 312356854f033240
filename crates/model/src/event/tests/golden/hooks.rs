//! Decisions about hooks.

use super::*;
use crate::guard::{
    Dialect, FailureClass, GuardMode, GuardianRecord, Hook, HookDecision, Outcome, PolicyRef, Role, TraceIds,
    VerdictKind, WouldBe,
};
use crate::id::ApprovalId;

pub(super) fn hooks() -> Vec<EventPayload> {
    let policy = |id: &str| PolicyRef { id: id.to_owned(), version: "3".to_owned() };
    let bare = GuardianRecord {
        guardian: "scanner".to_owned(),
        dialect: Dialect::Joch,
        mode: GuardMode::Shadow,
        verdict: None,
        outcome: Outcome::FailedOpen,
        reason: None,
        policies: Vec::new(),
        failure: Some(FailureClass::IdMismatch),
        latency_us: 250_004,
    };
    let full = GuardianRecord {
        guardian: "policy".to_owned(),
        dialect: Dialect::Native,
        mode: GuardMode::Enforce,
        verdict: Some(VerdictKind::Deny),
        outcome: Outcome::Enforced,
        reason: Some("not on \"Sundays\"".to_owned()),
        policies: vec![policy("no-sundays"), policy("no-mail")],
        failure: None,
        latency_us: 21,
    };
    let quiet = HookDecision {
        hook: Hook::Message(Role::User),
        dialect: Dialect::Aos,
        invocation: None,
        ids: TraceIds::default(),
        tool: None,
        guardians: Vec::new(),
        shadow: Vec::new(),
        hash_before: "ab".repeat(32),
        hash_after: None,
        effective: VerdictKind::Allow,
        approval: None,
        policy_version: None,
        facts: None,
    };
    let told = HookDecision {
        hook: Hook::ToolCallRequest,
        dialect: Dialect::Native,
        invocation: Some(invocation().id),
        ids: TraceIds {
            execution: Some("exec-9".to_owned()),
            session: Some("s-1".to_owned()),
            turn: Some("t".to_owned()),
            step: Some("st".to_owned()),
            request: Some("r-1".to_owned()),
        },
        tool: Some("stripe.charges.create".to_owned()),
        guardians: vec![full, bare],
        shadow: vec![WouldBe { policy: policy("no-mondays"), verdict: VerdictKind::Ask }],
        hash_before: "ab".repeat(32),
        hash_after: Some("cd".repeat(32)),
        effective: VerdictKind::Modify,
        approval: Some(ApprovalId::new(at(5), [5; 10])),
        policy_version: Some(3),
        facts: Some(json!({"marks": ["private"], "agent": {"id": "billing", "labels": []}})),
    };
    let nothing = HookDecision { facts: Some(Value::Null), ..quiet.clone() };
    [quiet, told, nothing].into_iter().map(|decision| EventPayload::HookDecided(Box::new(decision))).collect()
}
