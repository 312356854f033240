//! Work by the clock: an expiry is recorded once, even without calls.

use futures_util::future::try_join_all;
use serde_json::json;
use toolgate_gate::ports::ledger::{NewExpiry, RotateCredential};
use toolgate_model::credential::Credential;
use toolgate_model::grant::{Grant, GrantStatus};
use toolgate_model::time::Timestamp;
use toolgate_testkit::ledger_fixture::{LedgerFixture, TestTenant, principal};

contract!(
    an_expired_grant_is_announced_once,
    nothing_is_announced_before_its_time,
    a_suspended_grant_expires_too,
    a_revoked_grant_does_not_expire,
    an_expired_credential_is_announced_once_and_again_after_fresh_material,
    an_expiry_that_nobody_announced_is_announced_by_the_rotation_that_ends_it,
    a_revoked_credential_does_not_expire,
    more_than_one_batch_is_announced,
    two_replicas_announce_each_expiry_once,
);

async fn announce(tenant: &TestTenant) -> u64 {
    tenant.ledger.announce_expired(tenant.now()).await.unwrap()
}

fn ending(tenant: &TestTenant, credential: &Credential, end: Timestamp) -> Grant {
    let mut grant = tenant.new_grant(credential, &principal("billing"));
    grant.authority.expires_at = Some(end);
    grant
}

async fn ending_credential(tenant: &TestTenant) -> Credential {
    let vault = tenant.vault().await;
    let mut credential = tenant.new_credential(vault.id);
    credential.expires_at = Some(tenant.later(60));
    tenant.store_credential(credential).await
}

async fn an_expired_grant_is_announced_once(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let credential = tenant.credential().await;
    let grant = tenant.store_grant(ending(&tenant, &credential, tenant.later(60))).await.unwrap();
    let below = tenant.delegate(&grant, "worker").await.unwrap();
    tenant.wait(60);

    assert_eq!(tenant.standing(grant.id).await, GrantStatus::Expired, "it is enforced whether announced or not");
    assert_eq!(announce(&tenant).await, 2);
    assert_eq!(announce(&tenant).await, 0);

    let events = tenant.events_of("grant.expired").await;
    assert_eq!(events.len(), 2);
    for (grant, agent) in [(&grant, "billing"), (&below, "worker")] {
        let event = events.iter().find(|event| event["data"]["grant_id"] == json!(grant.id)).unwrap();
        assert_eq!(event["data"], json!({"grant_id": grant.id}));
        assert_eq!((&event["agent_id"], &event["actor"]), (&json!(agent), &json!("core.system")));
        assert_eq!(event["timestamp"], json!(tenant.now()));
    }
}

async fn nothing_is_announced_before_its_time(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let credential = ending_credential(&tenant).await;
    tenant.store_grant(ending(&tenant, &credential, tenant.later(60))).await.unwrap();
    let mut indefinite = tenant.new_grant(&credential, &principal("billing"));
    indefinite.authority.expires_at = None;
    tenant.store_grant(indefinite).await.unwrap();

    tenant.clock.advance(std::time::Duration::from_millis(59_999));
    assert_eq!(announce(&tenant).await, 0);
    tenant.clock.advance(std::time::Duration::from_millis(1));
    assert_eq!(announce(&tenant).await, 2, "the grant and the credential, not the grant without an end");
}

async fn a_suspended_grant_expires_too(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let credential = tenant.credential().await;
    let grant = tenant.store_grant(ending(&tenant, &credential, tenant.later(60))).await.unwrap();
    tenant.suspend(grant.id).await.unwrap();
    tenant.wait(60);
    assert_eq!(announce(&tenant).await, 1);
    assert_eq!(tenant.standing(grant.id).await, GrantStatus::Expired);
}

async fn a_revoked_grant_does_not_expire(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let credential = tenant.credential().await;
    let grant = tenant.store_grant(ending(&tenant, &credential, tenant.later(60))).await.unwrap();
    tenant.revoke(grant.id).await.unwrap();
    tenant.wait(60);
    assert_eq!(announce(&tenant).await, 0);
    assert!(tenant.events_of("grant.expired").await.is_empty());
}

async fn an_expired_credential_is_announced_once_and_again_after_fresh_material(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let credential = ending_credential(&tenant).await;
    tenant.wait(60);
    assert_eq!((announce(&tenant).await, announce(&tenant).await), (1, 0));
    let event = tenant.events().await.pop().unwrap();
    assert_eq!((&event["type"], &event["actor"]), (&json!("credential.expired"), &json!("core.system")));
    assert_eq!(event["data"], json!({"credential_id": credential.id}));

    let fresh = RotateCredential { end: NewExpiry::At(Some(tenant.later(60))), ..tenant.rotation(&credential) };
    fixture.ledger().rotate_credential(fresh).await.unwrap();
    assert_eq!(announce(&tenant).await, 0);
    tenant.wait(60);

    assert_eq!((announce(&tenant).await, announce(&tenant).await), (1, 0));
    assert_eq!(tenant.events_of("credential.expired").await.len(), 2);
}

async fn an_expiry_that_nobody_announced_is_announced_by_the_rotation_that_ends_it(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let credential = ending_credential(&tenant).await;
    tenant.wait(60);

    fixture.ledger().rotate_credential(tenant.rotation(&credential)).await.unwrap();

    let events = tenant.events().await;
    let kinds: Vec<_> = events.iter().rev().take(2).map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["credential.rotated", "credential.expired"]);
    assert_eq!(events[events.len() - 2]["actor"], "core.system");
    assert_eq!(announce(&tenant).await, 0);
}

async fn a_revoked_credential_does_not_expire(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let credential = ending_credential(&tenant).await;
    tenant.revoke_credential(credential.id).await.unwrap();
    tenant.wait(60);
    assert_eq!(announce(&tenant).await, 0);
}

async fn more_than_one_batch_is_announced(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let credential = tenant.credential().await;
    let many = (0..600).map(|_| tenant.store_grant(ending(&tenant, &credential, tenant.later(60))));
    try_join_all(many).await.unwrap();
    tenant.wait(60);

    assert_eq!(announce(&tenant).await, 600);
    assert_eq!(tenant.events_of("grant.expired").await.len(), 600);
}

async fn two_replicas_announce_each_expiry_once(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let there = tenant.through(fixture.replica().await);
    let credential = tenant.credential().await;
    let many = (0..64).map(|_| tenant.store_grant(ending(&tenant, &credential, tenant.later(60))));
    try_join_all(many).await.unwrap();
    tenant.wait(60);

    let (here, elsewhere) = tokio::join!(announce(&tenant), announce(&there));

    // Either may have skipped what the other had locked; nothing is left, and nothing was recorded twice.
    assert_eq!(here + elsewhere + announce(&tenant).await, 64);
    assert_eq!(tenant.events_of("grant.expired").await.len(), 64);
}
