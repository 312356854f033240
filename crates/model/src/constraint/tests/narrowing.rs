//! The order of every kind of constraint: what a delegation may state below its source, and what it may not.

use super::*;

/// Where the child reaches beyond the source.
fn widening(child: Value, source: Value) -> Option<String> {
    constraints(child).first_widening(&constraints(source)).map(|widening| widening.path)
}

/// Asserts that the wider of two values of one constraint is refused below the narrower one and named by its path, and
/// that the narrower, the same and none at all pass.
fn assert_order(name: &str, narrower: &Value, wider: &Value, path: &str) {
    let of = |value: &Value| json!({name: value});
    assert_eq!(widening(of(wider), of(narrower)).as_deref(), Some(path), "{wider} below {narrower}");
    assert_eq!(widening(of(narrower), of(wider)), None, "{narrower} below {wider}");
    assert_eq!(widening(of(narrower), of(narrower)), None, "{narrower} below itself");
    assert_eq!(widening(json!({}), of(narrower)), None, "nothing stated is inherited");
    assert_eq!(widening(of(wider), json!({})), None, "the source states nothing");
}

#[test]
fn calls_per_hour_and_cost_only_go_down() {
    assert_order("max_invocations_per_hour", &json!(10), &json!(11), "constraints.max_invocations_per_hour");
    assert_order("max_cost_per_invocation", &json!(0.01), &json!(0.010001), "constraints.max_cost_per_invocation");
}

#[test]
fn a_list_of_values_only_gets_shorter() {
    let order = |narrower, wider| {
        assert_order("allowed_parameters", &narrower, &wider, "constraints.allowed_parameters.a");
    };
    order(json!({"a": ["usd"]}), json!({"a": ["usd", "eur"]}));
    order(json!({"a": []}), json!({"a": [null]}));
    order(json!({"a": [1]}), json!({"a": [1, 1.5]}));
}

#[test]
fn bounds_only_move_inwards() {
    let order = |narrower, wider| {
        assert_order("allowed_parameters", &narrower, &wider, "constraints.allowed_parameters.a");
    };
    order(json!({"a_max": 10}), json!({"a_max": 10.5}));
    order(json!({"a_max": 9_007_199_254_740_992_u64}), json!({"a_max": 9_007_199_254_740_993_u64}));
    order(json!({"a_min": -1}), json!({"a_min": -2}));
}

#[test]
fn patterns_only_add_up() {
    let order = |narrower, wider| {
        assert_order("allowed_parameters", &narrower, &wider, "constraints.allowed_parameters.a");
    };
    order(json!({"a": {"patterns": ["x.*", ".*y"]}}), json!({"a": {"patterns": ["x.*"]}}));
}

#[test]
fn denials_only_add_up() {
    let order = |narrower, wider| {
        assert_order("denied_parameters", &narrower, &wider, "constraints.denied_parameters.a");
    };
    order(json!({"a": [1, 2]}), json!({"a": [1]}));
    order(json!({"a": {"patterns": ["x", "y"]}}), json!({"a": {"patterns": ["x"]}}));
    order(json!({"a": {"any": true}}), json!({"a": [1]}));
}

#[test]
fn networks_and_hosts_stay_within_those_of_the_source() {
    assert_order("ip_allowlist", &json!(["10.1.0.0/16"]), &json!(["10.0.0.0/8"]), "constraints.ip_allowlist");
    assert_order("ip_allowlist", &json!([]), &json!(["::1"]), "constraints.ip_allowlist");
    assert_order("allowed_hosts", &json!(["api.example.com"]), &json!(["example.com"]), "constraints.allowed_hosts");
    assert_order("allowed_hosts", &json!([]), &json!(["192.0.2.7"]), "constraints.allowed_hosts");
}

#[test]
fn a_listed_value_must_pass_the_bounds_and_patterns_of_the_source() {
    let below = |child, source| widening(json!({"allowed_parameters": child}), json!({"allowed_parameters": source}));
    assert_eq!(below(json!({"a": [5, 10]}), json!({"a_max": 10})), None);
    assert!(below(json!({"a": [5, 11]}), json!({"a_max": 10})).is_some());
    assert!(below(json!({"a": ["5"]}), json!({"a_max": 10})).is_some());
    assert!(below(json!({"a": ["usd", "gbp"]}), json!({"a": {"pattern": "u.*"}})).is_some());
    assert_eq!(below(json!({"a": ["usd"]}), json!({"a": {"pattern": "u.*"}})), None);
    assert_eq!(below(json!({"a": [[1, 2]]}), json!({"a_max": 10})), None);
    assert!(below(json!({"a": [[1, 11]]}), json!({"a_max": 10})).is_some());
}

#[test]
fn a_widening_says_what_the_source_allows() {
    let child = constraints(json!({"max_invocations_per_hour": 11}));
    let source = constraints(json!({"max_invocations_per_hour": 10}));
    let said = child.first_widening(&source).unwrap().to_string();
    assert_eq!(said, "`constraints.max_invocations_per_hour` is 11; the source grant allows at most 10");
    let said = allowed(json!({"a": ["x", "y"]})).first_widening(&allowed(json!({"a": ["x"]}))).unwrap().to_string();
    assert_eq!(said, r#"`constraints.allowed_parameters.a` allows "y", which the source grant does not"#);
}

#[test]
fn in_effect_a_grant_has_the_limits_of_its_source_and_its_own() {
    let source = constraints(json!({
        "max_invocations_per_hour": 100, "allowed_parameters": {"currency": ["usd", "eur"], "amount_max": 50},
        "denied_parameters": {"a": [1]}, "allowed_hosts": ["example.com"]
    }));
    let child = constraints(json!({
        "max_invocations_per_hour": 10, "max_cost_per_invocation": 0.5,
        "allowed_parameters": {"currency": ["eur"], "amount_min": 5}, "denied_parameters": {"a": [2], "b": [1]},
        "ip_allowlist": ["10.0.0.0/8"], "allowed_hosts": ["api.example.com"]
    }));
    let effective = constraints(json!({
        "max_invocations_per_hour": 10, "max_cost_per_invocation": 0.5,
        "allowed_parameters": {"currency": ["eur"], "amount_min": 5, "amount_max": 50},
        "denied_parameters": {"a": [1, 2], "b": [1]},
        "ip_allowlist": ["10.0.0.0/8"], "allowed_hosts": ["api.example.com"]
    }));
    assert_eq!(child.meet(&source), effective);
    assert_eq!(source.meet(&child), effective);
}

#[test]
fn what_one_side_requires_the_meet_requires() {
    let meet = allowed(json!({"a": {"required": true}})).meet(&allowed(json!({"a_max": 5})));
    assert!(!permits(&meet, &json!({})) && !permits(&meet, &json!({"a": 6})) && permits(&meet, &json!({"a": 5})));
}
