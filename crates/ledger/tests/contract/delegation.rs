//! Delegation: the six rules of RFC-0014 §5.1, and the authority of a delegated grant.

use serde_json::json;
use toolgate_gate::ports::ledger::DelegateGrant;
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::constraint::Constraints;
use toolgate_model::context::{ContextId, GrantContext};
use toolgate_model::grant::{DelegationDepth, DelegationRequest, Grant, GrantStatus};
use toolgate_testkit::ledger_fixture::{LedgerFixture, TestTenant, principal, request, scopes};

use super::support::{detail, refused};

contract!(
    a_delegated_grant_reads_back_with_its_lineage,
    what_a_delegation_leaves_open_it_inherits,
    rule_1_scopes_beyond_the_source_are_refused,
    rule_2_wider_constraints_are_refused,
    rule_3_a_source_that_is_not_delegatable_is_refused,
    rule_4_depth_goes_down_by_one_and_ends_at_zero,
    rule_4_more_depth_than_is_left_is_refused,
    rule_5_another_context_is_refused,
    rule_6_a_later_end_is_refused,
    unlimited_depth_stays_unlimited_until_somebody_limits_it,
    the_limits_of_the_whole_lineage_count_not_only_those_of_the_source,
    effective_authority_is_the_meet_along_the_lineage,
    below_a_grant_that_cannot_be_used_nothing_is_delegated,
    what_does_not_exist_cannot_be_delegated,
    a_lineage_has_an_end,
);

fn constraints(value: serde_json::Value) -> Constraints {
    Constraints::from_json(&value).unwrap()
}

fn intent(id: &str) -> GrantContext {
    GrantContext { intent_id: Some(ContextId::parse(id).unwrap()), ..GrantContext::default() }
}

async fn delegate(tenant: &TestTenant, source: &Grant, request: DelegationRequest) -> Result<Grant, Refusal> {
    tenant.ledger.delegate_grant(DelegateGrant { request, ..tenant.delegation(source, "worker") }).await
}

/// A direct grant that differs from the usual one.
async fn direct(tenant: &TestTenant, change: impl FnOnce(&mut Grant)) -> Grant {
    let credential = tenant.credential().await;
    let mut grant = tenant.new_grant(&credential, &principal("coordinator"));
    change(&mut grant);
    tenant.store_grant(grant).await.unwrap()
}

async fn a_delegated_grant_reads_back_with_its_lineage(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let root = direct(&tenant, |grant| grant.authority.delegation_depth = DelegationDepth::Limited(2)).await;
    tenant.wait(1);
    let asked = DelegationRequest {
        constraints: constraints(json!({"max_invocations_per_hour": 10})),
        context: intent("intent_1"),
        expires_at: Some(Some(tenant.later(60))),
        ..request(scopes(&["charges.read"]))
    };

    let made = delegate(&tenant, &root, asked.clone()).await.unwrap();

    assert_eq!((&made.agent, &made.granted_by), (&principal("worker"), &principal("coordinator")));
    assert_eq!((made.source, made.level, made.credential), (Some(root.id), 1, root.credential));
    assert_eq!((&made.authority.scopes, &made.authority.constraints), (&asked.scopes, &asked.constraints));
    assert_eq!((&made.authority.context, made.authority.expires_at), (&asked.context, Some(tenant.later(60))));
    assert_eq!((made.created_at, made.service.clone()), (tenant.now(), root.service.clone()));
    let lineage = tenant.lineage(made.id).await;
    assert_eq!((lineage.grant(), lineage.ancestors()), (&made, &[root.clone()][..]));
    let event = tenant.events().await.pop().unwrap();
    assert_eq!(event["type"], "grant.delegated");
    assert_eq!((&event["actor"], &event["agent_id"]), (&json!("coordinator"), &json!("worker")));
    assert_eq!(event["intent_id"], "intent_1");
    let data = json!({
        "grant_id": made.id, "source_grant_id": root.id, "target_agent_id": "worker", "scopes": ["charges.read"],
        "delegation_depth": 1
    });
    assert_eq!(event["data"], data);
}

