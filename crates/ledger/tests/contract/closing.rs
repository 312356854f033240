//! Closing: calls that were cut off are shown as unknown, each once, and nothing else is touched.

use std::time::Duration;

use serde_json::json;
use toolgate_gate::ports::ledger::{Admission, Admit};
use toolgate_gate::refusal::Code;
use toolgate_model::id::InvocationId;
use toolgate_model::invocation::{InvocationError, InvocationStatus};
use toolgate_testkit::ledger_fixture::{LedgerFixture, TestTenant};

use super::support;
use super::support::calls::{Caller, DEADLINE};

contract!(
    a_call_is_cut_off_when_its_deadline_is_past_to_the_millisecond,
    a_call_that_was_cut_off_is_shown_and_recorded_as_unknown,
    a_call_is_cut_off_once,
    settled_calls_are_not_cut_off,
    calls_of_all_tenants_are_cut_off,
    many_calls_are_cut_off_in_one_go,
    replicas_that_close_at_the_same_time_close_each_call_once,
    calls_settled_while_others_are_closed_keep_their_outcome,
    a_call_that_cannot_be_read_keeps_no_other_from_being_closed,
);

async fn a_call_that_cannot_be_read_keeps_no_other_from_being_closed(fixture: &LedgerFixture) {
    let damaged = opened(fixture).await;
    let sound = Caller::new(fixture).await;
    damaged.running(&damaged.grant(None).await).await;
    sound.tenant.clock.advance(Duration::from_millis(1));
    let call = sound.running(&sound.grant(None).await).await;
    support::run(
        fixture,
        &format!("UPDATE calls_in_flight SET parameters = '{{' WHERE tenant = '{}'", damaged.tenant.id),
    )
    .await;
    sound.tenant.wait(DEADLINE + 1);

    let reported = sound.tenant.ledger.close_calls(sound.tenant.now()).await.unwrap_err();

    assert_eq!(reported.code(), Code::Internal);
    assert_eq!(status(&sound, call.invocation.id).await, InvocationStatus::Unknown);
}

async fn close(caller: &Caller) -> u64 {
    caller.tenant.ledger.close_calls(caller.tenant.now()).await.unwrap()
}

/// After the first close since opening, which on SQLite treats every running call as left over.
async fn opened(fixture: &LedgerFixture) -> Caller {
    let caller = Caller::new(fixture).await;
    assert_eq!(close(&caller).await, 0);
    caller
}

async fn status(caller: &Caller, id: InvocationId) -> InvocationStatus {
    caller.record(id).await.unwrap().status
}

async fn a_call_is_cut_off_when_its_deadline_is_past_to_the_millisecond(fixture: &LedgerFixture) {
    let caller = opened(fixture).await;
    let call = caller.running(&caller.grant(None).await).await;
    assert_eq!(close(&caller).await, 0);
    caller.tenant.wait(DEADLINE);
    assert_eq!(close(&caller).await, 0);
    assert_eq!(status(&caller, call.invocation.id).await, InvocationStatus::Running);

    fixture.clock().advance(Duration::from_millis(1));

    assert_eq!(close(&caller).await, 1);
    assert_eq!(status(&caller, call.invocation.id).await, InvocationStatus::Unknown);
}

async fn a_call_that_was_cut_off_is_shown_and_recorded_as_unknown(fixture: &LedgerFixture) {
    let caller = opened(fixture).await;
    let call = caller.running(&caller.grant(None).await).await;
    caller.tenant.wait(DEADLINE + 1);
    close(&caller).await;

    let mut expected = call.invocation.clone();
    (expected.status, expected.cost) = (InvocationStatus::Unknown, None);
    let reason = "the gate stopped while the call was in flight".to_owned();
    expected.error = Some(InvocationError { code: "OUTCOME_UNKNOWN".to_owned(), reason });
    assert_eq!(caller.record(expected.id).await, Some(expected.clone()));
    let event = caller.tenant.events().await.pop().unwrap();
    assert_eq!(event["type"], "tool.invoked");
    assert_eq!((&event["actor"], &event["agent_id"]), (&json!("core.system"), &json!("billing")));
    assert_eq!(event["timestamp"], json!(caller.tenant.now()));
    let data = &event["data"];
    assert_eq!((&data["invocation_id"], &data["status"]), (&json!(expected.id), &json!("unknown")));
    assert_eq!((&data["error_code"], &data["duration_ms"]), (&json!("OUTCOME_UNKNOWN"), &json!(null)));
    assert_eq!(data["parameters_summary"], json!({"amount": 1200, "currency": "eur"}));
    assert_eq!(data["request_fingerprint"], json!(call.invocation.fingerprint), "what may have been sent is known");
}

async fn a_call_is_cut_off_once(fixture: &LedgerFixture) {
    let caller = opened(fixture).await;
    caller.running(&caller.grant(None).await).await;
    caller.tenant.wait(DEADLINE + 1);
    assert_eq!(close(&caller).await, 1);
    assert_eq!(close(&caller).await, 0);
    assert_eq!(caller.tenant.events_of("tool.invoked").await.len(), 1);
}

