//! Idempotency: a call with an idempotency key is made once, and repetitions get the same result.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use toolgate_gate::ports::ledger::{Admission, Admit, Settle, StoredResult};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::grant::Grant;
use toolgate_model::invocation::{InvocationError, InvocationStatus};
use toolgate_testkit::ledger_fixture::{LedgerFixture, principal};

use super::support::calls::{Caller, DEADLINE, refusal_of};
use super::support::{detail, number};

contract!(
    while_a_call_is_under_way_the_same_call_waits,
    another_request_under_the_same_key_is_a_conflict,
    a_settled_call_answers_the_same_call_again,
    a_call_that_failed_answers_the_same_call_again,
    a_call_that_is_answered_again_is_not_written_down_again,
    a_call_through_another_grant_is_answered_with_the_grant_that_was_used,
    a_call_that_the_rate_refused_gives_its_key_up,
    a_call_that_was_never_sent_gives_its_key_up,
    a_call_that_was_cut_off_is_not_made_again,
    a_call_that_was_cut_off_and_is_settled_late_answers_the_same_call_again,
    a_key_is_its_agents_own,
    a_key_is_its_tenants_own,
    a_call_without_a_key_is_in_nobodys_way,
    a_key_is_forgotten_after_a_day_to_the_millisecond,
    a_key_that_was_forgotten_belongs_to_its_next_call,
    who_may_not_call_any_more_is_not_answered_again,
    a_call_whose_result_is_not_kept_is_not_made_again,
);

async fn keyed(caller: &Caller, grant: &Grant, digest: &str) -> Admit {
    caller.call_keyed(grant, "order-1", digest).await
}

async fn begin(caller: &Caller, grant: &Grant) -> Admit {
    let call = keyed(caller, grant, "d1").await;
    assert_eq!(caller.send(call.clone()).await, Admission::Admitted);
    call
}

/// Sends the same call again.
async fn repeat(caller: &Caller, grant: &Grant) -> Admission {
    caller.send(keyed(caller, grant, "d1").await).await
}

async fn assert_refused(caller: &Caller, grant: &Grant, code: Code, first: &Admit) -> Refusal {
    let refusal = refusal_of(repeat(caller, grant).await, code);
    assert_eq!(detail(&refusal, "invocation_id"), json!(first.invocation.id));
    refusal
}

fn answered(first: &Admit, status: InvocationStatus, result: &str) -> Admission {
    let Admit { invocation, .. } = first;
    let result = result.to_owned();
    Admission::Replayed(StoredResult { invocation: invocation.id, grant: invocation.grant, status, result })
}

async fn while_a_call_is_under_way_the_same_call_waits(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    let first = begin(&caller, &grant).await;

    let refusal = assert_refused(&caller, &grant, Code::IdempotencyInProgress, &first).await;

    assert_eq!(detail(&refusal, "retry_after_seconds"), json!(1));
    assert_eq!(caller.records().await, [first.invocation]);
}

async fn another_request_under_the_same_key_is_a_conflict(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    let first = begin(&caller, &grant).await;
    let conflict = async || {
        let other = keyed(&caller, &grant, "d2").await;
        let refusal = refusal_of(caller.send(other).await, Code::IdempotencyConflict);
        assert_eq!(detail(&refusal, "invocation_id"), json!(first.invocation.id));
    };

    conflict().await;
    caller.settle(&first, "{}").await;
    conflict().await;

    assert_eq!(caller.records().await.len(), 1);
    assert!(matches!(repeat(&caller, &grant).await, Admission::Replayed(_)), "the first keeps its key");
}

async fn a_settled_call_answers_the_same_call_again(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    let first = begin(&caller, &grant).await;
    let answer = r#"{"status":"success","result":"Bücher – 12 €"}"#;
    caller.settle(&first, answer).await;

    for reader in [caller.clone(), caller.at_replica(fixture).await] {
        assert_eq!(repeat(&reader, &grant).await, answered(&first, InvocationStatus::Success, answer));
    }
}

async fn a_call_that_failed_answers_the_same_call_again(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    let first = begin(&caller, &grant).await;
    let mut settle = caller.settlement(&first, "the error");
    settle.invocation.status = InvocationStatus::Error;
    settle.invocation.error = Some(InvocationError { code: "UPSTREAM_ERROR".to_owned(), reason: "no".to_owned() });
    fixture.ledger().settle(Arc::new(settle)).await.unwrap();
    assert_eq!(repeat(&caller, &grant).await, answered(&first, InvocationStatus::Error, "the error"));
}

async fn a_call_that_is_answered_again_is_not_written_down_again(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    let first = begin(&caller, &grant).await;
    caller.settle(&first, "{}").await;
    let (records, events) = (caller.records().await, caller.tenant.events().await);

    repeat(&caller, &grant).await;

    assert_eq!((caller.records().await, caller.tenant.events().await), (records, events));
}

async fn a_call_through_another_grant_is_answered_with_the_grant_that_was_used(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let (one, other) = (caller.grant(None).await, caller.grant(None).await);
    let first = begin(&caller, &one).await;
    caller.settle(&first, "{}").await;
    // The gate picks another grant for the same request.
    assert_eq!(repeat(&caller, &other).await, answered(&first, InvocationStatus::Success, "{}"));
}

async fn a_call_that_the_rate_refused_gives_its_key_up(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let (full, free) = (caller.grant(0).await, caller.grant(None).await);
    refusal_of(repeat(&caller, &full).await, Code::GrantRateLimited);
    assert_eq!(number(fixture, "SELECT COUNT(*) FROM idempotency_keys").await, 0);
    let other = keyed(&caller, &free, "another request").await;
    assert_eq!(caller.send(other).await, Admission::Admitted);
}