async fn what_a_delegation_leaves_open_it_inherits(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let root = direct(&tenant, |grant| {
        grant.authority.constraints = constraints(json!({"max_invocations_per_hour": 10, "amount_max": 5}));
        grant.authority.context = intent("intent_1");
        grant.authority.delegation_depth = DelegationDepth::Limited(2);
    })
    .await;

    let made = tenant.delegate(&root, "worker").await.unwrap();

    let effective = tenant.lineage(made.id).await.effective();
    assert_eq!(effective.constraints, root.authority.constraints);
    assert_eq!(effective.context, root.authority.context);
    assert_eq!(effective.expires_at, root.authority.expires_at);
    assert_eq!((effective.delegatable, effective.delegation_depth), (true, DelegationDepth::Limited(1)));
}

async fn rule_1_scopes_beyond_the_source_are_refused(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let root = direct(&tenant, |grant| grant.authority.scopes = scopes(&["charges.create", "charges.read"])).await;

    let beyond = delegate(&tenant, &root, request(scopes(&["charges.read", "refunds.create"])));
    let refusal = refused(&tenant, Code::GrantScopeInsufficient, beyond).await;

    assert_eq!(detail(&refusal, "grant_id"), json!(root.id));
    assert_eq!(detail(&refusal, "requested_scope"), json!("refunds.create"));
    assert_eq!(detail(&refusal, "available_scopes"), json!(["charges.create", "charges.read"]));
    refused(&tenant, Code::InvalidField, delegate(&tenant, &root, request(scopes(&[])))).await;
    assert_eq!(fixture.ledger().descendants(&tenant.id, root.id, 10).await.unwrap(), []);
}

async fn rule_2_wider_constraints_are_refused(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let limits = json!({
        "max_invocations_per_hour": 10, "max_cost_per_invocation": 0.5, "amount_max": 50,
        "allowed_parameters": {"currency": ["usd"]}, "denied_parameters": {"test": [true]},
        "ip_allowlist": ["10.0.0.0/8"], "allowed_hosts": ["api.stripe.com"]
    });
    let root = direct(&tenant, |grant| grant.authority.constraints = constraints(limits)).await;
    let asking = |value| {
        let asked = DelegationRequest { constraints: constraints(value), ..request(root.authority.scopes.clone()) };
        delegate(&tenant, &root, asked)
    };

    for (wider, path) in [
        (json!({"max_invocations_per_hour": 11}), "constraints.max_invocations_per_hour"),
        (json!({"max_cost_per_invocation": 0.6}), "constraints.max_cost_per_invocation"),
        (json!({"amount_max": 51}), "constraints.allowed_parameters.amount"),
        (json!({"allowed_parameters": {"currency": ["usd", "eur"]}}), "constraints.allowed_parameters.currency"),
        (json!({"denied_parameters": {"test": [false]}}), "constraints.denied_parameters.test"),
        (json!({"ip_allowlist": ["0.0.0.0/0"]}), "constraints.ip_allowlist"),
        (json!({"allowed_hosts": ["stripe.com"]}), "constraints.allowed_hosts"),
    ] {
        let refusal = refused(&tenant, Code::GrantConstraintExceeded, asking(wider)).await;
        assert_eq!(detail(&refusal, "path"), json!(path));
    }
    asking(json!({"max_invocations_per_hour": 10, "amount_max": 1})).await.unwrap();
}

async fn rule_3_a_source_that_is_not_delegatable_is_refused(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let root = direct(&tenant, |grant| grant.authority.delegatable = false).await;
    refused(&tenant, Code::GrantNotDelegatable, tenant.delegate(&root, "worker")).await;

    let root = direct(&tenant, |_| {}).await;
    let last = DelegationRequest { delegatable: Some(false), ..request(root.authority.scopes.clone()) };
    let last = delegate(&tenant, &root, last).await.unwrap();
    refused(&tenant, Code::GrantNotDelegatable, tenant.delegate(&last, "sub-worker")).await;
}

