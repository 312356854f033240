//! Tool hooks: the pair of events of every call, the events of calls that were not made, and how they are found.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_gate::ports::ledger::{Admission, Admit, EventFilter, PageRequest, RecordDenial, Settle};
use toolgate_model::hook::{CallTrace, RunId, ToolReturned, Transport};
use toolgate_model::id::EventId;
use toolgate_model::invocation::{Invocation, InvocationError, InvocationStatus};
use toolgate_model::rate_limit::RateLimit;
use toolgate_testkit::ledger_fixture::LedgerFixture;
use toolgate_testkit::trail::shown;

use super::support::calls::{Caller, DEADLINE, another};

contract!(
    a_call_is_in_the_log_before_it_is_settled_and_its_return_names_it,
    a_failed_call_tells_why_and_how_long_only_if_it_was_sent,
    inputs_are_in_the_log_only_where_they_were_given,
    a_call_for_nobody_in_particular_is_the_systems,
    a_refused_or_stale_admission_tells_of_no_call,
    a_call_that_was_cut_off_returns_an_error_without_a_duration,
    a_cut_off_call_that_is_settled_after_all_returns_twice_for_one_cause,
    a_denial_about_authority_is_told_as_a_decision,
    a_denial_about_anything_else_is_no_decision,
    events_are_found_by_their_run,
    events_are_found_by_their_tool,
    several_types_are_found_together,
);

/// The call as part of this run, reached like this.
fn traced(mut call: Admit, run: &str, transport: Transport) -> Admit {
    call.invocation.trace =
        CallTrace { run: Some(RunId::parse(run).unwrap()), by_agent: true, transport, ..CallTrace::default() };
    call
}

/// A decision for a call of this run and tool, sent.
async fn running(caller: &Caller, call: &Admit, run: &str, tool: &str) -> Admit {
    let mut call = another(call);
    call.invocation.tool = tool.into();
    let call = traced(call, run, Transport::Http);
    assert_eq!(caller.send(call.clone()).await, Admission::Admitted);
    call
}

/// The returns of the log, as they are shown.
async fn returns(caller: &Caller) -> Vec<Value> {
    let events = caller.tenant.events().await;
    events.iter().map(shown).filter(|event| event["type"] == "agent.toolReturned").collect()
}

/// The types and the calls of the matching events.
async fn found(caller: &Caller, filter: EventFilter) -> BTreeSet<(String, String)> {
    caller.tenant.integrate().await;
    let page = PageRequest::first(PageRequest::LIMIT);
    let page = caller.tenant.ledger.events(&caller.tenant.id, filter, page).await.unwrap();
    let told = page.items.iter().map(|event| shown(&serde_json::from_str(&event.canonical).unwrap()));
    let text = |event: &Value, pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or("").to_owned();
    told.map(|event| (text(&event, "/type"), text(&event, "/payload/callId"))).collect()
}

fn pair_of(call: &Admit) -> BTreeSet<(String, String)> {
    ["agent.toolCalled", "agent.toolReturned"].map(|kind| (kind.to_owned(), call.invocation.id.to_string())).into()
}

fn denial(caller: &Caller, invocation: Invocation, returned: ToolReturned, about_authority: bool) -> RecordDenial {
    let reason = "not like this".to_owned();
    let error = InvocationError { code: "FORBIDDEN".to_owned(), reason };
    let invocation = Invocation { status: InvocationStatus::Denied, error: Some(error.clone()), ..invocation };
    let audit = caller.tenant.audit_of(&caller.agent);
    RecordDenial {
        audit,
        invocation,
        stage: "authorize",
        error,
        returned,
        about_authority,
        decision: None,
        detached: None,
    }
}

