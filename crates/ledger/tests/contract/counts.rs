//! What agents have called and spent: current, and compared by the admission, so that concurrently decided calls cannot
//! exceed a limit together.

use std::collections::BTreeSet;

use tokio::task::JoinSet;
use toolgate_gate::ports::ledger::{
    Admission, Admit, CountedRun, Counts, HistoryQuery, MarkScope, RecordDenial, beginning_of_day,
};
use toolgate_model::constraint::Cost;
use toolgate_model::grant::Grant;
use toolgate_model::hook::{RunId, ToolReturned};
use toolgate_model::invocation::{Invocation, InvocationError, InvocationStatus};
use toolgate_model::time::Timestamp;
use toolgate_testkit::ledger_fixture::LedgerFixture;

use super::support::calls::{Caller, another, keyed};
use super::support::guarding::apply;
use super::support::number;
use super::support::replicas::Replicas;

contract!(
    calls_and_costs_of_the_day_are_counted_from_their_admission_on,
    what_other_agents_did_does_not_count,
    a_run_counts_for_the_principal_that_named_it,
    a_run_that_an_agent_names_for_itself_counts_with_its_whole_day,
    a_call_that_was_judged_by_other_counts_is_stale_and_keeps_nothing,
    of_40_calls_that_are_judged_at_once_no_more_are_admitted_than_the_counts_allow,
    calls_of_a_run_by_several_agents_at_once_keep_to_the_counts_of_the_run,
    calls_that_no_rule_counts_are_counted_all_the_same,
    counts_begin_anew_with_the_day,
    without_rules_about_counts_nothing_is_written,
);

/// A caller whose tenant has policies: only then are counts compared.
async fn judged(fixture: &LedgerFixture) -> Replicas {
    let replicas = Replicas::of(fixture).await;
    apply(&replicas.here().tenant, "forbid (principal, action, resource) when { context.calls.today > 3 };").await;
    replicas
}

/// What the agent of this grant has called and spent, as policies read it.
async fn counts(caller: &Caller, grant: &Grant, run: Option<&str>) -> Counts {
    let run = run.map(|run| RunId::parse(run).unwrap());
    let query = HistoryQuery {
        tenant: caller.tenant.id.clone(),
        scope: MarkScope { agent: grant.agent.clone(), session: String::new() },
        run: CountedRun::of(&caller.agent, &grant.agent, run.as_ref()),
        marks_since: Timestamp::EPOCH,
        since: Some(beginning_of_day(caller.tenant.now())),
    };
    caller.tenant.ledger.history(&query).await.unwrap().counts
}

/// A call through this grant that costs so many millionths, as a part of this run.
async fn costing(caller: &Caller, grant: &Grant, run: Option<&str>, cost: u64) -> Admit {
    let mut call = caller.call(grant).await;
    call.invocation.cost = Cost::from_micros(cost);
    call.invocation.trace.run = run.map(|run| RunId::parse(run).unwrap());
    call.run = CountedRun::of(&caller.agent, &grant.agent, call.invocation.trace.run.as_ref());
    call
}

async fn made(caller: &Caller, grant: &Grant, run: Option<&str>, cost: u64) -> Admit {
    let call = costing(caller, grant, run, cost).await;
    assert_eq!(caller.send(call.clone()).await, Admission::Admitted);
    call
}

fn today(calls: u64, cost: u64) -> Counts {
    Counts { calls_today: calls, cost_today: cost, calls_in_run: calls, cost_in_run: cost }
}

