//! Marks of calls on their conversations: current, and separate.

use std::collections::BTreeSet;
use std::time::Duration;

use toolgate_gate::ports::ledger::{Admission, Admit, History, HistoryQuery, MarkScope, Marks};
use toolgate_model::principal::PrincipalId;
use toolgate_model::time::Timestamp;
use toolgate_testkit::ledger_fixture::LedgerFixture;

use super::support::calls::{Caller, another};
use super::support::number;
use super::support::replicas::{Replicas, admitted, many};

contract!(
    the_marks_of_a_call_are_seen_by_the_next_look_at_every_replica,
    the_marks_of_one_conversation_are_not_those_of_another,
    a_call_that_is_not_admitted_leaves_no_mark,
    a_mark_counts_from_its_last_time_and_never_grows_older,
    marks_that_many_calls_leave_at_once_are_all_there,
    old_marks_are_forgotten,
    a_call_without_labels_leaves_nothing,
);

fn scope(agent: &PrincipalId, session: &str) -> MarkScope {
    MarkScope { agent: agent.clone(), session: session.to_owned() }
}

fn labels(labels: &[&str]) -> BTreeSet<String> {
    labels.iter().map(|label| (*label).to_owned()).collect()
}

/// The call, leaving these labels on this conversation.
fn marking(mut call: Admit, session: &str, left: &[&str]) -> Admit {
    call.marks = Some(Marks { scope: scope(&call.invocation.agent, session), labels: labels(left) });
    call
}

/// A query for all marks of this conversation of the caller.
fn query(caller: &Caller, session: &str) -> HistoryQuery {
    HistoryQuery {
        tenant: caller.tenant.id.clone(),
        scope: scope(&caller.agent, session),
        run: None,
        marks_since: Timestamp::from_millis(0).unwrap(),
        since: None,
    }
}

async fn history(caller: &Caller, query: HistoryQuery) -> History {
    caller.tenant.ledger.history(&query).await.unwrap()
}

async fn marks(caller: &Caller, session: &str) -> BTreeSet<String> {
    history(caller, query(caller, session)).await.marks
}

async fn the_marks_of_a_call_are_seen_by_the_next_look_at_every_replica(fixture: &LedgerFixture) {
    let here = Caller::new(fixture).await;
    let there = here.at_replica(fixture).await;
    let grant = here.grant(None).await;
    assert_eq!(marks(&there, "s").await, labels(&[]));
    for (left, all) in [(&["private"][..], &["private"][..]), (&["private", "web"], &["private", "web"])] {
        let call = marking(here.call(&grant).await, "s", left);
        assert_eq!(here.send(call).await, Admission::Admitted);
        for at in [&here, &there] {
            assert_eq!(marks(at, "s").await, labels(all));
        }
    }
}

async fn the_marks_of_one_conversation_are_not_those_of_another(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    for (session, label) in [("", "of-all"), ("one", "of-one"), ("two", "of-two")] {
        let call = marking(caller.call(&grant).await, session, &[label]);
        assert_eq!(caller.send(call).await, Admission::Admitted);
    }
    for (session, expected) in [("", "of-all"), ("one", "of-one"), ("two", "of-two")] {
        assert_eq!(marks(&caller, session).await, labels(&[expected]));
    }
    assert_eq!(marks(&caller, "three").await, labels(&[]));
    let neighbour = Caller::of(&caller.tenant, "neighbour").await;
    let stranger = Caller::new(fixture).await;
    assert_eq!(stranger.agent, caller.agent, "of the same name, elsewhere");
    for other in [neighbour, stranger] {
        assert_eq!(marks(&other, "one").await, labels(&[]));
    }
}

async fn a_call_that_is_not_admitted_leaves_no_mark(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(1).await;
    let call = marking(caller.call(&grant).await, "s", &["private"]);
    let mut stale = another(&call);
    (stale.generation, stale.policies) = (0, 9);
    assert_eq!(caller.send(stale).await, Admission::Stale);
    assert_eq!(marks(&caller, "s").await, labels(&[]));
    assert_eq!(caller.send(call.clone()).await, Admission::Admitted);
    let refused = caller.send(marking(another(&call), "s", &["web"])).await;
    assert!(matches!(refused, Admission::Refused(_)), "{refused:?}");
    assert_eq!(marks(&caller, "s").await, labels(&["private"]));
}

async fn a_mark_counts_from_its_last_time_and_never_grows_older(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    let since = async |time| history(&caller, HistoryQuery { marks_since: time, ..query(&caller, "s") }).await.marks;
    let first = marking(caller.call(&grant).await, "s", &["private"]);
    let (made, next) = (first.audit.time, first.audit.time.plus(Duration::from_millis(1)));
    caller.send(first.clone()).await;
    assert_eq!((since(made).await, since(next).await), (labels(&["private"]), labels(&[])));

    caller.tenant.wait(60);
    let second = marking(caller.call(&grant).await, "s", &["private"]);
    caller.send(second.clone()).await;
    assert_eq!(since(second.audit.time).await, labels(&["private"]));

    // From a gate whose clock is slow.
    assert_eq!(caller.send(another(&first)).await, Admission::Admitted);
    assert_eq!(since(second.audit.time).await, labels(&["private"]));
}

async fn marks_that_many_calls_leave_at_once_are_all_there(fixture: &LedgerFixture) {
    let replicas = Replicas::of(fixture).await;
    let caller = replicas.here();
    let call = caller.call(&caller.grant(None).await).await;
    let names: Vec<String> = (0..8).map(|number| format!("label-{number}")).collect();
    // Forwards and backwards, so that two transactions without a lock order would deadlock.
    let calls = many(&call, 96).into_iter().enumerate().map(|(number, call)| {
        let (one, other) = (names[number % 8].as_str(), names[7 - number % 8].as_str());
        marking(call, ["one", "two"][number / 3 % 2], &[one, other, "all"])
    });
    let outcomes = replicas.send(calls.collect()).await;
    assert_eq!(admitted(&outcomes).len(), 96);
    let expected: BTreeSet<String> = names.iter().cloned().chain(["all".to_owned()]).collect();
    for session in ["one", "two"] {
        assert_eq!(marks(caller, session).await, expected);
    }
}

async fn old_marks_are_forgotten(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    let old: Vec<String> = (0..600).map(|number| format!("old-{number}")).collect();
    let old: Vec<&str> = old.iter().map(String::as_str).collect();
    caller.send(marking(caller.call(&grant).await, "s", &old)).await;
    caller.send(marking(caller.call(&grant).await, "s", &["again"])).await;
    caller.tenant.wait(29 * 24 * 3600);
    caller.send(marking(caller.call(&grant).await, "s", &["again", "new"])).await;
    caller.tenant.ledger.close_calls(caller.tenant.now()).await.unwrap();
    assert_eq!(marks(&caller, "s").await.len(), 602);

    caller.tenant.wait(24 * 3600 + 1);
    caller.tenant.ledger.close_calls(caller.tenant.now()).await.unwrap();

    assert_eq!(marks(&caller, "s").await, labels(&["again", "new"]));
    assert_eq!(number(fixture, "SELECT COUNT(*) FROM session_marks").await, 2);
}

async fn a_call_without_labels_leaves_nothing(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    caller.running(&grant).await;
    assert_eq!(caller.send(marking(caller.call(&grant).await, "s", &[])).await, Admission::Admitted);
    assert_eq!(number(fixture, "SELECT COUNT(*) FROM session_marks").await, 0);
}
