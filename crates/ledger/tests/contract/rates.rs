//! Rates: exactly as many calls in any hour as a grant allows, counted for it and for everything below it.

use std::time::Duration;

use serde_json::json;
use toolgate_gate::ports::ledger::{Admission, Admit};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::grant::Grant;
use toolgate_testkit::ledger_fixture::{LedgerFixture, TestTenant};

use super::support::calls::{Caller, keyed, refusal_of};
use super::support::{detail, number, run};

contract!(
    exactly_the_limit_is_admitted_in_an_hour,
    a_place_is_free_when_the_call_in_it_is_an_hour_old_to_the_millisecond,
    the_hour_slides_with_every_call,
    a_limit_of_zero_admits_nothing_ever,
    a_grant_without_a_limit_is_not_counted,
    grants_are_counted_apart,
    the_calls_of_all_below_a_grant_count_together,
    a_call_counts_against_every_limit_above_it,
    a_call_that_one_grant_refuses_takes_no_place_in_any,
    a_call_that_is_stale_or_answered_from_before_takes_no_place,
    the_time_to_wait_is_the_shortest_after_which_there_is_room,
    the_time_to_wait_is_that_of_the_grant_that_takes_longest,
    a_clock_that_goes_back_admits_no_more,
    large_limits_are_no_trouble,
    a_ring_that_is_full_goes_on_at_its_beginning,
    the_ring_of_an_expired_grant_is_deleted_some_places_at_a_time,
);

const HOUR: u64 = 3600;

async fn limited(caller: &Caller, grant: &Grant) -> Refusal {
    refusal_of(caller.admit(grant).await, Code::GrantRateLimited)
}

async fn admitted(caller: &Caller, grant: &Grant, times: usize) {
    for _ in 0..times {
        assert_eq!(caller.admit(grant).await, Admission::Admitted);
    }
}

/// How many of these concurrent calls are admitted; the others are refused for the rate.
async fn admitted_at_once(caller: &Caller, grant: &Grant, calls: usize) -> usize {
    let attempts = futures_util::future::join_all((0..calls).map(|_| caller.admit(grant))).await;
    let (admitted, refused): (Vec<_>, Vec<_>) =
        attempts.into_iter().partition(|outcome| *outcome == Admission::Admitted);
    for outcome in refused {
        refusal_of(outcome, Code::GrantRateLimited);
    }
    admitted.len()
}

async fn exactly_the_limit_is_admitted_in_an_hour(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(3).await;

    admitted(&caller, &grant, 3).await;
    let refusal = limited(&caller, &grant).await;

    assert_eq!(detail(&refusal, "grant_id"), json!(grant.id));
    assert_eq!(detail(&refusal, "max_invocations_per_hour"), json!(3));
    assert_eq!(caller.records().await.len(), 3, "what was refused was not made");
    caller.tenant.wait(HOUR);
    admitted(&caller, &grant, 3).await;
    limited(&caller, &grant).await;
}

async fn a_place_is_free_when_the_call_in_it_is_an_hour_old_to_the_millisecond(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(1).await;
    admitted(&caller, &grant, 1).await;
    fixture.clock().advance(Duration::from_millis(3_599_999));
    limited(&caller, &grant).await;
    fixture.clock().advance(Duration::from_millis(1));
    admitted(&caller, &grant, 1).await;
}

async fn the_hour_slides_with_every_call(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(3).await;
    for _ in 0..3 {
        admitted(&caller, &grant, 1).await;
        caller.tenant.wait(HOUR / 3);
    }
    // Every third of an hour one call expires, and there is capacity for one.
    for _ in 0..4 {
        admitted(&caller, &grant, 1).await;
        limited(&caller, &grant).await;
        caller.tenant.wait(HOUR / 3);
    }
    caller.tenant.wait(HOUR / 3);
    admitted(&caller, &grant, 2).await;
    limited(&caller, &grant).await;
}

async fn a_limit_of_zero_admits_nothing_ever(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(0).await;
    let refusal = limited(&caller, &grant).await;
    assert_eq!(detail(&refusal, "retry_after_seconds"), json!(null), "waiting does not help");
    caller.tenant.wait(2 * HOUR);
    limited(&caller, &grant).await;
    let below = caller.delegate(&grant, None).await;
    assert_eq!(detail(&limited(&caller, &below).await, "grant_id"), json!(grant.id));
}

