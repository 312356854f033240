//! Concurrent calls on two replicas: limits are not exceeded, keys are claimed once, and every call gets a result.

use toolgate_gate::ports::ledger::Admission;
use toolgate_gate::refusal::Code;
use toolgate_testkit::ledger_fixture::LedgerFixture;

use super::support::calls::{another, keyed, refusal_of};
use super::support::replicas::{Replicas, admitted, many, recorded};

contract!(
    of_200_calls_at_once_exactly_the_limit_is_admitted,
    of_200_calls_below_one_grant_exactly_its_limit_is_admitted,
    of_64_calls_with_one_key_one_is_admitted,
    calls_with_many_keys_in_any_order_are_each_admitted_once,
    calls_on_many_grants_with_shared_limits_are_all_answered,
);

const ROUNDS: usize = 8;
const CALLS: usize = 64;

async fn of_200_calls_at_once_exactly_the_limit_is_admitted(fixture: &LedgerFixture) {
    for _ in 0..ROUNDS / 2 {
        let replicas = Replicas::of(fixture).await;
        let call = replicas.here().call(&replicas.here().grant(2).await).await;

        let outcomes = replicas.send(many(&call, 200)).await;

        let admitted = admitted(&outcomes);
        assert_eq!(admitted.len(), 2);
        assert_eq!(recorded(replicas.here()).await, admitted);
        for (_, outcome) in outcomes.into_iter().filter(|(_, outcome)| *outcome != Admission::Admitted) {
            refusal_of(outcome, Code::GrantRateLimited);
        }
    }
}

async fn of_200_calls_below_one_grant_exactly_its_limit_is_admitted(fixture: &LedgerFixture) {
    let replicas = Replicas::of(fixture).await;
    let root = replicas.here().grant(50).await;
    let mut calls = Vec::new();
    for number in 0..20 {
        let limit = [None, Some(3), Some(50)][number % 3];
        let leaf = replicas.here().delegate(&root, limit).await;
        calls.push(replicas.here().call(&leaf).await);
    }
    let calls = (0..200).map(|number| another(&calls[number * 7 % 20])).collect();

    let outcomes = replicas.send(calls).await;

    assert_eq!(admitted(&outcomes).len(), 50);
    assert_eq!(recorded(replicas.here()).await, admitted(&outcomes));
}

async fn of_64_calls_with_one_key_one_is_admitted(fixture: &LedgerFixture) {
    let replicas = Replicas::of(fixture).await;
    let call = replicas.here().call(&replicas.here().grant(None).await).await;
    for round in 0..ROUNDS {
        let calls = many(&call, CALLS).into_iter().map(|call| keyed(call, &format!("order-{round}"), "d1")).collect();

        let outcomes = replicas.send(calls).await;

        assert_eq!(admitted(&outcomes).len(), 1);
        for (_, outcome) in outcomes.into_iter().filter(|(_, outcome)| *outcome != Admission::Admitted) {
            refusal_of(outcome, Code::IdempotencyInProgress);
        }
    }
    assert_eq!(recorded(replicas.here()).await.len(), ROUNDS);
}

async fn calls_with_many_keys_in_any_order_are_each_admitted_once(fixture: &LedgerFixture) {
    let replicas = Replicas::of(fixture).await;
    let call = replicas.here().call(&replicas.here().grant(None).await).await;
    for round in 0..ROUNDS {
        let at = |number: usize| keyed(another(&call), &format!("order-{round}-{number}"), "d1");
        // One replica gets them in one order, the other in the reverse.
        let calls = (0..CALLS).flat_map(|number| [at(number), at(CALLS - 1 - number)]).collect();

        let outcomes = replicas.send(calls).await;

        assert_eq!(admitted(&outcomes).len(), CALLS);
    }
    assert_eq!(recorded(replicas.here()).await.len(), ROUNDS * CALLS);
}

async fn calls_on_many_grants_with_shared_limits_are_all_answered(fixture: &LedgerFixture) {
    let replicas = Replicas::of(fixture).await;
    let here = replicas.here();
    let mut leaves = Vec::new();
    for _ in 0..3 {
        let root = here.grant(120).await;
        for _ in 0..3 {
            let branch = here.delegate(&root, 60).await;
            for _ in 0..3 {
                leaves.push(here.call(&here.delegate(&branch, 30).await).await);
            }
        }
    }
    // In unrelated orders, and the first call creates the ring.
    let calls = (0..540).map(|number| another(&leaves[number * 11 % leaves.len()])).collect();

    let outcomes = replicas.send(calls).await;

    assert_eq!(outcomes.len(), 540);
    assert_eq!(
        admitted(&outcomes).len(),
        3 * 120,
        "each root to its limit, which its branches and leaves leave room for"
    );
    for (_, outcome) in outcomes.into_iter().filter(|(_, outcome)| *outcome != Admission::Admitted) {
        refusal_of(outcome, Code::GrantRateLimited);
    }
}