async fn calls_and_costs_of_the_day_are_counted_from_their_admission_on(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    made(&caller, &grant, None, 5).await;
    assert_eq!(counts(&caller, &grant, None).await, today(1, 5));
    caller.tenant.wait(24 * 3600);
    assert_eq!(counts(&caller, &grant, None).await, today(0, 0));

    let settled = made(&caller, &grant, None, 100).await;
    made(&caller, &grant, None, 20).await;
    caller.settle(&settled, "{}").await;
    let error = InvocationError { code: "POLICY_DENIED".to_owned(), reason: "no".to_owned() };
    let refused = Invocation {
        status: InvocationStatus::Denied,
        error: Some(error.clone()),
        id: another(&settled).invocation.id,
        ..settled.invocation.clone()
    };
    let denial = RecordDenial {
        audit: caller.tenant.audit_of(&caller.agent),
        stage: "guard",
        returned: ToolReturned::error(&refused, "POLICY_DENIED", "refused".to_owned(), None),
        invocation: refused,
        error,
        about_authority: false,
        decision: None,
        detached: None,
    };
    fixture.ledger().record_denial(denial).await.unwrap();
    assert_eq!(counts(&caller, &grant, None).await, today(2, 120));
    let there = caller.at_replica(fixture).await;
    assert_eq!(counts(&there, &grant, None).await, today(2, 120), "at every replica");
}

async fn what_other_agents_did_does_not_count(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let neighbour = Caller::of(&caller.tenant, "neighbour").await;
    let stranger = Caller::new(fixture).await;
    assert_eq!(stranger.agent, caller.agent, "of the same name, in another tenant");
    for (other, cost) in [(&caller, 1), (&neighbour, 10), (&stranger, 100)] {
        made(other, &other.grant(None).await, None, cost).await;
    }
    let grant = caller.grant(None).await;
    assert_eq!(counts(&caller, &grant, None).await, today(1, 1));
}

async fn a_run_counts_for_the_principal_that_named_it(fixture: &LedgerFixture) {
    let agent = Caller::new(fixture).await;
    let worker = Caller::of(&agent.tenant, "worker").await;
    let (host, other) = (Caller::of(&agent.tenant, "host").await, Caller::of(&agent.tenant, "other").await);
    let (grant, of_worker) = (agent.grant(None).await, worker.grant(None).await);
    made(&host, &grant, Some("run-1"), 1).await;
    made(&host, &of_worker, Some("run-1"), 10).await;
    made(&other, &grant, Some("run-1"), 100).await;
    made(&agent, &grant, Some("run-1"), 1000).await;
    let found = counts(&host, &grant, Some("run-1")).await;
    assert_eq!((found.calls_in_run, found.cost_in_run), (2, 11), "of all agents, and only as this host named it");
    assert_eq!((found.calls_today, found.cost_today), (3, 1101));
    let found = counts(&other, &grant, Some("run-1")).await;
    assert_eq!((found.calls_in_run, found.cost_in_run), (1, 100));
    assert_eq!(counts(&host, &grant, Some("run-2")).await.calls_in_run, 0);
}

async fn a_run_that_an_agent_names_for_itself_counts_with_its_whole_day(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    for (run, cost) in [(Some("run-1"), 1), (Some("run-2"), 10), (None, 100)] {
        made(&caller, &grant, run, cost).await;
    }
    for run in [Some("run-1"), Some("never-seen"), None] {
        assert_eq!(counts(&caller, &grant, run).await, today(3, 111), "{run:?}");
    }
}

async fn a_call_that_was_judged_by_other_counts_is_stale_and_keeps_nothing(fixture: &LedgerFixture) {
    let replicas = judged(fixture).await;
    let caller = replicas.here();
    let grant = caller.grant(2).await;
    let judged = Admit { counts: Some(today(0, 0)), ..costing(caller, &grant, None, 5).await };
    assert_eq!(caller.send(judged.clone()).await, Admission::Admitted);
    for replica in &replicas.0 {
        let late = keyed(another(&judged), "key-1", "digest");
        assert_eq!(replica.send(late).await, Admission::Stale);
    }
    assert_eq!(counts(caller, &grant, None).await, today(1, 5));
    // Neither the key nor the slot in the rate is taken.
    let again = Admit { counts: Some(today(1, 5)), ..keyed(another(&judged), "key-1", "digest") };
    assert_eq!(caller.send(again).await, Admission::Admitted);
}

