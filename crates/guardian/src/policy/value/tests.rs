//! Values as rules see them: each is put before a rule that can only hold if it came through unchanged.

use cedar_policy::{Authorizer, Context, Decision, Entities, EntityUid, PolicySet, Request};
use serde_json::json;

use super::*;

/// Whether a condition holds for `context.it`, which must not be in error.
fn holds(shape: &Shape, value: &Value, condition: &str) -> bool {
    let it = express(shape, value).expect("expressed");
    answer(it, condition)
}

fn answer(it: RestrictedExpression, condition: &str) -> bool {
    let context = Context::from_pairs([("it".to_owned(), it)]).expect("a context");
    let rules: PolicySet =
        format!("permit(principal, action, resource) when {{ {condition} }};").parse().expect("a rule");
    let uid = |text: &str| text.parse::<EntityUid>().expect("an id");
    let request =
        Request::new(uid("Principal::\"p\""), uid("Action::\"call\""), uid("Tool::\"t\""), context, None).unwrap();
    let response = Authorizer::new().is_authorized(&request, &rules, &Entities::empty());
    assert_eq!(response.diagnostics().errors().map(ToString::to_string).collect::<Vec<_>>(), Vec::<String>::new());
    response.decision() == Decision::Allow
}

fn refusal(shape: &Shape, value: &Value) -> String {
    express(shape, value).expect_err("refused").to_string()
}

fn shape(schema: Value) -> Shape {
    Shape::of_parameters(Some(&schema))
}

#[test]
fn rules_see_values_as_they_are() {
    let texts = Shape::Set(Box::new(Shape::Text));
    let table = [
        (Shape::Text, json!("a\"b\\\n€"), "context.it == \"a\\\"b\\\\\\n€\""),
        (Shape::Long, json!(i64::MAX), "context.it == 9223372036854775807"),
        (Shape::Long, json!(i64::MIN), "context.it == -9223372036854775808"),
        (Shape::Long, json!(2.0), "context.it == 2"),
        (Shape::Bool, json!(true), "context.it"),
        (Shape::Decimal, json!(0.1), "context.it == decimal(\"0.1\")"),
        (Shape::Decimal, json!(-0.5), "context.it == decimal(\"-0.5\")"),
        (Shape::Decimal, json!(12), "context.it == decimal(\"12.0\")"),
        (Shape::Decimal, json!(1e3), "context.it == decimal(\"1000.0\")"),
        (Shape::Decimal, json!(922337203685477_i64), "context.it == decimal(\"922337203685477.0\")"),
        (texts.clone(), json!(["b", "a", "b"]), "context.it == [\"a\", \"b\"]"),
        (texts.clone(), json!([]), "context.it.isEmpty()"),
        (texts, json!(["a", null]), "context.it == [\"a\"]"),
        (Shape::Json, json!("as it is"), "context.it == \"as it is\""),
        (Shape::Long, json!(9_007_199_254_740_993_i64), "context.it == 9007199254740993"),
        (Shape::Json, json!(9_007_199_254_740_993_i64), "context.it == \"9007199254740993\""),
        (Shape::Json, json!([u64::MAX]), "context.it == \"[18446744073709551615]\""),
        (Shape::Json, json!({"b": 1.0, "a": [null, "x"]}), r#"context.it == "{\"a\":[null,\"x\"],\"b\":1}""#),
        (Shape::Json, json!(false), "context.it == \"false\""),
    ];
    for (shape, value, condition) in table {
        assert!(holds(&shape, &value, condition), "{value}: {condition}");
    }
}

#[test]
fn what_cannot_be_expressed_exactly_is_refused() {
    let table = [
        (Shape::Long, json!(u64::MAX)),
        (Shape::Long, json!(1.5)),
        (Shape::Long, json!(1e18)),
        (Shape::Long, json!("1")),
        (Shape::Decimal, json!(0.00001)),
        (Shape::Decimal, json!(1.23456)),
        (Shape::Decimal, json!(1e300)),
        (Shape::Decimal, json!(922337203685478_i64)),
        (Shape::Decimal, json!("1.0")),
        (Shape::Text, json!(1)),
        (Shape::Text, json!(null)),
        (Shape::Bool, json!("true")),
        (Shape::Set(Box::new(Shape::Text)), json!("a")),
        (shape(json!({"properties": {"a": {"type": "string"}}})), json!([])),
    ];
    for (shape, value) in table {
        assert!(express(&shape, &value).is_err(), "{shape:?} {value}");
    }
}

#[test]
fn a_refusal_tells_the_place_but_not_the_value() {
    let lines = json!({"type": "object", "properties": {"lines": {"type": "array", "items": {
        "type": "object",
        "properties": {"price": {"type": "number"}, "tags": {"type": "array", "items": {"type": "string"}}}
    }}}});
    let bad_price = json!({"lines": [{"price": 1}, {"price": "hunter2"}]});
    assert_eq!(refusal(&shape(lines.clone()), &bad_price), "`lines[1].price` must be a number");
    let bad_tag = json!({"lines": [{"tags": ["a", {"secret": "hunter2"}]}]});
    assert_eq!(refusal(&shape(lines), &bad_tag), "`lines[0].tags[1]` must be a string");
}

#[test]
fn absent_and_null_members_are_left_out_and_unknown_ones_not_seen() {
    let shape = shape(json!({
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": ["integer", "null"]}, "c": {"type": "boolean"}},
        "required": ["a", "b"]
    }));
    let condition = "context.it.a == \"x\" && !(context.it has b) && !(context.it has c) && !(context.it has d)";
    assert!(holds(&shape, &json!({"a": "x", "b": null, "d": 1}), condition));
    assert!(holds(&shape, &json!({"a": "x", "b": 3}), "context.it == {\"a\": \"x\", \"b\": 3}"));
    for missing in [json!({"b": 3}), json!({"a": null, "b": 3})] {
        assert_eq!(refusal(&shape, &missing), "`a` is missing");
    }
}

#[test]
fn only_wanted_members_are_expressed() {
    let shape = shape(json!({
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "number"}, "c": {"type": "string"}},
        "required": ["a", "b", "c"]
    }));
    let arguments = json!({"a": "x", "b": 0.123456});
    let arguments = arguments.as_object().unwrap();
    let wanted = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<BTreeSet<_>>();
    let seen = express_members(&shape, arguments, Some(&wanted(&["a", "unheard"]))).unwrap();
    assert!(answer(seen, "context.it == {\"a\": \"x\"}"));
    let inexact = express_members(&shape, arguments, Some(&wanted(&["a", "b"]))).unwrap_err();
    assert_eq!(inexact.path, "b");
    let missing = express_members(&shape, arguments, Some(&wanted(&["c"]))).unwrap_err();
    assert_eq!(missing.to_string(), "`c` is missing");
    assert!(express_members(&shape, arguments, None).is_err());
    assert!(express_members(&Shape::Text, arguments, None).is_err());
}
