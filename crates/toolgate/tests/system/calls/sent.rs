//! What is checked is what is sent: no name and no number gets past a limit by being written in another way.

use serde_json::{Value, json};
use toolgate_testkit::upstream::Reply as Answer;

use super::shop::{Shop, payments};
use crate::world::{World, on_both_engines};

on_both_engines! {
    a_parameter_never_stands_under_the_name_that_another_is_mapped_to,
    another_spelling_of_a_limited_name_is_refused,
    a_list_is_no_way_around_a_limit_on_one_value,
    two_large_integers_are_never_taken_for_one_another,
    a_stored_definition_admits_a_large_integer_and_not_its_neighbour,
    a_response_whose_numbers_cannot_be_kept_is_passed_on_as_text,
}

const ONE: u64 = 9_007_199_254_740_992;
const OTHER: u64 = 9_007_199_254_740_993;

/// A shop whose tool that takes anything is this one, and a grant with these constraints on it.
fn shop(world: &World, tool: Value, constraints: Value) -> Shop {
    let shop = Shop::answering(world, |request| Answer::json_text(200, &request.text()));
    define(&shop, tool);
    shop.grant(json!({"constraints": constraints}));
    shop
}

/// Makes the tool that takes anything another one.
fn define(shop: &Shop, tool: Value) {
    let mut definition = payments("2024-01");
    definition["tools"]["anything"] = tool;
    shop.admin.ask("PUT", "/api/v1/services/payments", Some(&definition)).ok();
}

fn open_schema() -> Value {
    json!({"type": "object", "properties": {"amount": {"type": "integer", "maximum": 500}}})
}

fn a_parameter_never_stands_under_the_name_that_another_is_mapped_to(world: &World) {
    let mapped = |place: &str| json!({"amount": {"in": place, "name": "amt"}});
    let anything = json!({"http": {"method": "POST", "path": "/v1/anything"}});
    let shop = shop(world, anything, json!({"amount_max": 500}));
    for (http, schema) in [
        (json!({"method": "POST", "path": "/v1/anything", "parameters": mapped("body")}), open_schema()),
        (
            json!({"method": "POST", "path": "/v1/anything", "body": "form", "parameters": mapped("body")}),
            open_schema(),
        ),
        (json!({"method": "GET", "path": "/v1/anything", "parameters": mapped("query")}), open_schema()),
        (
            json!({"method": "GET", "path": "/v1/{amt}", "parameters": mapped("path")}),
            json!({"type": "object", "required": ["amount"], "properties": open_schema()["properties"]}),
        ),
    ] {
        define(&shop, json!({"http": http, "parameters": schema}));
        let before = shop.upstream.count();
        for parameters in [json!({"amt": 99_999, "amount": 1}), json!({"amt": 99_999})] {
            let error = shop.denied(&shop.send(parameters.clone()), 400, "PARAMETERS_INVALID");
            assert!(["parameters.amt", "parameters.amount"].contains(&error["path"].as_str().unwrap()), "{error}");
        }
        if http["path"] == "/v1/anything" {
            for name in ["Amt", "amt[]", "amt[0]", "amt.x"] {
                shop.denied(&shop.send(json!({name: 99_999})), 400, "PARAMETERS_INVALID");
            }
        }
        assert_eq!(shop.upstream.count(), before, "{http}");
        shop.send(json!({"amount": 500})).ok();
        assert_eq!(shop.upstream.count(), before + 1, "{http}");
    }
}

