//! Tenants, principals and their keys.

use std::collections::BTreeMap;

use serde_json::json;
use toolgate_gate::ports::ledger::{CreateKey, CreateTenant, Freshness, NewKey, PageRequest, RevokeKey};
use toolgate_gate::refusal::Code;
use toolgate_model::certificate::CertificateName;
use toolgate_model::descriptor::ToolId;
use toolgate_model::external_identity::ExternalIdentity;
use toolgate_model::grant::GrantStatus;
use toolgate_model::key::digest_of;
use toolgate_model::permission::{Permission, PermissionSet};
use toolgate_model::principal::{KeyRecord, Principal, PrincipalId, PrincipalKind, TenantId};
use toolgate_model::principal_scope::PrincipalScope;
use toolgate_model::text::{Label, Line};
use toolgate_model::token_subject::{IssuerUrl, SubjectName, TokenSubject};
use toolgate_testkit::ledger_fixture::{LedgerFixture, TestTenant, principal};

use super::support::refused;

contract!(
    a_tenant_comes_with_its_administrator_and_the_administrators_key,
    a_tenant_is_recorded_in_its_own_log_and_in_that_of_its_maker,
    a_tenants_id_is_given_out_once,
    a_principal_reads_back_as_it_was_registered,
    a_principals_id_is_given_out_once_even_after_its_removal,
    the_same_id_in_two_tenants_is_two_principals,
    a_removed_principal_loses_its_keys_and_grants_and_all_below_them,
    a_principal_is_removed_once,
    a_removed_principal_gets_no_key,
    a_key_identifies_its_principal,
    a_revoked_key_is_known_as_revoked,
    a_certificate_is_registered_once_and_again_after_its_key_has_ended,
    a_token_subject_is_registered_once_and_again_after_its_key_has_ended,
    keys_are_listed_newest_first,
    the_last_use_of_a_key_only_moves_forward_and_is_no_event,
);

/// The principal that this key identifies.
async fn identified(tenant: &TestTenant, text: &str) -> Option<(Principal, KeyRecord)> {
    let found = tenant.ledger.identify(&digest_of(text), tenant.now(), Freshness::Newest).await.unwrap()?;
    Some((Principal::clone(&found.0), found.1.clone()))
}

async fn a_tenant_comes_with_its_administrator_and_the_administrators_key(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let ledger = fixture.ledger();

    let stored = ledger.tenant(&tenant.id).await.unwrap().unwrap();
    assert_eq!((&stored.id, stored.created_at), (&tenant.id, tenant.now()));
    assert_eq!(ledger.tenants(PageRequest::first(10)).await.unwrap().items, [stored]);
    let administrator = ledger.principal(&tenant.id, &tenant.administrator).await.unwrap().unwrap();
    assert_eq!(administrator.kind, PrincipalKind::User);
    let (owner, key) = identified(&tenant, &format!("first key of {}", tenant.id)).await.unwrap();
    assert_eq!(owner, administrator);
    assert_eq!((key.principal, key.revoked_at, key.last_used_at), (administrator.id, None, None));
    assert_eq!(ledger.tenant(&TenantId::parse("nobody").unwrap()).await.unwrap(), None);
}

async fn a_tenant_is_recorded_in_its_own_log_and_in_that_of_its_maker(fixture: &LedgerFixture) {
    let platform = fixture.tenant().await;
    let mut command = platform.creation();
    let made = TenantId::parse("made").unwrap();
    command.tenant.id = made.clone();
    command.administrator.tenant = made.clone();
    command.key.digest = digest_of("another key");
    let key = command.key.id;

    fixture.ledger().create_tenant(command).await.unwrap();

    let mut own = platform.clone();
    own.id = made;
    let events = own.events().await;
    let kinds: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["tenant.created", "agent.created", "key.created"]);
    assert_eq!(events[0]["data"], json!({"tenant_id": "made"}));
    let permissions = PermissionSet::of_a_tenant_administrator();
    assert_eq!(events[1]["data"], json!({"agent_id": "admin", "kind": "user", "permissions": permissions}));
    assert_eq!(events[2]["data"], json!({"key_id": key, "principal_id": "admin", "expires_at": null}));
    let recorded = platform.events_of("tenant.created").await;
    assert_eq!(recorded.last().unwrap()["data"], json!({"tenant_id": "made"}));
    assert_eq!(recorded.last().unwrap()["tenant"], json!(platform.id));
}