async fn a_call_that_was_never_sent_gives_its_key_up(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    let first = begin(&caller, &grant).await;
    let settle = Settle { stored_result: None, never_sent: true, ..caller.settlement(&first, "") };
    fixture.ledger().settle(Arc::new(settle)).await.unwrap();

    assert_eq!(repeat(&caller, &grant).await, Admission::Admitted);
    assert_eq!(caller.records().await.len(), 2, "each try has its record");
}

async fn a_call_that_was_cut_off_is_not_made_again(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    let first = begin(&caller, &grant).await;
    caller.tenant.wait(DEADLINE + 1);
    assert_eq!(fixture.ledger().close_calls(caller.tenant.now()).await.unwrap(), 1);

    assert_refused(&caller, &grant, Code::OutcomeUnknown, &first).await;

    let other = keyed(&caller, &grant, "d2").await;
    refusal_of(caller.send(other).await, Code::IdempotencyConflict);
}

async fn a_call_that_was_cut_off_and_is_settled_late_answers_the_same_call_again(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    let first = begin(&caller, &grant).await;
    caller.tenant.wait(DEADLINE + 1);
    fixture.ledger().close_calls(caller.tenant.now()).await.unwrap();

    caller.settle(&first, "late").await;

    assert_eq!(repeat(&caller, &grant).await, answered(&first, InvocationStatus::Success, "late"));
}

async fn a_key_is_its_agents_own(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let other = Caller::of(&caller.tenant, "reporting").await;
    let (grant, grant_of_other) = (caller.grant(None).await, other.grant(None).await);
    begin(&caller, &grant).await;
    let call = keyed(&other, &grant_of_other, "another request").await;
    assert_eq!(caller.send(call).await, Admission::Admitted);
    // The agent of the call counts, not its sender.
    let mut sent_for_it = keyed(&other, &grant_of_other, "d1").await;
    sent_for_it.invocation.agent = principal("billing");
    refusal_of(caller.send(sent_for_it).await, Code::IdempotencyInProgress);
}

async fn a_key_is_its_tenants_own(fixture: &LedgerFixture) {
    let (caller, other) = (Caller::new(fixture).await, Caller::new(fixture).await);
    let (grant, grant_of_other) = (caller.grant(None).await, other.grant(None).await);
    let first = begin(&caller, &grant).await;
    caller.settle(&first, "the secret of one tenant").await;
    let call = keyed(&other, &grant_of_other, "another request").await;
    assert_eq!(other.send(call).await, Admission::Admitted);
}

async fn a_call_without_a_key_is_in_nobodys_way(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    for _ in 0..3 {
        let call = caller.running(&grant).await;
        caller.settle(&call, "{}").await;
    }
    begin(&caller, &grant).await;
    assert_eq!(number(fixture, "SELECT COUNT(*) FROM idempotency_keys").await, 1);
}

async fn a_key_is_forgotten_after_a_day_to_the_millisecond(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    let first = begin(&caller, &grant).await;
    caller.settle(&first, "{}").await;
    caller.tenant.wait(24 * 3600);
    fixture.ledger().close_calls(caller.tenant.now()).await.unwrap();
    assert!(matches!(repeat(&caller, &grant).await, Admission::Replayed(_)));

    fixture.clock().advance(Duration::from_millis(1));
    fixture.ledger().close_calls(caller.tenant.now()).await.unwrap();

    let other = keyed(&caller, &grant, "another request").await;
    assert_eq!(caller.send(other).await, Admission::Admitted);
    assert_eq!(caller.record(first.invocation.id).await.unwrap().status, InvocationStatus::Success, "its record stays");
}

async fn a_key_that_was_forgotten_belongs_to_its_next_call(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    let (first, never_sent) = (begin(&caller, &grant).await, caller.call_keyed(&grant, "order-2", "d1").await);
    caller.send(never_sent.clone()).await;
    caller.tenant.wait(25 * 3600);
    fixture.ledger().close_calls(caller.tenant.now()).await.unwrap();
    let next = begin(&caller, &grant).await;
    let next_of_other = caller.call_keyed(&grant, "order-2", "d1").await;
    assert_eq!(caller.send(next_of_other).await, Admission::Admitted);

    // Settled a day late: neither the result nor the release applies to the present holders of the keys.
    caller.settle(&first, "of the first").await;
    let settle = Settle { never_sent: true, ..caller.settlement(&never_sent, "") };
    fixture.ledger().settle(Arc::new(settle)).await.unwrap();

    assert_refused(&caller, &grant, Code::IdempotencyInProgress, &next).await;
    let again = caller.call_keyed(&grant, "order-2", "d1").await;
    refusal_of(caller.send(again).await, Code::IdempotencyInProgress);
}

async fn who_may_not_call_any_more_is_not_answered_again(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    let first = begin(&caller, &grant).await;
    caller.settle(&first, "{}").await;
    let again = keyed(&caller, &grant, "d1").await;
    caller.tenant.revoke(grant.id).await.unwrap();
    assert_eq!(caller.send(again).await, Admission::Stale);
}

async fn a_call_whose_result_is_not_kept_is_not_made_again(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    let first = begin(&caller, &grant).await;
    let settle = Settle { stored_result: None, ..caller.settlement(&first, "") };
    fixture.ledger().settle(Arc::new(settle)).await.unwrap();
    assert_refused(&caller, &grant, Code::ResultNotKept, &first).await;
}
