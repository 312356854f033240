//! What coordinators may spend: everything that they govern, at any depth and at any replica, shares one account.

use serde_json::json;
use tokio::task::JoinSet;
use toolgate_gate::ports::ledger::Admission;
use toolgate_gate::refusal::{Code, Kind};
use toolgate_model::constraint::Cost;
use toolgate_testkit::ledger_fixture::LedgerFixture;

use super::support::calls::{Caller, refusal_of};
use super::support::work::Office;
use super::support::{detail, number};

contract! {
    nothing_below_a_coordinator_exceeds_its_calls_at_any_depth,
    nothing_below_a_coordinator_exceeds_its_costs_at_any_depth,
    a_call_is_charged_to_every_coordinator_that_governs_it,
    grants_that_no_coordinator_governs_are_not_charged,
}

/// Concurrent calls by the coordinator and by two agents below it, at two replicas; returns the outcomes.
async fn calls(fixture: &LedgerFixture, office: &Office, count: usize, cost: u64) -> Vec<Admission> {
    let source = office.source().await;
    let below = office.tenant.delegate(&source, "worker").await.unwrap();
    let deeper = office.tenant.delegate(&below, "helper").await.unwrap();
    let mut callers = Vec::new();
    for (caller, grant) in [(&office.coordinator, source), (&office.worker, below), (&office.helper, deeper)] {
        callers.push((caller.clone(), grant.clone()));
        callers.push((caller.at_replica(fixture).await, grant));
    }
    let mut sent = JoinSet::new();
    for number in 0..count {
        let (caller, grant) = callers[number % callers.len()].clone();
        sent.spawn(async move {
            let mut call = caller.call(&grant).await;
            call.invocation.cost = Cost::from_micros(cost);
            caller.send(call).await
        });
    }
    sent.join_all().await
}

fn made(outcomes: Vec<Admission>) -> usize {
    let (made, refused): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(|outcome| *outcome == Admission::Admitted);
    for outcome in refused {
        let refusal = refusal_of(outcome, Code::BudgetExceeded);
        assert_eq!((refusal.kind(), detail(&refusal, "account")), (Kind::Forbidden, json!("coordinator")));
    }
    made.len()
}

async fn nothing_below_a_coordinator_exceeds_its_calls_at_any_depth(fixture: &LedgerFixture) {
    let office = Office::new(fixture).await;
    office.govern(json!({"max_tool_invocations": 7})).await;
    assert_eq!(made(calls(fixture, &office, 36, 1).await), 7);
    assert_eq!(number(fixture, "SELECT calls FROM spending").await, 7);
}

async fn nothing_below_a_coordinator_exceeds_its_costs_at_any_depth(fixture: &LedgerFixture) {
    let office = Office::new(fixture).await;
    office.govern(json!({"max_tool_cost_usd": 0.000_1, "max_budget_usd": 0.000_055})).await;
    assert_eq!(made(calls(fixture, &office, 24, 10).await), 5);
    assert_eq!(number(fixture, "SELECT cost FROM spending").await, 50);
}

async fn a_call_is_charged_to_every_coordinator_that_governs_it(fixture: &LedgerFixture) {
    let office = Office::new(fixture).await;
    office.govern(json!({"max_tool_invocations": 9})).await;
    office.govern_agent(&office.worker.agent, json!({"max_tool_invocations": 2})).await;
    let source = office.source().await;
    let below = office.tenant.delegate(&source, "worker").await.unwrap();
    for expected in [true, true, false] {
        let admitted = office.worker.admit(&below).await == Admission::Admitted;
        assert_eq!(admitted, expected);
    }
    assert_eq!(number(fixture, "SELECT CAST(SUM(calls) AS BIGINT) FROM spending").await, 4);
    assert_eq!(office.coordinator.admit(&source).await, Admission::Admitted);
}

async fn grants_that_no_coordinator_governs_are_not_charged(fixture: &LedgerFixture) {
    let office = Office::new(fixture).await;
    office.govern(json!({"max_tool_invocations": 0})).await;
    let own = Caller::grant(&office.helper, None).await;
    assert_eq!(office.helper.admit(&own).await, Admission::Admitted);
    refusal_of(office.coordinator.admit(&office.source().await).await, Code::BudgetExceeded);
}