async fn a_call_is_in_the_log_before_it_is_settled_and_its_return_names_it(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let call = traced(caller.call(&caller.grant(None).await).await, "run-1", Transport::Mcp);
    assert_eq!(caller.send(call.clone()).await, Admission::Admitted);

    let called = shown(caller.tenant.events().await.last().unwrap());
    let id = EventId::of_call(call.invocation.id).to_string();
    assert_eq!(id.strip_prefix("evt_"), call.invocation.id.to_string().strip_prefix("inv_"));
    let pair = json!({"agentId": "billing", "toolName": "stripe.charges.create", "callId": call.invocation.id});
    let mut payload = pair.clone();
    payload["argsHash"] = json!(call.invocation.arguments_hash);
    payload["principal"] = json!("billing");
    payload["transport"] = json!("mcp");
    assert_eq!((&called["eventId"], &called["type"]), (&json!(id), &json!("agent.toolCalled")));
    assert_eq!((&called["payload"], &called["runId"]), (&payload, &json!("run-1")));
    assert!(returns(&caller).await.is_empty());

    caller.tenant.wait(1);
    caller.settle(&call, "{}").await;

    let returned = returns(&caller).await.pop().unwrap();
    let mut payload = pair;
    payload["status"] = json!("ok");
    payload["durationMs"] = json!(42);
    assert_eq!((&returned["payload"], &returned["runId"]), (&payload, &json!("run-1")));
    assert_eq!(returned["causationId"], json!(id));
    assert_ne!(returned["eventId"], json!(id));
}

async fn a_failed_call_tells_why_and_how_long_only_if_it_was_sent(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    for duration in [Some(7), None] {
        let call = caller.running(&grant).await;
        let mut settle = Settle { stored_result: None, never_sent: duration.is_none(), ..caller.settlement(&call, "") };
        settle.invocation.status = InvocationStatus::Error;
        settle.returned = ToolReturned::error(&settle.invocation, "PROXY_ERROR", "it failed".to_owned(), duration);
        caller.tenant.ledger.settle(Arc::new(settle)).await.unwrap();

        let payload = returns(&caller).await.pop().unwrap()["payload"].clone();
        assert_eq!(payload["status"], "error");
        assert_eq!(payload["error"], json!({"code": "PROXY_ERROR", "message": "it failed"}));
        assert_eq!(payload.get("durationMs"), duration.map(|duration| json!(duration)).as_ref());
    }
}

async fn inputs_are_in_the_log_only_where_they_were_given(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    for inputs in [None, Some(json!({"amount": 1200, "note": "\u{1f600} \"quoted\"", "rate": 0.5}))] {
        let mut call = caller.call(&grant).await;
        call.inputs = inputs.clone();
        assert_eq!(caller.send(call).await, Admission::Admitted);
        let called = caller.tenant.events().await.pop().unwrap();
        assert_eq!(called["data"].get("inputs"), inputs.as_ref());
    }
}

async fn a_call_for_nobody_in_particular_is_the_systems(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let mut call = caller.call(&caller.grant(None).await).await;
    call.invocation.trace = CallTrace { by_agent: false, transport: Transport::Native, ..CallTrace::default() };
    assert_eq!(caller.send(call.clone()).await, Admission::Admitted);
    let called = caller.tenant.events().await.pop().unwrap();
    assert_eq!((&called["data"]["agentId"], &called["data"]["principal"]), (&json!("core.system"), &json!("billing")));
    // A cut-off call is recorded by the process that closes it, not by the one that made it.
    caller.tenant.wait(DEADLINE + 1);
    caller.tenant.ledger.close_calls(caller.tenant.now()).await.unwrap();
    let returned = returns(&caller).await.pop().unwrap();
    assert_eq!(
        (&returned["payload"]["agentId"], &returned["runId"]),
        (&json!("core.system"), &json!(call.invocation.id))
    );
}

