//! What follows from what a principal is given, and how that is changed.

use serde_json::json;

use super::*;

fn limit(requests: u64, per_seconds: u64) -> RateLimit {
    RateLimit::new(requests, per_seconds, None).unwrap()
}

fn agent() -> Principal {
    let made = Timestamp::from_millis(1_770_544_800_000).unwrap();
    let id = PrincipalId::parse("billing").unwrap();
    Principal::new(TenantId::default_tenant(), id, PrincipalKind::Agent, PermissionSet::of_an_agent(), made)
}

fn limits(text: serde_json::Value) -> ToolRateLimits {
    serde_json::from_value(text).unwrap()
}

#[test]
fn an_entry_for_the_very_tool_is_the_last_word_and_otherwise_the_stricter_limit_holds() {
    let stated = json!({
        "*": {"requests": 10, "per_seconds": 60}, "stripe.charges.create": {"requests": 500, "per_seconds": 60}
    });
    let limited = Principal { rate_limits: limits(stated), ..agent() };
    let of = |tool, own| limited.rate_limit_for(tool, own);
    assert_eq!(of("stripe.charges.create", Some(limit(1, 60))), Some(limit(500, 60)), "wider than the tool's own");
    assert_eq!(of("stripe.charges.create", None), Some(limit(500, 60)));
    assert_eq!(of("stripe.refunds.create", None), Some(limit(10, 60)));
    assert_eq!(of("stripe.refunds.create", Some(limit(2, 60))), Some(limit(2, 60)));
    assert_eq!(of("stripe.refunds.create", Some(limit(99, 60))), Some(limit(10, 60)));
    assert_eq!(of("*", Some(limit(2, 60))), Some(limit(2, 60)), "a tool of that name has no entry of its own");
    assert_eq!(agent().rate_limit_for("stripe.refunds.create", Some(limit(2, 60))), Some(limit(2, 60)));
    assert_eq!(agent().rate_limit_for("stripe.refunds.create", None), None);
}

#[test]
fn rate_limits_read_back_as_they_are_written() {
    let stated =
        json!({"*": {"requests": 10, "per_seconds": 60}, "a.b": {"requests": 5, "per_seconds": 1, "burst": 9}});
    assert_eq!(json!(limits(stated.clone())), stated);
}

#[test]
fn rate_limits_are_by_tools_and_written_as_objects() {
    let good = json!({"requests": 1, "per_seconds": 1});
    for name in ["", "charges", "stripe.", ".charges", "**", "stripe.*", "a b.c", "ä.b"] {
        let refused = serde_json::from_value::<ToolRateLimits>(json!({name: good}));
        assert!(refused.is_err(), "{name}");
    }
    let long = format!("a.{}", "b".repeat(256));
    assert!(serde_json::from_value::<ToolRateLimits>(json!({long: good})).is_err());
    for bad in [
        json!([1, 60]),
        json!(5),
        json!(null),
        json!({"requests": 0, "per_seconds": 1}),
        json!({"requests": 1}),
        json!({"requests": 1, "per_seconds": 1, "brust": 1}),
    ] {
        assert!(serde_json::from_value::<ToolRateLimits>(json!({"a.b": bad})).is_err(), "{bad}");
    }
    let many: serde_json::Map<_, _> = (0..=1024).map(|number| (format!("a.{number}"), good.clone())).collect();
    assert!(serde_json::from_value::<ToolRateLimits>(json!(many)).is_err());
}

#[test]
fn without_an_allowlist_every_tool_may_be_seen_and_with_one_only_those_on_it() {
    let [charge, fetch] =
        ["connector:stripe.charges.create", "openwop:http.fetch"].map(|id| ToolId::parse(id).unwrap());
    assert!(agent().may_see(&charge) && agent().may_see(&fetch));
    let narrowed = Principal { tool_allowlist: Some([charge.clone()].into()), ..agent() };
    assert!(narrowed.may_see(&charge));
    assert!(!narrowed.may_see(&fetch));
    let none = Principal { tool_allowlist: Some(BTreeSet::new()), ..agent() };
    assert!(!none.may_see(&charge), "an empty list allows nothing");
}

