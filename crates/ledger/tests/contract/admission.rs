//! Admission: a call is recorded before it is made, and only if everything that it is based on still holds.

use std::time::Duration;

use serde_json::json;
use toolgate_gate::ports::ledger::{Admission, Admit, ApplyService, CreateKey, RevokeKey};
use toolgate_model::grant::Grant;
use toolgate_model::id::EventId;
use toolgate_model::invocation::InvocationStatus;
use toolgate_testkit::ledger_fixture::LedgerFixture;

use super::services::definition;
use super::support::calls::{Caller, another, keyed};
use super::support::number;

contract!(
    an_admitted_call_is_written_down_as_running_and_the_log_has_it,
    a_revoked_grant_admits_nothing,
    a_revoked_grant_admits_nothing_below_it,
    a_suspended_grant_anywhere_in_the_lineage_admits_nothing_until_it_is_resumed,
    a_revoked_credential_admits_nothing,
    a_deleted_vault_admits_nothing,
    a_removed_agent_admits_nothing,
    a_rotated_credential_is_looked_at_again,
    a_revoked_key_admits_nothing,
    a_revoked_key_admits_nothing_even_if_the_grant_was_read_after_it,
    an_expired_key_admits_nothing,
    a_key_that_never_was_admits_nothing,
    a_change_of_the_registry_is_looked_at_again_for_a_registered_tool,
    the_registry_of_another_tenant_does_not_matter,
    what_is_over_by_the_clock_admits_nothing_to_the_millisecond,
    what_has_nothing_to_do_with_the_call_does_not_stand_in_its_way,
    a_stale_call_leaves_nothing_behind,
    a_stale_call_does_not_touch_those_beside_it,
);

/// Three grants, each delegated from the one before it.
async fn line(caller: &Caller) -> [Grant; 3] {
    let root = caller.grant(None).await;
    let middle = caller.delegate(&root, None).await;
    let leaf = caller.delegate(&middle, None).await;
    [root, middle, leaf]
}

/// Asserts that the decision made before a change is stale, and so is the same decision with the present generation.
async fn assert_stale(caller: &Caller, grant: &Grant, before: Admit) {
    assert_eq!(caller.send(another(&before)).await, Admission::Stale, "decided before");
    assert_eq!(caller.send(before).await, Admission::Stale, "sent once more");
    let mut now = caller.call(grant).await;
    // The gate would notice the change; the ledger must notice it on its own.
    now.generation = 0;
    assert_eq!(caller.send(now).await, Admission::Stale, "decided after");
}

async fn an_admitted_call_is_written_down_as_running_and_the_log_has_it(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    let events = caller.tenant.events().await.len();
    let call = caller.call(&grant).await;

    assert_eq!(caller.send(call.clone()).await, Admission::Admitted);

    assert_eq!(caller.record(call.invocation.id).await, Some(call.invocation.clone()));
    assert_eq!(call.invocation.status, InvocationStatus::Running);
    let logged = caller.tenant.events().await;
    assert_eq!(logged.len(), events + 1);
    let called = logged.last().unwrap();
    assert_eq!(called["type"], "agent.toolCalled");
    assert_eq!(called["id"], json!(EventId::of_call(call.invocation.id)));
    let data = json!({
        "agentId": "billing", "argsHash": "a1".repeat(32), "callId": call.invocation.id, "principal": "billing",
        "toolName": "stripe.charges.create", "transport": "http",
    });
    assert_eq!(called["data"], data);
}

async fn a_revoked_grant_admits_nothing(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    let call = caller.call(&grant).await;
    caller.tenant.revoke(grant.id).await.unwrap();
    assert_stale(&caller, &grant, call).await;
}

async fn a_revoked_grant_admits_nothing_below_it(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    for above in 0..2 {
        let line = line(&caller).await;
        let call = caller.call(&line[2]).await;
        caller.tenant.revoke(line[above].id).await.unwrap();
        assert_stale(&caller, &line[2], call).await;
    }
}

