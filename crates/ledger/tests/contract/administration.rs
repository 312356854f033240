//! Administration: the caller must have the authority at the moment of the change, however long ago it presented its
//! key.

use serde_json::Map;
use toolgate_gate::ports::entropy::random;
use toolgate_gate::ports::ledger::*;
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::approval::{Decision, LinkToken, SessionName};
use toolgate_model::credential::ServiceName;
use toolgate_model::hook::RunId;
use toolgate_model::id::{GrantId, KeyId, SessionId, StandingApprovalId, VaultId};
use toolgate_model::permission::{Permission, PermissionSet};
use toolgate_model::principal::{Principal, PrincipalChanges, PrincipalId, TenantId};
use toolgate_model::principal_scope::HeldScopes;
use toolgate_testkit::ledger_fixture::{LedgerFixture, TestTenant, principal, request, scopes};

use super::support::approvals::{change, holds, question, word};
use super::support::calls::Caller;
use super::support::{detail, refused};

contract!(
    nothing_is_administered_with_a_key_that_has_ended,
    nothing_is_administered_by_a_principal_that_was_removed,
    nothing_is_administered_with_a_permission_or_a_scope_that_was_taken,
    what_was_added_meanwhile_is_in_nobody_s_way,
    a_key_is_made_before_the_maker_s_own_ends_or_not_at_all,
    of_two_administrators_who_remove_each_other_one_stays,
    no_key_is_made_for_a_principal_that_was_given_more_meanwhile,
);

/// An administrator besides the first one, with a key.
async fn administrator(tenant: &TestTenant, name: &str) -> (PrincipalId, KeyId) {
    let id = principal(name);
    let permissions = PermissionSet::of_a_tenant_administrator();
    let scopes = HeldScopes::from_stored(["mail:*".to_owned()]);
    let registration = tenant.registration(Principal { permissions, scopes, ..tenant.new_principal(&id) });
    tenant.ledger.create_principal(registration).await.unwrap();
    let key = tenant.key(&id, &format!("the key of {name} in {}", tenant.id)).await;
    (id, key.id)
}

