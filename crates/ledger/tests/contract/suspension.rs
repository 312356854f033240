//! Suspension: reversible, for the grant and everything below it.

use serde_json::json;
use toolgate_gate::ports::ledger::{ResumeGrant, SuspendGrant};
use toolgate_gate::refusal::Code;
use toolgate_model::grant::{Grant, GrantStatus, Standing, Suspension};
use toolgate_testkit::ledger_fixture::{LedgerFixture, TestTenant, principal};

use super::support::refused;

contract!(
    a_suspended_grant_says_since_when_and_by_whom,
    below_a_suspended_grant_nothing_can_be_used,
    resuming_restores_exactly_what_was_not_ended_or_suspended_itself,
    a_grant_is_suspended_once_and_resumed_once,
    what_has_ended_is_neither_suspended_nor_resumed,
    below_a_suspended_grant_others_can_still_be_suspended_and_resumed,
    who_may_resume_only_its_own_pauses_cannot_end_those_of_others,
    a_manager_s_pause_takes_the_place_of_a_delegator_s,
    a_grant_that_is_not_there_is_neither_suspended_nor_resumed,
);

async fn chain(tenant: &TestTenant) -> [Grant; 3] {
    let root = tenant.grant("coordinator").await;
    let middle = tenant.delegate(&root, "worker").await.unwrap();
    let leaf = tenant.delegate(&middle, "sub-worker").await.unwrap();
    [root, middle, leaf]
}

async fn a_suspended_grant_says_since_when_and_by_whom(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let grant = tenant.grant("billing").await;
    tenant.wait(5);

    let suspended = tenant.suspend(grant.id).await.unwrap();
    let pause = Suspension { at: tenant.now(), by: tenant.administrator.clone() };
    assert_eq!(suspended.suspended, Some(pause));
    assert_eq!(tenant.lineage(grant.id).await.grant(), &suspended);
    let event = tenant.events().await.pop().unwrap();
    assert_eq!((&event["type"], &event["agent_id"]), (&json!("grant.suspended"), &json!("billing")));
    assert_eq!(event["data"], json!({"grant_id": grant.id, "reason": "under review"}));

    let resumed = tenant.resume(grant.id).await.unwrap();
    assert_eq!(resumed, grant, "as if nothing had been");
    assert_eq!(tenant.lineage(grant.id).await.grant(), &grant);
    let event = tenant.events().await.pop().unwrap();
    assert_eq!((&event["type"], &event["agent_id"]), (&json!("grant.resumed"), &json!("billing")));
    assert_eq!(event["data"], json!({"grant_id": grant.id}));
}

async fn below_a_suspended_grant_nothing_can_be_used(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let [root, middle, leaf] = chain(&tenant).await;

    tenant.suspend(middle.id).await.unwrap();

    let standing = |status, by: &Grant| Standing { status, decided_by: by.id };
    let now = tenant.now();
    assert_eq!(tenant.lineage(root.id).await.standing(now), standing(GrantStatus::Active, &root));
    assert_eq!(tenant.lineage(middle.id).await.standing(now), standing(GrantStatus::Suspended, &middle));
    let below = tenant.lineage(leaf.id).await;
    assert_eq!(below.standing(now), standing(GrantStatus::Suspended, &middle));
    assert_eq!(below.grant().status(now), GrantStatus::Active, "its own status is untouched");
    assert_eq!(tenant.events_of("grant.suspended").await.len(), 1, "one grant was suspended");
}

async fn resuming_restores_exactly_what_was_not_ended_or_suspended_itself(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let root = tenant.grant("coordinator").await;
    let mut short = tenant.delegation(&root, "short");
    short.request.expires_at = Some(Some(tenant.later(60)));
    let short = fixture.ledger().delegate_grant(short).await.unwrap();
    let [plain, paused, revoked] = [
        tenant.delegate(&root, "plain").await.unwrap(),
        tenant.delegate(&root, "paused").await.unwrap(),
        tenant.delegate(&root, "revoked").await.unwrap(),
    ];
    let below_paused = tenant.delegate(&paused, "below").await.unwrap();
    tenant.suspend(paused.id).await.unwrap();

    tenant.suspend(root.id).await.unwrap();
    for grant in [&plain, &paused, &below_paused, &short, &revoked] {
        assert_eq!(tenant.standing(grant.id).await, GrantStatus::Suspended);
    }
    tenant.revoke(revoked.id).await.unwrap();
    tenant.wait(60);
    tenant.resume(root.id).await.unwrap();

    for (grant, status) in [
        (&root, GrantStatus::Active),
        (&plain, GrantStatus::Active),
        (&paused, GrantStatus::Suspended),
        (&below_paused, GrantStatus::Suspended),
        (&short, GrantStatus::Expired),
        (&revoked, GrantStatus::Revoked),
    ] {
        assert_eq!(tenant.standing(grant.id).await, status, "{}", grant.agent);
    }
}

