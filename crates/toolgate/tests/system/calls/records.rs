//! What stays of a call: the event of §6.1, the parameters as far as the tool's logging rule allows, the fingerprint.

use serde_json::{Value, json};
use toolgate_testkit::upstream::Reply as Answer;

use super::shop::{Shop, TOKEN};
use crate::call_crash::assert_log_verifies;
use crate::world::{World, id, names, on_both_engines, text, until};

on_both_engines! {
    an_invocation_is_told_as_the_rfc_tells_it,
    parameters_are_kept_as_the_logging_rule_says,
    names_that_look_like_a_secrets_are_left_out_unless_a_rule_names_them,
    fields_of_tools_without_a_rule_are_kept_in_short,
    the_fingerprint_is_the_same_for_the_same_request_and_no_other,
    a_refused_call_is_recorded_by_the_same_rule,
    the_arguments_hash_is_that_of_the_canonical_parameters,
    a_refusal_is_recorded_with_the_grant_and_the_service_that_it_is_about,
    a_refusal_that_is_about_no_single_grant_is_recorded_with_the_service,
    a_refusal_that_quotes_a_nul_is_recorded_and_told,
    what_is_nested_as_deep_as_it_may_be_is_exported_and_verified,
    a_flood_of_refused_calls_is_recorded_in_sum,
}

/// Looks that the record and the event of a refusal name what the response names.
fn is_recorded_with(shop: &Shop, refused: &Value, grant: &Value, tool: &str) {
    let invocation = text(refused, "/invocation_id");
    let record = shop.record(invocation);
    let told = (&record["grant_id"], &record["service"], &record["tool"]);
    assert_eq!(told, (&grant["id"], &json!("payments"), &json!(tool)), "{refused}");
    let events = shop.events_of(invocation);
    let [event] = events.as_slice() else { panic!("one event: {events:?}") };
    let data = &event["data"];
    assert_eq!((&event["type"], &data["service"]), (&json!("tool.denied"), &json!("payments")), "{event}");
    assert_eq!((&data["grant_id"], &data["tool"]), (&grant["id"], &json!(tool)), "{event}");
}

fn a_refusal_is_recorded_with_the_grant_and_the_service_that_it_is_about(world: &World) {
    let shop = Shop::open(world);
    let grant = shop.grant(json!({"scopes": ["charges.read"]}));
    let create = json!({"amount": 1, "currency": "usd"});
    let path = format!("/api/v1/grants/{}", id(&grant));
    let lacking = shop.call("payments.charges.create", create);
    assert_eq!(lacking.refused(403, "GRANT_SCOPE_INSUFFICIENT")["grant_id"], grant["id"]);
    is_recorded_with(&shop, &lacking.json(), &grant, "charges.create");
    let unknown = shop.call("payments.nothing", json!({}));
    assert_eq!(unknown.refused(403, "GRANT_SCOPE_INSUFFICIENT")["grant_id"], grant["id"]);
    is_recorded_with(&shop, &unknown.json(), &grant, "nothing");
    let wrong = shop.call("payments.charges.read", json!({"nope": 1}));
    is_recorded_with(&shop, &wrong.json(), &grant, "charges.read");
    shop.admin.patch(&format!("{path}/suspend"), &json!({"reason": "an incident"})).ok();
    let suspended = shop.call("payments.charges.read", json!({}));
    assert_eq!(suspended.refused(403, "GRANT_SUSPENDED")["grant_id"], grant["id"]);
    is_recorded_with(&shop, &suspended.json(), &grant, "charges.read");
    shop.admin.delete(&path).ok();
    let revoked = shop.call("payments.charges.read", json!({}));
    assert_eq!(revoked.refused(403, "GRANT_REVOKED")["grant_id"], grant["id"]);
    is_recorded_with(&shop, &revoked.json(), &grant, "charges.read");
    // A grant of another agent is none, and is not recorded as one.
    let foreign = shop.grant_to("other", json!({}));
    let body = json!({"tool": "payments.charges.read", "grant_id": foreign["id"]});
    let hidden = shop.agent.invokes(body);
    hidden.refused(404, "GRANT_NOT_FOUND");
    assert_eq!(shop.record(text(&hidden.json(), "/invocation_id"))["grant_id"], Value::Null);
}

