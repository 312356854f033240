//! Guardian decisions are recorded in the transaction of what they are about, and before it.

use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_gate::ports::ledger::{Admission, EventFilter, PageRequest, RecordDecision, RecordDenial, Settle};
use toolgate_model::context::{ContextId, GrantContext};
use toolgate_model::guard::{Hook, TraceIds, VerdictKind};
use toolgate_model::hook::{RunId, ToolReturned};
use toolgate_model::invocation::{Invocation, InvocationError, InvocationStatus};
use toolgate_testkit::ledger_fixture::LedgerFixture;

use super::support::calls::{Caller, another, refusal_of};
use super::support::guarding::decision;
use super::support::replicas::many;

contract!(
    what_was_said_about_a_call_stands_with_it_before_it_runs,
    what_was_said_about_a_result_stands_before_its_return,
    what_was_said_about_a_refused_call_stands_before_the_refusal,
    what_was_said_about_a_call_that_is_not_admitted_is_not_written_by_the_admission,
    what_was_said_about_many_calls_stands_beside_each_of_them,
    what_was_said_about_another_event_is_found_by_its_execution,
);

/// The types of these events, in order.
fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

/// The events behind the first so many.
async fn events_since(caller: &Caller, before: usize) -> Vec<Value> {
    caller.tenant.events().await.split_off(before)
}

async fn what_was_said_about_a_call_stands_with_it_before_it_runs(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let mut call = caller.call(&caller.grant(None).await).await;
    let task_id = Some(ContextId::parse("task-3").unwrap());
    call.invocation.context = GrantContext { task_id, ..GrantContext::default() };
    call.invocation.trace.run = Some(RunId::parse("run-1").unwrap());
    let said = decision(Hook::ToolCallRequest, VerdictKind::Modify, Some(call.invocation.id));
    call.decision = Some(said.clone());
    let before = caller.tenant.events().await.len();

    assert_eq!(caller.send(call.clone()).await, Admission::Admitted);

    let events = events_since(&caller, before).await;
    assert_eq!(kinds(&events), ["agent.toolCalled", "hook.decided"]);
    let decided = &events[1];
    assert_eq!(decided["data"], json!(said));
    assert_eq!(decided["data"]["invocation_id"], json!(call.invocation.id));
    assert_eq!(decided["data"]["guardians"][0]["policies"][0]["policy_id"], "no-sundays");
    assert_eq!((&decided["run_id"], &decided["task_id"]), (&json!("run-1"), &json!("task-3")));
    assert_eq!((&decided["actor"], &decided["agent_id"]), (&json!("billing"), &json!("billing")));

    caller.settle(&call, "{}").await;
    assert_eq!(kinds(&events_since(&caller, before).await), ["agent.toolCalled", "hook.decided", "tool.invoked"]);
    let tool = EventFilter { tool: Some("stripe.charges.create".to_owned()), ..EventFilter::default() };
    let found = caller.tenant.ledger.events(&caller.tenant.id, tool, PageRequest::first(10)).await.unwrap();
    assert_eq!(found.items.len(), 3);
}

async fn what_was_said_about_a_result_stands_before_its_return(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    let (looked_at, plain) = (caller.running(&grant).await, caller.running(&grant).await);
    let before = caller.tenant.events().await.len();

    let said = decision(Hook::ToolCallResult, VerdictKind::Deny, Some(looked_at.invocation.id));
    let settle = Settle { decision: Some(said.clone()), ..caller.settlement(&looked_at, "{}") };
    caller.tenant.ledger.settle(Arc::new(settle)).await.unwrap();
    caller.settle(&plain, "{}").await;

    let events = events_since(&caller, before).await;
    assert_eq!(kinds(&events), ["hook.decided", "tool.invoked", "tool.invoked"]);
    assert_eq!(events[0]["data"], json!(said));
    assert_eq!(events[1]["data"]["invocation_id"], json!(looked_at.invocation.id));
}

async fn what_was_said_about_a_refused_call_stands_before_the_refusal(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let error = InvocationError { code: "POLICY_DENIED".to_owned(), reason: "not on a Sunday".to_owned() };
    let invocation = Invocation {
        status: InvocationStatus::Denied,
        error: Some(error.clone()),
        ..caller.invocation(&caller.grant(None).await)
    };
    let said = decision(Hook::ToolCallRequest, VerdictKind::Deny, Some(invocation.id));
    let before = caller.tenant.events().await.len();
    let denial = RecordDenial {
        audit: caller.tenant.audit_of(&caller.agent),
        stage: "guard",
        returned: ToolReturned::error(&invocation, &error.code, "refused".to_owned(), None),
        error,
        about_authority: true,
        decision: Some(said.clone()),
        detached: None,
        invocation: invocation.clone(),
    };

    fixture.ledger().record_denial(denial).await.unwrap();

    let events = events_since(&caller, before).await;
    assert_eq!(kinds(&events), ["agent.toolCalled", "hook.decided", "tool.denied", "authorization.decided"]);
    assert_eq!((&events[1]["data"], &events[1]["run_id"]), (&json!(said), &json!(invocation.id)));
}

