//! Settlement: the outcome of a call, with its event; and the records of calls that were refused or made elsewhere.

use serde_json::{Value, json};
use std::sync::Arc;
use toolgate_gate::ports::ledger::{Admission, RecordDenial, Settle};
use toolgate_gate::refusal::Code;
use toolgate_model::constraint::Cost;
use toolgate_model::context::{ContextId, GrantContext};
use toolgate_model::hook::ToolReturned;
use toolgate_model::id::EventId;
use toolgate_model::invocation::{Invocation, InvocationError, InvocationStatus};
use toolgate_testkit::ledger_fixture::LedgerFixture;

use super::support::calls::{Caller, DEADLINE};
use super::support::refused;

contract!(
    a_settled_call_has_its_outcome_and_its_event,
    a_failed_call_says_why,
    settling_changes_only_the_outcome,
    a_call_is_settled_once,
    a_call_that_was_not_admitted_cannot_be_settled,
    a_call_of_another_tenant_cannot_be_settled,
    a_call_that_was_cut_off_can_still_be_settled,
    one_that_cannot_be_settled_does_not_touch_those_beside_it,
    a_refused_call_has_its_record_and_its_event,
    a_refused_call_may_know_next_to_nothing,
    a_reported_call_has_its_record_and_its_event,
    refused_and_reported_calls_cannot_be_settled,
    a_refusal_never_overwrites_an_admitted_call,
    an_admission_that_was_not_confirmed_is_taken_back_with_the_refusal,
    an_admission_that_comes_after_its_refusal_is_not_made,
    a_refusal_that_quotes_a_nul_is_recorded,
    a_report_counts_at_its_grant_and_at_every_grant_above_it,
    a_report_through_a_grant_that_has_ended_is_refused,
);

fn denial_of(caller: &Caller, invocation: &Invocation, error: InvocationError) -> RecordDenial {
    RecordDenial {
        audit: caller.tenant.audit_of(&caller.agent),
        stage: "admit",
        returned: ToolReturned::forbidden(invocation),
        about_authority: true,
        decision: None,
        detached: None,
        error: error.clone(),
        invocation: Invocation { status: InvocationStatus::Denied, error: Some(error), ..invocation.clone() },
    }
}

async fn a_refusal_never_overwrites_an_admitted_call(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let call = caller.running(&caller.grant(None).await).await;
    let denial = || denial_of(&caller, &call.invocation, error("GRANT_REVOKED"));

    refused(&caller.tenant, Code::OutcomeUnknown, fixture.ledger().record_denial(denial())).await;
    assert_eq!(caller.record(call.invocation.id).await, Some(call.invocation.clone()), "it is still running");

    caller.settle(&call, "{}").await;
    refused(&caller.tenant, Code::OutcomeUnknown, fixture.ledger().record_denial(denial())).await;
    assert_eq!(caller.record(call.invocation.id).await.unwrap().status, InvocationStatus::Success);
}

async fn an_admission_that_comes_after_its_refusal_is_not_made(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    let call = caller.call(&grant).await;
    let denial = denial_of(&caller, &call.invocation, error("LEDGER_UNAVAILABLE"));
    fixture.ledger().record_denial(denial.clone()).await.unwrap();

    // The ledger was slow: the admission that the gate has given up on arrives now, together with another one.
    let other = caller.call(&grant).await;
    let ledger = fixture.ledger();
    let (late, admitted) = tokio::join!(ledger.admit(call.clone().into()), ledger.admit(other.clone().into()));

    assert!(late.is_err(), "{late:?}");
    assert_eq!(admitted.unwrap(), Admission::Admitted);
    assert_eq!(caller.record(call.invocation.id).await.unwrap().status, InvocationStatus::Denied);
    assert_eq!(caller.tenant.events_of("agent.toolCalled").await.len(), 2);
    // The same refusal again changes nothing.
    refused(&caller.tenant, Code::OutcomeUnknown, fixture.ledger().record_denial(denial)).await;
    caller.tenant.wait(48 * 3600);
    assert_eq!(fixture.ledger().close_calls(caller.tenant.now()).await.unwrap(), 1, "only the other call was running");
    assert_eq!(caller.record(call.invocation.id).await.unwrap().status, InvocationStatus::Denied);
}

