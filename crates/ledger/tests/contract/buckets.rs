//! Token buckets: how often one agent may call one tool, exactly, with any number of concurrent calls on any replica.

use std::time::Duration;

use serde_json::json;
use toolgate_gate::ports::ledger::{Admission, Admit};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::grant::Grant;
use toolgate_model::rate_limit::RateLimit;
use toolgate_testkit::ledger_fixture::{LedgerFixture, TestTenant};

use super::support::calls::{Caller, another, keyed, refusal_of};
use super::support::replicas::{Replicas, admitted, many, recorded};
use super::support::{detail, number};

contract!(
    of_many_calls_at_once_exactly_the_burst_is_admitted,
    a_bucket_fills_at_its_rate_to_the_millisecond,
    a_bucket_that_is_full_holds_no_more_than_its_burst,
    a_refusal_says_what_is_limited_and_when_to_come_back,
    other_tools_other_agents_and_other_tenants_proceed,
    all_grants_of_an_agent_share_the_bucket_of_a_tool,
    a_call_that_the_bucket_refuses_takes_no_place_in_any_rate,
    a_call_that_the_bucket_refuses_leaves_its_idempotency_key_free,
    a_call_that_its_grant_has_no_room_for_takes_no_token,
    what_is_stale_or_answered_from_before_takes_no_token,
    an_answer_from_before_needs_no_token,
    a_changed_limit_counts_what_was_taken_before,
    a_call_without_a_limit_is_not_counted,
    calls_of_many_tools_in_any_order_are_all_answered,
);

fn limit(requests: u64, per_seconds: u64, burst: u64) -> RateLimit {
    RateLimit::new(requests, per_seconds, Some(burst)).unwrap()
}

/// The call under this limit.
fn limited(call: Admit, limit: RateLimit) -> Admit {
    Admit { bucket: Some(limit), ..call }
}

/// The same decision for a call of another tool.
fn of_tool(call: &Admit, tool: &str) -> Admit {
    let mut call = another(call);
    call.invocation.tool = tool.into();
    call
}

async fn send(caller: &Caller, grant: &Grant, limit: RateLimit) -> Admission {
    caller.send(limited(caller.call(grant).await, limit)).await
}

async fn admits(caller: &Caller, grant: &Grant, limit: RateLimit, times: usize) {
    for _ in 0..times {
        assert_eq!(send(caller, grant, limit).await, Admission::Admitted);
    }
}

async fn refuses(caller: &Caller, grant: &Grant, limit: RateLimit) -> Refusal {
    refusal_of(send(caller, grant, limit).await, Code::ToolRateLimited)
}

async fn of_many_calls_at_once_exactly_the_burst_is_admitted(fixture: &LedgerFixture) {
    for burst in [1, 2, 7] {
        let replicas = Replicas::of(fixture).await;
        let here = replicas.here();
        let call = limited(here.call(&here.grant(None).await).await, limit(1, 60, burst));

        let outcomes = replicas.send(many(&call, 120)).await;

        let admitted = admitted(&outcomes);
        assert_eq!(u64::try_from(admitted.len()).unwrap(), burst);
        assert_eq!(recorded(here).await, admitted);
        assert_eq!(here.tenant.events_of("agent.toolCalled").await.len(), admitted.len());
        for (_, outcome) in outcomes.into_iter().filter(|(_, outcome)| *outcome != Admission::Admitted) {
            refusal_of(outcome, Code::ToolRateLimited);
        }
    }
}

async fn a_bucket_fills_at_its_rate_to_the_millisecond(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let (grant, limit) = (caller.grant(None).await, limit(3, 60, 2));
    admits(&caller, &grant, limit, 2).await;
    // A token every twenty seconds.
    for _ in 0..3 {
        fixture.clock().advance(Duration::from_millis(19_999));
        refuses(&caller, &grant, limit).await;
        fixture.clock().advance(Duration::from_millis(1));
        admits(&caller, &grant, limit, 1).await;
        refuses(&caller, &grant, limit).await;
    }
    caller.tenant.wait(40);
    admits(&caller, &grant, limit, 2).await;
    refuses(&caller, &grant, limit).await;
}