async fn a_grant_without_a_limit_is_not_counted(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    admitted(&caller, &grant, 20).await;
    assert_eq!(number(fixture, "SELECT COUNT(*) FROM rate_places").await, 0);
    assert_eq!(number(fixture, "SELECT COUNT(*) FROM rates").await, 0);
}

async fn grants_are_counted_apart(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let (one, other) = (caller.grant(1).await, caller.grant(1).await);
    admitted(&caller, &one, 1).await;
    limited(&caller, &one).await;
    admitted(&caller, &other, 1).await;
}

async fn the_calls_of_all_below_a_grant_count_together(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let root = caller.grant(4).await;
    let branches = [caller.delegate(&root, None).await, caller.delegate(&root, 3).await];
    let leaf = caller.delegate(&branches[0], None).await;

    admitted(&caller, &root, 1).await;
    admitted(&caller, &branches[0], 1).await;
    admitted(&caller, &branches[1], 1).await;
    admitted(&caller, &leaf, 1).await;

    for grant in [&root, &branches[0], &branches[1], &leaf] {
        assert_eq!(detail(&limited(&caller, grant).await, "grant_id"), json!(root.id), "the root is used up");
    }
}

async fn a_call_counts_against_every_limit_above_it(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let root = caller.grant(6).await;
    let middle = caller.delegate(&root, 4).await;
    let leaf = caller.delegate(&middle, 2).await;

    for (grant, times) in [(&leaf, 2), (&middle, 2), (&root, 2)] {
        admitted(&caller, grant, times).await;
        assert_eq!(detail(&limited(&caller, grant).await, "grant_id"), json!(grant.id));
    }
}

async fn a_call_that_one_grant_refuses_takes_no_place_in_any(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let root = caller.grant(5).await;
    let leaf = caller.delegate(&root, 1).await;
    admitted(&caller, &leaf, 1).await;
    for _ in 0..5 {
        limited(&caller, &leaf).await;
    }
    admitted(&caller, &root, 4).await;
    limited(&caller, &root).await;

    // And the other way round: the leaf has capacity again, the root has not.
    caller.tenant.wait(HOUR);
    admitted(&caller, &root, 5).await;
    for _ in 0..5 {
        assert_eq!(detail(&limited(&caller, &leaf).await, "grant_id"), json!(root.id));
    }
    caller.tenant.wait(HOUR);
    admitted(&caller, &leaf, 1).await;
}

async fn a_call_that_is_stale_or_answered_from_before_takes_no_place(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(2).await;
    let first = caller.call_keyed(&grant, "order-1", "d1").await;
    assert_eq!(caller.send(first.clone()).await, Admission::Admitted);
    caller.settle(&first, "{}").await;

    for _ in 0..3 {
        let again = caller.call_keyed(&grant, "order-1", "d1").await;
        assert!(matches!(caller.send(again).await, Admission::Replayed(_)));
        let other = caller.call_keyed(&grant, "order-1", "d2").await;
        refusal_of(caller.send(other).await, Code::IdempotencyConflict);
        let over = Admit { usable_until: Some(caller.tenant.now()), ..caller.call(&grant).await };
        assert_eq!(caller.send(keyed(over, "order-2", "d1")).await, Admission::Stale);
    }

    admitted(&caller, &grant, 1).await;
    limited(&caller, &grant).await;
}

async fn the_time_to_wait_is_the_shortest_after_which_there_is_room(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(1).await;
    admitted(&caller, &grant, 1).await;
    for (advance, seconds) in
        [(0, 3600), (1, 3600), (998, 3600), (1, 3599), (1, 3599), (3_597_999, 1), (998, 1), (1, 1)]
    {
        fixture.clock().advance(Duration::from_millis(advance));
        let refusal = limited(&caller, &grant).await;
        assert_eq!(detail(&refusal, "retry_after_seconds"), json!(seconds), "{refusal}");
    }
    fixture.clock().advance(Duration::from_millis(1));
    admitted(&caller, &grant, 1).await;
}

async fn the_time_to_wait_is_that_of_the_grant_that_takes_longest(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let root = caller.grant(2).await;
    let leaf = caller.delegate(&root, 1).await;
    admitted(&caller, &root, 1).await;
    caller.tenant.wait(600);
    admitted(&caller, &leaf, 1).await;

    let refusal = limited(&caller, &leaf).await;

    // The root has capacity ten minutes earlier, which does not help.
    assert_eq!(detail(&refusal, "retry_after_seconds"), json!(3600));
    assert_eq!(detail(&refusal, "grant_id"), json!(leaf.id));
    caller.tenant.wait(3000);
    assert_eq!(detail(&limited(&caller, &leaf).await, "retry_after_seconds"), json!(600));
    caller.tenant.wait(600);
    admitted(&caller, &leaf, 1).await;
}