async fn a_tenants_id_is_given_out_once(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let again = CreateTenant { key: tenant.new_key(&tenant.administrator, "another key"), ..tenant.creation() };
    refused(&tenant, Code::AlreadyExists, fixture.ledger().create_tenant(again)).await;
    assert_eq!(identified(&tenant, "another key").await, None);
}

async fn a_principal_reads_back_as_it_was_registered(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let registered = Principal {
        kind: PrincipalKind::Service,
        name: Some(Line::parse("Überweisungen, 1. Stock").unwrap()),
        scopes: ["a:read", "b:*"].into_iter().map(|scope| PrincipalScope::parse(scope).unwrap()).collect(),
        rate_limits: serde_json::from_value(json!({"*": {"requests": 10, "per_seconds": 60, "burst": 3}})).unwrap(),
        tool_allowlist: Some([ToolId::parse("connector:stripe.charges.read").unwrap()].into()),
        permissions: [Permission::InvokeTools, Permission::DelegateTools].into_iter().collect(),
        labels: ["team:payments", "trusted"].map(|label| Label::parse(label).unwrap()).into(),
        ..tenant.new_principal(&principal("billing@eu"))
    };

    fixture.ledger().create_principal(tenant.registration(registered.clone())).await.unwrap();

    let read = fixture.ledger().principal(&tenant.id, &registered.id).await.unwrap();
    assert_eq!(read, Some(registered.clone()));
    let event = tenant.events().await.pop().unwrap();
    assert_eq!(event["type"], "agent.created");
    assert_eq!(event["actor"], json!(tenant.administrator));
    assert_eq!(event["agent_id"], "billing@eu");
    assert_eq!(event["timestamp"], json!(tenant.now()));
    let permissions = json!(["tools.delegate", "tools.invoke"]);
    assert_eq!(event["data"], json!({"agent_id": "billing@eu", "kind": "service", "permissions": permissions}));
}

async fn a_principals_id_is_given_out_once_even_after_its_removal(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let agent = tenant.agent("billing").await;
    let again = || tenant.registration(tenant.new_principal(&agent));
    refused(&tenant, Code::AlreadyExists, fixture.ledger().create_principal(again())).await;

    tenant.remove(&agent).await.unwrap();

    refused(&tenant, Code::AlreadyExists, fixture.ledger().create_principal(again())).await;
    let removed = fixture.ledger().principal(&tenant.id, &agent).await.unwrap().unwrap();
    assert_eq!(removed.removed_at, Some(tenant.now()));
    let listed = fixture.ledger().principals(&tenant.id, PageRequest::first(10)).await.unwrap().items;
    assert_eq!(listed.len(), 1, "removed principals are not listed");
}

async fn the_same_id_in_two_tenants_is_two_principals(fixture: &LedgerFixture) {
    let (one, other) = (fixture.tenant().await, fixture.tenant().await);
    let agent = one.agent("billing").await;
    one.key(&agent, "key of one").await;
    other.agent("billing").await;

    other.remove(&agent).await.unwrap();

    let kept = fixture.ledger().principal(&one.id, &agent).await.unwrap().unwrap();
    assert_eq!(kept.removed_at, None);
    assert_eq!(fixture.ledger().keys(&one.id, &agent).await.unwrap()[0].revoked_at, None);
    assert_eq!(fixture.ledger().keys(&other.id, &agent).await.unwrap(), []);
}