fn another_spelling_of_a_limited_name_is_refused(world: &World) {
    let query = json!({"http": {"method": "GET", "path": "/v1/anything"}});
    let limits = json!({"amount_max": 500, "denied_parameters": {"admin": {"any": true}}});
    let shop = shop(world, query, limits);
    for name in ["amount[]", "amount[0]", "Amount", " amount", "amount.x", "admin[x]", "ADMIN"] {
        shop.denied(&shop.send(json!({name: 501})), 403, "GRANT_PARAMETER_DENIED");
    }
    shop.send(json!({"amount": 500, "amounts": 501})).ok();
    // A spelling of what the schema declares is refused before any grant is asked.
    define(&shop, json!({"http": {"method": "POST", "path": "/v1/anything"}, "parameters": open_schema()}));
    let error = shop.denied(&shop.send(json!({"Amount": 501})), 400, "PARAMETERS_INVALID");
    assert_eq!((&error["path"], &error["rule"]), (&json!("parameters.Amount"), &json!("spelling")));
    assert_eq!(shop.upstream.count(), 1);
}

fn a_list_is_no_way_around_a_limit_on_one_value(world: &World) {
    let query = json!({"method": "GET", "path": "/v1/anything"});
    let shop = shop(world, json!({"http": query}), json!({"amount_max": 500}));
    for list in [json!([400, 400]), json!([400]), json!([])] {
        shop.denied(&shop.send(json!({"amount": list})), 403, "GRANT_PARAMETER_DENIED");
    }
    let lists = json!({"type": "object", "properties": {"amount": {"type": "array", "items": {"type": "integer"}}}});
    define(&shop, json!({"http": query, "parameters": lists}));
    shop.send(json!({"amount": [400, 500]})).ok();
    shop.denied(&shop.send(json!({"amount": [400, 501]})), 403, "GRANT_PARAMETER_DENIED");
}

fn two_large_integers_are_never_taken_for_one_another(world: &World) {
    let shop = shop(world, json!({"http": {"method": "POST", "path": "/v1/anything"}}), json!({}));
    let call = |account: u64| {
        let body = json!({"tool": "payments.anything", "parameters": {"account": account}, "idempotency_key": "k"});
        shop.agent.invokes(body)
    };
    let first = call(ONE).ok();
    assert_eq!(first["result"], json!({"account": ONE}));
    shop.denied(&call(OTHER), 409, "IDEMPOTENCY_CONFLICT");
    assert_eq!(call(ONE).ok()["replayed"], true);
    let other = shop.send(json!({"account": OTHER})).ok();
    assert_eq!(other["result"], json!({"account": OTHER}));
    let record = |answer: &Value| shop.record(answer["invocation_id"].as_str().unwrap());
    let (first, other) = (record(&first), record(&other));
    assert_ne!(first["request_fingerprint"], other["request_fingerprint"]);
    assert_eq!(first["parameters"], json!({"account": ONE}));
    assert_eq!(other["parameters"], json!({"account": OTHER}));
    let events = shop.events_of(other["id"].as_str().unwrap());
    assert!(events.iter().any(|event| event.to_string().contains(&OTHER.to_string())), "{events:?}");
}

fn a_stored_definition_admits_a_large_integer_and_not_its_neighbour(world: &World) {
    let schema = json!({"type": "object", "properties": {
        "listed": {"enum": [OTHER]}, "fixed": {"const": OTHER}, "most": {"maximum": ONE}, "least": {"minimum": OTHER}
    }});
    let tool = json!({"http": {"method": "POST", "path": "/v1/anything"}, "parameters": schema});
    let shop = shop(world, tool, json!({}));
    for (name, fits, misfits) in
        [("listed", OTHER, ONE), ("fixed", OTHER, ONE), ("most", ONE, OTHER), ("least", OTHER, ONE)]
    {
        shop.send(json!({name: fits})).ok();
        shop.denied(&shop.send(json!({name: misfits})), 400, "PARAMETERS_INVALID");
    }
}

fn a_response_whose_numbers_cannot_be_kept_is_passed_on_as_text(world: &World) {
    let exact = r#"{"balance": 5000.00000000000000000000001}"#;
    let shop = Shop::answering(world, move |_| Answer::json_text(200, exact));
    shop.grant(json!({}));
    assert_eq!(shop.send(json!({})).ok()["result"]["raw"], exact);
}
