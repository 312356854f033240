//! What rules on parameters permit.

use super::*;

#[test]
fn a_list_of_values_admits_these_and_no_others() {
    let rule = allowed(json!({"currency": ["usd", "eur", null]}));
    for (value, fits) in
        [(json!("usd"), true), (json!(null), true), (json!("USD"), false), (json!("usd "), false), (json!(1), false)]
    {
        assert_eq!(permits(&rule, &json!({"currency": value})), fits, "{value}");
    }
    assert!(permits(&rule, &json!({"amount": 5})), "what is absent breaks nothing");
    assert!(!permits(&allowed(json!({"currency": []})), &json!({"currency": "usd"})));
}

#[test]
fn a_violation_names_the_rule_and_never_the_value_that_was_sent() {
    let rule = allowed(json!({"currency": ["usd"], "amount_max": 5}));
    let violation = rule.check_parameters(&json!({"currency": "hunter2"}), None).unwrap_err();
    assert_eq!(violation.path.as_str(), "currency");
    assert!(violation.reason.contains("usd") && !violation.to_string().contains("hunter2"), "{violation}");
    let violation = rule.check_parameters(&json!({"amount": 31337}), None).unwrap_err();
    assert!(violation.reason.contains("at most 5") && !violation.to_string().contains("31337"), "{violation}");
}

#[test]
fn bounds_admit_numbers_up_to_and_including_them_and_nothing_else() {
    let rule = allowed(json!({"amount_min": 10, "amount_max": 20}));
    for (value, fits) in [
        (json!(10), true),
        (json!(20), true),
        (json!(20.0), true),
        (json!(9.999), false),
        (json!(20.0001), false),
        (json!("15"), false),
        (json!(null), false),
        (json!({"value": 15}), false),
    ] {
        assert_eq!(permits(&rule, &json!({"amount": value})), fits, "{value}");
    }
}

