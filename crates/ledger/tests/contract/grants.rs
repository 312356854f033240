//! Direct grants, and how grants are found.

use serde_json::json;
use toolgate_gate::ports::ledger::{GrantFilter, GrantSource, PageRequest};
use toolgate_gate::refusal::Code;
use toolgate_model::constraint::Constraints;
use toolgate_model::context::{ContextId, GrantContext};
use toolgate_model::credential::{Credential, ServiceName};
use toolgate_model::grant::{DelegationDepth, Grant, GrantStatus};
use toolgate_model::id::GrantId;
use toolgate_testkit::ledger_fixture::{LedgerFixture, SCOPES, TestTenant, principal, scopes};

use super::support::{detail, refused};

contract!(
    a_grant_reads_back_as_it_was_made,
    an_indefinite_and_unlimited_grant_reads_back_as_such,
    scopes_that_the_credential_does_not_have_are_refused,
    an_agent_that_was_removed_gets_no_grant,
    a_grant_may_wait_for_its_agent,
    a_grant_needs_a_credential,
    grants_are_found_by_everything_they_are_filtered_by,
    a_status_is_judged_at_the_moment_of_asking,
    listed_grants_come_with_their_lineage,
    the_tree_below_a_grant_is_read_level_by_level,
);

async fn find(tenant: &TestTenant, filter: GrantFilter) -> Vec<GrantId> {
    let page = tenant.ledger.grants(&tenant.id, filter, PageRequest::first(100)).await.unwrap();
    assert_eq!(page.next, None);
    page.items.iter().map(|lineage| lineage.grant().id).collect()
}

fn sorted<const N: usize>(grants: [&Grant; N]) -> Vec<GrantId> {
    let mut ids: Vec<_> = grants.iter().map(|grant| grant.id).collect();
    ids.sort_unstable();
    ids
}

async fn a_grant_reads_back_as_it_was_made(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let credential = tenant.credential().await;
    let mut grant = tenant.new_grant(&credential, &principal("billing"));
    grant.authority.scopes = scopes(&["charges.read"]);
    grant.authority.constraints = Constraints::from_json(&json!({
        "max_invocations_per_hour": 100, "max_cost_per_invocation": 0.25,
        "allowed_parameters": {"currency": ["usd", "eur"], "amount_max": 50000.5, "id": {"pattern": "cus_.*"}},
        "denied_parameters": {"metadata.test_mode": [true]},
        "ip_allowlist": ["10.0.0.0/8"], "allowed_hosts": ["api.stripe.com"]
    }))
    .unwrap();
    grant.authority.context =
        GrantContext { task_id: Some(ContextId::parse("task_1").unwrap()), ..GrantContext::default() };
    grant.authority.delegatable = false;
    grant.authority.delegation_depth = DelegationDepth::Limited(0);

    tenant.store_grant(grant.clone()).await.unwrap();

    let lineage = tenant.lineage(grant.id).await;
    assert_eq!((lineage.grant(), lineage.ancestors()), (&grant, &[][..]));
    assert_eq!(lineage.effective(), grant.authority);
    let event = tenant.events().await.pop().unwrap();
    assert_eq!(event["type"], "grant.created");
    assert_eq!((&event["agent_id"], &event["task_id"]), (&json!("billing"), &json!("task_1")));
    let data = json!({
        "grant_id": grant.id, "credential_id": credential.id, "agent_id": "billing", "scopes": ["charges.read"],
        "expires_at": grant.authority.expires_at
    });
    assert_eq!(event["data"], data);
}

async fn an_indefinite_and_unlimited_grant_reads_back_as_such(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let credential = tenant.credential().await;
    let mut grant = tenant.new_grant(&credential, &principal("billing"));
    grant.authority.expires_at = None;

    tenant.store_grant(grant.clone()).await.unwrap();

    let read = tenant.lineage(grant.id).await.grant().clone();
    assert_eq!(read.authority.delegation_depth, DelegationDepth::Unlimited);
    assert_eq!(read.authority.expires_at, None);
    assert_eq!(tenant.events().await.pop().unwrap()["data"]["expires_at"], json!(null));
}

