//! The limits of a grant and of a tool besides the rate: schema, cost, network, host. Each refusal says what to correct.

use serde_json::{Value, json};

use super::shop::{Shop, read};
use crate::world::{Reply, World, on_both_engines, setup, text};

on_both_engines! {
    parameters_outside_the_schema_are_refused_by_path_and_rule,
    the_schema_is_judged_before_the_grant,
    a_tool_that_costs_more_than_the_grant_allows_is_refused,
    a_grant_is_used_only_from_where_it_allows,
    a_grant_reaches_only_the_hosts_that_it_allows,
    a_parameter_cannot_leave_its_place_in_the_request,
    no_refusal_repeats_a_value_that_was_sent,
}

fn create(shop: &Shop, parameters: Value) -> Reply {
    shop.call("payments.charges.create", parameters)
}

fn parameters_outside_the_schema_are_refused_by_path_and_rule(world: &World) {
    let shop = Shop::open(world);
    shop.grant(json!({}));
    let full = json!({
        "service": "payments", "version": "2030",
        "tools": {"anything": {
            "parameters": {
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "type": "object",
                "properties": {
                    "lines": {"type": "array", "maxItems": 2, "items": {
                        "type": "object", "required": ["sku"], "properties": {"sku": {"type": "string", "minLength": 2}}
                    }},
                    "kind": {"enum": ["a", "b"]}
                },
                "unevaluatedProperties": false
            },
            "http": {"method": "POST", "path": "/v1/charges"}
        }}
    });
    for (parameters, path, rule) in [
        (json!({"amount": 1}), "parameters.currency", "required"),
        (json!({"amount": "1", "currency": "usd"}), "parameters.amount", "type"),
        (json!({"amount": 1.5, "currency": "usd"}), "parameters.amount", "type"),
        (json!({"amount": 1, "currency": null}), "parameters.currency", "type"),
        (json!({"amount": 1, "currency": "usd", "tip": 1}), "parameters.tip", "additionalProperties"),
    ] {
        let error = shop.denied(&create(&shop, parameters.clone()), 400, "PARAMETERS_INVALID");
        assert_eq!((&error["path"], &error["rule"]), (&json!(path), &json!(rule)), "{parameters}: {error}");
    }
    shop.admin.post("/api/v1/services", &full).created();
    for (parameters, path, rule) in [
        (json!({"lines": [{"sku": "ab"}, {}]}), "parameters.lines.1", "required"),
        (json!({"lines": [{"sku": "a"}]}), "parameters.lines.0.sku", "minLength"),
        (json!({"lines": [1, 2, 3]}), "parameters.lines", "maxItems"),
        (json!({"kind": "c"}), "parameters.kind", "enum"),
        (json!({"other": 1}), "parameters", "unevaluatedProperties"),
    ] {
        let error = shop.denied(&shop.send(parameters.clone()), 400, "PARAMETERS_INVALID");
        assert_eq!(error["rule"], rule, "{parameters}: {error}");
        assert!(text(&error, "/path").starts_with(path), "{parameters}: {error}");
    }
    assert_eq!(shop.upstream.count(), 0);
}

fn the_schema_is_judged_before_the_grant(world: &World) {
    let shop = Shop::open(world);
    let constraints = json!({
        "allowed_parameters": {"currency": ["usd"], "amount": {"max": 100}},
        "denied_parameters": {"currency": ["usd"], "customer": ["cus_bad"]},
        "max_cost_per_invocation": 0.0001,
    });
    shop.grant(json!({"constraints": constraints}));
    let code = |parameters: Value, status: u16, code: &str| {
        let error = shop.denied(&create(&shop, parameters), status, code);
        error.get("path").cloned().unwrap_or_default()
    };
    assert_eq!(code(json!({"amount": "x", "currency": "eur"}), 400, "PARAMETERS_INVALID"), "parameters.amount");
    let beyond = json!({"amount": 101, "currency": "eur", "customer": "cus_bad"});
    assert_eq!(code(beyond, 403, "GRANT_PARAMETER_DENIED"), "parameters.amount", "what is allowed, by name");
    assert_eq!(code(json!({"amount": 1, "currency": "eur"}), 403, "GRANT_PARAMETER_DENIED"), "parameters.currency");
    assert_eq!(code(json!({"amount": 1, "currency": "usd"}), 403, "GRANT_PARAMETER_DENIED"), "parameters.currency");
    assert_eq!(shop.upstream.count(), 0);
}

fn a_tool_that_costs_more_than_the_grant_allows_is_refused(world: &World) {
    let shop = Shop::answering(world, |_| toolgate_testkit::upstream::Reply::json(200, json!({})));
    let grant = shop.grant(json!({"constraints": {"max_cost_per_invocation": 0.01}}));
    shop.read(json!({})).ok();
    let error = shop.denied(&create(&shop, json!({"amount": 1, "currency": "usd"})), 403, "GRANT_COST_EXCEEDED");
    assert_eq!((&error["estimated_cost_usd"], &error["max_cost_per_invocation"]), (&json!(0.02), &json!(0.01)));
    assert_eq!(error["grant_id"], grant["id"]);
    let error = shop.denied(&shop.send(json!({})), 403, "GRANT_COST_EXCEEDED");
    assert_eq!(error["estimated_cost_usd"], Value::Null, "what nobody estimated may cost anything");
    let exact = shop.grant(json!({"constraints": {"max_cost_per_invocation": 0.02}}));
    let answer = create(&shop, json!({"amount": 1, "currency": "usd"})).ok();
    assert_eq!(answer["grant_id"], exact["id"], "up to the limit, with it");
}

