//! The progress of webhook deliveries: starts at the end of the log, continues where it stopped, one process at a time.

use std::time::Duration;

use toolgate_gate::ports::ledger::{AdvanceWebhook, LeaseWebhook, WebhookBacklog};
use toolgate_model::id::ProcessId;
use toolgate_testkit::ledger_fixture::{LedgerFixture, TestTenant};

use super::support::approvals::{ask, process, question};

contract!(
    telling_begins_at_the_end_of_the_log_and_only_once,
    a_tenant_that_comes_later_is_told_of_from_its_beginning,
    only_logs_that_go_on_are_in_the_backlog,
    a_lease_keeps_every_other_living_process_away,
    a_lease_that_was_given_back_or_has_ended_can_be_taken,
    a_process_that_lost_the_lease_notes_nothing,
    a_position_never_goes_back,
    of_many_processes_at_once_one_gets_the_lease,
);

const LEASE: Duration = Duration::from_secs(30);

async fn backlog(tenant: &TestTenant) -> Option<WebhookBacklog> {
    tenant.events().await;
    let found = tenant.ledger.webhook_backlog().await.unwrap();
    found.into_iter().find(|backlog| backlog.tenant == tenant.id)
}

async fn lease(tenant: &TestTenant, process: ProcessId) -> Option<u64> {
    let now = tenant.now();
    let command = LeaseWebhook { tenant: tenant.id.clone(), process, now, until: now.plus(LEASE) };
    tenant.ledger.lease_webhook(command).await.unwrap()
}

async fn advance(tenant: &TestTenant, process: ProcessId, position: u64) -> bool {
    let until = Some(tenant.now().plus(LEASE));
    let command = AdvanceWebhook { tenant: tenant.id.clone(), process, position, until };
    tenant.ledger.advance_webhook(command).await.unwrap()
}

async fn give_back(tenant: &TestTenant, process: ProcessId, position: u64) -> bool {
    let command = AdvanceWebhook { tenant: tenant.id.clone(), process, position, until: None };
    tenant.ledger.advance_webhook(command).await.unwrap()
}

async fn telling_begins_at_the_end_of_the_log_and_only_once(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    ask(&tenant, question(&tenant)).await;
    let size = u64::try_from(tenant.events().await.len()).unwrap();
    tenant.ledger.begin_webhooks().await.unwrap();
    assert_eq!(backlog(&tenant).await, None);
    ask(&tenant, question(&tenant)).await;
    let expected = WebhookBacklog { tenant: tenant.id.clone(), position: size, size: size + 1, lease: None };
    assert_eq!(backlog(&tenant).await, Some(expected.clone()));
    tenant.ledger.begin_webhooks().await.unwrap();
    assert_eq!(backlog(&tenant).await, Some(expected), "what happened since is still to be told");
}

async fn a_tenant_that_comes_later_is_told_of_from_its_beginning(fixture: &LedgerFixture) {
    fixture.tenant().await.ledger.begin_webhooks().await.unwrap();
    let tenant = fixture.tenant().await;
    ask(&tenant, question(&tenant)).await;
    assert_eq!(backlog(&tenant).await.unwrap().position, 0);
    assert_eq!(lease(&tenant, process(&tenant)).await, Some(0));
}

async fn only_logs_that_go_on_are_in_the_backlog(fixture: &LedgerFixture) {
    let (tenant, other) = (fixture.tenant().await, fixture.tenant().await);
    let process = process(&tenant);
    ask(&tenant, question(&tenant)).await;
    let size = backlog(&tenant).await.unwrap().size;
    lease(&tenant, process).await.unwrap();
    assert!(advance(&tenant, process, size).await);
    assert_eq!(backlog(&tenant).await, None);
    assert!(backlog(&other).await.is_some());
    ask(&tenant, question(&tenant)).await;
    let found = backlog(&tenant).await.unwrap();
    assert_eq!((found.position, found.size), (size, size + 1));
    assert_eq!(found.lease, Some((process, tenant.now().plus(LEASE))));
}

async fn a_lease_keeps_every_other_living_process_away(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let (first, second) = (process(&tenant), process(&tenant));
    assert_eq!(lease(&tenant, first).await, Some(0));
    assert_eq!(lease(&tenant, first).await, Some(0), "whoever has it goes on");
    // With a single process, another one is an earlier run of it.
    let expected = if tenant.ledger.shares_approvals() { None } else { Some(0) };
    assert_eq!(lease(&tenant, second).await, expected);
}

async fn a_lease_that_was_given_back_or_has_ended_can_be_taken(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let (first, second, third) = (process(&tenant), process(&tenant), process(&tenant));
    lease(&tenant, first).await.unwrap();
    assert!(give_back(&tenant, first, 3).await);
    assert_eq!(backlog(&tenant).await.and_then(|backlog| backlog.lease), None);
    assert_eq!(lease(&tenant, second).await, Some(3));
    tenant.clock.advance(LEASE);
    assert_eq!(lease(&tenant, third).await, Some(3));
}

async fn a_process_that_lost_the_lease_notes_nothing(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let (first, second) = (process(&tenant), process(&tenant));
    lease(&tenant, first).await.unwrap();
    tenant.clock.advance(LEASE);
    lease(&tenant, second).await.unwrap();
    assert!(!advance(&tenant, first, 5).await);
    assert!(!give_back(&tenant, first, 5).await);
    assert!(advance(&tenant, second, 2).await);
    assert_eq!(lease(&tenant, second).await, Some(2));
}

async fn a_position_never_goes_back(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let process = process(&tenant);
    lease(&tenant, process).await.unwrap();
    assert!(advance(&tenant, process, 5).await);
    assert!(!advance(&tenant, process, 4).await);
    assert!(advance(&tenant, process, 5).await);
    assert_eq!(lease(&tenant, process).await, Some(5));
}

async fn of_many_processes_at_once_one_gets_the_lease(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    if !tenant.ledger.shares_approvals() {
        return;
    }
    let mut tries = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let (tenant, process) = (tenant.clone(), process(&tenant));
        tries.spawn(async move { lease(&tenant, process).await });
    }
    let taken = tries.join_all().await.into_iter().flatten().count();
    assert_eq!(taken, 1);
}