async fn a_bucket_that_is_full_holds_no_more_than_its_burst(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let (grant, limit) = (caller.grant(None).await, limit(60, 60, 3));
    for _ in 0..2 {
        admits(&caller, &grant, limit, 3).await;
        refuses(&caller, &grant, limit).await;
        caller.tenant.wait(24 * 3600);
    }
}

async fn a_refusal_says_what_is_limited_and_when_to_come_back(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let (grant, limit) = (caller.grant(None).await, limit(1, 60, 1));
    admits(&caller, &grant, limit, 1).await;
    fixture.clock().advance(Duration::from_millis(10_500));

    let refusal = refuses(&caller, &grant, limit).await;

    assert_eq!(
        (detail(&refusal, "scope"), detail(&refusal, "toolName")),
        (json!("tool"), json!("stripe.charges.create"))
    );
    assert_eq!(detail(&refusal, "retry_after_seconds"), json!(50), "rounded up: whoever waits that long finds a token");
    caller.tenant.wait(50);
    admits(&caller, &grant, limit, 1).await;
}

async fn other_tools_other_agents_and_other_tenants_proceed(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let (grant, limit) = (caller.grant(None).await, limit(1, 3600, 1));
    admits(&caller, &grant, limit, 1).await;
    refuses(&caller, &grant, limit).await;

    let other_tool = of_tool(&limited(caller.call(&grant).await, limit), "charges.read");
    assert_eq!(caller.send(another(&other_tool)).await, Admission::Admitted);
    refusal_of(caller.send(another(&other_tool)).await, Code::ToolRateLimited);
    // The same tool by another agent, whose grant was delegated from this one.
    admits(&caller, &caller.delegate(&grant, None).await, limit, 1).await;
    let colleague = Caller::of(&caller.tenant, "accounting").await;
    admits(&colleague, &colleague.grant(None).await, limit, 1).await;
    let elsewhere = Caller::new(fixture).await;
    assert_eq!(elsewhere.agent, caller.agent);
    admits(&elsewhere, &elsewhere.grant(None).await, limit, 1).await;
    refuses(&caller, &grant, limit).await;
}

async fn all_grants_of_an_agent_share_the_bucket_of_a_tool(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let limit = limit(1, 3600, 2);
    let (one, other) = (caller.grant(None).await, caller.grant(None).await);
    admits(&caller, &one, limit, 1).await;
    admits(&caller, &other, limit, 1).await;
    for grant in [&one, &other, &caller.grant(None).await] {
        refuses(&caller, grant, limit).await;
    }
}

async fn a_call_that_the_bucket_refuses_takes_no_place_in_any_rate(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let root = caller.grant(3).await;
    let (leaf, limit) = (caller.delegate(&root, 3).await, limit(1, 60, 1));
    admits(&caller, &leaf, limit, 1).await;
    for _ in 0..5 {
        refuses(&caller, &leaf, limit).await;
    }
    // Two of three places are left, below and above.
    for grant in [&leaf, &root] {
        assert_eq!(caller.admit(grant).await, Admission::Admitted);
    }
    refusal_of(caller.admit(&leaf).await, Code::GrantRateLimited);
}

async fn a_call_that_the_bucket_refuses_leaves_its_idempotency_key_free(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let (grant, limit) = (caller.grant(None).await, limit(1, 60, 1));
    admits(&caller, &grant, limit, 1).await;
    let call = limited(keyed(caller.call(&grant).await, "order-1", "d1"), limit);
    refusal_of(caller.send(call).await, Code::ToolRateLimited);
    assert_eq!(number(fixture, "SELECT COUNT(*) FROM idempotency_keys").await, 0);

    caller.tenant.wait(60);
    let other_request = limited(keyed(caller.call(&grant).await, "order-1", "d2"), limit);
    assert_eq!(caller.send(other_request).await, Admission::Admitted);
}

async fn a_call_that_its_grant_has_no_room_for_takes_no_token(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let (narrow, wide, limit) = (caller.grant(1).await, caller.grant(None).await, limit(1, 3600, 2));
    admits(&caller, &narrow, limit, 1).await;
    for _ in 0..5 {
        refusal_of(send(&caller, &narrow, limit).await, Code::GrantRateLimited);
    }
    admits(&caller, &wide, limit, 1).await;
    refuses(&caller, &wide, limit).await;
}

