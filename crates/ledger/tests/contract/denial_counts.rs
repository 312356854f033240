//! Refused calls that are counted, and the one event that records them.

use serde_json::json;
use toolgate_gate::ports::ledger::DenialCount;
use toolgate_testkit::ledger_fixture::{LedgerFixture, TestTenant, principal};

contract!(
    counts_add_up_to_one_event_for_each_principal,
    what_is_counted_later_is_another_event,
    what_was_begun_lately_is_left_for_later,
    counts_of_many_at_once_are_exact,
);

fn count(tenant: &TestTenant, name: &str, code: &'static str, count: u64) -> DenialCount {
    let (first, last) = (tenant.now(), tenant.now());
    DenialCount { tenant: tenant.id.clone(), principal: principal(name), code, count, first, last }
}

async fn counted(tenant: &TestTenant) -> Vec<serde_json::Value> {
    let mut events = tenant.events().await;
    events.retain(|event| event["type"] == "tool.denials.counted");
    events
}

async fn counts_add_up_to_one_event_for_each_principal(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let first = tenant.now();
    let counts = vec![count(&tenant, "one", "A", 3), count(&tenant, "one", "B", 4), count(&tenant, "two", "A", 5)];
    tenant.ledger.count_denials(counts).await.unwrap();
    tenant.wait(2);
    tenant.ledger.count_denials(vec![count(&tenant, "one", "A", 10)]).await.unwrap();
    let last = tenant.now();
    tenant.wait(2);

    let now = tenant.now();
    assert_eq!(tenant.ledger.sum_up_denials(now, now).await.unwrap(), 22);

    let mut events = counted(&tenant).await;
    events.sort_by_key(|event| event["actor"].to_string());
    let one = json!({
        "principal_id": "one", "count": 17, "codes": {"A": 13, "B": 4}, "first_at": first, "last_at": last,
    });
    assert_eq!((&events[0]["data"], &events[0]["agent_id"], events.len()), (&one, &json!("one"), 2));
    assert_eq!(events[1]["data"]["count"], 5);
}

async fn what_is_counted_later_is_another_event(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    for round in 1..=2 {
        tenant.ledger.count_denials(vec![count(&tenant, "one", "A", round)]).await.unwrap();
        tenant.wait(1);
        assert_eq!(tenant.ledger.sum_up_denials(tenant.now(), tenant.now()).await.unwrap(), round);
        assert_eq!(tenant.ledger.sum_up_denials(tenant.now(), tenant.now()).await.unwrap(), 0);
    }
    assert_eq!(counted(&tenant).await.len(), 2);
}

async fn what_was_begun_lately_is_left_for_later(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    tenant.ledger.count_denials(vec![count(&tenant, "one", "A", 1)]).await.unwrap();
    assert_eq!(tenant.ledger.sum_up_denials(tenant.now(), tenant.now()).await.unwrap(), 0);
    assert!(counted(&tenant).await.is_empty());
}

async fn counts_of_many_at_once_are_exact(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let (start, mut summed) = (tenant.now(), 0);
    let later = start.plus(std::time::Duration::from_secs(60));
    let counting = async {
        for _ in 0..20 {
            let both = vec![count(&tenant, "one", "A", 1), count(&tenant, "one", "B", 1)];
            let other = vec![count(&tenant, "one", "B", 1), count(&tenant, "one", "C", 1)];
            let both = tokio::join!(tenant.ledger.count_denials(both), tenant.ledger.count_denials(other));
            both.0.and(both.1).unwrap();
        }
    };
    let summing = async {
        for _ in 0..20 {
            summed += tenant.ledger.sum_up_denials(later, start).await.unwrap();
        }
    };
    tokio::join!(counting, summing);
    summed += tenant.ledger.sum_up_denials(later, start).await.unwrap();
    assert_eq!(summed, 80);
    let told: u64 = counted(&tenant).await.iter().map(|event| event["data"]["count"].as_u64().unwrap()).sum();
    assert_eq!(told, 80);
}
