//! Which of the grants on a service authorize a call, and in which order.

use std::time::Duration;

use serde_json::{Map, json};
use toolgate_model::grant::{Grant, Suspension};
use toolgate_model::principal::PrincipalId;

use super::*;
use crate::call::testing::{Bench, credential, now, scopes};
use crate::call::{CallRequest, Freshness};

async fn authorize(bench: &Bench, call: &Call) -> Result<Vec<Option<GrantId>>, Refusal> {
    let resolved = bench.pipeline.resolve(call, Freshness::Newest).await?;
    let authorized = bench.pipeline.authorize(call, resolved)?;
    Ok(authorized.into_candidates().iter().map(Candidate::grant).collect())
}

fn in_task(bench: &Bench, task: &str) -> Call {
    let call = bench.call("crm.read", json!({}));
    let context = bound_to(task);
    bench.begin(CallRequest { context, ..CallRequest::new(call.tool, Map::new(), call.address) })
}

fn bound_to(task: &str) -> GrantContext {
    GrantContext { task_id: Some(ContextId::parse(task).unwrap()), ..GrantContext::default() }
}

#[tokio::test]
async fn the_closest_grant_comes_first() {
    let bench = Bench::new();
    let credential = credential("crm", 1);
    let wide = bench.grant(&credential, |_| {});
    let narrow = bench.grant(&credential, |grant| grant.authority.scopes = scopes(&["read"]));
    let later = now().plus(Duration::from_secs(60));
    let ending = bench.grant(&credential, |grant| {
        grant.authority.scopes = scopes(&["read"]);
        grant.authority.expires_at = Some(later);
    });
    let bound = bench.grant(&credential, |grant| grant.authority.context = bound_to("t-1"));
    let order = authorize(&bench, &in_task(&bench, "t-1")).await.ok().unwrap();
    assert_eq!(order, [bound, ending, narrow, wide].map(Some));
}

#[tokio::test]
async fn a_grant_that_is_bound_to_another_task_does_not_authorize() {
    let bench = Bench::new();
    bench.grant(&credential("crm", 1), |grant| grant.authority.context = bound_to("t-1"));
    let refusal = authorize(&bench, &in_task(&bench, "t-2")).await.unwrap_err();
    assert_eq!(refusal.code(), Code::GrantContextMismatch);
    assert!(authorize(&bench, &in_task(&bench, "t-1")).await.is_ok());
}

#[tokio::test]
async fn a_grant_that_does_not_stand_does_not_authorize() {
    type Change = fn(&mut Grant);
    let ends: [(Change, Code); 3] = [
        (
            |grant| grant.suspended = Some(Suspension { at: now(), by: PrincipalId::administrator() }),
            Code::GrantSuspended,
        ),
        (|grant| grant.revoked_at = Some(now()), Code::GrantRevoked),
        (|grant| grant.authority.expires_at = Some(now()), Code::GrantExpired),
    ];
    for (end, code) in ends {
        let bench = Bench::new();
        bench.grant(&credential("crm", 1), end);
        let refusal = authorize(&bench, &bench.call("crm.read", json!({}))).await.unwrap_err();
        assert_eq!(refusal.code(), code);
    }
}

#[tokio::test]
async fn a_grant_on_a_credential_that_has_ended_does_not_authorize() {
    for (expires, revoked, code) in
        [(Some(now()), None, Code::CredentialExpired), (None, Some(now()), Code::CredentialRevoked)]
    {
        let bench = Bench::new();
        let mut credential = credential("crm", 1);
        (credential.expires_at, credential.revoked_at) = (expires, revoked);
        bench.grant(&credential, |_| {});
        let refusal = authorize(&bench, &bench.call("crm.read", json!({}))).await.unwrap_err();
        assert_eq!(refusal.code(), code);
    }
}

#[tokio::test]
async fn a_scope_that_no_grant_has_is_refused_with_those_that_they_have() {
    let bench = Bench::new();
    bench.grant(&credential("crm", 1), |grant| grant.authority.scopes = scopes(&["read"]));
    let refusal = authorize(&bench, &bench.call("crm.write", json!({}))).await.unwrap_err();
    assert_eq!(refusal.code(), Code::GrantScopeInsufficient);
}