async fn a_grant_is_suspended_once_and_resumed_once(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let grant = tenant.grant("billing").await;
    refused(&tenant, Code::GrantNotSuspended, tenant.resume(grant.id)).await;
    tenant.suspend(grant.id).await.unwrap();
    refused(&tenant, Code::GrantSuspended, tenant.suspend(grant.id)).await;
    tenant.resume(grant.id).await.unwrap();
    refused(&tenant, Code::GrantNotSuspended, tenant.resume(grant.id)).await;
}

async fn what_has_ended_is_neither_suspended_nor_resumed(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let credential = tenant.credential().await;
    let ending = || {
        let mut grant = tenant.new_grant(&credential, &principal("billing"));
        grant.authority.expires_at = Some(tenant.later(60));
        tenant.store_grant(grant)
    };
    let (active, paused, revoked) = (ending().await.unwrap(), ending().await.unwrap(), ending().await.unwrap());
    tenant.suspend(paused.id).await.unwrap();
    tenant.suspend(revoked.id).await.unwrap();
    tenant.revoke(revoked.id).await.unwrap();
    tenant.wait(60);

    refused(&tenant, Code::GrantExpired, tenant.suspend(active.id)).await;
    refused(&tenant, Code::GrantExpired, tenant.resume(active.id)).await;
    refused(&tenant, Code::GrantExpired, tenant.resume(paused.id)).await;
    refused(&tenant, Code::GrantRevoked, tenant.resume(revoked.id)).await;
}

async fn below_a_suspended_grant_others_can_still_be_suspended_and_resumed(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let [root, _, leaf] = chain(&tenant).await;
    tenant.suspend(root.id).await.unwrap();
    tenant.suspend(leaf.id).await.unwrap();
    tenant.resume(root.id).await.unwrap();
    assert_eq!(tenant.standing(leaf.id).await, GrantStatus::Suspended, "it was suspended itself");

    tenant.suspend(root.id).await.unwrap();
    tenant.resume(leaf.id).await.unwrap();
    assert_eq!(tenant.standing(leaf.id).await, GrantStatus::Suspended, "the root still is");
    tenant.resume(root.id).await.unwrap();
    assert_eq!(tenant.standing(leaf.id).await, GrantStatus::Active);
}

async fn who_may_resume_only_its_own_pauses_cannot_end_those_of_others(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let grant = tenant.grant("billing").await;
    let holder = principal("billing");
    let resume = || {
        let audit = tenant.audit_of(&holder);
        fixture.ledger().resume_grant(ResumeGrant { audit, id: grant.id, only_own: true })
    };

    tenant.suspend(grant.id).await.unwrap();
    refused(&tenant, Code::PermissionDenied, resume()).await;
    tenant.resume(grant.id).await.unwrap();

    let audit = tenant.audit_of(&holder);
    let pause = SuspendGrant { audit, id: grant.id, reason: "holiday".to_owned(), overrides: false };
    fixture.ledger().suspend_grant(pause).await.unwrap();
    assert_eq!(resume().await.unwrap(), grant);
}

async fn a_manager_s_pause_takes_the_place_of_a_delegator_s(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let holder = principal("billing");
    let grant = tenant.delegate(&tenant.grant("billing").await, "worker").await.unwrap();
    let pause = |overrides| {
        let audit = tenant.audit_of(&holder);
        let pause = SuspendGrant { audit, id: grant.id, reason: "holiday".to_owned(), overrides };
        fixture.ledger().suspend_grant(pause)
    };
    let resume = || {
        let audit = tenant.audit_of(&holder);
        fixture.ledger().resume_grant(ResumeGrant { audit, id: grant.id, only_own: true })
    };
    pause(false).await.unwrap();

    let taken_over = tenant.suspend(grant.id).await.unwrap();

    assert_eq!(taken_over.suspended.map(|pause| pause.by), Some(tenant.administrator.clone()));
    refused(&tenant, Code::PermissionDenied, resume()).await;
    refused(&tenant, Code::GrantSuspended, pause(false)).await;
    refused(&tenant, Code::GrantSuspended, tenant.suspend(grant.id)).await;
    assert_eq!(tenant.standing(grant.id).await, GrantStatus::Suspended);
    assert_eq!(tenant.events_of("grant.suspended").await.len(), 2);
    tenant.resume(grant.id).await.unwrap();
    assert_eq!(tenant.standing(grant.id).await, GrantStatus::Active);
}

async fn a_grant_that_is_not_there_is_neither_suspended_nor_resumed(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    refused(&tenant, Code::GrantNotFound, tenant.suspend(tenant.grant_id())).await;
    refused(&tenant, Code::GrantNotFound, tenant.resume(tenant.grant_id())).await;
}