async fn a_removed_principal_loses_its_keys_and_grants_and_all_below_them(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let agent = tenant.agent("coordinator").await;
    tenant.key(&agent, "one").await;
    let ended_before = tenant.key(&agent, "two").await;
    fixture.ledger().revoke_key(RevokeKey { audit: tenant.audit(), id: ended_before.id }).await.unwrap();
    let own = tenant.grant("coordinator").await;
    let below = tenant.delegate(&own, "worker").await.unwrap();
    let root = tenant.grant("boss").await;
    let received = tenant.delegate(&root, "coordinator").await.unwrap();
    let passed_on = tenant.delegate(&received, "worker").await.unwrap();

    let removed = tenant.remove(&agent).await.unwrap();

    assert_eq!((removed.keys, removed.grants), (1, 4));
    for ended in [&own, &below, &received, &passed_on] {
        assert_eq!(tenant.standing(ended.id).await, GrantStatus::Revoked);
    }
    assert_eq!(tenant.standing(root.id).await, GrantStatus::Active);
    let (_, key) = identified(&tenant, "one").await.unwrap();
    assert_eq!(key.revoked_at, Some(tenant.now()));
    let event = tenant.events().await.pop().unwrap();
    assert_eq!(event["type"], "agent.removed");
    assert_eq!(event["data"], json!({"agent_id": "coordinator", "revoked_keys": 1, "revoked_grants": 4}));
    assert_eq!(tenant.events_of("grant.revoked").await.len(), 4);
}

async fn a_principal_is_removed_once(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let agent = tenant.agent("billing").await;
    tenant.remove(&agent).await.unwrap();
    refused(&tenant, Code::AgentNotFound, tenant.remove(&agent)).await;
    refused(&tenant, Code::AgentNotFound, tenant.remove(&principal("nobody"))).await;
}

async fn a_removed_principal_gets_no_key(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let agent = tenant.agent("billing").await;
    tenant.remove(&agent).await.unwrap();
    for owner in [agent, principal("nobody")] {
        let command = CreateKey { audit: tenant.audit(), key: tenant.new_key(&owner, "late") };
        refused(&tenant, Code::AgentNotFound, fixture.ledger().create_key(command)).await;
    }
    assert_eq!(identified(&tenant, "late").await, None);
}

async fn a_key_identifies_its_principal(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let agent = tenant.agent("billing").await;
    let mut new = tenant.new_key(&agent, "secret");
    new.expires_at = Some(tenant.later(60));

    let made = fixture.ledger().create_key(CreateKey { audit: tenant.audit(), key: new.clone() }).await.unwrap();

    let (owner, found) = identified(&tenant, "secret").await.unwrap();
    assert_eq!((owner.id, &found), (agent.clone(), &made));
    assert_eq!((made.id, made.expires_at, made.label), (new.id, new.expires_at, new.label));
    assert_eq!(fixture.ledger().key(&tenant.id, new.id).await.unwrap(), Some(found));
    assert_eq!(identified(&tenant, "Secret").await, None);
    let event = tenant.events_of("key.created").await.pop().unwrap();
    assert_eq!(
        event["data"],
        json!({"key_id": new.id, "principal_id": "billing", "expires_at": tenant.later(60).to_string()})
    );
}

async fn a_certificate_is_registered_once_and_again_after_its_key_has_ended(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let id = format!("spiffe://example.org/{}", tenant.id);
    let name = CertificateName::of(b"", [id.as_str()]);
    let register = |agent: &PrincipalId| {
        let key = tenant.new_key(agent, "none");
        let identity = ExternalIdentity::Certificate(name.clone());
        let key = NewKey { digest: name.digest(), hint: name.to_string(), identity: Some(identity), ..key };
        fixture.ledger().create_key(CreateKey { audit: tenant.audit(), key })
    };
    let holder = || async {
        let found = fixture.ledger().identify(&name.digest(), tenant.now(), Freshness::Newest).await.unwrap().unwrap();
        (found.0.id.clone(), found.1.clone())
    };
    let (one, other) = (tenant.agent("one").await, tenant.agent("other").await);
    let first = register(&one).await.unwrap();
    assert_eq!(holder().await, (one.clone(), first.clone()));
    refused(&tenant, Code::AlreadyExists, register(&other)).await;
    assert_eq!(tenant.events_of("key.created").await.pop().unwrap()["data"]["certificate"], json!(id));

    fixture.ledger().revoke_key(RevokeKey { audit: tenant.audit(), id: first.id }).await.unwrap();
    let second = register(&other).await.unwrap();
    assert_eq!(holder().await, (other, second));
    let ended = fixture.ledger().key(&tenant.id, first.id).await.unwrap().unwrap();
    assert_eq!((ended.principal, ended.revoked_at), (one, Some(tenant.now())));
}