async fn rule_4_depth_goes_down_by_one_and_ends_at_zero(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let root = direct(&tenant, |grant| grant.authority.delegation_depth = DelegationDepth::Limited(2)).await;

    let first = tenant.delegate(&root, "worker").await.unwrap();
    let second = tenant.delegate(&first, "sub-worker").await.unwrap();

    assert_eq!(first.authority.delegation_depth, DelegationDepth::Limited(1));
    assert_eq!(second.authority.delegation_depth, DelegationDepth::Limited(0));
    assert!(!second.authority.delegatable, "with no depth left it is not delegatable");
    refused(&tenant, Code::GrantNotDelegatable, tenant.delegate(&second, "too-deep")).await;
    let stubborn = DelegationRequest { delegatable: Some(true), ..request(root.authority.scopes.clone()) };
    let second = delegate(&tenant, &first, stubborn).await.unwrap();
    refused(&tenant, Code::DelegationDepthExceeded, tenant.delegate(&second, "too-deep")).await;
}

async fn rule_4_more_depth_than_is_left_is_refused(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let root = direct(&tenant, |grant| grant.authority.delegation_depth = DelegationDepth::Limited(3)).await;
    let asking = |depth| {
        let asked = DelegationRequest { delegation_depth: Some(depth), ..request(root.authority.scopes.clone()) };
        delegate(&tenant, &root, asked)
    };

    for depth in [DelegationDepth::Limited(3), DelegationDepth::Limited(u32::MAX), DelegationDepth::Unlimited] {
        refused(&tenant, Code::DelegationDepthExceeded, asking(depth)).await;
    }
    let less = asking(DelegationDepth::Limited(1)).await.unwrap();
    assert_eq!(less.authority.delegation_depth, DelegationDepth::Limited(1));
}

async fn rule_5_another_context_is_refused(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let root = direct(&tenant, |grant| grant.authority.context = intent("intent_1")).await;
    let asking = |context| {
        let asked = DelegationRequest { context, ..request(root.authority.scopes.clone()) };
        delegate(&tenant, &root, asked)
    };

    refused(&tenant, Code::GrantContextMismatch, asking(intent("intent_2"))).await;
    let task = GrantContext { task_id: Some(ContextId::parse("task_1").unwrap()), ..GrantContext::default() };
    let bound = asking(task.clone()).await.unwrap();
    assert_eq!(bound.authority.context, GrantContext { task_id: task.task_id, ..intent("intent_1") });
    asking(intent("intent_1")).await.unwrap();
}

async fn rule_6_a_later_end_is_refused(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let root = direct(&tenant, |grant| grant.authority.expires_at = Some(tenant.later(60))).await;
    let asking = |expires_at| {
        let asked = DelegationRequest { expires_at: Some(expires_at), ..request(root.authority.scopes.clone()) };
        delegate(&tenant, &root, asked)
    };

    refused(&tenant, Code::GrantExpiryExceeded, asking(Some(tenant.later(61)))).await;
    refused(&tenant, Code::GrantExpiryExceeded, asking(None)).await;
    asking(Some(tenant.later(60))).await.unwrap();
    let indefinite = direct(&tenant, |grant| grant.authority.expires_at = None).await;
    let asked = DelegationRequest { expires_at: Some(None), ..request(indefinite.authority.scopes.clone()) };
    assert_eq!(delegate(&tenant, &indefinite, asked).await.unwrap().authority.expires_at, None);
}

async fn unlimited_depth_stays_unlimited_until_somebody_limits_it(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let root = direct(&tenant, |_| {}).await;
    let first = tenant.delegate(&root, "worker").await.unwrap();
    assert_eq!(tenant.events().await.pop().unwrap()["data"]["delegation_depth"], json!(null));
    let limited = DelegationRequest {
        delegation_depth: Some(DelegationDepth::Limited(1)),
        ..request(root.authority.scopes.clone())
    };

    let limited = delegate(&tenant, &first, limited).await.unwrap();

    assert_eq!(first.authority.delegation_depth, DelegationDepth::Unlimited);
    let last = tenant.delegate(&limited, "sub-worker").await.unwrap();
    assert_eq!(last.authority.delegation_depth, DelegationDepth::Limited(0));
}

