//! Held grants: what an agent holds, with everything that a call needs.

use std::sync::Arc;

use serde_json::json;
use toolgate_gate::ports::ledger::{Freshness, HeldGrant, HeldGrants};
use toolgate_model::grant::{Grant, GrantStatus};
use toolgate_model::id::GrantId;
use toolgate_model::principal::PrincipalId;
use toolgate_model::service::ToolName;
use toolgate_testkit::ledger_fixture::{LedgerFixture, TestTenant, principal};

use super::support::calls::Caller;

contract!(
    active_and_suspended_grants_are_held_and_ended_ones_are_not,
    what_is_held_comes_oldest_first_with_its_lineage_and_its_credential,
    what_can_be_done_is_what_the_whole_lineage_allows,
    the_tools_of_a_credential_come_with_it,
    a_connection_that_is_not_understood_is_closed_and_the_rest_is_held,
    what_ends_by_the_clock_is_not_held_any_more,
    more_than_can_be_looked_through_is_said_to_be_cut,
    one_grant_is_read_whatever_state_it_is_in,
    ended_grants_are_read_newest_first,
    the_holdings_of_another_tenant_are_out_of_reach,
);

async fn held(tenant: &TestTenant, agent: &str) -> Arc<HeldGrants> {
    tenant.ledger.held_grants(&tenant.id, &principal(agent), tenant.now(), Freshness::Newest).await.unwrap()
}

fn ids(held_grants: &[Arc<HeldGrant>]) -> Vec<GrantId> {
    held_grants.iter().map(|held_grant| held_grant.grant()).collect()
}

async fn ending_in(tenant: &TestTenant, agent: &PrincipalId, seconds: u64) -> Grant {
    let mut grant = tenant.new_grant(&tenant.credential().await, agent);
    grant.authority.expires_at = Some(tenant.later(seconds));
    tenant.store_grant(grant).await.unwrap()
}

async fn active_and_suspended_grants_are_held_and_ended_ones_are_not(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let agent = principal("billing");
    assert!(held(&tenant, "billing").await.held.is_empty());
    let ended = ending_in(&tenant, &agent, 60).await;
    tenant.wait(60);
    let active = tenant.grant("billing").await;
    tenant.wait(1);
    let suspended = tenant.grant("billing").await;
    tenant.suspend(suspended.id).await.unwrap();
    let revoked = tenant.grant("billing").await;
    tenant.revoke(revoked.id).await.unwrap();
    tenant.grant("somebody-else").await;

    let held_grants = held(&tenant, "billing").await;

    assert_eq!(ids(&held_grants.held), [active.id, suspended.id]);
    assert!(!held_grants.truncated);
    assert_eq!(held_grants.held[1].lineage.standing(tenant.now()).status, GrantStatus::Suspended);
    assert_eq!(tenant.standing(ended.id).await, GrantStatus::Expired);
}

async fn what_is_held_comes_oldest_first_with_its_lineage_and_its_credential(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let mut expected = Vec::new();
    for _ in 0..3 {
        let root = tenant.grant("coordinator").await;
        let middle = tenant.delegate(&root, "middle").await.unwrap();
        let leaf = tenant.delegate(&middle, "worker").await.unwrap();
        expected.push([root, middle, leaf]);
        tenant.wait(1);
    }

    let held_grants = held(&tenant, "worker").await;

    assert_eq!(held_grants.held.len(), 3);
    for (held_grant, [root, middle, leaf]) in held_grants.held.iter().zip(&expected) {
        assert_eq!(held_grant.lineage.grant(), leaf);
        assert_eq!(held_grant.lineage.ancestors(), [root.clone(), middle.clone()]);
        let credential = tenant.ledger.credential(&tenant.id, root.credential).await.unwrap().unwrap();
        assert_eq!(held_grant.credential, credential);
    }
}

async fn what_can_be_done_is_what_the_whole_lineage_allows(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let root = caller.grant(5).await;
    let leaf = caller.delegate(&root, None).await;
    let held_grants = held(&caller.tenant, "worker").await;
    assert_eq!(leaf.authority.constraints.max_invocations_per_hour, None);
    assert_eq!(held_grants.held[0].effective.constraints.max_invocations_per_hour, Some(5));
    assert_eq!(held_grants.held[0].effective, caller.tenant.lineage(leaf.id).await.effective());
}

async fn the_tools_of_a_credential_come_with_it(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let vault = tenant.vault().await;
    let mut credential = tenant.new_credential(vault.id);
    let metadata = json!({
        "base_url": "https://api.example.com",
        "endpoints": {"charges.read": {"path": "/charges", "method": "GET"}}
    });
    credential.metadata = metadata.as_object().cloned().unwrap();
    let credential = tenant.store_credential(credential).await;
    tenant.store_grant(tenant.new_grant(&credential, &principal("billing"))).await.unwrap();

    let held_grants = held(&tenant, "billing").await;

    let held_grant = &held_grants.held[0];
    assert!(held_grant.connection.is_ok(), "{:?}", held_grant.connection);
    assert!(
        held_grant.implicit.contains_key(&ToolName::parse("charges.read").unwrap()),
        "{:?}",
        held_grant.implicit.keys()
    );
}

