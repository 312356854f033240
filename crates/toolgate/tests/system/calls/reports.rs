//! Calls that an agent made by itself and reports (the SDK's `record_invocation`): kept, marked, and only through grants
//! of its own.

use serde_json::{Value, json};

use super::shop::{Shop, read};
use crate::world::{World, id, merged, on_both_engines, text};

on_both_engines! {
    a_report_is_kept_and_marked,
    every_way_of_ending_can_be_reported,
    only_ones_own_grants_can_be_reported_on,
    a_report_that_does_not_fit_is_refused_by_name,
    a_report_counts_against_the_rate_of_its_grant_and_claims_no_key,
    a_report_needs_a_grant_that_is_usable,
}

fn report(grant: &Value, more: Value) -> Value {
    merged(json!({"grant_id": grant["id"], "service": "payments", "tool": "charges.read", "agent_id": "billing"}), more)
}

fn a_report_is_kept_and_marked(world: &World) {
    let shop = Shop::open(world);
    let grant = shop.grant(json!({}));
    let more = json!({
        "parameters": {"charge_id": "ch_1", "api_key": "sk_zebra"}, "status": "success", "result": {"secret": "zebra"},
        "cost": 0.5, "duration_ms": 12, "idempotency_key": "k1", "context": {"intent_id": "i1", "task_id": "t1"},
    });
    let reply = shop.agent.post("/api/v1/invocations", &report(&grant, more));
    let made = reply.created();
    assert_eq!((&made["reported"], &made["status"]), (&json!(true), &json!("success")));
    assert_eq!((&made["grant_id"], &made["agent_id"]), (&grant["id"], &json!("billing")));
    assert_eq!((&made["parameters"], &made["result"]), (&json!({"charge_id": "ch_1"}), &Value::Null));
    assert_eq!((&made["duration_ms"], &made["cost"]["estimated_cost_usd"]), (&json!(12), &json!(0.5)));
    assert_eq!((&made["idempotency_key"], &made["context"]["task_id"]), (&json!("k1"), &json!("t1")));
    assert_eq!(shop.record(&id(&made)), made);
    let events = shop.events_of(&id(&made));
    let [event] = events.as_slice() else { panic!("one event: {events:?}") };
    assert_eq!((&event["type"], &event["data"]["reported"]), (&json!("tool.invoked"), &json!(true)));
    assert_eq!((&event["intent_id"], &event["agent_id"]), (&json!("i1"), &json!("billing")));
    for text in [reply.answer.text(), event.to_string()] {
        assert!(!text.contains("zebra"), "{text}");
    }
    let list = shop.agent.get(&format!("/api/v1/grants/{}/invocations", id(&grant))).ok();
    assert_eq!(list[0]["id"], made["id"]);
}

fn every_way_of_ending_can_be_reported(world: &World) {
    let shop = Shop::open(world);
    let grant = shop.grant(json!({}));
    let make = |more: Value| shop.agent.post("/api/v1/invocations", &report(&grant, more)).created();
    assert_eq!(make(json!({}))["status"], "success");
    assert_eq!(make(json!({"status": "denied"}))["status"], "denied");
    let failed = make(json!({"status": "error", "error": "it broke"}));
    assert_eq!((&failed["status"], &failed["error"]["message"]), (&json!("error"), &json!("it broke")));
    let timeout = make(json!({"status": "timeout", "error": {"code": "X", "message": "too slow"}}));
    assert_eq!((&timeout["status"], &timeout["error"]["message"]), (&json!("error"), &json!("too slow")));
    let nulls = json!({"parameters": null, "status": null, "error": null, "cost": null, "duration_ms": null});
    assert_eq!(make(nulls)["cost"]["estimated_cost_usd"], Value::Null);
}

