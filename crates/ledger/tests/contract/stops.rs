//! Stops: seen by every later admission on every replica, undone by resuming, never in the way of administration.

use toolgate_gate::ports::ledger::{Admission, Mandate, StopCalls, StopOutcome};
use toolgate_gate::refusal::Code;
use toolgate_model::principal::TenantId;
use toolgate_model::spending::StopScope;
use toolgate_testkit::ledger_fixture::{LedgerFixture, TestTenant};

use super::support::calls::{Caller, another};
use super::support::replicas::Replicas;

contract!(
    a_stop_of_an_agent_is_seen_by_every_later_admission_at_every_replica,
    a_stop_of_a_tenant_concerns_its_agents_and_no_others,
    a_stop_of_the_gate_concerns_every_tenant_and_those_that_are_created_later,
    what_is_stopped_is_stopped_once_and_recorded,
    an_unknown_agent_is_not_stopped,
);

async fn stop(tenant: &TestTenant, scope: StopScope, resume: bool) -> StopOutcome {
    let command = StopCalls { audit: tenant.audit(), scope, reason: None, resume };
    tenant.ledger.stop_calls(command).await.unwrap()
}

async fn a_stop_of_an_agent_is_seen_by_every_later_admission_at_every_replica(fixture: &LedgerFixture) {
    let replicas = Replicas::of(fixture).await;
    let caller = replicas.here();
    let other = Caller::of(&caller.tenant, "worker").await;
    let (grant, of_other) = (caller.grant(None).await, other.grant(None).await);
    let before = caller.call(&grant).await;
    let scope = StopScope::Agent(grant.agent.clone());
    assert!(stop(&caller.tenant, scope.clone(), false).await.changed);
    for replica in &replicas.0 {
        assert_eq!(replica.send(another(&before)).await, Admission::Stale);
        let stopped = replica.limits(&grant.agent).await.stopped.unwrap();
        assert_eq!((stopped.refusal().code(), stopped.scope), (Code::Stopped, scope.clone()));
    }
    assert_eq!(other.admit(&of_other).await, Admission::Admitted);
    assert!(stop(&replicas.0[1].tenant, scope, true).await.changed);
    for replica in &replicas.0 {
        assert_eq!(replica.send(another(&before)).await, Admission::Stale, "what was decided before is decided again");
        assert_eq!(replica.limits(&grant.agent).await.stopped, None);
        assert_eq!(replica.admit(&grant).await, Admission::Admitted);
    }
}

async fn a_stop_of_a_tenant_concerns_its_agents_and_no_others(fixture: &LedgerFixture) {
    let replicas = Replicas::of(fixture).await;
    let (caller, stranger) = (replicas.here(), Caller::new(fixture).await);
    let (grant, of_stranger) = (caller.grant(None).await, stranger.grant(None).await);
    let before = caller.call(&grant).await;
    let scope = StopScope::Tenant(caller.tenant.id.clone());
    assert!(stop(&caller.tenant, scope.clone(), false).await.changed);
    assert_eq!(replicas.0[1].send(another(&before)).await, Admission::Stale);
    assert!(replicas.0[1].limits(&grant.agent).await.stopped.is_some());
    assert_eq!(stranger.admit(&of_stranger).await, Admission::Admitted);
    assert_eq!(stranger.limits(&of_stranger.agent).await.stopped, None);
    assert!(stop(&caller.tenant, scope, true).await.changed);
    assert_eq!(replicas.0[1].admit(&grant).await, Admission::Admitted);
}

/// A tenant in which the platform is administered.
async fn platform(fixture: &LedgerFixture) -> TestTenant {
    let existing = TestTenant::existing(fixture, TenantId::default_tenant());
    if fixture.ledger().tenant(&existing.id).await.unwrap().is_none() {
        fixture.ledger().create_tenant(existing.creation()).await.unwrap();
    }
    existing
}

async fn a_stop_of_the_gate_concerns_every_tenant_and_those_that_are_created_later(fixture: &LedgerFixture) {
    let platform = platform(fixture).await;
    let (one, other) = (Caller::new(fixture).await, Caller::new(fixture).await);
    let grants = [one.grant(None).await, other.grant(None).await];
    let before = [one.call(&grants[0]).await, other.call(&grants[1]).await];
    assert!(stop(&platform, StopScope::Gate, false).await.changed);
    let later = Caller::new(fixture).await;
    assert!(later.limits(&later.agent).await.stopped.is_some(), "administration goes on, and calls do not");
    for (caller, call) in [&one, &other].into_iter().zip(&before) {
        assert_eq!(caller.at_replica(fixture).await.send(another(call)).await, Admission::Stale);
        assert_eq!(caller.limits(&caller.agent).await.stopped.unwrap().scope, StopScope::Gate);
        assert_eq!(caller.tenant.events_of("gate.stopped").await.len(), 1);
    }
    assert!(stop(&platform, StopScope::Gate, true).await.changed);
    assert_eq!(later.limits(&later.agent).await.stopped, None);
    assert_eq!(one.admit(&grants[0]).await, Admission::Admitted);
}

async fn what_is_stopped_is_stopped_once_and_recorded(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let scope = StopScope::Agent(caller.agent.clone());
    assert!(!stop(&caller.tenant, scope.clone(), true).await.changed);
    assert!(stop(&caller.tenant, scope.clone(), false).await.changed);
    assert!(!stop(&caller.tenant, scope.clone(), false).await.changed);
    assert!(stop(&caller.tenant, scope.clone(), true).await.changed);
    assert_eq!(caller.tenant.events_of("agent.stopped").await.len(), 1);
    assert_eq!(caller.tenant.events_of("agent.resumed").await.len(), 1);
}

async fn an_unknown_agent_is_not_stopped(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let scope = StopScope::Agent(toolgate_testkit::ledger_fixture::principal("nobody"));
    let audit: Mandate = caller.tenant.audit();
    let refused = caller.tenant.ledger.stop_calls(StopCalls { audit, scope, reason: None, resume: false }).await;
    assert_eq!(refused.unwrap_err().code(), Code::AgentNotFound);
}
