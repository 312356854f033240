//! One-time links: redeemed once, in their tenant, before the approval expires; only the digest is stored.

use toolgate_gate::ports::entropy::random;
use toolgate_gate::ports::ledger::{CreateApprovalLink, RedeemApprovalLink};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::approval::{Approval, ApprovalStatus, LinkToken};
use toolgate_testkit::ledger_fixture::{LedgerFixture, TestTenant};

use super::support::approvals::{WAIT, approve, ask, now, question};
use super::support::refused;

contract!(
    a_link_leads_to_its_approval_once,
    a_link_that_is_used_at_the_same_moment_is_used_once,
    a_link_of_another_tenant_is_answered_like_none_and_stays,
    a_link_ends_with_the_time_to_answer_and_is_forgotten_a_day_later,
    a_link_shows_an_approval_that_was_answered_elsewhere,
);

async fn link(tenant: &TestTenant, approval: &Approval) -> LinkToken {
    let token = LinkToken::from_entropy(random().expect("random bytes"));
    let command = CreateApprovalLink {
        tenant: tenant.id.clone(),
        approval: approval.id,
        digest: token.digest(),
        expires_at: approval.expires_at,
        now: tenant.now(),
    };
    tenant.ledger.create_approval_link(command).await.unwrap();
    token
}

async fn redeem(tenant: &TestTenant, token: &LinkToken) -> Result<Approval, Refusal> {
    let command = RedeemApprovalLink { audit: tenant.audit(), digest: token.digest() };
    tenant.ledger.redeem_approval_link(command).await
}

async fn a_link_leads_to_its_approval_once(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let (first, second) = (ask(&tenant, question(&tenant)).await, ask(&tenant, question(&tenant)).await);
    let (to_first, to_second) = (link(&tenant, &first).await, link(&tenant, &second).await);
    assert_eq!(redeem(&tenant, &to_second).await.unwrap(), second);
    assert_eq!(redeem(&tenant, &to_first).await.unwrap(), first);
    refused(&tenant, Code::ApprovalEnded, redeem(&tenant, &to_first)).await;
    let never_made = LinkToken::from_entropy([7; 32]);
    refused(&tenant, Code::ApprovalNotFound, redeem(&tenant, &never_made)).await;
    assert_eq!(now(&tenant, &first).await, first, "a link decides nothing");
}

async fn a_link_that_is_used_at_the_same_moment_is_used_once(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let asked = ask(&tenant, question(&tenant)).await;
    let token = link(&tenant, &asked).await;
    let mut tries = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let tenant = tenant.clone();
        let command = RedeemApprovalLink { audit: tenant.audit(), digest: token.digest() };
        tries.spawn(async move { tenant.ledger.redeem_approval_link(command).await.is_ok() });
    }
    assert_eq!(tries.join_all().await.into_iter().filter(|used| *used).count(), 1);
}

async fn a_link_of_another_tenant_is_answered_like_none_and_stays(fixture: &LedgerFixture) {
    let (tenant, intruder) = (fixture.tenant().await, fixture.tenant().await);
    let asked = ask(&tenant, question(&tenant)).await;
    let token = link(&tenant, &asked).await;
    refused(&intruder, Code::ApprovalNotFound, redeem(&intruder, &token)).await;
    assert_eq!(redeem(&tenant, &token).await.unwrap(), asked);
}

async fn a_link_ends_with_the_time_to_answer_and_is_forgotten_a_day_later(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let asked = ask(&tenant, question(&tenant)).await;
    let token = link(&tenant, &asked).await;
    tenant.wait(WAIT);
    refused(&tenant, Code::ApprovalEnded, redeem(&tenant, &token)).await;
    tenant.wait(24 * 3600 + 1);
    link(&tenant, &ask(&tenant, question(&tenant)).await).await;
    refused(&tenant, Code::ApprovalNotFound, redeem(&tenant, &token)).await;
}

async fn a_link_shows_an_approval_that_was_answered_elsewhere(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let asked = ask(&tenant, question(&tenant)).await;
    let token = link(&tenant, &asked).await;
    approve(&tenant, &asked, "alice").await.unwrap();
    assert_eq!(redeem(&tenant, &token).await.unwrap().status, ApprovalStatus::Approved);
}