async fn an_admission_that_was_not_confirmed_is_taken_back_with_the_refusal(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    let call = caller.call_keyed(&grant, "order-1", "digest").await;
    assert_eq!(caller.send(call.clone()).await, Admission::Admitted);
    let unavailable = error("LEDGER_UNAVAILABLE");
    let denial = denial_of(&caller, &call.invocation, unavailable.clone());

    // The gate was told that the ledger is not available, and so executes nothing.
    fixture.ledger().record_denial(denial.clone()).await.unwrap();

    let kept = caller.record(call.invocation.id).await.unwrap();
    assert_eq!((kept.status, kept.error), (InvocationStatus::Denied, Some(unavailable)));
    assert_eq!(caller.tenant.events_of("agent.toolCalled").await.len(), 1);
    assert_eq!(caller.tenant.events_of("tool.denied").await.len(), 1);
    let again = caller.call_keyed(&grant, "order-1", "digest").await;
    assert_eq!(caller.send(again.clone()).await, Admission::Admitted, "whoever tries again is not told that it runs");

    // A settled call stays settled.
    caller.settle(&again, "{}").await;
    let late = denial_of(&caller, &again.invocation, error("LEDGER_UNAVAILABLE"));
    refused(&caller.tenant, Code::OutcomeUnknown, fixture.ledger().record_denial(late)).await;
}

async fn a_refusal_that_quotes_a_nul_is_recorded(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let mut invocation = caller.invocation(&caller.grant(None).await);
    invocation.tool = "charges\0.create".into();
    invocation.parameters = Arc::new(json!({"a\0b": "c\0d"}).as_object().cloned().unwrap());
    let error = InvocationError { code: "PARAMETERS_INVALID".to_owned(), reason: "there is no `a\0b`".to_owned() };

    fixture.ledger().record_denial(denial_of(&caller, &invocation, error)).await.unwrap();

    let kept = caller.record(invocation.id).await.unwrap();
    assert_eq!(kept.error.unwrap().reason, "there is no `a\u{2400}b`");
    assert_eq!((kept.tool.as_str(), kept.parameters), ("charges\u{2400}.create", invocation.parameters));
    let events = caller.tenant.events_of("tool.denied").await;
    assert_eq!(events[0]["data"]["reason"], json!("there is no `a\0b`"));
}

async fn a_report_counts_at_its_grant_and_at_every_grant_above_it(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let root = caller.grant(2).await;
    let grant = caller.delegate(&root, None).await;
    let report = async || {
        let invocation = Invocation { status: InvocationStatus::Success, reported: true, ..caller.invocation(&grant) };
        caller.report(&grant, invocation).await
    };
    assert_eq!(caller.admit(&grant).await, Admission::Admitted);
    fixture.ledger().report_invocation(report().await).await.unwrap();

    let full = report().await;
    let refusal = refused(&caller.tenant, Code::GrantRateLimited, fixture.ledger().report_invocation(full)).await;

    assert!(refusal.reason().contains(&root.id.to_string()), "{refusal}");
    assert!(matches!(caller.admit(&grant).await, Admission::Refused(_)), "calls and reports share the hour");
}

async fn a_report_through_a_grant_that_has_ended_is_refused(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let root = caller.grant(None).await;
    let grant = caller.delegate(&root, None).await;
    let report = caller.report(&grant, caller.invocation(&grant)).await;
    caller.tenant.suspend(root.id).await.unwrap();
    refused(&caller.tenant, Code::VersionConflict, fixture.ledger().report_invocation(report.clone())).await;
    caller.tenant.resume(root.id).await.unwrap();
    caller.tenant.revoke(grant.id).await.unwrap();
    refused(&caller.tenant, Code::VersionConflict, fixture.ledger().report_invocation(report)).await;
}

fn context() -> GrantContext {
    let id = |text| Some(ContextId::parse(text).unwrap());
    GrantContext { intent_id: id("intent-1"), plan_id: id("plan-2"), task_id: id("task-3") }
}

fn error(code: &str) -> InvocationError {
    InvocationError { code: code.to_owned(), reason: "the service said no".to_owned() }
}

async fn last_event(caller: &Caller) -> Value {
    caller.tenant.events().await.pop().unwrap()
}

async fn a_settled_call_has_its_outcome_and_its_event(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.delegate(&caller.grant(None).await, None).await;
    let mut call = caller.call(&grant).await;
    call.invocation.context = context();
    assert_eq!(caller.send(call.clone()).await, Admission::Admitted);
    caller.tenant.wait(2);
    let settle = caller.settlement(&call, "{}");

    fixture.ledger().settle(Arc::new(settle.clone())).await.unwrap();

    assert_eq!(caller.record(call.invocation.id).await, Some(settle.invocation));
    let event = last_event(&caller).await;
    assert_eq!(event["type"], "tool.invoked");
    let data = json!({
        "invocation_id": call.invocation.id, "grant_id": grant.id, "service": "stripe", "tool": "charges.create",
        "parameters_summary": {"amount": 1200, "currency": "eur"}, "arguments_hash": "a1".repeat(32),
        "status": "success", "http_status": 200, "duration_ms": 42,
        "cost": {"api_units": 1, "estimated_cost_usd": 0.02}, "request_fingerprint": "f2".repeat(32),
        "returned": {
            "type": "agent.toolReturned", "agentId": "worker", "toolName": "stripe.charges.create",
            "callId": call.invocation.id, "causationId": EventId::of_call(call.invocation.id), "status": "ok",
            "durationMs": 42,
        },
    });
    assert_eq!(event["data"], data);
    assert_eq!((&event["actor"], &event["agent_id"]), (&json!("billing"), &json!("worker")));
    assert_eq!(event["timestamp"], json!(caller.tenant.now()));
    assert_eq!(event["tenant"], json!(caller.tenant.id));
    let bound = [&event["intent_id"], &event["plan_id"], &event["task_id"]];
    assert_eq!(bound, [&json!("intent-1"), &json!("plan-2"), &json!("task-3")]);
}

