//! Which calls satisfy the limits of a tool and of a grant.

use serde_json::json;
use toolgate_model::constraint::Constraints;

use super::*;
use crate::call::testing::{Bench, credential};

/// The refusal of a call with these parameters, through a grant with these constraints.
async fn refused(constraints: Value, parameters: Value) -> Option<Code> {
    let bench = Bench::new();
    bench.grant(&credential("crm", 1), |grant| {
        grant.authority.constraints = Constraints::from_json(&constraints).unwrap();
    });
    bench.constrain(&bench.call("crm.read", parameters)).await.err().map(|refusal| refusal.code())
}

#[tokio::test]
async fn parameters_must_fit_the_schema_of_the_tool() {
    assert_eq!(refused(json!({}), json!({"id": "7"})).await, None);
    for wrong in [json!({}), json!({"id": 7}), json!({"id": "7", "other": 1})] {
        assert_eq!(refused(json!({}), wrong.clone()).await, Some(Code::ParametersInvalid), "{wrong}");
    }
}

#[tokio::test]
async fn parameters_must_keep_what_the_grant_allows_and_denies() {
    let allowed = json!({"allowed_parameters": {"id": ["7", "8"]}});
    assert_eq!(refused(allowed.clone(), json!({"id": "7"})).await, None);
    assert_eq!(refused(allowed, json!({"id": "9"})).await, Some(Code::GrantParameterDenied));
    let denied = json!({"denied_parameters": {"id": ["7"]}});
    assert_eq!(refused(denied.clone(), json!({"id": "8"})).await, None);
    assert_eq!(refused(denied, json!({"id": "7"})).await, Some(Code::GrantParameterDenied));
}

#[tokio::test]
async fn a_call_must_come_from_where_the_grant_may_be_used() {
    assert_eq!(refused(json!({"ip_allowlist": ["127.0.0.0/8"]}), json!({"id": "7"})).await, None);
    let elsewhere = json!({"ip_allowlist": ["10.0.0.0/8"]});
    assert_eq!(refused(elsewhere, json!({"id": "7"})).await, Some(Code::GrantNetworkDenied));
}

#[tokio::test]
async fn a_call_must_go_where_the_grant_allows() {
    assert_eq!(refused(json!({"allowed_hosts": ["crm.example"]}), json!({"id": "7"})).await, None);
    let elsewhere = json!({"allowed_hosts": ["other.example"]});
    assert_eq!(refused(elsewhere, json!({"id": "7"})).await, Some(Code::GrantHostDenied));
}

#[tokio::test]
async fn a_call_must_not_cost_more_than_the_grant_allows() {
    assert_eq!(refused(json!({"max_cost_per_invocation": 0.5}), json!({"id": "7"})).await, None);
    let less = json!({"max_cost_per_invocation": 0.25});
    assert_eq!(refused(less, json!({"id": "7"})).await, Some(Code::GrantCostExceeded));
}

#[tokio::test]
async fn a_credential_without_material_cannot_be_used() {
    let bench = Bench::new();
    let mut credential = credential("crm", 1);
    credential.version = 0;
    bench.grant(&credential, |_| {});
    let refusal = bench.constrain(&bench.call("crm.read", json!({"id": "7"}))).await.err().unwrap();
    assert_eq!(refusal.code(), Code::ToolNotExecutable);
}

#[tokio::test]
async fn grants_on_one_credential_are_one_alternative_and_on_another_one_the_next() {
    let bench = Bench::new();
    let (one, other) = (credential("crm", 1), credential("crm", 2));
    let grants = [bench.grant(&one, |_| {}), bench.grant(&one, |_| {}), bench.grant(&other, |_| {})];
    let constrained = bench.constrain(&bench.call("crm.read", json!({"id": "7"}))).await.ok().unwrap();
    let alternatives = constrained.into_alternatives().into_iter();
    let alternatives: Vec<Vec<_>> = alternatives
        .map(|one| one.into_eligible_grants().filter_map(|eligible| eligible.candidate.grant()).collect())
        .collect();
    assert_eq!(alternatives, [&grants[..2], &grants[2..]]);
}

#[tokio::test]
async fn one_grant_whose_limits_the_call_keeps_is_enough() {
    let bench = Bench::new();
    let credential = credential("crm", 1);
    bench.grant(&credential, |grant| {
        grant.authority.constraints = Constraints::from_json(&json!({"ip_allowlist": ["10.0.0.0/8"]})).unwrap();
    });
    let open = bench.grant(&credential, |_| {});
    let preferred = bench.preferred(&bench.call("crm.read", json!({"id": "7"}))).await;
    assert_eq!(
        preferred.into_eligible_grants().map(|eligible| eligible.candidate.grant()).collect::<Vec<_>>(),
        [Some(open)]
    );
}