fn a_grant_is_used_only_from_where_it_allows(world: &World) {
    let shop = Shop::open(world);
    let elsewhere = json!({"constraints": {"ip_allowlist": ["10.0.0.0/8", "2001:db8::/32"]}});
    let grant = shop.grant(elsewhere);
    let error = shop.denied(&shop.read(json!({})), 403, "GRANT_NETWORK_DENIED");
    assert_eq!(error["grant_id"], grant["id"]);
    // What a proxy would say of the address is not believed.
    let header = [("X-Forwarded-For", "10.0.0.1"), ("Forwarded", "for=10.0.0.1"), ("X-Real-IP", "10.0.0.1")];
    let reply = shop.agent.ask_with("POST", "/api/v1/tools/invoke", &header, Some(&read(json!({}))));
    shop.denied(&reply, 403, "GRANT_NETWORK_DENIED");
    assert_eq!(shop.upstream.count(), 0);
    let here = shop.grant(json!({"constraints": {"ip_allowlist": ["127.0.0.0/8"]}}));
    assert_eq!(shop.read(json!({})).ok()["grant_id"], here["id"]);
}

fn a_grant_reaches_only_the_hosts_that_it_allows(world: &World) {
    let shop = Shop::open(world);
    let grant = shop.grant(json!({"constraints": {"allowed_hosts": ["api.example.com"]}}));
    let error = shop.denied(&shop.read(json!({})), 403, "GRANT_HOST_DENIED");
    assert_eq!(error["grant_id"], grant["id"]);
    assert_eq!(shop.upstream.count(), 0);
    let here = shop.grant(json!({"constraints": {"allowed_hosts": ["127.0.0.1"]}}));
    assert_eq!(shop.read(json!({})).ok()["grant_id"], here["id"]);
}

fn a_parameter_cannot_leave_its_place_in_the_request(world: &World) {
    let shop = Shop::open(world);
    shop.grant(json!({}));
    for charge in ["..", ".", "", "a/../../admin", "a\r\nX-Evil: 1", "a\u{0}b"] {
        let reply = shop.read(json!({"parameters": {"charge_id": charge}}));
        if reply.status() == 400 {
            let error = shop.denied(&reply, 400, "PARAMETERS_INVALID");
            assert_eq!(error["path"], "parameters.charge_id", "{charge:?}: {error}");
        }
    }
    for request in shop.upstream.received() {
        let segments: Vec<&str> = request.path().split('/').collect();
        assert_eq!(segments.len(), 4, "{}", request.target);
        assert_eq!(request.header("x-evil"), None);
    }
    for charge in ["..", "", "a\r\nb"] {
        shop.read(json!({"parameters": {"charge_id": charge}})).refused(400, "PARAMETERS_INVALID");
    }
}

fn no_refusal_repeats_a_value_that_was_sent(world: &World) {
    let shop = Shop::open(world);
    let rules = json!({
        "allowed_parameters": {"currency": ["usd"], "customer": {"pattern": "cus_.*"}, "amount": {"max": 10}},
        "denied_parameters": {"description": {"pattern": "sk_.*"}},
    });
    shop.grant(json!({"constraints": rules}));
    for parameters in [
        json!({"amount": "sk_zebra", "currency": "usd"}),
        json!({"amount": 1, "currency": "sk_zebra"}),
        json!({"amount": 1, "currency": "usd", "customer": "sk_zebra"}),
        json!({"amount": 1, "currency": "usd", "description": "sk_zebra"}),
        json!({"amount": 1, "currency": "usd", "metadata": "sk_zebra"}),
    ] {
        let reply = create(&shop, parameters);
        assert!(matches!(reply.status(), 400 | 403), "{}", reply.answer.text());
        assert!(!reply.answer.text().contains("zebra"), "{}", reply.answer.text());
        let record = shop.record(text(&reply.json(), "/invocation_id"));
        assert!(!record["error"].to_string().contains("zebra"), "{record}");
    }
}

#[test]
fn a_call_that_no_connection_is_left_for_is_refused_before_its_admission() {
    let world = World::of(&setup().reaching_loopback().environment("TOOLGATE_EGRESS_MAX_CONNECTIONS", "1"), None);
    let shop = Shop::open(&world);
    shop.grant(json!({}));
    shop.upstream.hold();
    std::thread::scope(|scope| {
        let first = scope.spawn(|| shop.read(json!({"idempotency_key": "first"})));
        shop.upstream.wait_for(1);
        let second = shop.read(json!({"idempotency_key": "second"}));
        let error = shop.denied(&second, 503, "OVERLOADED");
        assert_eq!((&error["limit"], &error["retry_after_seconds"]), (&json!(1), &json!(1)), "{error}");
        assert_eq!(second.answer.header("retry-after"), Some("1"));
        shop.upstream.release();
        first.join().unwrap().ok();
    });
    let again = shop.read(json!({"idempotency_key": "second"})).ok();
    assert_eq!((again["status"].as_str(), again["replayed"].as_bool()), (Some("success"), None), "its key was free");
    assert_eq!(shop.upstream.count(), 2);
}