async fn a_failed_call_says_why(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let call = caller.running(&caller.grant(None).await).await;
    let mut settle = Settle { stored_result: None, ..caller.settlement(&call, "") };
    settle.invocation.status = InvocationStatus::Error;
    settle.invocation.error = Some(error("UPSTREAM_ERROR"));
    settle.invocation.http_status = None;

    fixture.ledger().settle(Arc::new(settle.clone())).await.unwrap();

    assert_eq!(caller.record(call.invocation.id).await, Some(settle.invocation));
    let event = last_event(&caller).await;
    assert_eq!((&event["data"]["status"], &event["data"]["error_code"]), (&json!("error"), &json!("UPSTREAM_ERROR")));
    let data = event["data"].as_object().unwrap();
    for absent in ["http_status", "reported", "reason"] {
        assert!(!data.contains_key(absent), "{absent}");
    }
}

async fn settling_changes_only_the_outcome(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let call = caller.running(&caller.grant(None).await).await;
    let mut settle = caller.settlement(&call, "{}");
    settle.invocation.cost = Cost::from_dollars(0.5);
    let outcome = settle.invocation.clone();
    settle.invocation.tool = "another tool".into();
    settle.invocation.created_at = caller.tenant.later(9);
    settle.invocation.parameters = Arc::default();

    fixture.ledger().settle(Arc::new(settle)).await.unwrap();

    assert_eq!(caller.record(call.invocation.id).await, Some(outcome));
}

async fn a_call_is_settled_once(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let call = caller.running(&caller.grant(None).await).await;
    caller.settle(&call, "{}").await;
    let before = caller.record(call.invocation.id).await;
    let mut again = caller.settlement(&call, "{}");
    again.invocation.status = InvocationStatus::Error;
    refused(&caller.tenant, Code::Internal, fixture.ledger().settle(Arc::new(again))).await;
    assert_eq!(caller.record(call.invocation.id).await, before);
}

async fn a_call_that_was_not_admitted_cannot_be_settled(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let call = caller.call(&caller.grant(None).await).await;
    refused(&caller.tenant, Code::Internal, fixture.ledger().settle(Arc::new(caller.settlement(&call, "{}")))).await;
    assert!(caller.records().await.is_empty());
}

async fn a_call_of_another_tenant_cannot_be_settled(fixture: &LedgerFixture) {
    let (caller, other) = (Caller::new(fixture).await, Caller::new(fixture).await);
    let call = caller.running(&caller.grant(None).await).await;
    let mut settle = other.settlement(&call, "{}");
    settle.invocation.tenant = other.tenant.id.clone();
    refused(&other.tenant, Code::Internal, fixture.ledger().settle(Arc::new(settle))).await;
    assert_eq!(caller.record(call.invocation.id).await, Some(call.invocation));
}

