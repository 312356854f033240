//! Which contexts a call may claim, and what guardrails do to it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_model::context::ContextId;
use toolgate_model::id::IntentId;
use toolgate_model::work::RunningTask;
use toolgate_model::work::limits::READ_WITH_GRANTS;

use super::*;
use crate::call::CallRequest;
use crate::call::testing::{Bench, now};

fn task() -> TaskId {
    TaskId::new(now(), [1; 10])
}

fn context(value: Value) -> GrantContext {
    serde_json::from_value(value).unwrap()
}

fn whole() -> GrantContext {
    context(json!({"intent_id": IntentId::new(now(), [2; 10]), "task_id": task()}))
}

/// A bench whose agent works on one task.
fn working(due: Option<Timestamp>) -> Bench {
    let bench = Bench::with_grant();
    let work = AgentWork {
        running: BTreeMap::from([(task(), RunningTask { context: whole(), due })]),
        intents: BTreeSet::from([IntentId::new(now(), [2; 10])]),
        ..AgentWork::default()
    };
    *bench.memory.work.lock().unwrap() = Some(Arc::new(work));
    bench
}

fn in_context(bench: &Bench, context: GrantContext) -> Call {
    let parameters = json!({"id": "7"}).as_object().cloned().unwrap();
    let address = bench.call("crm.read", json!({})).address;
    bench.begin(CallRequest { context, ..CallRequest::new("crm.read".to_owned(), parameters, address) })
}

#[tokio::test]
async fn the_context_of_a_task_is_completed_and_bounds_the_call() {
    let due = Some(now().plus(std::time::Duration::from_secs(60)));
    let bench = working(due);
    let call = in_context(&bench, context(json!({"task_id": task()})));
    let bound = bench.pipeline.in_context(&call, Freshness::Newest).await.unwrap().unwrap();
    assert_eq!(bound.context, whole());
    assert_eq!(bound.task, Some(CallTask { id: task(), until: due }));
    assert!(bench.constrain(&call).await.is_ok());
}

#[tokio::test]
async fn what_is_not_the_agents_is_refused_whatever_it_is() {
    let bench = working(None);
    let unknown = TaskId::new(now(), [9; 10]);
    let elsewhere = IntentId::new(now(), [9; 10]);
    for claimed in [
        json!({"task_id": unknown}),
        json!({"task_id": task(), "intent_id": elsewhere}),
        json!({"intent_id": elsewhere}),
        json!({"task_id": task(), "plan_id": "plan_of_another_system"}),
    ] {
        let refusal = bench.constrain(&in_context(&bench, context(claimed.clone()))).await.err().unwrap();
        assert_eq!(
            (refusal.code(), refusal.stage()),
            (Code::GrantContextMismatch, Some(Stage::Authorize)),
            "{claimed}"
        );
    }
    // Without any work the answer is the same.
    let idle = Bench::with_grant();
    let refusal = idle.constrain(&in_context(&idle, context(json!({"task_id": task()})))).await.err().unwrap();
    assert_eq!(refusal.code(), Code::GrantContextMismatch);
}

#[tokio::test]
async fn what_was_not_read_with_the_grants_is_looked_up() {
    let bench = working(None);
    let other = IntentId::new(now(), [9; 10]);
    *bench.memory.named_work.lock().unwrap() = AgentWork { intents: BTreeSet::from([other]), ..AgentWork::default() };
    let call = in_context(&bench, context(json!({"intent_id": other})));
    // All of the work was read, so no lookup is made.
    assert!(bench.constrain(&call).await.is_err());
    let many = (0..READ_WITH_GRANTS).map(|number| {
        let bytes = number.to_be_bytes();
        IntentId::new(now(), [0, 0, 0, 0, 0, 0, bytes[0], bytes[1], bytes[2], bytes[3]])
    });
    let full = AgentWork { intents: many.collect(), ..AgentWork::default() };
    *bench.memory.work.lock().unwrap() = Some(Arc::new(full));
    assert!(bench.constrain(&call).await.is_ok());
    let unknown = in_context(&bench, context(json!({"task_id": task()})));
    assert_eq!(bench.constrain(&unknown).await.err().unwrap().code(), Code::GrantContextMismatch);
}

#[tokio::test]
async fn ids_of_another_system_pass_as_they_are() {
    let bench = Bench::with_grant();
    let foreign = context(json!({"intent_id": "intent_01HXYZ", "task_id": "t-1"}));
    let call = in_context(&bench, foreign);
    assert!(bench.pipeline.in_context(&call, Freshness::Newest).await.unwrap().is_none());
    assert!(bench.constrain(&call).await.is_ok());
    assert_eq!(ContextId::parse("t-1").ok(), call.context.task_id);
}

#[tokio::test]
async fn services_outside_the_guardrails_are_refused() {
    for (guardrails, expected) in [
        (json!({"denied_services": ["crm"]}), Some(Code::GuardrailDenied)),
        (json!({"allowed_services": ["mail"]}), Some(Code::GuardrailDenied)),
        (json!({"allowed_services": ["crm"], "denied_services": ["mail"]}), None),
    ] {
        let bench = Bench::with_grant();
        let coordinator = bench.govern(&guardrails);
        let refusal = bench.constrain(&bench.call("crm.read", json!({"id": "7"}))).await.err();
        assert_eq!(refusal.as_ref().map(Refusal::code), expected, "{guardrails}");
        if let Some(refusal) = refusal {
            assert!(refusal.reason().contains(&coordinator.to_string()));
        }
    }
}

#[tokio::test]
async fn guardrails_are_known_to_every_eligible_grant() {
    let bench = Bench::with_grant();
    let id = bench.govern(&json!({"max_tool_invocations": 5, "require_approval_for": ["crm.read"]}));
    let preferred = bench.preferred(&bench.call("crm.read", json!({"id": "7"}))).await;
    let governing: Vec<_> = preferred.first.candidate.coordinators().iter().map(|one| one.id).collect();
    assert_eq!(governing, [id]);
    assert_eq!(preferred.first.asking_coordinator().map(|one| one.id), Some(id));
}