async fn a_suspended_grant_anywhere_in_the_lineage_admits_nothing_until_it_is_resumed(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let line = line(&caller).await;
    for suspended in &line {
        let call = caller.call(&line[2]).await;
        caller.tenant.suspend(suspended.id).await.unwrap();
        assert_stale(&caller, &line[2], call).await;
        caller.tenant.resume(suspended.id).await.unwrap();
        assert_eq!(caller.admit(&line[2]).await, Admission::Admitted);
    }
}

async fn a_revoked_credential_admits_nothing(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let line = line(&caller).await;
    let call = caller.call(&line[2]).await;
    caller.tenant.revoke_credential(line[0].credential).await.unwrap();
    assert_stale(&caller, &line[2], call).await;
}

async fn a_deleted_vault_admits_nothing(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    let call = caller.call(&grant).await;
    let vault = caller.held_grant(grant.id).await.credential.vault;
    caller.tenant.delete_vault(vault).await.unwrap();
    assert_stale(&caller, &grant, call).await;
}

async fn a_removed_agent_admits_nothing(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let line = line(&caller).await;
    let call = caller.call(&line[2]).await;
    caller.tenant.remove(&caller.agent).await.unwrap();
    assert_stale(&caller, &line[2], call).await;
}

async fn a_rotated_credential_is_looked_at_again(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    let call = caller.call(&grant).await;
    let credential = caller.held_grant(grant.id).await.credential.clone();
    fixture.ledger().rotate_credential(caller.tenant.rotation(&credential)).await.unwrap();

    assert_eq!(caller.send(call).await, Admission::Stale);

    let call = caller.call(&grant).await;
    assert_eq!(call.credential.unwrap().1, 2);
    let unsure = Admit { generation: 0, ..another(&call) };
    assert_eq!(caller.send(call).await, Admission::Admitted);
    assert_eq!(caller.send(unsure).await, Admission::Admitted);
}

async fn a_revoked_key_admits_nothing(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    let other_key = caller.tenant.key(&caller.agent, "another").await.id;
    let call = caller.call(&grant).await;
    revoke_key(&caller).await;

    assert_stale(&caller, &grant, call).await;
    let with_the_other = Caller { key: other_key, ..caller };
    assert_eq!(with_the_other.admit(&grant).await, Admission::Admitted);
}

async fn revoke_key(caller: &Caller) {
    let command = RevokeKey { audit: caller.tenant.audit(), id: caller.key };
    caller.tenant.ledger.revoke_key(command).await.unwrap();
}

async fn a_revoked_key_admits_nothing_even_if_the_grant_was_read_after_it(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    // The caller has presented its key, and sends the rest of its request slowly.
    revoke_key(&caller).await;
    let call = caller.call(&grant).await;
    assert_eq!(caller.send(call).await, Admission::Stale);
}

async fn an_expired_key_admits_nothing(fixture: &LedgerFixture) {
    let mut caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    let mut key = caller.tenant.new_key(&caller.agent, "short");
    key.expires_at = Some(caller.tenant.later(60));
    caller.key = key.id;
    fixture.ledger().create_key(CreateKey { audit: caller.tenant.audit(), key }).await.unwrap();
    fixture.clock().advance(Duration::from_millis(59_999));
    assert_eq!(caller.admit(&grant).await, Admission::Admitted);
    fixture.clock().advance(Duration::from_millis(1));
    assert_eq!(caller.admit(&grant).await, Admission::Stale);
}

async fn a_key_that_never_was_admits_nothing(fixture: &LedgerFixture) {
    let mut caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    caller.key = caller.tenant.new_key(&caller.agent, "never stored").id;
    assert_eq!(caller.admit(&grant).await, Admission::Stale);
}

async fn a_change_of_the_registry_is_looked_at_again_for_a_registered_tool(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    let unregistered = Admit { registry: Some(0), ..caller.call(&grant).await };
    assert_eq!(caller.send(unregistered.clone()).await, Admission::Admitted, "there is no registry yet");
    let apply = || ApplyService { audit: caller.tenant.audit(), definition: definition("stripe", "1"), replace: true };

    for revision in 1..=3 {
        let before = Admit { registry: Some(revision - 1), ..caller.call(&grant).await };
        let implicit = Admit { registry: None, ..another(&before) };
        fixture.ledger().apply_service(apply()).await.unwrap();

        assert_eq!(caller.send(before).await, Admission::Stale);
        assert_eq!(caller.send(implicit).await, Admission::Admitted, "a tool that the credential defines");
        let after = Admit { registry: Some(revision), ..caller.call(&grant).await };
        let unsure = Admit { generation: 0, ..another(&after) };
        assert_eq!(caller.send(after).await, Admission::Admitted);
        assert_eq!(caller.send(unsure).await, Admission::Admitted);
    }
}