async fn a_token_subject_is_registered_once_and_again_after_its_key_has_ended(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let subject = TokenSubject {
        issuer: IssuerUrl::parse("https://login.example.com").unwrap(),
        subject: SubjectName::parse(tenant.id.as_str()).unwrap(),
    };
    let register = |agent: &PrincipalId, end: Option<u64>| {
        let identity = ExternalIdentity::TokenSubject(subject.clone());
        let key = NewKey {
            digest: identity.digest(),
            hint: identity.to_string(),
            identity: Some(identity),
            expires_at: end.map(|seconds| tenant.later(seconds)),
            ..tenant.new_key(agent, "none")
        };
        fixture.ledger().create_key(CreateKey { audit: tenant.audit(), key })
    };
    let (one, other) = (tenant.agent("one").await, tenant.agent("other").await);
    let first = register(&one, Some(60)).await.unwrap();
    refused(&tenant, Code::AlreadyExists, register(&other, None)).await;
    let event = tenant.events_of("key.created").await.pop().unwrap();
    assert_eq!(event["data"]["token_subject"], json!(subject));
    assert_eq!((event["data"].get("certificate"), &first.hint), (None, &subject.to_string()));

    tenant.wait(61);
    let second = register(&other, None).await.unwrap();
    let found = fixture.ledger().identify(&subject.digest(), tenant.now(), Freshness::Newest).await.unwrap().unwrap();
    assert_eq!((&found.0.id, &found.1), (&other, &second));
}

async fn a_revoked_key_is_known_as_revoked(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let agent = tenant.agent("billing").await;
    let key = tenant.key(&agent, "secret").await;
    let revoke = || fixture.ledger().revoke_key(RevokeKey { audit: tenant.audit(), id: key.id });

    let revoked = revoke().await.unwrap();
    tenant.wait(5);
    let again = revoke().await.unwrap();

    assert_eq!(revoked.revoked_at, Some(key.created_at));
    assert_eq!(again, revoked, "it ended when it was first revoked");
    assert_eq!(identified(&tenant, "secret").await.unwrap().1, revoked);
    let events = tenant.events_of("key.revoked").await;
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["data"], json!({"key_id": key.id, "principal_id": "billing"}));
}

async fn keys_are_listed_newest_first(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let agent = tenant.agent("billing").await;
    let first = tenant.key(&agent, "first").await;
    tenant.wait(1);
    let second = tenant.key(&agent, "second").await;
    tenant.key(&tenant.administrator, "of somebody else").await;

    let listed = fixture.ledger().keys(&tenant.id, &agent).await.unwrap();

    assert_eq!(listed, [second, first]);
}

async fn the_last_use_of_a_key_only_moves_forward_and_is_no_event(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let agent = tenant.agent("billing").await;
    let (one, two) = (tenant.key(&agent, "one").await, tenant.key(&agent, "two").await);
    let events = tenant.events().await.len();
    let note = |uses| fixture.ledger().note_key_use(BTreeMap::from_iter(uses));
    let last_use = async |id| fixture.ledger().key(&tenant.id, id).await.unwrap().unwrap().last_used_at;

    note(vec![(one.id, tenant.later(60)), (two.id, tenant.later(10))]).await.unwrap();
    note(vec![(one.id, tenant.later(30)), (two.id, tenant.later(20))]).await.unwrap();
    note(vec![]).await.unwrap();

    assert_eq!(last_use(one.id).await, Some(tenant.later(60)));
    assert_eq!(last_use(two.id).await, Some(tenant.later(20)));
    assert_eq!(tenant.events().await.len(), events);
}
