//! Decisions of guardians as detection findings. Attributes are selected by name: reasons and facts may contain the content of
//! a call, and are not exported.

use serde_json::{Map, Value, json};
use toolgate_model::event::{Event, EventPayload};
use toolgate_model::guard::{GuardianRecord, HookDecision, VerdictKind};

use super::class::{Activity, Class, Outcome, Severity};
use super::{Mapped, object, present, value};

/// `None` for other events.
pub fn map(event: &Event) -> Option<Mapped> {
    let EventPayload::HookDecided(decision) = &event.payload else { return None };
    let (severity, action_id, action) = match decision.effective {
        VerdictKind::Allow => (Severity::Informational, 1, "Allowed"),
        VerdictKind::Modify => (Severity::Low, 4, "Modified"),
        VerdictKind::Ask => (Severity::Medium, 99, "Asked"),
        VerdictKind::Deny => (Severity::High, 2, "Denied"),
    };
    let title = format!("guardians at {}: {}", decision.hook.as_str(), decision.effective.as_str());
    let mut attributes = object([
        ("action", json!(action)),
        ("action_id", json!(action_id)),
        ("finding_info", json!({"title": title, "uid": event.id})),
    ]);
    if let Some(tool) = &decision.tool {
        attributes.insert("resources".to_owned(), json!([{"name": tool, "type": "tool"}]));
    }
    Some(Mapped {
        class: Class::DetectionFinding,
        activity: Activity::new(1, "Create"),
        outcome: Outcome::New,
        severity,
        attributes,
        unmapped: unmapped(decision),
    })
}

fn unmapped(decision: &HookDecision) -> Map<String, Value> {
    present([
        ("approval_id", value(decision.approval)),
        ("dialect", value(decision.dialect)),
        ("effective", value(decision.effective)),
        ("execution_id", value(&decision.ids.execution)),
        ("guardians", decision.guardians.iter().map(guardian).collect()),
        ("hash_after", value(&decision.hash_after)),
        ("hash_before", value(&decision.hash_before)),
        ("hook", value(decision.hook)),
        ("invocation_id", value(decision.invocation)),
        ("policy_version", value(decision.policy_version)),
        ("request_id", value(&decision.ids.request)),
        ("session_id", value(&decision.ids.session)),
        ("shadow", if decision.shadow.is_empty() { Value::Null } else { value(&decision.shadow) }),
        ("step_id", value(&decision.ids.step)),
        ("turn_id", value(&decision.ids.turn)),
    ])
}

/// Guardians, verdicts and rules, without reasons.
fn guardian(said: &GuardianRecord) -> Value {
    let GuardianRecord { dialect, failure, guardian, latency_us, mode, outcome, policies, reason: _, verdict } = said;
    Value::Object(present([
        ("dialect", value(dialect)),
        ("failure", value(failure)),
        ("guardian", value(guardian)),
        ("latency_us", value(latency_us)),
        ("mode", value(mode)),
        ("outcome", value(outcome)),
        ("policies", if policies.is_empty() { Value::Null } else { value(policies) }),
        ("verdict", value(verdict)),
    ]))
}