fn a_refusal_that_is_about_no_single_grant_is_recorded_with_the_service(world: &World) {
    let shop = Shop::open(world);
    for _ in 0..2 {
        shop.grant(json!({"scopes": ["charges.read"]}));
    }
    let unknown = shop.call("payments.nothing", json!({}));
    assert_eq!(unknown.refused(403, "GRANT_SCOPE_INSUFFICIENT").get("grant_id"), None);
    let record = shop.record(text(&unknown.json(), "/invocation_id"));
    let told = (&record["grant_id"], &record["service"], &record["tool"]);
    assert_eq!(told, (&Value::Null, &json!("payments"), &json!("nothing")));
}

fn a_refusal_that_quotes_a_nul_is_recorded_and_told(world: &World) {
    let shop = Shop::open(world);
    shop.grant(json!({}));
    let refused = shop.call("payments.charges.read", json!({"a\0b": 1}));
    refused.refused(400, "PARAMETERS_INVALID");
    let record = shop.record(text(&refused.json(), "/invocation_id"));
    assert_eq!((&record["status"], &record["error"]["code"]), (&json!("denied"), &json!("PARAMETERS_INVALID")));
}

fn what_is_nested_as_deep_as_it_may_be_is_exported_and_verified(world: &World) {
    let shop = Shop::open(world);
    shop.grant(json!({}));
    let mut deep = json!(1);
    for _ in 0..62 {
        deep = json!([deep]);
    }
    // What the service says to it does not matter.
    let reply = shop.call("payments.anything", json!({"deep": deep}));
    assert!(reply.json()["invocation_id"].is_string(), "{}", reply.json());
    assert_log_verifies(world);
}

fn an_invocation_is_told_as_the_rfc_tells_it(world: &World) {
    let shop = Shop::open(world);
    let grant = shop.grant(json!({}));
    let body = json!({
        "tool": "payments.charges.create", "parameters": {"amount": 2500, "currency": "usd"},
        "context": {"intent_id": "intent_01HABC", "plan_id": "plan_1", "task_id": "task_01HXYZ"},
    });
    let answer = shop.agent.invokes(body).ok();
    let events = shop.events_of(text(&answer, "/invocation_id"));
    let [event] = events.as_slice() else { panic!("one event: {events:?}") };
    assert_eq!((&event["type"], &event["intent_id"]), (&json!("tool.invoked"), &json!("intent_01HABC")));
    assert_eq!((&event["task_id"], &event["plan_id"]), (&json!("task_01HXYZ"), &json!("plan_1")));
    assert_eq!((&event["agent_id"], &event["actor"]), (&json!("billing"), &json!("billing")));
    assert_eq!(event["timestamp"], answer["timestamp"]);
    let data = &event["data"];
    let fields = [
        "arguments_hash",
        "cost",
        "duration_ms",
        "grant_id",
        "http_status",
        "invocation_id",
        "parameters_summary",
        "request_fingerprint",
        "returned",
        "service",
        "status",
        "tool",
    ];
    assert_eq!(names(data), fields);
    assert_eq!((&data["invocation_id"], &data["grant_id"]), (&answer["invocation_id"], &grant["id"]));
    assert_eq!((&data["service"], &data["tool"]), (&json!("payments"), &json!("charges.create")));
    assert_eq!(data["parameters_summary"], json!({"amount": 2500, "currency": "usd"}));
    assert_eq!((&data["status"], &data["http_status"]), (&json!("success"), &json!(201)));
    assert_eq!((&data["duration_ms"], &data["cost"]), (&answer["duration_ms"], &answer["cost"]));
    assert!(!event.to_string().contains(TOKEN));
}