/// Decides and sends until the call is admitted, or the allowed number of calls was made.
async fn until_decided(caller: Caller, grant: Grant, run: Option<&'static str>, allowed: u64) -> bool {
    loop {
        let seen = counts(&caller, &grant, run).await;
        if seen.calls_in_run >= allowed || seen.cost_in_run >= allowed * 5 {
            return false;
        }
        let call = Admit { counts: Some(seen), ..costing(&caller, &grant, run, 5).await };
        match caller.send(call).await {
            Admission::Admitted => return true,
            Admission::Stale => {}
            other => panic!("{other:?}"),
        }
    }
}

async fn of_40_calls_that_are_judged_at_once_no_more_are_admitted_than_the_counts_allow(fixture: &LedgerFixture) {
    let replicas = judged(fixture).await;
    let grant = replicas.here().grant(None).await;
    let mut calls = JoinSet::new();
    for number in 0..40 {
        calls.spawn(until_decided(replicas.turn(number).clone(), grant.clone(), None, 4));
    }
    assert_eq!(calls.join_all().await.into_iter().filter(|made| *made).count(), 4);
    assert_eq!(counts(replicas.here(), &grant, None).await, today(4, 20));
    assert_eq!(replicas.here().records().await.len(), 4);
}

async fn calls_of_a_run_by_several_agents_at_once_keep_to_the_counts_of_the_run(fixture: &LedgerFixture) {
    let agents = judged(fixture).await;
    let host = Caller::of(&agents.here().tenant, "host").await;
    let hosts = [host.clone(), host.at_replica(fixture).await];
    let worker = Caller::of(&agents.here().tenant, "worker").await;
    let grants = [agents.here().grant(None).await, worker.grant(None).await];
    let mut calls = JoinSet::new();
    for number in 0..24 {
        let (host, grant) = (hosts[number % 2].clone(), grants[number / 2 % 2].clone());
        calls.spawn(until_decided(host, grant, Some("run-1"), 3));
    }
    assert_eq!(calls.join_all().await.into_iter().filter(|made| *made).count(), 3);
}

async fn calls_that_no_rule_counts_are_counted_all_the_same(fixture: &LedgerFixture) {
    let replicas = judged(fixture).await;
    let caller = replicas.here();
    let grant = caller.grant(None).await;
    made(caller, &grant, None, 1).await;
    let judged = Admit { counts: Some(today(1, 1)), ..costing(caller, &grant, None, 10).await };
    assert_eq!(caller.send(judged).await, Admission::Admitted);
    for replica in &replicas.0 {
        made(replica, &grant, None, 100).await;
    }
    assert_eq!(counts(caller, &grant, None).await, today(4, 211));
}

async fn counts_begin_anew_with_the_day(fixture: &LedgerFixture) {
    let replicas = judged(fixture).await;
    let caller = replicas.here();
    let grant = caller.grant(None).await;
    let judged = Admit { counts: Some(today(0, 0)), ..costing(caller, &grant, None, 10).await };
    assert_eq!(caller.send(judged).await, Admission::Admitted);
    caller.tenant.wait(24 * 3600);
    assert_eq!(counts(caller, &grant, None).await, today(0, 0));
    let judged = Admit { counts: Some(today(0, 0)), ..costing(caller, &grant, None, 7).await };
    assert_eq!(caller.send(judged).await, Admission::Admitted);
    assert_eq!(counts(caller, &grant, None).await, today(1, 7));
}

async fn without_rules_about_counts_nothing_is_written(fixture: &LedgerFixture) {
    let replicas = judged(fixture).await;
    let caller = replicas.here();
    made(caller, &caller.grant(None).await, Some("run-1"), 1).await;
    assert_eq!(number(fixture, "SELECT COUNT(*) FROM spending").await, 0);
    let names: BTreeSet<_> = caller.records().await.into_iter().map(|record| record.id).collect();
    assert_eq!(names.len(), 1);
}