async fn a_refused_or_stale_admission_tells_of_no_call(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let (grant, narrow, ended) = (caller.grant(None).await, caller.grant(0).await, caller.grant(None).await);
    let limit = RateLimit::new(1, 3600, None).unwrap();
    let limited = Admit { bucket: Some(limit), ..caller.call(&grant).await };
    let stale = caller.call(&ended).await;
    caller.tenant.revoke(ended.id).await.unwrap();
    assert_eq!(caller.send(another(&limited)).await, Admission::Admitted);
    let before = caller.tenant.events().await.len();

    assert!(matches!(caller.send(limited).await, Admission::Refused(_)));
    assert!(matches!(caller.admit(&narrow).await, Admission::Refused(_)));
    assert_eq!(caller.send(stale.clone()).await, Admission::Stale);
    assert_eq!(caller.tenant.events().await.len(), before);

    // Beside one that is admitted in the same transaction, too.
    let good = caller.call(&grant).await;
    let outcomes =
        tokio::join!(caller.send(another(&stale)), caller.send(another(&good)), caller.send(another(&stale)));
    assert_eq!(outcomes, (Admission::Stale, Admission::Admitted, Admission::Stale));
    assert_eq!(caller.tenant.events().await.len(), before + 1);
}

async fn a_call_that_was_cut_off_returns_an_error_without_a_duration(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let call = traced(caller.call(&caller.grant(None).await).await, "run-1", Transport::Http);
    assert_eq!(caller.send(call.clone()).await, Admission::Admitted);
    caller.tenant.wait(DEADLINE + 1);
    caller.tenant.ledger.close_calls(caller.tenant.now()).await.unwrap();

    let all = returns(&caller).await;
    let [returned] = all.as_slice() else { panic!("one return: {all:?}") };
    let payload = json!({
        "agentId": "billing", "toolName": "stripe.charges.create", "callId": call.invocation.id, "status": "error",
        "error": {"code": "OUTCOME_UNKNOWN", "message": "the gate stopped while the call was in flight"},
    });
    assert_eq!((&returned["payload"], &returned["runId"]), (&payload, &json!("run-1")));
    assert_eq!(returned["causationId"], json!(EventId::of_call(call.invocation.id)));
}