fn only_ones_own_grants_can_be_reported_on(world: &World) {
    let shop = Shop::open(world);
    let grant = shop.grant(json!({}));
    let foreign = shop.grant_to("other", json!({}));
    let post = |body: Value| shop.agent.post("/api/v1/invocations", &body);
    let error = post(report(&foreign, json!({"agent_id": "other"}))).refused(403, "PERMISSION_DENIED");
    assert_eq!(error["required_permission"], "agents.act_as");
    let hidden = post(report(&foreign, json!({})));
    let unknown = json!({"id": "grant_01K9ZZZZZZ0000000000000000"});
    let none = post(report(&unknown, json!({})));
    none.refused(404, "GRANT_NOT_FOUND");
    assert_eq!(hidden.answer.text().replace(&id(&foreign), &id(&unknown)), none.answer.text());
    let idle = world.agent("idle", &[]);
    let body = report(&shop.grant_to("idle", json!({})), json!({"agent_id": "idle"}));
    let error = idle.post("/api/v1/invocations", &body).refused(403, "PERMISSION_DENIED");
    assert_eq!(error["required_permission"], "tools.invoke");
    // Whoever acts for the agent reports for it, and stands there as the one who did.
    let made = shop.admin.post("/api/v1/invocations", &report(&grant, json!({}))).created();
    assert_eq!((&made["agent_id"], &made["actor"]), (&json!("billing"), &json!("admin")));
    let records = shop.admin.get("/api/v1/invocations").ok()["invocations"].clone();
    assert_eq!(records.as_array().unwrap().len(), 1);
}

fn a_report_that_does_not_fit_is_refused_by_name(world: &World) {
    let shop = Shop::open(world);
    let grant = shop.grant(json!({}));
    for (more, path) in [
        (json!({"service": "other"}), "service"),
        (json!({"status": "running"}), "status"),
        (json!({"status": "unknown"}), "status"),
        (json!({"error": 5}), "error"),
        (json!({"error": "two\nlines"}), "error"),
        (json!({"cost": -1}), "cost"),
        (json!({"cost": "much"}), "cost"),
        (json!({"duration_ms": -1}), "duration_ms"),
        (json!({"parameters": []}), "parameters"),
        (json!({"tool": "a b"}), "tool"),
    ] {
        let error = shop.agent.post("/api/v1/invocations", &report(&grant, more)).refused(400, "INVALID_FIELD");
        assert_eq!(error["path"], path);
    }
    assert_eq!(shop.admin.get("/api/v1/invocations").ok()["invocations"], json!([]));
}

fn a_report_counts_against_the_rate_of_its_grant_and_claims_no_key(world: &World) {
    let shop = Shop::open(world);
    let grant = shop.grant(json!({"constraints": {"max_invocations_per_hour": 3}}));
    let make = || shop.agent.post("/api/v1/invocations", &report(&grant, json!({"idempotency_key": "k1"})));
    for _ in 0..2 {
        make().created();
    }
    let answer = shop.agent.invokes(read(json!({"idempotency_key": "k1"}))).ok();
    assert_eq!(answer.get("replayed"), None);
    assert_eq!(text(&answer, "/result/id"), "ch_7");
    make().refused(429, "GRANT_RATE_LIMITED");
    shop.agent.invokes(read(json!({}))).refused(429, "GRANT_RATE_LIMITED");
}

fn a_report_needs_a_grant_that_is_usable(world: &World) {
    let shop = Shop::open(world);
    let grant = shop.grant(json!({}));
    let make = || shop.agent.post("/api/v1/invocations", &report(&grant, json!({})));
    let path = format!("/api/v1/grants/{}", id(&grant));
    make().created();
    shop.admin.patch(&format!("{path}/suspend"), &json!({"reason": "an incident"})).ok();
    make().refused(403, "GRANT_SUSPENDED");
    shop.admin.ask("PATCH", &format!("{path}/resume"), None).ok();
    make().created();
    shop.admin.delete(&path).ok();
    make().refused(403, "GRANT_REVOKED");
    assert_eq!(shop.admin.get("/api/v1/invocations").ok()["invocations"].as_array().unwrap().len(), 2);
}
