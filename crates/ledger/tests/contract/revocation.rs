//! Revocation: the whole subtree, at once, permanently.

use serde_json::json;
use toolgate_gate::refusal::Code;
use toolgate_model::grant::{Grant, GrantStatus};
use toolgate_model::id::GrantId;
use toolgate_testkit::ledger_fixture::{LedgerFixture, TestTenant, principal, request};

use super::support::refused;

contract!(
    revoking_a_grant_revokes_everything_below_it,
    every_revoked_grant_has_its_event_the_root_first,
    a_later_read_includes_the_revision_of_the_revocation,
    a_grant_is_revoked_once,
    a_revoked_grant_stays_revoked,
    a_suspended_grant_can_be_revoked,
    what_has_expired_is_not_revoked_any_more,
    revocation_is_seen_by_the_next_read_of_another_replica,
);

/// A root with two branches, the first of which has a grant below it.
struct Tree {
    root: Grant,
    branch: Grant,
    leaf: Grant,
    other_branch: Grant,
}

async fn tree(tenant: &TestTenant) -> Tree {
    let root = tenant.grant("coordinator").await;
    let branch = tenant.delegate(&root, "worker").await.unwrap();
    let leaf = tenant.delegate(&branch, "sub-worker").await.unwrap();
    let other_branch = tenant.delegate(&root, "helper").await.unwrap();
    Tree { root, branch, leaf, other_branch }
}

async fn own_status(tenant: &TestTenant, id: GrantId) -> GrantStatus {
    tenant.lineage(id).await.grant().status(tenant.now())
}

async fn revoking_a_grant_revokes_everything_below_it(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let tree = tree(&tenant).await;

    let revoked = tenant.revoke(tree.branch.id).await.unwrap();
    assert_eq!(revoked.grants, 2);
    for (grant, status) in [
        (&tree.root, GrantStatus::Active),
        (&tree.branch, GrantStatus::Revoked),
        (&tree.leaf, GrantStatus::Revoked),
        (&tree.other_branch, GrantStatus::Active),
    ] {
        assert_eq!(own_status(&tenant, grant.id).await, status);
    }

    tenant.wait(1);
    let revoked = tenant.revoke(tree.root.id).await.unwrap();
    assert_eq!(revoked.grants, 2, "the branch had ended before");
    assert_eq!(own_status(&tenant, tree.other_branch.id).await, GrantStatus::Revoked);
    let branch = tenant.lineage(tree.branch.id).await.grant().clone();
    assert_eq!(branch.revoked_at, Some(tree.branch.created_at), "it ended when it was first revoked");
}

async fn every_revoked_grant_has_its_event_the_root_first(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let tree = tree(&tenant).await;

    tenant.revoke(tree.root.id).await.unwrap();

    let events = tenant.events_of("grant.revoked").await;
    assert_eq!(events.len(), 4);
    let data = json!({"grant_id": tree.root.id, "reason": "no longer needed", "cascade_count": 3});
    assert_eq!(events[0]["data"], data);
    assert_eq!((&events[0]["agent_id"], &events[0]["actor"]), (&json!("coordinator"), &json!("admin")));
    let reason = format!("{}, which it was delegated from, was revoked", tree.root.id);
    for grant in [&tree.branch, &tree.leaf, &tree.other_branch] {
        let event = events.iter().find(|event| event["data"]["grant_id"] == json!(grant.id)).unwrap();
        assert_eq!(event["data"], json!({"grant_id": grant.id, "reason": reason, "cascade_count": 0}));
        assert_eq!(event["agent_id"], json!(grant.agent));
    }
}

async fn a_later_read_includes_the_revision_of_the_revocation(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let before = fixture.ledger().revision().await.unwrap();
    let tree = tree(&tenant).await;

    let revoked = tenant.revoke(tree.root.id).await.unwrap();

    assert!(revoked.revision > before);
    let reader = fixture.replica().await;
    assert!(reader.revision().await.unwrap() >= revoked.revision);
    assert_eq!(tenant.through(reader).standing(tree.leaf.id).await, GrantStatus::Revoked);
}

async fn a_grant_is_revoked_once(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let tree = tree(&tenant).await;
    let first = tenant.revoke(tree.root.id).await.unwrap();
    let events = tenant.events().await.len();

    let again = tenant.revoke(tree.root.id).await.unwrap();

    assert_eq!((again.grants, tenant.events().await.len()), (0, events));
    assert!(again.revision >= first.revision);
    refused(&tenant, Code::GrantNotFound, tenant.revoke(tenant.grant_id())).await;
}

async fn a_revoked_grant_stays_revoked(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let grant = tenant.grant("billing").await;
    tenant.revoke(grant.id).await.unwrap();

    refused(&tenant, Code::GrantRevoked, tenant.suspend(grant.id)).await;
    refused(&tenant, Code::GrantRevoked, tenant.resume(grant.id)).await;
    refused(&tenant, Code::GrantRevoked, tenant.delegate(&grant, "worker")).await;
    let end = grant.authority.expires_at.unwrap();
    assert_eq!(tenant.lineage(grant.id).await.grant().status(end), GrantStatus::Revoked, "it does not expire any more");
}

async fn a_suspended_grant_can_be_revoked(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let tree = tree(&tenant).await;
    tenant.suspend(tree.root.id).await.unwrap();
    tenant.suspend(tree.leaf.id).await.unwrap();

    assert_eq!(tenant.revoke(tree.root.id).await.unwrap().grants, 4);

    assert_eq!(own_status(&tenant, tree.leaf.id).await, GrantStatus::Revoked);
}

async fn what_has_expired_is_not_revoked_any_more(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let root = tenant.grant("coordinator").await;
    let mut short = tenant.delegation(&root, "worker");
    short.request = request(root.authority.scopes.clone());
    short.request.expires_at = Some(Some(tenant.later(60)));
    let short = fixture.ledger().delegate_grant(short).await.unwrap();
    let lasting = tenant.delegate(&root, "helper").await.unwrap();
    tenant.wait(60);

    assert_eq!(tenant.revoke(short.id).await.unwrap().grants, 0);
    assert_eq!(tenant.revoke(root.id).await.unwrap().grants, 2);

    assert_eq!(own_status(&tenant, short.id).await, GrantStatus::Expired);
    assert_eq!(own_status(&tenant, lasting.id).await, GrantStatus::Revoked);
    assert_eq!(tenant.events_of("grant.revoked").await[0]["data"]["cascade_count"], json!(1));
}

async fn revocation_is_seen_by_the_next_read_of_another_replica(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let there = tenant.through(fixture.replica().await);
    let credential = tenant.credential().await;
    for round in 0..20 {
        let (revoker, reader) = if round % 2 == 0 { (&tenant, &there) } else { (&there, &tenant) };
        let root = tenant.store_grant(tenant.new_grant(&credential, &principal("coordinator"))).await.unwrap();
        let leaf = tenant.delegate(&root, "worker").await.unwrap();
        assert_eq!(reader.standing(leaf.id).await, GrantStatus::Active);

        revoker.revoke(root.id).await.unwrap();

        assert_eq!(reader.standing(leaf.id).await, GrantStatus::Revoked);
        refused(reader, Code::GrantRevoked, reader.delegate(&leaf, "late")).await;
    }
}
