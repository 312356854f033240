//! Reading and writing: the examples of the protocol, its shorthand, and what is refused.

use super::*;

#[test]
fn the_example_of_the_grant_object_is_understood_whole() {
    let constraints = constraints(json!({
        "max_invocations_per_hour": 100,
        "max_cost_per_invocation": null,
        "allowed_parameters": {"currency": ["usd", "eur"], "amount_max": 50000},
        "denied_parameters": {"metadata.test_mode": [true]},
        "ip_allowlist": null
    }));
    assert_eq!(constraints.max_invocations_per_hour, Some(100));
    assert_eq!(constraints.max_cost_per_invocation, None);
    assert_eq!(constraints.ip_allowlist, None);
    assert!(permits(&constraints, &json!({"currency": "usd", "amount": 50000})));
    assert!(!permits(&constraints, &json!({"currency": "gbp", "amount": 50000})));
    assert!(!permits(&constraints, &json!({"currency": "usd", "amount": 50001})));
    assert!(!permits(&constraints, &json!({"amount": 1, "metadata": {"test_mode": true}})));
}

#[test]
fn the_shorthand_of_discovery_and_of_workflows_means_the_same_as_inside_allowed_parameters() {
    let discovery = constraints(json!({"max_invocations_per_hour": 50, "amount_max": 10000}));
    let spelled = constraints(json!({"max_invocations_per_hour": 50, "allowed_parameters": {"amount_max": 10000}}));
    assert_eq!(discovery, spelled);
    assert_eq!(constraints(json!({"amount_min": 5})), allowed(json!({"amount": {"min": 5}})));
    assert_eq!(constraints(json!({"order.total_max": 9.5})), allowed(json!({"order.total": {"max": 9.5}})));
}

#[test]
fn what_is_absent_or_null_limits_nothing() {
    for value in [json!(null), json!({}), json!({"allowed_hosts": null, "allowed_parameters": null})] {
        assert_eq!(constraints(value), Constraints::default());
    }
}

#[test]
fn an_unknown_constraint_is_refused_by_its_name() {
    for (name, value) in [
        ("max_calls", json!(3)),
        ("max_invocations_per_min", json!(3)),
        ("max_cost_max", json!(3)),
        ("amount", json!(3)),
        ("amount_max", json!("3")),
        ("amount_max", json!(null)),
        ("_max", json!(3)),
        ("Allowed_Hosts", json!([])),
    ] {
        let mut members = serde_json::Map::new();
        members.insert(name.to_owned(), value);
        let error = refusal(Value::Object(members));
        assert_eq!(error.path, format!("constraints.{name}"));
        assert!(error.reason.contains("is not a known constraint"), "{error}");
    }
}

#[test]
fn an_unknown_part_of_a_rule_is_refused_by_its_name() {
    let error = refusal(json!({"allowed_parameters": {"amount": {"maximum": 3}}}));
    assert_eq!(error.path, "constraints.allowed_parameters.amount.maximum");
    let error = refusal(json!({"denied_parameters": {"amount": {"max": 3}}}));
    assert_eq!(error.path, "constraints.denied_parameters.amount.max");
}

#[test]
fn what_cannot_be_enforced_is_refused_where_it_stands() {
    for (value, path) in [
        (json!([]), "constraints"),
        (json!({"max_invocations_per_hour": -1}), "constraints.max_invocations_per_hour"),
        (json!({"max_invocations_per_hour": 1.5}), "constraints.max_invocations_per_hour"),
        (json!({"max_invocations_per_hour": 1_000_000_001}), "constraints.max_invocations_per_hour"),
        (json!({"max_cost_per_invocation": "1"}), "constraints.max_cost_per_invocation"),
        (json!({"max_cost_per_invocation": -0.01}), "constraints.max_cost_per_invocation"),
        (json!({"max_cost_per_invocation": 0.0000001}), "constraints.max_cost_per_invocation"),
        (json!({"max_cost_per_invocation": 1e10}), "constraints.max_cost_per_invocation"),
        (json!({"allowed_parameters": ["amount"]}), "constraints.allowed_parameters"),
        (json!({"allowed_parameters": {"amount": "usd"}}), "constraints.allowed_parameters.amount"),
        (json!({"allowed_parameters": {"amount": {}}}), "constraints.allowed_parameters.amount"),
        (json!({"allowed_parameters": {"amount": {"max": "3"}}}), "constraints.allowed_parameters.amount.max"),
        (json!({"allowed_parameters": {"amount": {"required": 1}}}), "constraints.allowed_parameters.amount.required"),
        (json!({"allowed_parameters": {"a..b": [1]}}), "constraints.allowed_parameters.a..b"),
        (json!({"allowed_parameters": {"a": {"pattern": "("}}}), "constraints.allowed_parameters.a.pattern"),
        (json!({"allowed_parameters": {"a": {"pattern": ")|("}}}), "constraints.allowed_parameters.a.pattern"),
        (json!({"denied_parameters": {"a": []}}), "constraints.denied_parameters.a"),
        (json!({"denied_parameters": {"a": {"any": false}}}), "constraints.denied_parameters.a.any"),
        (json!({"denied_parameters": {"a": true}}), "constraints.denied_parameters.a"),
        (json!({"ip_allowlist": "10.0.0.0/8"}), "constraints.ip_allowlist"),
        (json!({"ip_allowlist": ["10.0.0.1/8"]}), "constraints.ip_allowlist"),
        (json!({"ip_allowlist": [7]}), "constraints.ip_allowlist"),
        (json!({"allowed_hosts": ["https://api.example.com"]}), "constraints.allowed_hosts"),
    ] {
        assert_eq!(refusal(value.clone()).path, path, "{value}");
    }
}

