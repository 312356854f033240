//! Which changes widen access.

use super::*;
use crate::grant::Authority;
use crate::permission::PermissionSet;
use crate::principal::{Principal, TenantId};

fn authority(constraints: serde_json::Value) -> Authority {
    Authority {
        scopes: [Scope::parse("a").unwrap()].into_iter().collect(),
        constraints: Constraints::from_json(&constraints).unwrap(),
        context: GrantContext::default(),
        delegatable: false,
        delegation_depth: DelegationDepth::Limited(0),
        expires_at: Some(Timestamp::EPOCH),
    }
}

#[test]
fn a_constraint_that_is_removed_or_raised_is_loosened_and_one_that_is_lowered_is_not() {
    let before = json!({
        "max_invocations_per_hour": 10, "max_cost_per_invocation": 1, "ip_allowlist": ["10.0.0.0/8"],
        "allowed_hosts": ["example.com"], "allowed_parameters": {"amount_max": 10, "currency": ["usd"]},
        "denied_parameters": {"note": ["x"]}
    });
    let all = authority(json!({})).constraints.loosened(&authority(before.clone()).constraints);
    assert_eq!(
        all,
        [
            "constraints.max_invocations_per_hour",
            "constraints.max_cost_per_invocation",
            "constraints.ip_allowlist",
            "constraints.allowed_hosts",
            "constraints.allowed_parameters.amount",
            "constraints.allowed_parameters.currency",
            "constraints.denied_parameters.note",
        ]
    );
    for (name, narrower, wider) in [
        ("max_invocations_per_hour", json!(9), json!(11)),
        ("max_cost_per_invocation", json!(0.5), json!(2)),
        ("ip_allowlist", json!(["10.1.0.0/16"]), json!(["10.0.0.0/7"])),
        ("allowed_hosts", json!(["api.example.com"]), json!(["example.com", "example.org"])),
        (
            "allowed_parameters",
            json!({"amount_max": 9, "currency": ["usd"], "b_max": 1}),
            json!({"amount_max": 11, "currency": ["usd"]}),
        ),
        ("denied_parameters", json!({"note": ["x", "y"]}), json!({"note": ["y"]})),
    ] {
        let with = |value: serde_json::Value| {
            let mut constraints = before.clone();
            constraints[name] = value;
            authority_widenings(&authority(before.clone()), &authority(constraints))
        };
        assert_eq!(with(narrower), Vec::<String>::new(), "{name}");
        assert_eq!(with(wider).len(), 1, "{name}");
    }
}

#[test]
fn every_other_term_of_a_grant_can_widen_it() {
    let before = authority(json!({}));
    let changed = |change: fn(&mut Authority)| {
        let mut after = before.clone();
        change(&mut after);
        (authority_widenings(&before, &after), authority_widenings(&after, &before))
    };
    let only = |reason: &str| (vec![reason.to_owned()], Vec::<String>::new());
    let more =
        changed(|after| after.scopes = ["a", "b"].map(|scope| Scope::parse(scope).unwrap()).into_iter().collect());
    assert_eq!(more, only("adds the scope `b`"));
    assert_eq!(changed(|after| after.delegatable = true), only("makes it delegatable"));
    let deeper = changed(|after| after.delegation_depth = DelegationDepth::Unlimited);
    assert_eq!(deeper, only("raises the delegation depth"));
    assert_eq!(changed(|after| after.expires_at = None), only("removes the expiry"));
    let later = changed(|after| after.expires_at = Some(Timestamp::from_millis(1).unwrap()));
    assert_eq!(later, only("extends the expiry to 1970-01-01T00:00:00.001+00:00"));
    let bound = changed(|after| after.context.intent_id = Some(crate::context::ContextId::parse("i").unwrap()));
    assert_eq!(bound, (vec![], vec!["changes what `context.intent_id` binds it to".to_owned()]));
}