async fn the_limits_of_the_whole_lineage_count_not_only_those_of_the_source(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let root = direct(&tenant, |grant| {
        grant.authority.constraints = constraints(json!({"max_invocations_per_hour": 10}));
        grant.authority.context = intent("intent_1");
    })
    .await;
    // Sets no limit of its own: it inherits that of the root.
    let middle = tenant.delegate(&root, "worker").await.unwrap();
    assert_eq!(middle.authority.constraints, Constraints::default());

    let wider = DelegationRequest {
        constraints: constraints(json!({"max_invocations_per_hour": 11})),
        ..request(root.authority.scopes.clone())
    };
    refused(&tenant, Code::GrantConstraintExceeded, delegate(&tenant, &middle, wider)).await;
    let elsewhere = DelegationRequest { context: intent("intent_2"), ..request(root.authority.scopes.clone()) };
    refused(&tenant, Code::GrantContextMismatch, delegate(&tenant, &middle, elsewhere)).await;
}

async fn effective_authority_is_the_meet_along_the_lineage(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let root = direct(&tenant, |grant| {
        grant.authority.constraints = constraints(json!({"max_invocations_per_hour": 10, "amount_max": 50}));
    })
    .await;
    let narrowing =
        |names: &[&str], limits| DelegationRequest { constraints: constraints(limits), ..request(scopes(names)) };
    let middle = narrowing(&["charges.create", "charges.read"], json!({"amount_max": 20, "amount_min": 5}));
    let middle = delegate(&tenant, &root, middle).await.unwrap();
    let leaf = narrowing(&["charges.read"], json!({"max_invocations_per_hour": 3}));
    let leaf = delegate(&tenant, &middle, leaf).await.unwrap();

    let effective = tenant.lineage(leaf.id).await.effective();

    assert_eq!(effective.scopes, scopes(&["charges.read"]));
    let met = json!({"max_invocations_per_hour": 3, "amount_max": 20, "amount_min": 5});
    assert_eq!(effective.constraints, constraints(met));
}

async fn below_a_grant_that_cannot_be_used_nothing_is_delegated(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let root = direct(&tenant, |grant| grant.authority.expires_at = Some(tenant.later(60))).await;
    let middle = tenant.delegate(&root, "worker").await.unwrap();

    tenant.suspend(root.id).await.unwrap();
    refused(&tenant, Code::GrantSuspended, tenant.delegate(&root, "late")).await;
    let refusal = refused(&tenant, Code::GrantSuspended, tenant.delegate(&middle, "late")).await;
    assert!(refusal.reason().contains(&root.id.to_string()), "the reason names the grant that stands in the way");
    tenant.resume(root.id).await.unwrap();
    tenant.delegate(&middle, "in-time").await.unwrap();
    tenant.wait(60);
    refused(&tenant, Code::GrantExpired, tenant.delegate(&middle, "late")).await;

    let root = direct(&tenant, |_| {}).await;
    let middle = tenant.delegate(&root, "worker").await.unwrap();
    tenant.revoke(root.id).await.unwrap();
    refused(&tenant, Code::GrantRevoked, tenant.delegate(&root, "late")).await;
    refused(&tenant, Code::GrantRevoked, tenant.delegate(&middle, "late")).await;
    assert_eq!(tenant.standing(middle.id).await, GrantStatus::Revoked);
}

async fn what_does_not_exist_cannot_be_delegated(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let credential = tenant.credential().await;
    let never_stored = tenant.new_grant(&credential, &principal("coordinator"));
    refused(&tenant, Code::GrantNotFound, tenant.delegate(&never_stored, "worker")).await;
}

async fn a_lineage_has_an_end(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let mut last = direct(&tenant, |_| {}).await;
    for _ in 0..256 {
        last = tenant.delegate(&last, "worker").await.unwrap();
    }
    assert_eq!(tenant.lineage(last.id).await.ancestors().len(), 256);
    refused(&tenant, Code::DelegationDepthExceeded, tenant.delegate(&last, "worker")).await;
}