async fn a_connection_that_is_not_understood_is_closed_and_the_rest_is_held(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let good = tenant.grant("billing").await;
    tenant.wait(1);
    let vault = tenant.vault().await;
    let mut credential = tenant.new_credential(vault.id);
    credential.metadata = json!({"base_url": 7}).as_object().cloned().unwrap();
    let credential = tenant.store_credential(credential).await;
    let bad = tenant.store_grant(tenant.new_grant(&credential, &principal("billing"))).await.unwrap();

    let held_grants = held(&tenant, "billing").await;

    assert_eq!(ids(&held_grants.held), [good.id, bad.id]);
    assert!(held_grants.held[0].connection.is_ok() && held_grants.held[1].connection.is_err());
    assert!(held_grants.held[1].implicit.is_empty());
}

async fn what_ends_by_the_clock_is_not_held_any_more(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let agent = principal("billing");
    let (short, long) = (ending_in(&tenant, &agent, 60).await, ending_in(&tenant, &agent, 90).await);
    let held_then = ids(&held(&tenant, "billing").await.held);
    assert!(held_then.contains(&short.id) && held_then.contains(&long.id));
    tenant.wait(59);
    assert_eq!(held(&tenant, "billing").await.held.len(), 2);

    tenant.wait(1);

    // Nothing has changed but the time.
    for freshness in [Freshness::Newest, Freshness::Recent] {
        let held_grants = tenant.ledger.held_grants(&tenant.id, &agent, tenant.now(), freshness).await.unwrap();
        assert_eq!(ids(&held_grants.held), [long.id]);
    }
}

async fn more_than_can_be_looked_through_is_said_to_be_cut(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let credential = tenant.credential().await;
    let limit = usize::try_from(HeldGrants::LIMIT).unwrap();
    let grants: Vec<Grant> = (0..limit).map(|_| tenant.new_grant(&credential, &principal("busy"))).collect();
    for some in grants.chunks(100) {
        let stored = some.iter().map(|grant| tenant.store_grant(grant.clone()));
        futures_util::future::try_join_all(stored).await.unwrap();
    }
    let all = held(&tenant, "busy").await;
    assert_eq!((all.held.len(), all.truncated), (limit, false));

    tenant.wait(1);
    let last = tenant.store_grant(tenant.new_grant(&credential, &principal("busy"))).await.unwrap();

    let cut = held(&tenant, "busy").await;
    assert_eq!((cut.held.len(), cut.truncated), (limit, true));
    assert!(!ids(&cut.held).contains(&last.id), "the oldest are looked through");
}

async fn one_grant_is_read_whatever_state_it_is_in(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let tenant = &caller.tenant;
    let root = tenant.grant("coordinator").await;
    let leaf = tenant.delegate(&root, "worker").await.unwrap();
    let standing = async || caller.held_grant(leaf.id).await.lineage.standing(tenant.now()).status;

    assert_eq!(standing().await, GrantStatus::Active);
    tenant.suspend(root.id).await.unwrap();
    assert_eq!(standing().await, GrantStatus::Suspended);
    tenant.revoke(root.id).await.unwrap();
    assert_eq!(standing().await, GrantStatus::Revoked);
    tenant.revoke_credential(root.credential).await.unwrap();
    let held_grant = caller.held_grant(leaf.id).await;
    assert_eq!(held_grant.credential.revoked_at, Some(tenant.now()));
    assert!(tenant.ledger.held_grant(&tenant.id, tenant.grant_id()).await.unwrap().is_none());
}

async fn ended_grants_are_read_newest_first(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let agent = principal("billing");
    let expired = ending_in(&tenant, &agent, 60).await;
    tenant.wait(1);
    let revoked = tenant.grant("billing").await;
    tenant.revoke(revoked.id).await.unwrap();
    tenant.wait(1);
    tenant.grant("billing").await;
    let ended = async || ids(&tenant.ledger.ended_grants(&tenant.id, &agent, tenant.now()).await.unwrap());

    assert_eq!(ended().await, [revoked.id]);
    tenant.wait(58);
    assert_eq!(ended().await, [revoked.id, expired.id]);
}

async fn the_holdings_of_another_tenant_are_out_of_reach(fixture: &LedgerFixture) {
    let (owner, intruder) = (fixture.tenant().await, fixture.tenant().await);
    let grant = owner.grant("billing").await;
    let ended = owner.grant("billing").await;
    owner.revoke(ended.id).await.unwrap();
    assert_eq!(held(&owner, "billing").await.held.len(), 1);

    assert!(held(&intruder, "billing").await.held.is_empty());
    assert!(intruder.ledger.held_grant(&intruder.id, grant.id).await.unwrap().is_none());
    let ended = intruder.ledger.ended_grants(&intruder.id, &principal("billing"), intruder.now()).await.unwrap();
    assert!(ended.is_empty());
}
