//! Calls that work, in the RFC's shape and in the SDK's, and requests that are no calls.

use serde_json::{Value, json};

use super::shop::{Shop, TOKEN, read};
use crate::world::{World, names, on_both_engines, send, text};

on_both_engines! {
    the_shape_of_the_rfc_is_carried_out_and_answered,
    the_shape_of_the_sdk_is_carried_out_and_answered,
    without_a_grant_the_answer_says_which_one_was_used,
    what_the_answer_names_can_be_looked_up,
    a_request_that_contradicts_itself_is_refused,
    a_request_that_is_no_call_leaves_no_record,
}

fn the_shape_of_the_rfc_is_carried_out_and_answered(world: &World) {
    let shop = Shop::open(world);
    let grant = shop.grant(json!({}));
    let parameters = json!({"amount": 2500, "currency": "usd", "customer": "cus_abc123"});
    let body = json!({
        "grant_id": grant["id"], "tool": "payments.charges.create", "parameters": parameters,
        "idempotency_key": "inv_01HXYZ_attempt_1",
        "context": {"intent_id": "intent_01HABC", "task_id": "task_01HXYZ", "agent_id": "billing"},
    });
    let answer = shop.agent.invokes(body).ok();
    let fields =
        ["cost", "duration_ms", "error", "grant_id", "invocation_id", "result", "status", "timestamp", "tool_name"];
    assert_eq!(names(&answer), fields);
    assert!(text(&answer, "/invocation_id").starts_with("inv_"));
    assert_eq!((&answer["status"], &answer["error"]), (&json!("success"), &Value::Null));
    assert_eq!(answer["result"], json!({"id": "ch_1", "amount": 2500, "currency": "usd", "status": "succeeded"}));
    assert_eq!(answer["cost"], json!({"api_units": 1, "estimated_cost_usd": 0.02}));
    assert_eq!((&answer["grant_id"], &answer["tool_name"]), (&grant["id"], &json!("payments.charges.create")));
    assert!(answer["duration_ms"].is_u64());
    assert!(text(&answer, "/timestamp").ends_with("+00:00"));

    let received = shop.upstream.received();
    assert_eq!(received.len(), 1);
    assert_eq!((received[0].method.as_str(), received[0].target.as_str()), ("POST", "/v1/charges"));
    assert_eq!((received[0].bearer(), received[0].json()), (Some(TOKEN), parameters));
}

fn the_shape_of_the_sdk_is_carried_out_and_answered(world: &World) {
    let shop = Shop::open(world);
    let grant = shop.grant(json!({}));
    let body = json!({
        "tool_name": "payments.charges.read", "agent_id": "billing", "parameters": {"charge_id": "ch_7"},
    });
    let answer = shop.agent.invokes(body.clone()).ok();
    assert_eq!((&answer["status"], &answer["result"]["id"]), (&json!("success"), &json!("ch_7")));
    assert_eq!(answer["grant_id"], grant["id"]);
    assert_eq!(shop.upstream.received()[0].target, "/v1/charges/ch_7");
    // The SDK may name a grant, say nothing with nulls, and show its key and itself in headers.
    let mut with_nulls = body;
    for name in ["grant_id", "idempotency_key", "context", "version", "tool"] {
        with_nulls[name] = Value::Null;
    }
    let headers = [("X-API-Key", shop.agent.key.as_str()), ("X-Agent-ID", "billing")];
    shop.agent.ask_with("POST", "/api/v1/tools/invoke", &headers, Some(&with_nulls)).ok();
    let both = json!({"tool": "payments.charges.read", "tool_name": "payments.charges.read"});
    shop.read(both).ok();
    assert_eq!(shop.upstream.count(), 3);
}

fn without_a_grant_the_answer_says_which_one_was_used(world: &World) {
    let shop = Shop::open(world);
    let reader = shop.grant(json!({"scopes": ["charges.read"]}));
    let writer = shop.grant(json!({"scopes": ["charges.create"]}));
    assert_eq!(shop.read(json!({})).ok()["grant_id"], reader["id"]);
    let answer = shop.call("payments.charges.create", json!({"amount": 1, "currency": "usd"})).ok();
    assert_eq!(answer["grant_id"], writer["id"]);
}