async fn the_registry_of_another_tenant_does_not_matter(fixture: &LedgerFixture) {
    let (caller, other) = (Caller::new(fixture).await, Caller::new(fixture).await);
    let grant = caller.grant(None).await;
    let call = Admit { registry: Some(0), ..caller.call(&grant).await };
    let apply = ApplyService { audit: other.tenant.audit(), definition: definition("stripe", "1"), replace: false };
    fixture.ledger().apply_service(apply).await.unwrap();
    assert_eq!(caller.send(call).await, Admission::Admitted);
}

async fn what_is_over_by_the_clock_admits_nothing_to_the_millisecond(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    let call = caller.call(&grant).await;
    for generation in [call.generation, 0] {
        let over_at = |end| Admit { generation, usable_until: Some(end), ..another(&call) };
        let now = caller.tenant.now();
        assert_eq!(caller.send(over_at(now)).await, Admission::Stale);
        assert_eq!(caller.send(over_at(now.plus(Duration::from_millis(1)))).await, Admission::Admitted);
    }
}

async fn what_has_nothing_to_do_with_the_call_does_not_stand_in_its_way(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let (grant, other) = (caller.grant(None).await, caller.grant(None).await);
    let call = caller.call(&grant).await;
    caller.tenant.revoke(other.id).await.unwrap();
    caller.tenant.revoke_credential(other.credential).await.unwrap();
    caller.tenant.agent("newcomer").await;
    assert_eq!(caller.send(call).await, Admission::Admitted);
}

async fn a_stale_call_leaves_nothing_behind(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(1).await;
    let call = caller.call(&grant).await;
    let credential = call.credential.map(|(id, _)| (id, 7));
    let stale = Admit { generation: 0, credential, ..call };

    assert_eq!(caller.send(keyed(stale, "order-1", "d1")).await, Admission::Stale);

    assert!(caller.records().await.is_empty());
    assert_eq!(number(fixture, "SELECT COUNT(*) FROM idempotency_keys").await, 0);
    assert_eq!(number(fixture, "SELECT COUNT(*) FROM rate_places").await, 0);
    assert_eq!(caller.admit(&grant).await, Admission::Admitted);
}

async fn a_stale_call_does_not_touch_those_beside_it(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let (kept, ended) = (caller.grant(None).await, caller.grant(None).await);
    let (good, bad) = (caller.call(&kept).await, caller.call(&ended).await);
    caller.tenant.revoke(ended.id).await.unwrap();

    let sent = (0..64).map(|round| caller.send(another([&good, &bad][round % 2])));
    let outcomes = futures_util::future::join_all(sent).await;

    for (round, outcome) in outcomes.into_iter().enumerate() {
        assert_eq!(outcome, [Admission::Admitted, Admission::Stale][round % 2]);
    }
    assert_eq!(caller.records().await.len(), 32);
}

/// SQLite has a single writer, so a decision on the newest state is not checked again.
#[tokio::test]
async fn the_only_writer_looks_again_only_if_something_changed() {
    let fixture = LedgerFixture::sqlite().await;
    let caller = Caller::new(&fixture).await;
    let grant = caller.grant(None).await;
    let call = caller.call(&grant).await;
    // Bypassing the ledger, so that nothing tells it of the change.
    let file = rusqlite::Connection::open(fixture.home().file().unwrap()).unwrap();
    file.execute("UPDATE grants SET revoked_at = 1", []).unwrap();

    assert_eq!(caller.send(call.clone()).await, Admission::Admitted, "nothing has changed, as far as it knows");
    caller.tenant.agent("newcomer").await;
    assert_eq!(caller.send(another(&call)).await, Admission::Stale, "something has, so it looks");
}