async fn scopes_that_the_credential_does_not_have_are_refused(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let credential = tenant.credential().await;
    let mut grant = tenant.new_grant(&credential, &principal("billing"));
    grant.authority.scopes = scopes(&["charges.read", "Charges.Read", "charges", "payouts.create"]);

    let refusal = refused(&tenant, Code::ScopeUnavailable, tenant.store_grant(grant.clone())).await;

    assert_eq!(detail(&refusal, "unavailable_scopes"), json!(["Charges.Read", "charges", "payouts.create"]));
    assert_eq!(detail(&refusal, "available_scopes"), json!(SCOPES));
    assert_eq!(fixture.ledger().lineage(&tenant.id, grant.id).await.unwrap(), None);
}

async fn an_agent_that_was_removed_gets_no_grant(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let agent = tenant.agent("billing").await;
    let root = tenant.grant("coordinator").await;
    let credential = fixture.ledger().credential(&tenant.id, root.credential).await.unwrap().unwrap();
    tenant.remove(&agent).await.unwrap();

    let direct = tenant.new_grant(&credential, &agent);
    refused(&tenant, Code::AgentNotFound, tenant.store_grant(direct)).await;
    refused(&tenant, Code::AgentNotFound, tenant.delegate(&root, "billing")).await;
}

async fn a_grant_may_wait_for_its_agent(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let grant = tenant.grant("not-yet-registered").await;
    tenant.agent("not-yet-registered").await;
    assert_eq!(tenant.standing(grant.id).await, GrantStatus::Active);
}

async fn a_grant_needs_a_credential(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let vault = tenant.vault().await;
    let nowhere = tenant.new_grant(&tenant.new_credential(vault.id), &principal("billing"));
    refused(&tenant, Code::CredentialNotFound, tenant.store_grant(nowhere)).await;
}

async fn grants_are_found_by_everything_they_are_filtered_by(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let stripe = tenant.grant("billing").await;
    let vault = tenant.vault().await;
    let github = ServiceName::parse("github").unwrap();
    let credential = Credential { service: github.clone(), ..tenant.new_credential(vault.id) };
    let credential = tenant.store_credential(credential).await;
    let on_github = tenant.store_grant(tenant.new_grant(&credential, &principal("review"))).await.unwrap();
    let delegated = tenant.delegate(&stripe, "review").await.unwrap();
    let all = || GrantFilter::all(tenant.now());

    assert_eq!(find(&tenant, all()).await, sorted([&stripe, &on_github, &delegated]));
    let of_agent = GrantFilter { agent: Some(principal("review")), ..all() };
    assert_eq!(find(&tenant, of_agent.clone()).await, sorted([&on_github, &delegated]));
    let of_service = GrantFilter { service: Some(github.clone()), ..all() };
    assert_eq!(find(&tenant, of_service).await, sorted([&on_github]));
    let of_credential = GrantFilter { credential: Some(stripe.credential), ..all() };
    assert_eq!(find(&tenant, of_credential).await, sorted([&stripe, &delegated]));
    let direct = GrantFilter { source: Some(GrantSource::Direct), ..all() };
    assert_eq!(find(&tenant, direct).await, sorted([&stripe, &on_github]));
    let passed_on = GrantFilter { source: Some(GrantSource::Delegated), ..all() };
    assert_eq!(find(&tenant, passed_on).await, sorted([&delegated]));
    let below = GrantFilter { source_grant: Some(stripe.id), ..all() };
    assert_eq!(find(&tenant, below).await, sorted([&delegated]));
    let of_owner = GrantFilter { vault_owner: Some(tenant.administrator.clone()), ..all() };
    assert_eq!(find(&tenant, of_owner).await.len(), 3);
    let of_nobody = GrantFilter { vault_owner: Some(principal("nobody")), ..all() };
    assert!(find(&tenant, of_nobody).await.is_empty());
    let together = GrantFilter {
        service: Some(github),
        credential: Some(on_github.credential),
        source: Some(GrantSource::Direct),
        status: Some(GrantStatus::Active),
        vault_owner: Some(tenant.administrator.clone()),
        ..of_agent
    };
    assert_eq!(find(&tenant, together).await, sorted([&on_github]));
}

