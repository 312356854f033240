//! What a grant says of parameters, at the edges of JSON: numbers however written, lists, nulls, dots and depth.

use serde_json::{Value, json};
use toolgate_testkit::upstream::Reply as Answer;

use super::shop::Shop;
use crate::world::{Actor, Reply, World, on_both_engines, send};

on_both_engines! {
    one_number_is_one_number_however_it_is_written,
    large_integers_are_not_rounded_into_a_limit,
    a_rule_on_a_path_finds_every_spelling_of_it,
    a_list_is_taken_where_a_rule_lists_it_and_else_where_the_schema_has_one,
    null_is_a_value_and_absence_is_none,
    no_other_spelling_of_a_name_passes_its_rule,
    what_is_nested_deep_is_carried_or_refused_and_never_a_fault,
    parameters_arrive_at_the_service_as_they_were_sent,
}

fn shop(world: &World, constraints: Value) -> Shop {
    let shop = Shop::answering(world, |request| Answer::json_text(200, &request.text()));
    shop.grant(json!({"constraints": constraints}));
    shop
}

/// Sends parameters in this very spelling.
fn raw(world: &World, actor: &Actor, parameters: &str) -> Reply {
    let key = format!("Bearer {}", actor.key);
    let headers = [("Authorization", key.as_str()), ("Content-Type", "application/json")];
    let body = format!("{{\"tool\": \"payments.anything\", \"parameters\": {parameters}}}");
    send(world.gate.address(), "POST", "/api/v1/tools/invoke", &headers, body.as_bytes())
}

/// Whether each of these parameters is let through; what is not must be refused by the grant.
#[track_caller]
fn assert_judged(world: &World, shop: &Shop, path: &str, cases: &[(&str, bool)]) {
    for (parameters, passes) in cases {
        let reply = raw(world, &shop.agent, parameters);
        if *passes {
            reply.ok();
        } else {
            let error = shop.denied(&reply, 403, "GRANT_PARAMETER_DENIED");
            assert_eq!(error["path"], path, "{parameters}: {error}");
            assert!(error["rule"].is_string() && error["grant_id"].is_string(), "{error}");
        }
    }
}

