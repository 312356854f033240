//! Revisions: a decision about an earlier state of an agent is not admitted.

use std::collections::BTreeMap;

use serde_json::json;
use toolgate_gate::ports::ledger::{Admission, Admit, UpdatePrincipal};
use toolgate_model::grant::Grant;
use toolgate_model::permission::PermissionSet;
use toolgate_model::principal::{PrincipalChanges, PrincipalId};
use toolgate_model::principal_scope::PrincipalScope;
use toolgate_model::text::Line;
use toolgate_testkit::ledger_fixture::{LedgerFixture, TestTenant, principal};

use super::support::calls::{Caller, another};
use super::support::replicas::many;

contract!(
    whatever_changed_about_the_agent_the_call_is_looked_at_again,
    a_change_at_one_replica_is_seen_at_the_other,
    a_change_of_who_calls_for_the_agent_is_seen_at_the_other_replica,
    a_removed_agent_is_seen_at_the_other_replica,
    an_agent_that_was_registered_meanwhile_is_looked_at,
    a_change_of_somebody_else_does_not_matter,
    a_change_that_changes_nothing_does_not_matter,
    of_calls_and_a_change_at_once_none_is_admitted_after_it,
);

fn changes() -> [PrincipalChanges; 5] {
    let none = PrincipalChanges::default;
    let limits = json!({"*": {"requests": 1, "per_seconds": 60}});
    [
        PrincipalChanges {
            scopes: Some([PrincipalScope::parse("tools:mail").unwrap()].into_iter().collect()),
            ..none()
        },
        PrincipalChanges { rate_limits: Some(serde_json::from_value(limits).unwrap()), ..none() },
        PrincipalChanges { tool_allowlist: Some(Some([].into())), ..none() },
        PrincipalChanges { permissions: Some(PermissionSet::default()), ..none() },
        renamed("Billing"),
    ]
}

fn renamed(name: &str) -> PrincipalChanges {
    PrincipalChanges { name: Some(Some(Line::parse(name).unwrap())), ..PrincipalChanges::default() }
}

async fn change(tenant: &TestTenant, id: &PrincipalId, changes: PrincipalChanges) {
    let now = tenant.ledger.principal(&tenant.id, id).await.unwrap().unwrap();
    let (audit, expected_revision) = (tenant.audit(), now.revision);
    let command = UpdatePrincipal { audit, id: id.clone(), expected_revision, changes, unresolved: Vec::new() };
    tenant.ledger.update_principal(command).await.unwrap();
}

/// Asserts that the decision is stale, that one on the present state is not, and that only that one is recorded.
async fn assert_looked_at_again(caller: &Caller, grant: &Grant, before: &Admit) {
    let told = caller.tenant.events_of("agent.toolCalled").await.len();
    assert_eq!(caller.send(another(before)).await, Admission::Stale);
    assert_eq!(caller.send(Admit { generation: 0, ..another(before) }).await, Admission::Stale);
    assert_eq!(caller.tenant.events_of("agent.toolCalled").await.len(), told);
    let after = caller.running(grant).await;
    assert_ne!(after.agent, before.agent);
    assert_eq!(caller.tenant.events_of("agent.toolCalled").await.len(), told + 1);
}

async fn whatever_changed_about_the_agent_the_call_is_looked_at_again(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    for changes in changes() {
        let before = caller.call(&grant).await;
        change(&caller.tenant, &caller.agent, changes).await;
        assert_looked_at_again(&caller, &grant, &before).await;
    }
}

async fn a_change_at_one_replica_is_seen_at_the_other(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let there = caller.at_replica(fixture).await;
    let grant = caller.grant(None).await;
    for changes in changes() {
        let before = there.call(&grant).await;
        change(&caller.tenant, &caller.agent, changes).await;
        assert_looked_at_again(&there, &grant, &before).await;
    }
}

async fn a_change_of_who_calls_for_the_agent_is_seen_at_the_other_replica(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let there = caller.at_replica(fixture).await;
    // The grant is another's, and the caller acts for it.
    let grant = caller.delegate(&caller.grant(None).await, None).await;
    for changes in changes() {
        let before = there.call(&grant).await;
        assert_ne!(before.invocation.agent, before.invocation.actor);
        change(&caller.tenant, &caller.agent, changes).await;
        for generation in [before.generation, 0] {
            assert_eq!(there.send(Admit { generation, ..another(&before) }).await, Admission::Stale);
        }
        there.running(&grant).await;
    }
}

async fn a_removed_agent_is_seen_at_the_other_replica(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    // The grant and the key are valid: only the agent of the call was removed.
    let worker = caller.tenant.agent("worker").await;
    let there = caller.at_replica(fixture).await;
    let mut call = there.call(&caller.grant(None).await).await;
    call.invocation.agent = worker.clone();
    call.agent = there.registered(&worker).await;
    assert_eq!(there.send(another(&call)).await, Admission::Admitted);

    caller.tenant.remove(&worker).await.unwrap();

    for generation in [call.generation, 0] {
        assert_eq!(there.send(Admit { generation, ..another(&call) }).await, Admission::Stale);
    }
}

async fn an_agent_that_was_registered_meanwhile_is_looked_at(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.delegate(&caller.grant(None).await, None).await;
    assert_eq!(grant.agent, principal("worker"));
    let before = caller.running(&grant).await;
    assert_eq!(before.agent, None, "nobody registered it");
    caller.tenant.agent("worker").await;
    assert_looked_at_again(&caller, &grant, &before).await;
}

async fn a_change_of_somebody_else_does_not_matter(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let other = caller.tenant.agent("other").await;
    let namesake = Caller::new(fixture).await;
    let before = caller.call(&caller.grant(None).await).await;
    change(&caller.tenant, &other, renamed("Other")).await;
    change(&namesake.tenant, &namesake.agent, renamed("Namesake")).await;
    for generation in [before.generation, 0] {
        assert_eq!(caller.send(Admit { generation, ..another(&before) }).await, Admission::Admitted);
    }
}

async fn a_change_that_changes_nothing_does_not_matter(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    change(&caller.tenant, &caller.agent, renamed("Billing")).await;
    let before = caller.call(&caller.grant(None).await).await;
    change(&caller.tenant, &caller.agent, renamed("Billing")).await;
    assert_eq!(caller.send(before).await, Admission::Admitted);
}

async fn of_calls_and_a_change_at_once_none_is_admitted_after_it(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let there = caller.at_replica(fixture).await;
    let grant = caller.grant(None).await;
    let mut changes_before = BTreeMap::new();
    for round in 0..10 {
        let before = there.call(&grant).await;
        let calls = many(&before, 20);
        changes_before.extend(calls.iter().map(|call| (call.invocation.id.to_string(), round)));
        let sent = futures_util::future::join_all(calls.into_iter().map(|call| there.send(call)));
        let ((), outcomes) = tokio::join!(change(&caller.tenant, &caller.agent, renamed(&format!("{round}"))), sent);
        for outcome in outcomes {
            assert!(matches!(outcome, Admission::Admitted | Admission::Stale), "{outcome:?}");
        }
        assert_eq!(there.send(another(&before)).await, Admission::Stale);
    }
    let mut changes = 0;
    for event in caller.tenant.events().await {
        match event["type"].as_str() {
            Some("agent.updated") => changes += 1,
            Some("agent.toolCalled") => {
                let call = event["data"]["callId"].as_str().unwrap();
                assert_eq!(changes_before.get(call), Some(&changes), "{call} was admitted after the change");
            }
            _ => {}
        }
    }
    assert_eq!(changes, 10);
}