/// The result of every administrative operation with this mandate. None of them reads its object.
async fn attempts(tenant: &TestTenant, by: &Mandate) -> Vec<(&'static str, Result<(), Refusal>)> {
    let ledger = &tenant.ledger;
    let audit = || by.clone();
    let agent = principal("late");
    let grant_id = tenant.grant_id();
    let vault = VaultId::new(tenant.now(), random().unwrap());
    let credential = tenant.new_credential(vault);
    let grant = tenant.new_grant(&credential, &agent);
    let session_id = SessionId::new(tenant.now(), random().unwrap());
    let session = ToolSession {
        id: session_id,
        principal: agent.clone(),
        tool: "connector:a.b".to_owned(),
        run: RunId::parse("run-1").unwrap(),
        opened_at: tenant.now(),
        expires_at: tenant.later(60),
    };
    let other = TenantId::parse(&format!("below-{}", tenant.id)).unwrap();
    let new_tenant = CreateTenant {
        audit: audit(),
        tenant: toolgate_model::principal::Tenant::new(other.clone(), None, tenant.now()),
        administrator: Principal { tenant: other, ..tenant.new_principal(&agent) },
        key: tenant.new_key(&agent, "of another tenant"),
    };
    let asked = question(tenant);
    let service = ServiceName::parse("stripe").unwrap();
    let delegation = DelegateGrant {
        audit: audit(),
        id: grant_id,
        source: grant_id,
        target: agent.clone(),
        granted_by: agent.clone(),
        request: request(scopes(&["charges.read"])),
    };
    let changes = PrincipalChanges::default();
    let update =
        UpdatePrincipal { audit: audit(), id: agent.clone(), expected_revision: 1, changes, unresolved: Vec::new() };
    let policies = ApplyPolicies {
        audit: audit(),
        change: PolicyChange::Applied,
        files: Vec::new(),
        note: None,
        expected: None,
        rules: 0,
        shadowed: 0,
    };
    let terms = SetSessionTerms {
        audit: audit(),
        owner: agent.clone(),
        name: SessionName::parse("s").unwrap(),
        terms: SessionTerms::default(),
        mode_change: None,
    };
    let caller = Caller { tenant: tenant.clone(), agent: agent.clone(), key: tenant.new_key(&agent, "none").id };
    let reason = || "late".to_owned();
    let rotation = RotateCredential { audit: audit(), metadata: Some(Map::new()), ..tenant.rotation(&credential) };
    let report = ReportInvocation {
        audit: audit(),
        lineage: vec![(grant.id, None)],
        credential: credential.id,
        invocation: caller.invocation(&grant),
    };
    let registration = CreatePrincipal { audit: audit(), ..tenant.registration(tenant.new_principal(&agent)) };
    let decision = DecideApproval { audit: audit(), ..word(tenant, &asked, by.actor(), Decision::Approve) };
    let standing = StandingApprovalId::new(tenant.now(), random().unwrap());
    let link = LinkToken::from_entropy([7; 32]);
    let owned = toolgate_model::credential::Vault {
        id: vault,
        tenant: tenant.id.clone(),
        owner: agent.clone(),
        name: toolgate_model::text::Line::parse("late").unwrap(),
        created_at: tenant.now(),
    };
    let create = CreateCredential { audit: audit(), credential: credential.clone(), sealed: None };
    let definition = super::services::definition("late", "1");
    let version = None;
    vec![
        ("create_tenant", ledger.create_tenant(new_tenant).await),
        ("create_principal", ledger.create_principal(registration).await),
        ("update_principal", ledger.update_principal(update).await.map(drop)),
        (
            "remove_principal",
            ledger.remove_principal(RemovePrincipal { audit: audit(), id: agent.clone() }).await.map(drop),
        ),
        (
            "create_key",
            ledger.create_key(CreateKey { audit: audit(), key: tenant.new_key(&agent, "late") }).await.map(drop),
        ),
        (
            "revoke_key",
            ledger.revoke_key(RevokeKey { audit: audit(), id: tenant.new_key(&agent, "x").id }).await.map(drop),
        ),
        ("create_vault", ledger.create_vault(CreateVault { audit: audit(), vault: owned }).await),
        ("delete_vault", ledger.delete_vault(DeleteVault { audit: audit(), id: vault }).await.map(drop)),
        ("create_credential", ledger.create_credential(create).await),
        ("rotate_credential", ledger.rotate_credential(rotation).await.map(drop)),
        (
            "revoke_credential",
            ledger
                .revoke_credential(RevokeCredential { audit: audit(), id: credential.id, reason: reason() })
                .await
                .map(drop),
        ),
        ("create_grant", ledger.create_grant(CreateGrant { audit: audit(), grant }).await.map(drop)),
        ("delegate_grant", ledger.delegate_grant(delegation).await.map(drop)),
        ("revoke_grant", revoke(tenant, audit(), grant_id).await),
        (
            "suspend_grant",
            ledger
                .suspend_grant(SuspendGrant { audit: audit(), id: grant_id, reason: reason(), overrides: true })
                .await
                .map(drop),
        ),
        (
            "resume_grant",
            ledger.resume_grant(ResumeGrant { audit: audit(), id: grant_id, only_own: false }).await.map(drop),
        ),
        (
            "apply_service",
            ledger.apply_service(ApplyService { audit: audit(), definition, replace: true }).await.map(drop),
        ),
        ("remove_service", ledger.remove_service(RemoveService { audit: audit(), service, version }).await.map(drop)),
        ("apply_policies", ledger.apply_policies(policies).await.map(drop)),
        ("decide_approval", ledger.decide_approval(decision).await.map(drop)),
        ("revoke_standing", ledger.revoke_standing(RevokeStanding { audit: audit(), id: standing }).await.map(drop)),
        ("set_session_terms", ledger.set_session_terms(terms).await),
        (
            "redeem_approval_link",
            ledger.redeem_approval_link(RedeemApprovalLink { audit: audit(), digest: link.digest() }).await.map(drop),
        ),
        ("open_session", ledger.open_session(OpenSession { audit: audit(), session, most: 100 }).await),
        ("close_session", ledger.close_session(CloseSession { audit: audit(), id: session_id, completed: true }).await),
        ("report_invocation", ledger.report_invocation(report).await),
    ]
}

async fn revoke(tenant: &TestTenant, audit: Mandate, id: GrantId) -> Result<(), Refusal> {
    tenant.ledger.revoke_grant(RevokeGrant { audit, id, reason: "late".to_owned() }).await.map(drop)
}

/// Asserts that nothing can be done with this mandate any more, and that nothing was.
async fn all_refused(tenant: &TestTenant, by: &Mandate, code: Code) {
    let before = tenant.events().await;
    for (operation, outcome) in attempts(tenant, by).await {
        assert_eq!(outcome.map_err(|refusal| refusal.code()), Err(code), "{operation}");
    }
    assert_eq!(tenant.events().await, before, "nothing was done");
}

async fn nothing_is_administered_with_a_key_that_has_ended(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let (id, key) = administrator(&tenant, "second").await;
    let shown = tenant.mandate(&id, key).await;
    let made = CreateKey { audit: shown.clone(), key: tenant.new_key(&id, "in time") };
    tenant.ledger.create_key(made).await.unwrap();

    tenant.ledger.revoke_key(RevokeKey { audit: tenant.audit(), id: key }).await.unwrap();

    all_refused(&tenant, &shown, Code::KeyRevoked).await;
    let ending = NewKey { expires_at: Some(tenant.later(60)), ..tenant.new_key(&id, "ending") };
    let ending = tenant.ledger.create_key(CreateKey { audit: tenant.audit(), key: ending }).await.unwrap();
    tenant.wait(60);
    all_refused(&tenant, &tenant.mandate(&id, ending.id).await, Code::KeyExpired).await;
    // Nor with another administrator's.
    let (_, other) = administrator(&tenant, "third").await;
    all_refused(&tenant, &tenant.mandate(&id, other).await, Code::KeyRevoked).await;
}

