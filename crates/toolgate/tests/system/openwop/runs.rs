//! Runs can be looked at, by whoever may see their events; none can be started.

use serde_json::{Value, json};

use super::events_of;
use crate::calls::shop::Shop;
use crate::world::{World, on_both_engines, send};

on_both_engines! {
    a_run_is_what_its_events_tell,
    a_run_that_one_may_not_see_is_not_there,
    no_run_can_be_started,
}

fn a_run_is_what_its_events_tell(world: &World) {
    let shop = Shop::open(world);
    shop.grant(json!({}));
    shop.read(json!({"context": {"run_id": "run-1"}})).ok();
    let alone = shop.read(json!({})).ok();
    shop.read(json!({"context": {"run_id": "run-1"}})).ok();

    let run = shop.agent.get("/v1/runs/run-1").ok();
    assert_eq!((&run["runId"], &run["status"], &run["eventCount"]), (&json!("run-1"), &json!("completed"), &json!(4)));
    let events = events_of(&shop.agent.get("/v1/runs/run-1/events").ok());
    let places: Vec<&Value> = events.iter().map(|event| &event["sequence"]).collect();
    assert_eq!(places, [0, 1, 2, 3], "counted in the run");
    assert_eq!((&run["startedAt"], &run["updatedAt"]), (&events[0]["timestamp"], &events[3]["timestamp"]));

    let first = shop.agent.get("/v1/runs/run-1/events?limit=3").ok();
    let next = first["nextCursor"].as_str().unwrap();
    let second = shop.agent.get(&format!("/v1/runs/run-1/events?limit=3&after={next}")).ok();
    assert_eq!([events_of(&first), events_of(&second)].concat(), events);
    assert_eq!(second["nextCursor"], Value::Null);

    let poll = |query: &str| shop.agent.get(&format!("/v1/runs/run-1/events/poll{query}")).ok();
    assert_eq!(poll(""), json!({"events": events, "isComplete": true}));
    assert_eq!(poll("?lastSequence=2&timeout=1"), json!({"events": events[3..], "isComplete": true}));
    assert_eq!(poll("?lastSequence=3"), json!({"events": [], "isComplete": true}));
    for query in ["timeout=0", "timeout=61", "lastSequence=-1", "after=0"] {
        shop.agent.get(&format!("/v1/runs/run-1/events/poll?{query}")).flat(400, "validation_error");
    }
    shop.agent.get("/v1/runs/run-1/events?after=1").flat(400, "validation_error");

    let own = alone["invocation_id"].as_str().unwrap();
    assert_eq!(shop.agent.get(&format!("/v1/runs/{own}")).ok()["eventCount"], 2, "a call that names no run is one");
}

fn a_run_that_one_may_not_see_is_not_there(world: &World) {
    let shop = Shop::open(world);
    shop.grant(json!({}));
    shop.read(json!({"context": {"run_id": "run-1"}})).ok();
    let other = world.agent("other", &["tools.invoke"]);
    for path in ["", "/events", "/events/poll"] {
        let ask = |run: &str| {
            let reply = other.get(&format!("/v1/runs/{run}{path}"));
            reply.flat(404, "not_found");
            reply.answer.body
        };
        assert_eq!(ask("run-1"), ask("nothing"));
        assert_eq!(ask("run-1"), ask("no%20run"));
        shop.admin.get(&format!("/v1/runs/run-1{path}")).ok();
    }
}

fn no_run_can_be_started(world: &World) {
    let admin = world.admin();
    let refused =
        admin.post("/v1/runs", &json!({"workflowId": "report", "inputs": {}})).flat(501, "capability_not_provided");
    assert_eq!(refused["details"]["capability"], "workflows");
    for body in [json!({}), json!({"workflowId": ""}), json!({"workflowId": 1}), json!({"workflowId": "a", "x": 1})] {
        admin.post("/v1/runs", &body).flat(400, "validation_error");
    }
    admin.ask("POST", "/v1/runs", None).flat(415, "validation_error");
    let key = format!("Bearer {}", admin.key);
    let headers = [("Authorization", key.as_str()), ("Content-Type", "application/json")];
    send(world.gate.address(), "POST", "/v1/runs", &headers, b"").flat(400, "validation_error");
}