#[test]
fn a_principal_gains_by_permissions_scopes_labels_tools_and_limits() {
    let id = PrincipalId::parse("a").unwrap();
    let plain = Principal::new(
        TenantId::default_tenant(),
        id,
        PrincipalKind::Agent,
        PermissionSet::of_an_agent(),
        Timestamp::EPOCH,
    );
    assert_eq!(principal_widenings(None, &plain), Vec::<String>::new());
    let with = |changes: serde_json::Value| {
        let mut principal = plain.clone();
        serde_json::from_value::<PrincipalChanges>(changes).unwrap().apply(&mut principal);
        principal
    };
    let all = ["tools.invoke", "tools.delegate"];
    let limit = |requests: u32| json!({"rate_limits": {"*": {"requests": requests, "per_seconds": 60}}});
    for (before, after) in [
        (json!({}), json!({"permissions": all})),
        (json!({}), json!({"scopes": ["tools:*"]})),
        (json!({"scopes": ["tools:mail"]}), json!({"scopes": ["tools:*"]})),
        (json!({}), json!({"labels": ["trusted"]})),
        (json!({"labels": ["trainee"]}), json!({})),
        (json!({"tool_allowlist": []}), json!({})),
        (json!({"tool_allowlist": []}), json!({"tool_allowlist": ["connector:a.b"]})),
        (limit(10), limit(11)),
        (limit(10), json!({})),
        (json!({"budget": {"calls_per_day": 5}}), json!({"budget": {"calls_per_day": 6}})),
        (json!({"budget": {"calls_per_day": 5}}), json!({"budget": {"cost_per_day_usd": 1}})),
        (json!({"budget": {"calls_total": 5}}), json!({})),
        (json!({}), json!({"rate_limits": {"a.b": {"requests": 1, "per_seconds": 60}}})),
    ] {
        let (before_it, after_it) = (with(before.clone()), with(after.clone()));
        assert_eq!(principal_widenings(Some(&before_it), &after_it).len(), 1, "{before} {after}");
    }
    for (before, after) in [
        (json!({"permissions": all}), json!({})),
        (json!({"scopes": ["tools:*"]}), json!({"scopes": ["tools:mail"]})),
        (json!({}), json!({"tool_allowlist": []})),
        (json!({}), json!({"budget": {"calls_per_day": 5}})),
        (json!({"budget": {"calls_per_day": 5}}), json!({"budget": {"calls_per_day": 5, "cost_total_usd": 1}})),
        (limit(10), limit(9)),
        (json!({}), limit(9)),
        (json!({}), json!({"name": "A", "detach_calls": true})),
    ] {
        let (before_it, after_it) = (with(before.clone()), with(after.clone()));
        assert_eq!(principal_widenings(Some(&before_it), &after_it), Vec::<String>::new(), "{before} {after}");
    }
}

#[test]
fn a_definition_widens_unless_only_its_descriptions_change() {
    let of = |tools: serde_json::Value, url: &str| {
        let value = json!({"service": "s", "version": "1", "base_url": url, "tools": tools});
        ServiceDefinition::from_json(&value).unwrap()
    };
    let url = "https://a.example";
    let before = of(json!({"a": {"description": "A"}, "b": {}}), url);
    let reasons = |after: &ServiceDefinition| definition_widenings(Some(&before), after);
    assert_eq!(definition_widenings(None, &before), ["registers 2 tools"]);
    assert_eq!(reasons(&of(json!({"a": {"description": "other", "title": "T"}, "b": {}}), url)), Vec::<String>::new());
    assert_eq!(
        reasons(&of(json!({"a": {"description": "A"}, "b": {}}), "https://b.example")),
        ["changes where calls are sent"]
    );
    assert_eq!(
        reasons(&of(json!({"a": {"scope": "x"}, "c": {}}), url)),
        [
            "changes the tool `a`",
            "adds the tool `c`",
            "drops the tool `b`: calls of it fall back to what a credential defines"
        ]
    );
}

#[test]
fn without_a_version_calls_fall_back_to_something_else() {
    let of = |version: &str| {
        let definition = json!({"service": "cards", "version": version, "tools": {"a": {}}});
        ServiceDefinition::from_json(&definition).unwrap()
    };
    let (first, second) = (of("1"), of("2"));
    assert_eq!(removal_widening(&second, &[&second, &first]), "calls of `cards` fall back to version `1`");
    let to_credentials =
        |version: &str| format!("calls of version `{version}` of `cards` fall back to what its credentials define");
    assert_eq!(removal_widening(&first, &[&second, &first]), to_credentials("1"));
    assert_eq!(removal_widening(&second, &[&second]), to_credentials("2"));
}