#[test]
fn a_change_names_what_is_different_and_counts_once() {
    let mut principal = agent();
    let changes = PrincipalChanges {
        name: Some(Some(Line::parse("Billing").unwrap())),
        permissions: Some(PermissionSet::of_an_agent()),
        tool_allowlist: Some(Some(BTreeSet::new())),
        ..PrincipalChanges::default()
    };
    assert_eq!(changes.apply(&mut principal), ["name", "tool_allowlist"], "the permissions were these before");
    assert_eq!(principal.revision, 2);
    assert!(changes.apply(&mut principal).is_empty());
    assert_eq!(principal.revision, 2, "the same again is no change");

    let back = PrincipalChanges { name: Some(None), tool_allowlist: Some(None), ..PrincipalChanges::default() };
    assert_eq!(back.apply(&mut principal), ["name", "tool_allowlist"]);
    assert_eq!(principal, Principal { revision: 3, ..agent() });
    assert!(PrincipalChanges::default().apply(&mut principal).is_empty());
}

#[test]
fn the_stored_attributes_of_a_principal_make_it_from_a_new_one() {
    let principal = Principal {
        name: Line::parse("Billing").ok(),
        scopes: HeldScopes::from_stored(["mail:*".to_owned(), "not a scope any more".to_owned()]),
        rate_limits: limits(json!({"*": {"requests": 5, "per_seconds": 60}})),
        tool_allowlist: Some([ToolId::parse("connector:stripe.charge").unwrap()].into()),
        labels: [Label::parse("trusted").unwrap()].into(),
        detach_calls: true,
        progressive_discovery: true,
        ..agent()
    };
    let stored = serde_json::to_string(&PrincipalChanges::of(&principal)).unwrap();
    let mut read = Principal { permissions: PermissionSet::default(), ..agent() };
    serde_json::from_str::<PrincipalChanges>(&stored).unwrap().apply(&mut read);
    assert_eq!(Principal { revision: 1, ..read }, principal);
    let newer = stored.replacen('{', r#"{"budget":5,"#, 1);
    assert!(serde_json::from_str::<PrincipalChanges>(&newer).is_err(), "an attribute that is not known is not ignored");
}

#[test]
fn nobody_changes_its_own_budget_or_resumes_itself() {
    let changed = |changes: serde_json::Value, own: &Principal| {
        serde_json::from_value::<PrincipalChanges>(changes).unwrap().denied_to(own)
    };
    let mut own = agent();
    own.permissions = [crate::permission::Permission::ManageAgents].into_iter().collect();
    let budget = json!({"calls_per_day": 5, "warn_at_percent": 80});
    own.budget = serde_json::from_value(budget.clone()).unwrap();
    assert_eq!(changed(json!({"budget": budget}), &own), None, "the same again");
    for other in [json!(null), json!({"calls_per_day": 1}), json!({"calls_per_day": 500})] {
        assert!(changed(json!({"budget": other}), &own).is_some(), "{other}");
    }
    own.stopped = Some(crate::spending::Stop { at: own.created_at, by: own.id.clone(), reason: None });
    assert!(changed(json!({"stopped": null}), &own).is_some());
}

#[test]
fn a_stored_principal_keeps_its_budget_and_its_stop() {
    let mut own = agent();
    assert!(json!(PrincipalChanges::of(&own)).get("budget").is_none());
    own.budget = serde_json::from_value(json!({"cost_total_usd": 2.5})).unwrap();
    own.stopped = Some(crate::spending::Stop { at: own.created_at, by: own.id.clone(), reason: None });
    let stored = json!(PrincipalChanges::of(&own));
    assert!(stored.to_string().contains(r#""budget":{"#), "budgets are found by this text: {stored}");
    let mut read = agent();
    serde_json::from_value::<PrincipalChanges>(stored).unwrap().apply(&mut read);
    assert_eq!((read.budget, read.stopped), (own.budget, own.stopped));
}