fn one_number_is_one_number_however_it_is_written(world: &World) {
    let allowed = shop(world, json!({"allowed_parameters": {"amount": [1, 100, 0.5]}}));
    let cases = [
        (r#"{"amount": 1}"#, true),
        (r#"{"amount": 1.0}"#, true),
        (r#"{"amount": 1e0}"#, true),
        (r#"{"amount": 10e-1}"#, true),
        (r#"{"amount": 1e2}"#, true),
        (r#"{"amount": 100.000}"#, true),
        (r#"{"amount": 5e-1}"#, true),
        (r#"{"amount": "1"}"#, false),
        (r#"{"amount": true}"#, false),
        (r#"{"amount": 1.0000001}"#, false),
        (r#"{"amount": -1}"#, false),
    ];
    assert_judged(world, &allowed, "parameters.amount", &cases);
}

fn large_integers_are_not_rounded_into_a_limit(world: &World) {
    let bounded = shop(world, json!({"amount_max": 9_007_199_254_740_992_u64, "amount_min": -5}));
    let cases = [
        (r#"{"amount": 9007199254740992}"#, true),
        (r#"{"amount": 9007199254740993}"#, false),
        (r#"{"amount": 9007199254740992.0}"#, true),
        (r#"{"amount": 18446744073709551615}"#, false),
        (r#"{"amount": 1e308}"#, false),
        (r#"{"amount": -5}"#, true),
        (r#"{"amount": -5.5}"#, false),
        (r#"{"amount": -9223372036854775808}"#, false),
        (r#"{"amount": -0}"#, true),
        (r#"{"amount": "9"}"#, false),
        (r#"{"amount": [1, 9007199254740993]}"#, false),
        (r#"{}"#, true),
    ];
    assert_judged(world, &bounded, "parameters.amount", &cases);
    for beyond in [
        r#"{"amount": 1e400}"#,
        r#"{"amount": 1e-400}"#,
        r#"{"amount": 184467440737095516161}"#,
        r#"{"amount": 5000.00000000000000000000001}"#,
        r#"{"amount": NaN}"#,
    ] {
        raw(world, &bounded.agent, beyond).refused(400, "MALFORMED_JSON");
    }
}

fn a_rule_on_a_path_finds_every_spelling_of_it(world: &World) {
    let denied = shop(world, json!({"denied_parameters": {"metadata.test_mode": [true, 1]}}));
    let cases = [
        (r#"{"metadata": {"test_mode": true}}"#, false),
        (r#"{"metadata.test_mode": true}"#, false),
        (r#"{"metadata": {"test_mode": 1.0}}"#, false),
        (r#"{"metadata": [{"test_mode": false}, {"test_mode": true}]}"#, false),
        (r#"{"metadata": {"test_mode": [false, [true]]}}"#, false),
        (r#"{"metadata": {"\u0074est_mode": true}}"#, false),
        (r#"{"metadata": {"test_mode": false}}"#, true),
        (r#"{"metadata": {"test_mode": "true"}}"#, true),
        (r#"{"metadata": {"other": {"test_mode": true}}}"#, true),
        (r#"{"test_mode": true}"#, true),
        (r#"{"metadata": true}"#, true),
    ];
    assert_judged(world, &denied, "parameters.metadata.test_mode", &cases);
}

fn a_list_is_taken_where_a_rule_lists_it_and_else_where_the_schema_has_one(world: &World) {
    let allowed = shop(world, json!({"allowed_parameters": {"currency": ["usd", "eur", ["gbp", "chf"]]}}));
    // This tool has no schema.
    let cases = [
        (r#"{"currency": "usd"}"#, true),
        (r#"{"currency": ["usd", "eur"]}"#, false),
        (r#"{"currency": []}"#, false),
        (r#"{"currency": ["gbp", "chf"]}"#, true),
        (r#"{"currency": "gbp"}"#, false),
        (r#"{"currency": [["gbp", "chf"]]}"#, false),
        (r#"{"currency": ["chf", "gbp"]}"#, false),
        (r#"{"currency": {"code": "usd"}}"#, false),
    ];
    assert_judged(world, &allowed, "parameters.currency", &cases);
}

fn null_is_a_value_and_absence_is_none(world: &World) {
    let rules = json!({
        "allowed_parameters": {"note": {"values": ["a", null], "required": true}},
        "denied_parameters": {"force": {"any": true}},
    });
    let both = shop(world, rules);
    let required = [(r#"{"note": "a"}"#, true), (r#"{"note": null}"#, true), ("{}", false), (r#"{"note": ""}"#, false)];
    assert_judged(world, &both, "parameters.note", &required);
    let forbidden = [(r#"{"note": "a", "force": null}"#, false), (r#"{"note": "a", "force": []}"#, false)];
    assert_judged(world, &both, "parameters.force", &forbidden);
    let bounded = through_another_grant(&both, json!({"amount_max": 10}));
    let error = both.denied(&bounded(json!({"amount": null})), 403, "GRANT_PARAMETER_DENIED");
    assert_eq!(error["path"], "parameters.amount", "null is no number");
}

/// Calls through one more grant of the same agent.
fn through_another_grant<'a>(shop: &'a Shop, constraints: Value) -> impl Fn(Value) -> Reply + 'a {
    let grant = shop.grant(json!({"constraints": constraints}));
    move |parameters| {
        let body = json!({"tool": "payments.anything", "grant_id": grant["id"], "parameters": parameters});
        shop.agent.invokes(body)
    }
}

fn no_other_spelling_of_a_name_passes_its_rule(world: &World) {
    let denied = shop(world, json!({"denied_parameters": {"größe": ["xl"], "a b": {"any": true}}}));
    let composed =
        [(r#"{"größe": "xl"}"#, false), (r#"{"gr\u00f6\u00dfe": "xl"}"#, false), (r#"{"Größe": "s"}"#, false)];
    assert_judged(world, &denied, "parameters.größe", &composed);
    assert_judged(world, &denied, "parameters.a b", &[(r#"{"a b": 1}"#, false), (r#"{"a_b": 1}"#, false)]);
    let odd = r#"{"": 1, "\u0000": 2, "__proto__": {"a": 1}, "🦀": "🦀", "c\"d": "\\", "e\u0301": "\u00e9"}"#;
    let answer = raw(world, &denied.agent, odd).ok();
    let expected: Value = serde_json::from_str(odd).unwrap();
    assert_eq!(answer["result"], expected);
}

fn what_is_nested_deep_is_carried_or_refused_and_never_a_fault(world: &World) {
    let deep = shop(world, json!({"denied_parameters": {"a.a.a": ["x"]}}));
    let nested = |levels: usize| format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
    raw(world, &deep.agent, &nested(20)).ok();
    raw(world, &deep.agent, &nested(10_000)).refused(400, "MALFORMED_JSON");
    let mut refused = false;
    for levels in [40, 60, 62, 63, 64, 65, 100, 126, 127, 128] {
        let status = raw(world, &deep.agent, &nested(levels)).status();
        assert!(matches!(status, 200 | 400), "{levels}: {status}");
        assert!(!refused || status == 400, "one limit, and nothing beyond it");
        refused = status == 400;
    }
}

fn parameters_arrive_at_the_service_as_they_were_sent(world: &World) {
    let open = shop(world, json!({}));
    for sent in [
        r#"{"a":9007199254740993,"b":18446744073709551615,"c":-9223372036854775808}"#,
        r#"{"a":[1,2.5,true,null,"",{}],"z":{"y":{"x":[[]]}}}"#,
        r#"{"text":"line\nbreak \"quoted\" ünï 🦀 <>&'"}"#,
        "{}",
    ] {
        raw(world, &open.agent, sent).ok();
        let received = open.upstream.received().last().unwrap().text();
        let (received, sent): (Value, Value) =
            (serde_json::from_str(&received).unwrap(), serde_json::from_str(sent).unwrap());
        assert_eq!(received, sent);
    }
}