async fn nothing_is_administered_by_a_principal_that_was_removed(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let (id, key) = administrator(&tenant, "second").await;
    let shown = tenant.mandate(&id, key).await;
    tenant.remove(&id).await.unwrap();
    all_refused(&tenant, &shown, Code::KeyRevoked).await;
}

async fn nothing_is_administered_with_a_permission_or_a_scope_that_was_taken(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let (id, key) = administrator(&tenant, "second").await;
    let shown = tenant.mandate(&id, key).await;
    holds(&tenant, &id, &["mail:send"]).await;
    all_refused(&tenant, &shown, Code::PermissionDenied).await;

    let shown = tenant.mandate(&id, key).await;
    let all = PermissionSet::of_a_tenant_administrator();
    let left = all.iter().filter(|permission| *permission != Permission::ManageAgents).collect();
    change(&tenant, &id, PrincipalChanges { permissions: Some(left), ..PrincipalChanges::default() }).await;
    all_refused(&tenant, &shown, Code::PermissionDenied).await;
    let late = CreateKey { audit: shown, key: tenant.new_key(&id, "late") };
    let refusal = refused(&tenant, Code::PermissionDenied, tenant.ledger.create_key(late)).await;
    assert_eq!(detail(&refusal, "required_permission"), "agents.manage");
}

async fn what_was_added_meanwhile_is_in_nobody_s_way(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let (id, key) = administrator(&tenant, "second").await;
    let shown = tenant.mandate(&id, key).await;
    holds(&tenant, &id, &["mail:*", "files:read"]).await;
    let made = CreateKey { audit: shown, key: tenant.new_key(&id, "another") };
    tenant.ledger.create_key(made).await.unwrap();
}

async fn a_key_is_made_before_the_maker_s_own_ends_or_not_at_all(fixture: &LedgerFixture) {
    let here = fixture.tenant().await;
    let there = here.through(fixture.replica().await);
    for round in 0..12 {
        let name = format!("admin-{round}");
        let (id, key) = administrator(&here, &name).await;
        let late = CreateKey { audit: here.mandate(&id, key).await, key: here.new_key(&id, &format!("late {round}")) };
        let late_id = late.key.id;
        let (made, ended) = tokio::join!(
            there.ledger.create_key(late),
            here.ledger.revoke_key(RevokeKey { audit: here.audit(), id: key }),
        );
        ended.unwrap();
        let events = here.events().await;
        let place = |kind: &str, key: KeyId| {
            let key = serde_json::json!(key);
            events.iter().position(|event| event["type"] == kind && event["data"]["key_id"] == key)
        };
        let revoked = place("key.revoked", key).unwrap();
        match made {
            Ok(_) => assert!(place("key.created", late_id).unwrap() < revoked),
            Err(refusal) => assert_eq!((refusal.code(), place("key.created", late_id)), (Code::KeyRevoked, None)),
        }
    }
}

async fn of_two_administrators_who_remove_each_other_one_stays(fixture: &LedgerFixture) {
    let here = fixture.tenant().await;
    let there = here.through(fixture.replica().await);
    for round in 0..3 {
        let (one, other) = (format!("one-{round}"), format!("other-{round}"));
        let ((one, key), (other, other_key)) = (administrator(&here, &one).await, administrator(&here, &other).await);
        let removal = |audit, id: &PrincipalId| RemovePrincipal { audit, id: id.clone() };
        let first = removal(here.mandate(&one, key).await, &other);
        let second = removal(here.mandate(&other, other_key).await, &one);
        let (first, second) = tokio::join!(here.ledger.remove_principal(first), there.ledger.remove_principal(second));
        let lost = [first, second].into_iter().filter_map(Result::err).map(|refusal| refusal.code());
        assert_eq!(lost.collect::<Vec<_>>(), [Code::KeyRevoked], "round {round}");
    }
}

async fn no_key_is_made_for_a_principal_that_was_given_more_meanwhile(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let (manager, agent) = (principal("manager"), tenant.agent("worker").await);
    let permissions = [Permission::ManageAgents, Permission::InvokeTools].into_iter().collect();
    let registration = tenant.registration(Principal { permissions, ..tenant.new_principal(&manager) });
    tenant.ledger.create_principal(registration).await.unwrap();
    let key = tenant.key(&manager, "the manager's").await;
    let shown = tenant.mandate(&manager, key.id).await;
    let more = Some(PermissionSet::of_a_tenant_administrator());
    change(&tenant, &agent, PrincipalChanges { permissions: more, ..PrincipalChanges::default() }).await;
    let made = CreateKey { audit: shown.clone(), key: tenant.new_key(&agent, "stolen") };
    refused(&tenant, Code::PermissionDenied, tenant.ledger.create_key(made)).await;
    let removal = RemovePrincipal { audit: shown, id: agent };
    refused(&tenant, Code::PermissionDenied, tenant.ledger.remove_principal(removal)).await;
}