async fn a_status_is_judged_at_the_moment_of_asking(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let credential = tenant.credential().await;
    let ending = |seconds: Option<u64>| {
        let mut grant = tenant.new_grant(&credential, &principal("billing"));
        grant.authority.expires_at = seconds.map(|seconds| tenant.later(seconds));
        tenant.store_grant(grant)
    };
    let active = ending(None).await.unwrap();
    let short = ending(Some(60)).await.unwrap();
    let paused = ending(Some(120)).await.unwrap();
    let paused_and_short = ending(Some(60)).await.unwrap();
    let revoked = ending(Some(60)).await.unwrap();
    tenant.suspend(paused.id).await.unwrap();
    tenant.suspend(paused_and_short.id).await.unwrap();
    tenant.revoke(revoked.id).await.unwrap();
    let at = |status, now| GrantFilter { status: Some(status), ..GrantFilter::all(now) };

    let now = tenant.now();
    assert_eq!(find(&tenant, at(GrantStatus::Active, now)).await, sorted([&active, &short]));
    assert_eq!(find(&tenant, at(GrantStatus::Suspended, now)).await, sorted([&paused, &paused_and_short]));
    assert_eq!(find(&tenant, at(GrantStatus::Revoked, now)).await, sorted([&revoked]));
    assert!(find(&tenant, at(GrantStatus::Expired, now)).await.is_empty());
    let end = tenant.later(60);
    assert_eq!(find(&tenant, at(GrantStatus::Active, end)).await, sorted([&active]));
    assert_eq!(find(&tenant, at(GrantStatus::Suspended, end)).await, sorted([&paused]));
    assert_eq!(find(&tenant, at(GrantStatus::Revoked, end)).await, sorted([&revoked]));
    assert_eq!(find(&tenant, at(GrantStatus::Expired, end)).await, sorted([&short, &paused_and_short]));
}

async fn listed_grants_come_with_their_lineage(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let root = tenant.grant("a").await;
    let middle = tenant.delegate(&root, "b").await.unwrap();
    let leaf = tenant.delegate(&middle, "c").await.unwrap();
    let sibling = tenant.delegate(&middle, "c").await.unwrap();

    let filter = GrantFilter { agent: Some(principal("c")), ..GrantFilter::all(tenant.now()) };
    let listed = fixture.ledger().grants(&tenant.id, filter, PageRequest::first(10)).await.unwrap().items;

    assert_eq!(listed.len(), 2);
    for lineage in listed {
        assert!([leaf.id, sibling.id].contains(&lineage.grant().id));
        assert_eq!(lineage.ancestors(), [root.clone(), middle.clone()]);
        assert_eq!(lineage, tenant.lineage(lineage.grant().id).await);
    }
}

async fn the_tree_below_a_grant_is_read_level_by_level(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let root = tenant.grant("a").await;
    let one = tenant.delegate(&root, "b").await.unwrap();
    let below_one = tenant.delegate(&one, "c").await.unwrap();
    tenant.wait(1);
    let two = tenant.delegate(&root, "d").await.unwrap();
    tenant.grant("somebody-else").await;
    let below = async |id, limit| fixture.ledger().descendants(&tenant.id, id, limit).await.unwrap();

    assert_eq!(below(root.id, 10).await, [one.clone(), two.clone(), below_one.clone()]);
    assert_eq!(below(root.id, 2).await, [one.clone(), two]);
    assert_eq!(below(one.id, 10).await, std::slice::from_ref(&below_one));
    assert_eq!(below(below_one.id, 10).await, []);
}