async fn a_call_that_was_cut_off_can_still_be_settled(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let call = caller.running(&caller.grant(None).await).await;
    caller.tenant.wait(DEADLINE + 1);
    fixture.ledger().close_calls(caller.tenant.now()).await.unwrap();
    let settle = caller.settlement(&call, "{}");

    fixture.ledger().settle(Arc::new(settle.clone())).await.unwrap();

    assert_eq!(caller.record(call.invocation.id).await, Some(settle.invocation), "no trace of the error is left");
    let told: Vec<_> = caller.tenant.events_of("tool.invoked").await;
    let statuses: Vec<_> = told.iter().map(|event| event["data"]["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["unknown", "success"], "the log tells both");
    refused(&caller.tenant, Code::Internal, fixture.ledger().settle(Arc::new(caller.settlement(&call, "{}")))).await;
}

async fn one_that_cannot_be_settled_does_not_touch_those_beside_it(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    let mut settlements = Vec::new();
    for number in 0..40 {
        let call = if number % 10 == 3 { caller.call(&grant).await } else { caller.running(&grant).await };
        settlements.push(caller.settlement(&call, "{}"));
    }

    let attempts = settlements.into_iter().map(|settle| fixture.ledger().settle(Arc::new(settle)));
    let outcomes = futures_util::future::join_all(attempts).await;

    for (number, outcome) in outcomes.into_iter().enumerate() {
        assert_eq!(outcome.is_ok(), number % 10 != 3, "{number}: {outcome:?}");
    }
    let records = caller.records().await;
    assert_eq!(records.len(), 36);
    assert!(records.iter().all(|record| record.status == InvocationStatus::Success));
    assert_eq!(caller.tenant.events_of("tool.invoked").await.len(), 36);
}

async fn a_refused_call_has_its_record_and_its_event(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    let error = error("GRANT_RATE_LIMITED");
    let invocation = Invocation {
        status: InvocationStatus::Denied,
        error: Some(error.clone()),
        context: context(),
        ..caller.invocation(&grant)
    };
    let audit = caller.tenant.audit_of(&caller.agent);
    let denial = RecordDenial {
        audit,
        invocation: invocation.clone(),
        stage: "admit",
        error,
        returned: ToolReturned::rate_limited(&invocation),
        about_authority: false,
        decision: None,
        detached: None,
    };

    fixture.ledger().record_denial(denial).await.unwrap();

    assert_eq!(caller.record(invocation.id).await, Some(invocation.clone()));
    let event = last_event(&caller).await;
    assert_eq!(event["type"], "tool.denied");
    let data = json!({
        "invocation_id": invocation.id, "grant_id": grant.id, "service": "stripe", "tool": "charges.create",
        "arguments_hash": "a1".repeat(32), "stage": "admit", "error_code": "GRANT_RATE_LIMITED",
        "reason": "the service said no",
        "returned": {
            "type": "agent.toolReturned", "agentId": "billing", "toolName": "stripe.charges.create",
            "callId": invocation.id, "causationId": EventId::of_call(invocation.id), "status": "rate_limited",
        },
    });
    assert_eq!(event["data"], data);
    let called = caller.tenant.events().await.into_iter().nth_back(1).unwrap();
    assert_eq!(
        (&called["type"], &called["id"]),
        (&json!("agent.toolCalled"), &event["data"]["returned"]["causationId"])
    );
    assert_eq!((&called["run_id"], &event["run_id"]), (&json!(invocation.id), &json!(invocation.id)));
    assert_eq!((&event["actor"], &event["agent_id"]), (&json!("billing"), &json!("billing")));
    assert_eq!(event["task_id"], json!("task-3"));
}

async fn a_refused_call_may_know_next_to_nothing(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let invocation = Invocation {
        grant: None,
        service: None,
        tool: "no such tool \u{202e}\"'; --".into(),
        status: InvocationStatus::Denied,
        error: Some(error("TOOL_NOT_FOUND")),
        cost: None,
        cost_basis: None,
        ..caller.invocation(&caller.grant(None).await)
    };
    let denial = RecordDenial {
        audit: caller.tenant.audit_of(&caller.agent),
        invocation: invocation.clone(),
        stage: "resolve",
        error: error("TOOL_NOT_FOUND"),
        returned: ToolReturned::error(&invocation, "TOOL_NOT_FOUND", "not found".to_owned(), None),
        about_authority: false,
        decision: None,
        detached: None,
    };

    fixture.ledger().record_denial(denial).await.unwrap();

    assert_eq!(caller.record(invocation.id).await, Some(invocation.clone()));
    let data = &last_event(&caller).await["data"];
    assert_eq!((&data["grant_id"], &data["service"]), (&json!(null), &json!(null)));
    assert_eq!(data["tool"], json!(invocation.tool));
}

async fn a_reported_call_has_its_record_and_its_event(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    let invocation = Invocation {
        status: InvocationStatus::Success,
        reported: true,
        duration_ms: Some(7),
        context: context(),
        ..caller.invocation(&grant)
    };
    let report = caller.report(&grant, invocation.clone()).await;

    fixture.ledger().report_invocation(report).await.unwrap();

    assert_eq!(caller.record(invocation.id).await, Some(invocation.clone()));
    let event = last_event(&caller).await;
    assert_eq!(event["type"], "tool.invoked");
    assert_eq!(event["data"]["invocation_id"], json!(invocation.id));
    assert_eq!((&event["data"]["reported"], &event["data"]["duration_ms"]), (&json!(true), &json!(7)));
    assert_eq!(event["intent_id"], json!("intent-1"));
}

async fn refused_and_reported_calls_cannot_be_settled(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let call = caller.call(&caller.grant(None).await).await;
    for status in [InvocationStatus::Denied, InvocationStatus::Error, InvocationStatus::Success] {
        let mut call = call.clone();
        let grant = caller.grant(None).await;
        call.invocation = Invocation { status, ..caller.invocation(&grant) };
        let report = caller.report(&grant, call.invocation.clone()).await;
        fixture.ledger().report_invocation(report).await.unwrap();
        refused(&caller.tenant, Code::Internal, fixture.ledger().settle(Arc::new(caller.settlement(&call, "{}"))))
            .await;
    }
}