async fn what_is_stale_or_answered_from_before_takes_no_token(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let (grant, ended, limit) = (caller.grant(None).await, caller.grant(None).await, limit(1, 3600, 2));
    let call = limited(keyed(caller.call(&grant).await, "order-1", "d1"), limit);
    assert_eq!(caller.send(call.clone()).await, Admission::Admitted);
    refusal_of(caller.send(another(&call)).await, Code::IdempotencyInProgress);
    caller.settle(&call, "{}").await;
    for _ in 0..3 {
        assert!(matches!(caller.send(another(&call)).await, Admission::Replayed(_)));
    }
    let stale = limited(caller.call(&ended).await, limit);
    caller.tenant.revoke(ended.id).await.unwrap();
    for _ in 0..3 {
        assert_eq!(caller.send(another(&stale)).await, Admission::Stale);
    }
    admits(&caller, &grant, limit, 1).await;
    refuses(&caller, &grant, limit).await;
}

async fn an_answer_from_before_needs_no_token(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let (grant, limit) = (caller.grant(None).await, limit(1, 3600, 1));
    let call = limited(keyed(caller.call(&grant).await, "order-1", "d1"), limit);
    assert_eq!(caller.send(call.clone()).await, Admission::Admitted);
    caller.settle(&call, "{}").await;
    refuses(&caller, &grant, limit).await;
    assert!(matches!(caller.send(another(&call)).await, Admission::Replayed(_)));
}

async fn a_changed_limit_counts_what_was_taken_before(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    admits(&caller, &grant, limit(1, 60, 2), 1).await;
    refuses(&caller, &grant, limit(1, 60, 1)).await;
    admits(&caller, &grant, limit(1, 60, 3), 2).await;
    refuses(&caller, &grant, limit(1, 60, 3)).await;
}

async fn a_call_without_a_limit_is_not_counted(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    for _ in 0..5 {
        assert_eq!(caller.admit(&grant).await, Admission::Admitted);
    }
    assert_eq!(number(fixture, "SELECT COUNT(*) FROM tool_buckets").await, 0);
    let limit = limit(1, 60, 1);
    admits(&caller, &grant, limit, 1).await;
    refuses(&caller, &grant, limit).await;
    assert_eq!(caller.admit(&grant).await, Admission::Admitted);
}

async fn calls_of_many_tools_in_any_order_are_all_answered(fixture: &LedgerFixture) {
    const TOOLS: usize = 12;
    let replicas = Replicas::of(fixture).await;
    let here = replicas.here();
    let call = limited(here.call(&here.grant(1000).await).await, limit(1, 3600, 5));
    // In unrelated orders, and the first call creates the bucket.
    let calls = (0..240).map(|number| of_tool(&call, &format!("tool-{}", number * 7 % TOOLS))).collect();

    let outcomes = replicas.send(calls).await;

    assert_eq!(admitted(&outcomes).len(), TOOLS * 5);
    for (_, outcome) in outcomes.into_iter().filter(|(_, outcome)| *outcome != Admission::Admitted) {
        refusal_of(outcome, Code::ToolRateLimited);
    }
}

/// Empties a bucket, reopens the ledger at the same time, and checks that it is still empty.
async fn stays_empty_when_opened_again(fixture: LedgerFixture) {
    let caller = Caller::new(&fixture).await;
    let (grant, limit) = (caller.grant(None).await, limit(1, 3600, 1));
    admits(&caller, &grant, limit, 1).await;
    let Caller { tenant, agent, key } = caller;
    let (id, time) = (tenant.id.clone(), tenant.now());
    drop(tenant);

    let again = LedgerFixture::open(fixture.close()).await;

    let caller = Caller { tenant: TestTenant::existing(&again, id), agent, key };
    assert_eq!(caller.tenant.now(), time);
    refuses(&caller, &grant, limit).await;
    caller.tenant.wait(3600);
    admits(&caller, &grant, limit, 1).await;
}

#[tokio::test]
async fn a_bucket_on_sqlite_is_not_filled_by_a_restart() {
    stays_empty_when_opened_again(LedgerFixture::sqlite().await).await;
}

#[tokio::test]
async fn a_bucket_on_postgres_is_not_filled_by_a_restart() {
    stays_empty_when_opened_again(LedgerFixture::postgres().await).await;
}