async fn a_cut_off_call_that_is_settled_after_all_returns_twice_for_one_cause(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let call = caller.running(&caller.grant(None).await).await;
    caller.tenant.wait(DEADLINE + 1);
    caller.tenant.ledger.close_calls(caller.tenant.now()).await.unwrap();
    caller.settle(&call, "{}").await;

    let told = returns(&caller).await;
    let statuses: Vec<_> = told.iter().map(|event| event["payload"]["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["error", "ok"]);
    for event in &told {
        assert_eq!(event["causationId"], json!(EventId::of_call(call.invocation.id)));
    }
    assert_eq!(caller.tenant.events_of("agent.toolCalled").await.len(), 1);
}

async fn a_denial_about_authority_is_told_as_a_decision(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let mut invocation = caller.invocation(&caller.grant(None).await);
    invocation.trace.run = Some(RunId::parse("run-1").unwrap());
    let returned = ToolReturned::forbidden(&invocation);
    caller.tenant.ledger.record_denial(denial(&caller, invocation.clone(), returned, true)).await.unwrap();

    let events: Vec<Value> = caller.tenant.events().await.iter().rev().take(3).rev().map(shown).collect();
    let kinds: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["agent.toolCalled", "agent.toolReturned", "authorization.decided"]);
    let pair = json!({"agentId": "billing", "toolName": "stripe.charges.create", "callId": invocation.id, "status": "forbidden"});
    assert_eq!(events[1]["payload"], pair);
    let decided = json!({
        "principal": "billing", "action": "tools:invoke", "resource": "stripe.charges.create", "allowed": false,
        "reason": "FORBIDDEN",
    });
    assert_eq!(events[2]["payload"], decided);
    assert!(events.iter().all(|event| event["runId"] == "run-1"));
}

async fn a_denial_about_anything_else_is_no_decision(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    let invocation = caller.invocation(&grant);
    let limited = ToolReturned::rate_limited(&invocation);
    caller.tenant.ledger.record_denial(denial(&caller, invocation, limited, false)).await.unwrap();
    let invocation = caller.invocation(&grant);
    let invalid = ToolReturned::error(&invocation, "PARAMETERS_INVALID", "refused".to_owned(), None);
    caller.tenant.ledger.record_denial(denial(&caller, invocation, invalid, false)).await.unwrap();

    assert!(caller.tenant.events_of("authorization.decided").await.is_empty());
    let statuses: Vec<_> = returns(&caller).await.iter().map(|event| event["payload"]["status"].clone()).collect();
    assert_eq!(statuses, ["rate_limited", "error"]);
    assert_eq!(caller.tenant.events_of("agent.toolCalled").await.len(), 2);
}

async fn events_are_found_by_their_run(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let call = caller.call(&caller.grant(None).await).await;
    let one = running(&caller, &call, "run-1", "charges.create").await;
    let other = running(&caller, &call, "run-2", "charges.create").await;
    let alone = another(&call);
    assert_eq!(caller.send(alone.clone()).await, Admission::Admitted);
    for call in [&one, &other, &alone] {
        caller.settle(call, "{}").await;
    }
    let elsewhere = Caller::new(fixture).await;
    let foreign = elsewhere.call(&elsewhere.grant(None).await).await;
    running(&elsewhere, &foreign, "run-1", "charges.create").await;

    let of_run = |run: &str| EventFilter { run: Some(run.to_owned()), ..EventFilter::default() };
    assert_eq!(found(&caller, of_run("run-1")).await, pair_of(&one));
    assert_eq!(found(&caller, of_run("run-2")).await, pair_of(&other));
    assert_eq!(found(&caller, of_run(&alone.invocation.id.to_string())).await, pair_of(&alone), "a run of its own");
    assert!(found(&caller, of_run("run-3")).await.is_empty());
}

async fn events_are_found_by_their_tool(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let call = caller.call(&caller.grant(None).await).await;
    let charge = running(&caller, &call, "run-1", "charges.create").await;
    let refund = running(&caller, &call, "run-1", "refunds.create").await;
    for call in [&charge, &refund] {
        caller.settle(call, "{}").await;
    }
    let of_tool = |tool: &str| EventFilter { tool: Some(tool.to_owned()), ..EventFilter::default() };
    assert_eq!(found(&caller, of_tool("stripe.charges.create")).await, pair_of(&charge));
    assert_eq!(found(&caller, of_tool("stripe.refunds.create")).await, pair_of(&refund));
    for other in ["charges.create", "stripe", "stripe.charges"] {
        assert!(found(&caller, of_tool(other)).await.is_empty(), "{other}");
    }
    let both = EventFilter { run: Some("run-1".to_owned()), ..of_tool("stripe.refunds.create") };
    assert_eq!(found(&caller, both).await, pair_of(&refund));
}

async fn several_types_are_found_together(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    let call = caller.running(&grant).await;
    caller.settle(&call, "{}").await;
    let invocation = caller.invocation(&grant);
    let returned = ToolReturned::forbidden(&invocation);
    caller.tenant.ledger.record_denial(denial(&caller, invocation.clone(), returned, true)).await.unwrap();

    let of_types = |kinds: &[&str]| EventFilter {
        kinds: kinds.iter().copied().map(str::to_owned).collect(),
        ..EventFilter::default()
    };
    let returned = |id| ("agent.toolReturned".to_owned(), format!("{id}"));
    let expected = [returned(call.invocation.id), returned(invocation.id)].into();
    assert_eq!(found(&caller, of_types(&["tool.invoked", "tool.denied"])).await, expected);
    let decided = [("authorization.decided".to_owned(), String::new())].into();
    assert_eq!(found(&caller, of_types(&["authorization.decided"])).await, decided);
    assert!(found(&caller, of_types(&["tool.session.opened"])).await.is_empty());
}
