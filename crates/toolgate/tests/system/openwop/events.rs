//! The log as events: complete, content-free, filtered, and only what the caller may see.

use serde_json::{Value, json};

use super::events_of;
use crate::calls::shop::{Shop, read};
use crate::world::{World, on_both_engines, text};

on_both_engines! {
    every_call_leaves_its_pair_and_nothing_of_what_it_carried,
    filters_and_pages_show_the_same_events,
    without_leave_one_sees_what_concerns_oneself,
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| text(event, "/type")).collect()
}

fn every_call_leaves_its_pair_and_nothing_of_what_it_carried(world: &World) {
    let shop = Shop::open(world);
    shop.grant(json!({}));
    shop.read(json!({"context": {"run_id": "run-1"}})).ok();
    let refused = shop.call("payments.charges.create", json!({"amount": "the-secret-amount", "currency": "usd"}));
    assert_eq!(refused.status(), 400);
    let body = shop.admin.get("/v1/events?limit=1000").ok();
    let events = events_of(&body);
    assert_eq!(body["nextCursor"], Value::Null);
    let sequences: Vec<u64> = events.iter().map(|event| event["sequence"].as_u64().unwrap()).collect();
    assert!(sequences.iter().copied().eq(0..events.len() as u64), "{sequences:?}");
    assert!(!body.to_string().contains("the-secret-amount") && !body.to_string().contains("ch_7"));

    let calls: Vec<&Value> = events.iter().filter(|event| event["type"] == "agent.toolCalled").collect();
    let returns: Vec<&Value> = events.iter().filter(|event| event["type"] == "agent.toolReturned").collect();
    assert_eq!((calls.len(), returns.len()), (2, 2), "{body}");
    for (call, back) in calls.iter().zip(&returns) {
        assert_eq!((&call["runId"], &call["payload"]["callId"]), (&back["runId"], &back["payload"]["callId"]));
        assert_eq!(back["causationId"], call["eventId"]);
        assert!(call["sequence"].as_u64() < back["sequence"].as_u64());
        assert_eq!((&call["payload"]["agentId"], &call["payload"]["transport"]), (&json!("billing"), &json!("http")));
    }
    assert_eq!(returns[0]["payload"]["status"], "ok");
    assert!(returns[0]["payload"]["durationMs"].is_u64());
    assert_eq!(returns[1]["payload"]["status"], "error");
    assert_eq!(returns[1]["payload"].get("durationMs"), None, "it was never sent");
}

fn filters_and_pages_show_the_same_events(world: &World) {
    let shop = Shop::open(world);
    shop.grant(json!({}));
    shop.grant_to("admin", json!({}));
    shop.read(json!({"context": {"run_id": "run-1"}})).ok();
    shop.admin.invokes(read(json!({"context": {"run_id": "run-1"}}))).ok();
    assert_eq!(shop.call("payments.anything", json!({})).status(), 502, "what fails is told too");
    let ask = |query: &str| events_of(&shop.admin.get(&format!("/v1/events?limit=1000{query}")).ok());
    let all = ask("");
    let only = |wanted: &dyn Fn(&Value) -> bool| all.iter().filter(|event| wanted(event)).cloned().collect::<Vec<_>>();
    assert_eq!(ask("&run=run-1"), only(&|event| event["runId"] == "run-1"));
    assert_eq!(ask("&run=run-1").len(), 4);
    let name = "payments.charges.read";
    assert_eq!(ask(&format!("&tool={name}")), only(&|event| event["payload"]["toolName"] == name));
    for kind in ["agent.toolCalled", "agent.toolReturned", "grant.created"] {
        let found = ask(&format!("&type={kind}"));
        assert_eq!(found, only(&|event| event["type"] == kind));
        assert!(found.len() >= 2, "{kind}");
    }
    let of_agent = ask("&agent=billing&type=agent.toolReturned");
    assert_eq!(
        of_agent,
        only(&|event| event["type"] == "agent.toolReturned" && event["payload"]["agentId"] == "billing")
    );
    assert!(ask("&run=nothing").is_empty());

    let mut paged = Vec::new();
    let mut after = String::new();
    loop {
        let page = shop.admin.get(&format!("/v1/events?limit=3{after}")).ok();
        paged.extend(events_of(&page));
        match page["nextCursor"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    assert_eq!(paged, all);
    for query in ["type=tool.invoked", "type=a%20b", "after=x", "after=-1", "limit=0", "limit=1001", "cursor=1", "run="]
    {
        shop.admin.get(&format!("/v1/events?{query}")).flat(400, "validation_error");
    }
}

fn without_leave_one_sees_what_concerns_oneself(world: &World) {
    let shop = Shop::open(world);
    shop.grant(json!({}));
    let other = world.agent("other", &["tools.invoke"]);
    shop.grant_to("other", json!({}));
    shop.read(json!({})).ok();
    other.invokes(read(json!({}))).ok();
    let own = events_of(&other.get("/v1/events").ok());
    assert!(kinds(&own).contains(&"agent.toolCalled") && kinds(&own).contains(&"agent.toolReturned"), "{own:?}");
    let all = events_of(&shop.admin.get("/v1/events?agent=other&limit=1000").ok());
    // The hash of the arguments is a keyed one for who may not read the log.
    let without_hash = |events: &[Value]| -> Vec<Value> {
        let mut events = events.to_vec();
        events.iter_mut().filter_map(|event| event["payload"].get_mut("argsHash")).for_each(|hash| *hash = json!("-"));
        events
    };
    assert_ne!(own, all);
    assert_eq!(without_hash(&own), without_hash(&all));
    assert!(own.iter().all(|event| !event.to_string().contains("billing")), "{own:?}");
    assert_eq!(events_of(&other.get("/v1/events?agent=other").ok()), own);
    let refused = other.get("/v1/events?agent=billing").flat(403, "forbidden");
    assert_eq!(refused["details"]["requiredPermission"], "audit.read");
}