#[test]
fn integers_beyond_the_precision_of_doubles_are_not_rounded_into_a_limit() {
    let rule = allowed(json!({"amount_max": 9_007_199_254_740_992_u64}));
    assert!(permits(&rule, &json!({"amount": 9_007_199_254_740_992_u64})));
    assert!(!permits(&rule, &json!({"amount": 9_007_199_254_740_993_u64})));
    let rule = allowed(json!({"amount_max": u64::MAX, "amount_min": i64::MIN}));
    assert!(permits(&rule, &json!({"amount": u64::MAX})) && permits(&rule, &json!({"amount": i64::MIN})));
    assert!(!permits(&rule, &parsed(r#"{"amount": 1e20}"#)) && !permits(&rule, &parsed(r#"{"amount": -1e300}"#)));
}

#[test]
fn a_list_of_large_integers_admits_none_of_their_neighbours() {
    let rule = allowed(json!({"account": [9_007_199_254_740_993_u64, [u64::MAX]]}));
    let kept = constraints(rule.to_json());
    for rule in [rule, kept] {
        assert!(permits(&rule, &json!({"account": 9_007_199_254_740_993_u64})));
        assert!(!permits(&rule, &json!({"account": 9_007_199_254_740_992_u64})));
        assert!(!permits(&rule, &parsed(r#"{"account": 9007199254740992.0}"#)));
        assert!(permits(&rule, &json!({"account": [u64::MAX]})));
        assert!(!permits(&rule, &json!({"account": [u64::MAX - 1]})));
    }
}

#[test]
fn a_denied_large_integer_is_denied_with_what_a_reader_of_doubles_takes_it_for() {
    let rule = denied(json!({"account": [9_007_199_254_740_992_u64]}));
    assert!(!permits(&rule, &json!({"account": 9_007_199_254_740_993_u64})));
    assert!(!permits(&rule, &parsed(r#"{"account": 9007199254740992.0}"#)));
    assert!(permits(&rule, &json!({"account": 9_007_199_254_740_991_u64})));
}

#[test]
fn one_number_is_one_value_however_it_is_written() {
    for (listed, sent) in [("1", "1.0"), ("1.0", "1"), ("100", "1e2"), ("1e2", "100.0"), ("0", "-0"), ("-0.0", "0")] {
        let rule = constraints(parsed(&format!(r#"{{"allowed_parameters": {{"a": [{listed}]}}}}"#)));
        assert!(permits(&rule, &parsed(&format!(r#"{{"a": {sent}}}"#))), "{listed} and {sent}");
        let rule = constraints(parsed(&format!(r#"{{"denied_parameters": {{"a": [{listed}]}}}}"#)));
        assert!(!permits(&rule, &parsed(&format!(r#"{{"a": {sent}}}"#))), "{listed} and {sent}");
    }
    let zero = allowed(json!({"a_max": 0, "a_min": 0}));
    assert!(permits(&zero, &parsed(r#"{"a": -0}"#)) && permits(&zero, &parsed(r#"{"a": 0.0}"#)));
    assert!(!permits(&zero, &parsed(r#"{"a": -0.5}"#)) && !permits(&zero, &parsed(r#"{"a": 5e-324}"#)));
}

#[test]
fn a_dotted_path_is_found_nested_and_as_a_literal_key() {
    let rule = denied(json!({"a.b.c": [true]}));
    for parameters in [
        json!({"a": {"b": {"c": true}}}),
        json!({"a.b": {"c": true}}),
        json!({"a": {"b.c": true}}),
        json!({"a.b.c": true}),
        json!({"a.b.c": false, "a": {"b": {"c": true}}}),
    ] {
        assert!(!permits(&rule, &parameters), "{parameters}");
    }
    for parameters in [json!({"a": {"b": {"c": false}}}), json!({"b": {"c": true}}), json!({"a": true}), json!(true)] {
        assert!(permits(&rule, &parameters), "{parameters}");
    }
}

#[test]
fn a_path_leads_through_lists_element_by_element() {
    let rule = allowed(json!({"items.amount_max": 10}));
    assert!(permits(&rule, &json!({"items": [{"amount": 1}, {"amount": 10}]})));
    assert!(!permits(&rule, &json!({"items": [{"amount": 1}, {"amount": 11}]})));
    assert!(!permits(&rule, &json!({"items": [[{"amount": 11}]]})));
    assert!(!permits(&rule, &json!([{"items": {"amount": 11}}])));
}

#[test]
fn a_list_fits_a_rule_as_a_whole_or_element_by_element_where_the_schema_has_a_list() {
    let rule = allowed(json!({"tag": ["x", "y", ["p", "q"]]}));
    let lists = json!({"properties": {"tag": {"type": ["string", "array"], "items": {"items": true}}}});
    assert!(permits_by(&rule, &lists, &json!({"tag": ["x", "y"]})));
    assert!(permits_by(&rule, &lists, &json!({"tag": [["x"], "y"]})));
    assert!(permits_by(&rule, &lists, &json!({"tag": ["p", "q"]})) && permits_by(&rule, &lists, &json!({"tag": []})));
    assert!(!permits_by(&rule, &lists, &json!({"tag": ["x", "z"]})));
    assert!(!permits_by(&rule, &lists, &json!({"tag": ["q", "p"]})));
    assert!(permits(&rule, &json!({"tag": ["p", "q"]})), "this list is one of the values");
}

#[test]
fn a_list_under_a_bound_on_one_value_is_refused_unless_the_schema_has_a_list() {
    let bound = allowed(json!({"n_max": 3}));
    for parameters in [json!({"n": [1, 3]}), json!({"n": []}), json!({"n": [[1]]})] {
        assert!(!permits(&bound, &parameters), "{parameters}");
        assert!(!permits_by(&bound, &json!({"properties": {"n": {"type": "integer"}}}), &parameters), "{parameters}");
    }
    let lists = [
        json!({"properties": {"n": {"type": "array"}}}),
        json!({"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"properties": {"n": {"items": {"type": "integer"}}}}}}),
    ];
    for schema in lists {
        assert!(permits_by(&bound, &schema, &json!({"n": [1, 3]})) && permits_by(&bound, &schema, &json!({"n": []})));
        assert!(!permits_by(&bound, &schema, &json!({"n": [1, 4]})), "{schema}");
        assert!(!permits_by(&bound, &schema, &json!({"n": [[1]]})), "{schema}");
    }
}

#[test]
fn another_spelling_of_a_constrained_name_is_refused() {
    let rules = [
        (allowed(json!({"amount_max": 500})), "amount"),
        (denied(json!({"amount": {"any": true}})), "amount"),
        (denied(json!({"metadata.plan": ["pro"]})), "metadata.plan"),
    ];
    let spellings = [
        json!({"amount[]": 1}),
        json!({"amount[0]": 1}),
        json!({"amount[x]": 1}),
        json!({"Amount": 1}),
        json!({" amount": 1}),
        json!({"amount.x": 1}),
        json!({"metadata[plan]": "x"}),
        json!({"Metadata": {"plan": "x"}}),
        json!({"metadata": {"Plan": "x"}}),
        json!({"metadata": [{"plan[]": "x"}]}),
        json!({"metadata_plan": "x"}),
    ];
    for (rule, path) in rules {
        for spelling in &spellings {
            let concerned = spelling.to_string().to_lowercase().contains(path.split('.').next().unwrap());
            let violation = rule.check_parameters(spelling, None).err();
            assert_eq!(violation.is_some(), concerned, "{spelling} and {path}");
            assert!(violation.is_none_or(|violation| violation.path.as_str() == path));
        }
    }
}

#[test]
fn a_name_that_the_schema_declares_is_a_parameter_of_its_own() {
    let rule = allowed(json!({"filter.status": ["open"], "filter_max": 5}));
    let schema = json!({"properties": {"filter[status]": {}, "Filter": {}, "filter": {}}});
    assert!(permits_by(&rule, &schema, &json!({"Filter": 9, "filter": 5})));
    // In brackets it is the member that the rule is about, and is checked as one.
    assert!(permits_by(&rule, &schema, &json!({"filter[status]": "open"})));
    assert!(!permits_by(&rule, &schema, &json!({"filter[status]": "closed"})));
    assert!(!permits_by(&rule, &schema, &json!({"filter[x]": 1})));
}

#[test]
fn a_denied_number_is_kept_as_it_was_given() {
    let given = json!({"denied_parameters": {"account": [9_007_199_254_740_993_u64]}});
    assert_eq!(constraints(given.clone()).to_json(), given);
}

#[test]
fn one_denied_element_of_a_list_is_enough() {
    let rule = denied(json!({"tag": ["x"]}));
    assert!(!permits(&rule, &json!({"tag": ["a", ["x"]]})));
    assert!(permits(&rule, &json!({"tag": ["a", "b"]})));
}

#[test]
fn a_pattern_must_match_the_whole_text() {
    let rule = allowed(json!({"name": {"pattern": "cus_[a-z]+|any"}}));
    for (text, fits) in
        [("cus_abc", true), ("any", true), ("xcus_abc", false), ("cus_abc\n", false), ("anything", false), ("", false)]
    {
        assert_eq!(permits(&rule, &json!({"name": text})), fits, "{text:?}");
    }
    assert!(!permits(&rule, &json!({"name": 5})), "only texts match");
    assert!(!permits(&allowed(json!({"name": {"pattern": "(?m)^a$"}})), &json!({"name": "b\na"})));
    let rule = denied(json!({"name": {"pattern": "test.*"}}));
    assert!(!permits(&rule, &json!({"name": "testing"})) && permits(&rule, &json!({"name": "a test"})));
}

#[test]
fn all_patterns_of_a_rule_must_match() {
    let rule = allowed(json!({"name": {"patterns": ["a.*", ".*z"]}}));
    assert!(permits(&rule, &json!({"name": "abcz"})));
    assert!(!permits(&rule, &json!({"name": "abc"})) && !permits(&rule, &json!({"name": "xyz"})));
}

#[test]
fn a_required_parameter_must_be_there_wherever_the_path_can_mean() {
    let rule = allowed(json!({"metadata.ticket": {"required": true}}));
    assert!(!permits(&rule, &json!({})) && !permits(&rule, &json!({"metadata": {}})));
    assert!(permits(&rule, &json!({"metadata": {"ticket": null}})) && permits(&rule, &json!({"metadata.ticket": 1})));
}

#[test]
fn a_parameter_that_may_not_be_given_is_denied_with_every_value() {
    let rule = denied(json!({"debug": {"any": true}}));
    for value in [json!(null), json!(false), json!([]), json!({"a": 1})] {
        assert!(!permits(&rule, &json!({"debug": value})));
    }
    assert!(permits(&rule, &json!({"debugger": true})));
}

#[test]
fn what_is_denied_stays_denied_although_it_is_allowed() {
    let rule = constraints(json!({"allowed_parameters": {"a": [1, 2]}, "denied_parameters": {"a": [2]}}));
    assert!(permits(&rule, &json!({"a": 1})) && !permits(&rule, &json!({"a": 2})));
}