async fn settled_calls_are_not_cut_off(fixture: &LedgerFixture) {
    let caller = opened(fixture).await;
    let call = caller.running(&caller.grant(None).await).await;
    caller.settle(&call, "{}").await;
    caller.tenant.wait(DEADLINE + 1);
    assert_eq!(close(&caller).await, 0);
    assert_eq!(status(&caller, call.invocation.id).await, InvocationStatus::Success);
}

async fn calls_of_all_tenants_are_cut_off(fixture: &LedgerFixture) {
    let (one, other) = (opened(fixture).await, opened(fixture).await);
    for caller in [&one, &other] {
        caller.running(&caller.grant(None).await).await;
    }
    one.tenant.wait(DEADLINE + 1);
    assert_eq!(close(&one).await, 2);
    for caller in [&one, &other] {
        let events = caller.tenant.events_of("tool.invoked").await;
        assert_eq!(events.len(), 1);
        assert_eq!(events[0]["tenant"], json!(caller.tenant.id));
    }
}

/// So many calls that are running.
async fn run(caller: &Caller, count: usize) -> Vec<Admit> {
    let grant = caller.grant(None).await;
    let mut calls = Vec::new();
    for _ in 0..count {
        calls.push(caller.call(&grant).await);
    }
    let sent = calls.iter().map(|call| caller.send(call.clone()));
    for outcome in futures_util::future::join_all(sent).await {
        assert_eq!(outcome, Admission::Admitted);
    }
    calls
}

async fn many_calls_are_cut_off_in_one_go(fixture: &LedgerFixture) {
    let caller = opened(fixture).await;
    run(&caller, 450).await;
    caller.tenant.wait(DEADLINE + 1);
    assert_eq!(close(&caller).await, 450);
    assert!(caller.records().await.iter().all(|record| record.status == InvocationStatus::Unknown));
    assert_eq!(caller.tenant.events_of("tool.invoked").await.len(), 450);
}

async fn replicas_that_close_at_the_same_time_close_each_call_once(fixture: &LedgerFixture) {
    let caller = opened(fixture).await;
    let there = caller.at_replica(fixture).await;
    run(&caller, 250).await;
    caller.tenant.wait(DEADLINE + 1);

    let closed = futures_util::future::join_all((0..6).map(|turn| close([&caller, &there][turn % 2]))).await;
    // What one skipped because another had it locked is closed by now, or at the next sweep.
    let rest = close(&caller).await;

    assert_eq!(closed.iter().sum::<u64>() + rest, 250);
    assert_eq!(caller.tenant.events_of("tool.invoked").await.len(), 250);
}

async fn calls_settled_while_others_are_closed_keep_their_outcome(fixture: &LedgerFixture) {
    let caller = opened(fixture).await;
    let there = caller.at_replica(fixture).await;
    let calls = run(&caller, 100).await;
    caller.tenant.wait(DEADLINE + 1);

    let settling = futures_util::future::join_all(calls.iter().map(|call| there.settle(call, "{}")));
    let ((), closed) = tokio::join!(async { drop(settling.await) }, close(&caller));

    assert!(caller.records().await.iter().all(|record| record.status == InvocationStatus::Success));
    assert_eq!(close(&caller).await, 0);
    let events = caller.tenant.events_of("tool.invoked").await;
    let unknown = events.iter().filter(|event| event["data"]["status"] == "unknown").count();
    assert_eq!((u64::try_from(unknown).unwrap(), events.len()), (closed, 100 + unknown));
}

/// Reopens the ledger with a running call that is not overdue, and returns how many calls the first and the second
/// close find, with another call started before the second.
async fn closed_after_opening(fixture: LedgerFixture) -> (u64, u64) {
    let caller = opened(&fixture).await;
    let grant = caller.grant(None).await;
    let left_over = caller.running(&grant).await;
    let Caller { tenant, agent, key } = caller;
    let id = tenant.id.clone();
    drop(tenant);

    let again = LedgerFixture::open(fixture.close()).await;

    let caller = Caller { tenant: TestTenant::existing(&again, id), agent, key };
    let first = close(&caller).await;
    let running = caller.running(&grant).await;
    let second = close(&caller).await;
    assert_eq!(status(&caller, running.invocation.id).await, InvocationStatus::Running);
    let expected = if first == 1 { InvocationStatus::Unknown } else { InvocationStatus::Running };
    assert_eq!(status(&caller, left_over.invocation.id).await, expected);
    (first, second)
}

#[tokio::test]
async fn what_an_earlier_process_left_on_sqlite_is_cut_off_at_once_and_only_that() {
    assert_eq!(closed_after_opening(LedgerFixture::sqlite().await).await, (1, 0));
}

#[tokio::test]
async fn what_another_replica_has_running_on_postgres_is_left_alone() {
    assert_eq!(closed_after_opening(LedgerFixture::postgres().await).await, (0, 0));
}