fn what_the_answer_names_can_be_looked_up(world: &World) {
    let shop = Shop::open(world);
    let grant = shop.grant(json!({}));
    let answer = shop.read(json!({"context": {"intent_id": "i1", "plan_id": "p1", "task_id": "t1"}})).ok();
    let path = format!("/api/v1/invocations/{}", text(&answer, "/invocation_id"));
    let record = shop.agent.get(&path).ok();
    assert_eq!((&record["id"], &record["invocation_id"]), (&answer["invocation_id"], &answer["invocation_id"]));
    assert_eq!((&record["status"], &record["error"]), (&json!("success"), &Value::Null));
    assert_eq!((&record["grant_id"], &record["agent_id"]), (&grant["id"], &json!("billing")));
    assert_eq!((&record["actor"], &record["service"]), (&json!("billing"), &json!("payments")));
    assert_eq!((&record["tool"], &record["version"]), (&json!("charges.read"), &json!("2024-01")));
    assert_eq!((&record["http_status"], &record["result"]), (&json!(200), &Value::Null));
    assert_eq!((&record["cost"], &record["duration_ms"]), (&answer["cost"], &answer["duration_ms"]));
    assert_eq!(record["context"], json!({"intent_id": "i1", "plan_id": "p1", "task_id": "t1"}));
    assert_eq!((&record["reported"], &record["parameters"]), (&json!(false), &json!({"charge_id": "ch_7"})));
}

fn a_request_that_contradicts_itself_is_refused(world: &World) {
    let shop = Shop::open(world);
    shop.grant(json!({}));
    let cases = [
        (json!({"tool_name": "payments.charges.create"}), "tool"),
        (json!({"agent_id": "billing", "context": {"agent_id": "other"}}), "agent_id"),
        (json!({"agent_id": "other", "context": {"agent_id": "billing"}}), "agent_id"),
    ];
    for (more, path) in cases {
        let error = shop.read(more).refused(400, "INVALID_FIELD");
        assert_eq!(error["path"], path);
    }
    let body = read(json!({"agent_id": "other"}));
    let header = [("X-Agent-ID", "third")];
    let reply = shop.agent.ask_with("POST", "/api/v1/tools/invoke", &header, Some(&body));
    assert_eq!(reply.refused(400, "INVALID_FIELD")["path"], "agent_id");
    // Naming oneself in the header is no contradiction, as the SDK does so in every request; nor is it leave.
    let header = [("X-Agent-ID", "billing")];
    shop.agent.ask_with("POST", "/api/v1/tools/invoke", &header, Some(&body)).refused(403, "PERMISSION_DENIED");
    assert_eq!(shop.upstream.count(), 0);
}

fn a_request_that_is_no_call_leaves_no_record(world: &World) {
    let shop = Shop::open(world);
    shop.grant(json!({}));
    for (body, path) in [
        (json!({}), "tool"),
        (json!({"tool": null}), "tool"),
        (json!({"tool": ""}), "tool"),
        (json!({"tool": "payments.charges read"}), "tool"),
        (json!({"tool": "payments/charges.read"}), "tool"),
        (json!({"tool": "x".repeat(129)}), "tool"),
        (json!({"tool": 5}), "tool"),
        (read(json!({"parameters": ["ch_7"]})), "parameters"),
        (read(json!({"parameters": "ch_7"})), "parameters"),
        (read(json!({"context": ["i1"]})), "context"),
        (read(json!({"context": {"intent_id": "a b"}})), "context.intent_id"),
        (read(json!({"idempotency_key": "a b"})), "idempotency_key"),
        (read(json!({"idempotency_key": ""})), "idempotency_key"),
        (read(json!({"version": "a b"})), "version"),
        (read(json!({"agent_id": "a b"})), "agent_id"),
    ] {
        let error = shop.agent.invokes(body.clone()).refused(400, "INVALID_FIELD");
        assert_eq!(error["path"], path, "{body}: {error}");
    }
    shop.read(json!({"dry_run": true})).refused(400, "UNKNOWN_FIELD");
    shop.read(json!({"context": {"project_id": "s"}})).refused(400, "UNKNOWN_FIELD");
    shop.read(json!({"context": {"session_id": "s"}})).refused(404, "SESSION_NOT_FOUND");
    let key = format!("Bearer {}", shop.agent.key);
    let headers = [("Authorization", key.as_str()), ("Content-Type", "application/json")];
    for doubled in [
        r#"{"tool": "payments.charges.read", "parameters": {"charge_id": "ch_1", "charge_id": "ch_2"}}"#,
        r#"{"tool": "payments.charges.read", "tool": "payments.charges.read", "parameters": {}}"#,
        r#"{"tool": "payments.anything", "parameters": {"a": [{"b": 1, "\u0062": 2}]}}"#,
    ] {
        let reply = send(world.gate.address(), "POST", "/api/v1/tools/invoke", &headers, doubled.as_bytes());
        reply.refused(400, "MALFORMED_JSON");
    }
    assert_eq!(shop.admin.get("/api/v1/invocations").ok()["invocations"], json!([]));
    assert_eq!(shop.upstream.count(), 0);
}