#[test]
fn a_list_or_a_number_of_parameters_beyond_the_limit_is_refused() {
    let values: Vec<u32> = (0..1025).collect();
    assert!(refusal(json!({"allowed_parameters": {"a": values}})).reason.contains("1024"));
    let parameters: serde_json::Map<_, _> = (0..257).map(|number| (format!("p{number}"), json!([1]))).collect();
    assert!(refusal(json!({"allowed_parameters": parameters})).reason.contains("256"));
    let long = "a".repeat(513);
    assert!(refusal(json!({"allowed_parameters": {"a": {"pattern": long}}})).reason.contains("512"));
}

#[test]
fn two_statements_on_one_parameter_add_up_unless_they_contradict() {
    let both = constraints(json!({"allowed_parameters": {"amount_min": 1, "amount": [0, 1, 2]}, "amount_max": 1}));
    assert!(permits(&both, &json!({"amount": 1})));
    assert!(!permits(&both, &json!({"amount": 0})) && !permits(&both, &json!({"amount": 2})));
    let error = refusal(json!({"allowed_parameters": {"amount_max": 10}, "amount_max": 20}));
    assert!(error.reason.contains("state it once"), "{error}");
}

#[test]
fn what_is_written_reads_back_as_the_same() {
    for value in [
        json!({"max_invocations_per_hour": 0, "max_cost_per_invocation": 0.000001}),
        json!({"allowed_parameters": {"currency": ["usd", "eur"], "amount_max": 50000, "amount_min": 0.5}}),
        json!({"allowed_parameters": {"a": {"values": [1, [1, 2], {"b": null}], "max": 5, "required": true}}}),
        json!({"allowed_parameters": {"a": {"patterns": ["x.*", ".*y"]}, "b": {"required": true}, "c": []}}),
        json!({"denied_parameters": {"a": {"any": true}, "b": {"values": [1], "pattern": "x"}, "c": [null]}}),
        json!({"ip_allowlist": ["10.0.0.0/8", "2001:db8::/32", "192.0.2.7"], "allowed_hosts": ["api.example.com"]}),
        json!({"ip_allowlist": [], "allowed_hosts": []}),
    ] {
        let read = constraints(value.clone());
        assert_eq!(constraints(read.to_json()), read, "{value}");
    }
}

#[test]
fn a_bound_and_a_rule_on_the_name_of_the_bound_are_both_kept() {
    let both = allowed(json!({"amount": {"max": 5}, "amount_max": {"values": [1]}}));
    let read = constraints(both.to_json());
    assert_eq!(read, both);
    assert!(!permits(&read, &json!({"amount": 6})) && !permits(&read, &json!({"amount_max": 2})));
}

#[test]
fn the_normal_form_says_only_what_is_set() {
    assert_eq!(Constraints::default().to_json(), json!({}));
    let spelled = constraints(json!({"allowed_parameters": {"a": {"max": 5}, "b": {"values": [2, 1.0]}}}));
    assert_eq!(spelled.to_json(), json!({"allowed_parameters": {"a_max": 5, "b": [1, 2]}}));
}

#[test]
fn decimals_are_stored_to_the_last_digit() {
    let text = r#"{"allowed_parameters": {"rate_max": 333333333.33333325, "ratio": [0.1, 9.999999999999997e22]}}"#;
    let read = constraints(parsed(text));
    let stored = parsed(&read.to_json().to_string());
    assert_eq!(constraints(stored), read);
}