async fn what_was_said_about_a_call_that_is_not_admitted_is_not_written_by_the_admission(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(1).await;
    let mut call = caller.call(&grant).await;
    call.decision = Some(decision(Hook::ToolCallRequest, VerdictKind::Allow, None));
    assert_eq!(caller.send(call.clone()).await, Admission::Admitted);
    let before = caller.tenant.events().await.len();

    // A later refusal records it.
    let full = caller.send(another(&call)).await;
    refusal_of(full, toolgate_gate::refusal::Code::GrantRateLimited);
    let mut stale = another(&call);
    (stale.generation, stale.policies) = (0, 7);
    assert_eq!(caller.send(stale).await, Admission::Stale);

    assert!(events_since(&caller, before).await.is_empty());
}

async fn what_was_said_about_many_calls_stands_beside_each_of_them(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(60).await;
    let template = caller.call(&grant).await;
    // Admitted together as they come, some with a decision and some without, and the last ones refused.
    let calls: Vec<_> = many(&template, 90)
        .into_iter()
        .enumerate()
        .map(|(number, mut call)| {
            let said = || decision(Hook::ToolCallRequest, VerdictKind::Allow, Some(call.invocation.id));
            call.decision = (number % 3 != 0).then(said);
            call
        })
        .collect();
    let sent = calls.iter().cloned().map(|call| caller.send(call));
    let outcomes = futures_util::future::join_all(sent).await;
    let admitted = || calls.iter().zip(&outcomes).filter(|(_, outcome)| **outcome == Admission::Admitted);
    assert_eq!(admitted().count(), 60);

    let events = caller.tenant.events().await;
    let place = |kind: &str, member: &str, call: &toolgate_gate::ports::ledger::Admit| {
        let id = json!(call.invocation.id);
        events.iter().position(|event| event["type"] == kind && event["data"][member] == id)
    };
    let mut decided = 0;
    for (call, _) in admitted() {
        let called = place("agent.toolCalled", "callId", call).unwrap();
        let said = place("hook.decided", "invocation_id", call);
        assert_eq!(said, call.decision.is_some().then_some(called + 1));
        decided += usize::from(said.is_some());
    }
    assert_eq!(events.iter().filter(|event| event["type"] == "hook.decided").count(), decided);

    let settled = admitted().map(|(call, _)| {
        let said = call.decision.is_none().then(|| decision(Hook::ToolCallResult, VerdictKind::Allow, None));
        let settle = Settle { decision: said, ..caller.settlement(call, "{}") };
        caller.tenant.ledger.settle(Arc::new(settle))
    });
    for outcome in futures_util::future::join_all(settled).await {
        outcome.unwrap();
    }
    assert_eq!(caller.tenant.events_of("hook.decided").await.len(), 60);
}

async fn what_was_said_about_another_event_is_found_by_its_execution(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let about = |run: Option<&str>, session: Option<&str>| {
        let mut said = decision(Hook::MemoryStore, VerdictKind::Ask, None);
        said.tool = session.map(str::to_owned);
        said.ids = TraceIds { session: session.map(str::to_owned), ..TraceIds::default() };
        RecordDecision {
            audit: caller.tenant.audit(),
            agent: caller.agent.clone(),
            run: run.map(|run| RunId::parse(run).unwrap()),
            decision: said,
        }
    };
    for (run, session, expected) in [
        (Some("run-1"), Some("s-1"), json!("run-1")),
        (Some("run-2"), None, json!("run-2")),
        (None, Some("s-2"), json!("s-2")),
        (None, Some("no name \u{0}"), json!(null)),
        (None, None, json!(null)),
    ] {
        let command = about(run, session);
        fixture.ledger().record_decision(command.clone()).await.unwrap();
        let event = caller.tenant.events().await.pop().unwrap();
        assert_eq!((&event["type"], &event["data"]), (&json!("hook.decided"), &json!(command.decision)));
        assert_eq!((&event["actor"], &event["agent_id"]), (&json!("admin"), &json!("billing")));
        assert_eq!(event["run_id"], expected);
    }
    assert!(caller.records().await.is_empty(), "it is no call");
    let run = EventFilter { run: Some("s-2".to_owned()), ..EventFilter::default() };
    let found = caller.tenant.ledger.events(&caller.tenant.id, run, PageRequest::first(10)).await.unwrap();
    assert_eq!(found.items.len(), 1);
}