/// What is kept of a charge's parameters, in the record and in the event alike.
fn summary(shop: &Shop, tool: &str, parameters: Value) -> Value {
    let answer = shop.call(tool, parameters).json();
    let invocation = text(&answer, "/invocation_id");
    let record = shop.record(invocation);
    let event = &shop.events_of(invocation)[0];
    if event["type"] == "tool.invoked" {
        assert_eq!(event["data"]["parameters_summary"], record["parameters"]);
    }
    record["parameters"].clone()
}

fn parameters_are_kept_as_the_logging_rule_says(world: &World) {
    let shop = Shop::open(world);
    shop.grant(json!({}));
    let parameters = |customer: &str| json!({"amount": 1, "currency": "usd", "customer": customer, "description": "for Ada", "metadata": {"a": 1}});
    let kept = summary(&shop, "payments.charges.create", parameters("cus_1"));
    let hash = text(&kept, "/customer");
    assert!(hash.starts_with("sha256:") && hash.len() == 7 + 64, "{hash}");
    let expected = json!({"amount": 1, "currency": "usd", "customer": hash, "metadata": {"a": 1}});
    assert_eq!(kept, expected, "`description` is omitted");
    assert_eq!(summary(&shop, "payments.charges.create", parameters("cus_1"))["customer"], hash, "to compare by");
    assert_ne!(summary(&shop, "payments.charges.create", parameters("cus_2"))["customer"], hash);
}

fn names_that_look_like_a_secrets_are_left_out_unless_a_rule_names_them(world: &World) {
    let shop = Shop::answering(world, |_| Answer::json(200, json!({})));
    shop.grant(json!({}));
    let parameters = json!({
        "api_key": "k", "password": "p", "accessToken": "t", "card": {"number": "4242", "cvc": "1", "name": "Ada"},
        "list": [{"client_secret": "s", "id": 1}], "token_count": 5, "monkey": "m",
    });
    let kept = summary(&shop, "payments.anything", parameters.clone());
    let expected = json!({"card": {"name": "Ada"}, "list": [{"id": 1}], "token_count": 5, "monkey": "m"});
    assert_eq!(kept, expected);
    let named = json!({
        "service": "payments", "version": "2032",
        "tools": {"anything": {
            "http": {"method": "POST", "path": "/v1/anything"},
            "logging": {"default": "omit", "fields": {"api_key": "hash", "token_count": "log"}}
        }}
    });
    shop.admin.post("/api/v1/services", &named).created();
    let kept = summary(&shop, "payments.anything", parameters);
    assert_eq!(names(&kept), ["api_key", "token_count"]);
    assert!(text(&kept, "/api_key").starts_with("sha256:"));
}

fn fields_of_tools_without_a_rule_are_kept_in_short(world: &World) {
    let shop = Shop::answering(world, |_| Answer::json(200, json!({})));
    shop.grant(json!({}));
    let kept = summary(&shop, "payments.anything", json!({"text": "x".repeat(1000), "short": "y"}));
    assert!(text(&kept, "/text").starts_with("[text of 1000 bytes, sha256:"), "{kept}");
    assert_eq!(kept["short"], "y");
    let many: serde_json::Map<String, Value> =
        (0..5000).map(|number| (format!("field{number}"), json!("some words"))).collect();
    let kept = summary(&shop, "payments.anything", Value::Object(many));
    assert!(kept.to_string().len() < 10_000, "{}", kept.to_string().len());
    assert!(kept["_left_out"].as_u64().unwrap() > 4000, "and says how much is missing");
}