async fn a_clock_that_goes_back_admits_no_more(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(2).await;
    let start = caller.tenant.now();
    caller.tenant.wait(2 * HOUR);
    admitted(&caller, &grant, 2).await;

    fixture.clock().set(start);
    assert_eq!(detail(&limited(&caller, &grant).await, "retry_after_seconds"), json!(3 * HOUR));
    caller.tenant.wait(HOUR);
    limited(&caller, &grant).await;
    caller.tenant.wait(2 * HOUR);
    admitted(&caller, &grant, 2).await;
    limited(&caller, &grant).await;
}

async fn large_limits_are_no_trouble(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    for limit in [1_000_000, 1_000_000_000] {
        let grant = caller.grant(limit).await;
        assert_eq!(admitted_at_once(&caller, &grant, 5).await, 5);
    }
    // Larger than a stored grant can have.
    let grant = caller.grant(None).await;
    for limit in [u64::MAX, u64::MAX - 1] {
        let call = caller.call(&grant).await;
        let call = Admit { lineage: vec![(grant.id, Some(limit))], ..call };
        assert_eq!(caller.send(call).await, Admission::Admitted);
    }
}

async fn a_ring_that_is_full_goes_on_at_its_beginning(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(100).await;
    assert_eq!(admitted_at_once(&caller, &grant, 60).await, 60);
    caller.tenant.wait(HOUR / 2);
    assert_eq!(admitted_at_once(&caller, &grant, 130).await, 40);
    // Concurrently, across the end of the ring, repeatedly.
    for expected in [60, 40, 60, 40] {
        caller.tenant.wait(HOUR / 2);
        assert_eq!(admitted_at_once(&caller, &grant, 130).await, expected);
    }
    assert_eq!(number(fixture, "SELECT COUNT(*) FROM rate_places").await, 100);
}

#[tokio::test]
async fn a_restart_on_sqlite_does_not_forget() {
    assert_remembered(LedgerFixture::sqlite().await).await;
}

#[tokio::test]
async fn a_restart_on_postgres_does_not_forget() {
    assert_remembered(LedgerFixture::postgres().await).await;
}

async fn assert_remembered(fixture: LedgerFixture) {
    let caller = Caller::new(&fixture).await;
    let root = caller.grant(3).await;
    let leaf = caller.delegate(&root, 2).await;
    admitted(&caller, &leaf, 2).await;
    let Caller { tenant, agent, key } = caller;
    let id = tenant.id.clone();
    drop(tenant);

    // The clock of the fixture is back at its start, which is when the calls were made.
    let again = LedgerFixture::open(fixture.close()).await;

    let caller = Caller { tenant: TestTenant::existing(&again, id), agent, key };
    caller.tenant.wait(600);
    assert_eq!(detail(&limited(&caller, &leaf).await, "retry_after_seconds"), json!(3000));
    admitted(&caller, &root, 1).await;
    limited(&caller, &root).await;
    caller.tenant.wait(3000);
    admitted(&caller, &leaf, 2).await;
    limited(&caller, &leaf).await;
}

async fn the_ring_of_an_expired_grant_is_deleted_some_places_at_a_time(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let (grant, other) = (caller.grant(10_000).await, caller.grant(10_000).await);
    admitted(&caller, &grant, 1).await;
    admitted(&caller, &other, 1).await;
    let many = format!(
        "WITH RECURSIVE numbers (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < 4999) \
         INSERT INTO rate_places (grant_id, place, time) SELECT '{}', number, 0 FROM numbers",
        grant.id
    );
    run(fixture, &many).await;
    let now = caller.tenant.now();
    run(fixture, &format!("UPDATE grants SET expires_at = {} WHERE id = '{}'", now.as_millis(), grant.id)).await;
    let places = "SELECT COUNT(*) FROM rate_places";

    // The transaction that ends the grant leaves the deletion of its ring to later ones.
    fixture.ledger().announce_expired(now).await.unwrap();
    assert_eq!(number(fixture, places).await, 5001);

    fixture.ledger().close_calls(now).await.unwrap();
    assert_eq!(number(fixture, places).await, 1);
    assert_eq!(number(fixture, "SELECT COUNT(*) FROM rates").await, 1);
    admitted(&caller, &other, 1).await;
}