fn the_fingerprint_is_the_same_for_the_same_request_and_no_other(world: &World) {
    let shop = Shop::open(world);
    shop.grant(json!({}));
    let fingerprint = |tool: &str, parameters: Value| {
        let answer = shop.call(tool, parameters).ok();
        let record = shop.record(text(&answer, "/invocation_id"));
        let event = &shop.events_of(text(&answer, "/invocation_id"))[0];
        assert_eq!(event["data"]["request_fingerprint"], record["request_fingerprint"]);
        text(&record, "/request_fingerprint").to_owned()
    };
    let first = fingerprint("payments.charges.create", json!({"amount": 1, "currency": "usd"}));
    assert!(first.len() == 64 && first.chars().all(|letter| letter.is_ascii_hexdigit()), "{first}");
    assert_eq!(fingerprint("charges.create", json!({"currency": "usd", "amount": 1})), first);
    assert_ne!(fingerprint("payments.charges.create", json!({"amount": 2, "currency": "usd"})), first);
    let read = fingerprint("payments.charges.read", json!({"charge_id": "ch_1"}));
    assert_eq!(fingerprint("payments.charges.read", json!({"charge_id": "ch_1"})), read);
    assert_ne!(read, first);
    // The credential is no part of it: rotated, the same request is the same.
    let rotation = json!({"material": {"token": "t0ken-of-another-day"}});
    shop.admin.patch(&format!("/api/v1/credentials/{}/rotate", shop.credential), &rotation).ok();
    assert_eq!(fingerprint("payments.charges.create", json!({"amount": 1, "currency": "usd"})), first);
}

fn a_refused_call_is_recorded_by_the_same_rule(world: &World) {
    let shop = Shop::open(world);
    shop.grant(json!({"constraints": {"amount_max": 10}}));
    let parameters = json!({
        "amount": 11, "currency": "usd", "customer": "cus_1", "description": "for Ada", "api_key": "sk_zebra",
    });
    let reply = shop.call("payments.charges.create", parameters);
    shop.denied(&reply, 403, "GRANT_PARAMETER_DENIED");
    let record = shop.record(text(&reply.json(), "/invocation_id"));
    assert_eq!(names(&record["parameters"]), ["amount", "currency", "customer"]);
    assert!(text(&record, "/parameters/customer").starts_with("sha256:"));
    // Of a tool that was not found no rule is known: nothing is kept but the hash.
    let reply = shop.call("unheard.of", json!({"amount": 1}));
    shop.denied(&reply, 404, "TOOL_NOT_FOUND");
    let record = shop.record(text(&reply.json(), "/invocation_id"));
    assert_eq!((&record["parameters"], &record["tool"]), (&json!({}), &json!("unheard.of")));
    assert_eq!(text(&record, "/arguments_hash").len(), 64);
}

fn the_arguments_hash_is_that_of_the_canonical_parameters(world: &World) {
    let shop = Shop::open(world);
    shop.grant(json!({}));
    let answer = shop.call("payments.charges.create", json!({"currency": "usd", "amount": 1})).ok();
    let record = shop.record(text(&answer, "/invocation_id"));
    let canonical = br#"{"amount":1,"currency":"usd"}"#;
    assert_eq!(record["arguments_hash"], toolgate_model::merkle::sha256(canonical).to_hex());
}

fn a_flood_of_refused_calls_is_recorded_in_sum(world: &World) {
    const CALLS: usize = 160;
    let admin = world.admin();
    let intruder = admin.registers("intruder", &[]);
    let body = json!({"tool": "payments.charges.read", "parameters": {}});
    let replies: Vec<_> = std::thread::scope(|scope| {
        let call = || (0..CALLS / 8).map(|_| intruder.post("/api/v1/tools/invoke", &body)).collect::<Vec<_>>();
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(call)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    replies.iter().for_each(|reply| drop(reply.refused(403, "PERMISSION_DENIED")));
    let recorded = replies.iter().filter(|reply| reply.json()["invocation_id"].is_string()).count();
    assert!((100..CALLS).contains(&recorded), "{recorded} of {CALLS} have a record of their own");
    assert_eq!(admin.events("&type=tool.denied").len(), recorded);
    let told = until("the rest in sum", || {
        let events = admin.events("&type=tool.denials.counted");
        let count =
            events.iter().map(|event| event["data"]["codes"]["PERMISSION_DENIED"].as_u64().unwrap()).sum::<u64>();
        (usize::try_from(count).unwrap() == CALLS - recorded).then_some(events)
    });
    assert!(told.iter().all(|event| event["actor"] == "intruder" && event["data"]["first_at"].is_string()));
    assert_log_verifies(world);
}
