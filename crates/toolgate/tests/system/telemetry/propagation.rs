//! W3C Trace Context: accepted from callers, recorded in events, passed on to services.

use serde_json::{Value, json};

use crate::approvals::office::{Office, call};
use crate::calls::shop::{Shop, read};
use crate::world::{Reply, World, on_both_engines, setup, text, until};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

on_both_engines! {
    the_trace_of_a_caller_reaches_the_service_and_the_log,
}

fn traced(shop: &Shop, headers: &[(&str, &str)], body: &Value) -> Reply {
    shop.agent.ask_with("POST", "/api/v1/tools/invoke", headers, Some(body))
}

/// What the service was told last.
fn told(shop: &Shop) -> (Option<String>, Option<String>) {
    let received = shop.upstream.received();
    let header = |name: &str| received.last().unwrap().header(name).map(str::to_owned);
    (header("traceparent"), header("tracestate"))
}

fn the_trace_of_a_caller_reaches_the_service_and_the_log(world: &World) {
    let shop = Shop::open(world);
    shop.grant(json!({}));
    let call = |headers: &[(&str, &str)]| traced(&shop, headers, &read(json!({}))).ok();

    call(&[]);
    assert_eq!(told(&shop), (None, None), "without a trace there is nothing to tell");

    let body = call(&[("traceparent", PARENT), ("tracestate", "vendor=1")]);
    let untrusted = PARENT.replace("-01", "-00").replace("4bf92f3577b34da6a3ce929d0e0e4736", TRACE);
    assert_eq!(told(&shop), (Some(untrusted), None), "who is not trusted has nothing sampled and sends no free text");
    let events = shop.events_of(text(&body, "/invocation_id"));
    let invoked = events.iter().find(|event| event["type"] == "tool.invoked").unwrap();
    assert_eq!(invoked["data"]["trace_id"], TRACE, "{invoked}");

    for bad in ["", "00-0-0-00", "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", &"0".repeat(5_000)] {
        let body = call(&[("traceparent", bad)]);
        assert_eq!(told(&shop), (None, None), "{bad}");
        let events = shop.events_of(text(&body, "/invocation_id"));
        assert!(events.iter().all(|event| event["data"].get("trace_id").is_none()), "{events:?}");
    }

    let refused = traced(&shop, &[("traceparent", PARENT)], &json!({"tool": "payments.nothing", "parameters": {}}));
    refused.error();
    let denied = shop.events_of(text(&refused.json(), "/invocation_id"));
    assert_eq!(denied[0]["data"]["trace_id"], TRACE, "{denied:?}");
}

#[test]
fn a_trusted_proxy_has_a_trace_sampled() {
    let trusting = setup().reaching_loopback().environment("TOOLGATE_TRUSTED_PROXIES", "127.0.0.1/32");
    let world = World::of(&trusting, None);
    let shop = Shop::open(&world);
    shop.grant(json!({}));
    traced(&shop, &[("traceparent", PARENT), ("tracestate", "vendor=1")], &read(json!({}))).ok();
    assert_eq!(told(&shop), (Some(PARENT.to_owned()), Some("vendor=1".to_owned())));
}

#[test]
fn a_detached_call_keeps_its_trace_and_its_request() {
    let world = World::of(&setup().reaching_loopback().environment("TOOLGATE_LOG_CALLS", "all"), None);
    let office = Office::open(&world);
    let headers = [("traceparent", PARENT), ("prefer", "respond-async")];
    let accepted = office.agent.ask_with("POST", "/api/v1/tools/invoke", &headers, Some(&call("transfer", 10)));
    accepted.expect(202);
    let request = accepted.answer.header("x-request-id").unwrap().to_owned();
    let approval = until("the approval", || office.pending().pop());
    office.clerk.decides(&approval, "approve", json!({})).ok();
    office.bank.wait_for(1);
    let received = office.bank.received();
    assert_eq!(received[0].header("traceparent"), Some(PARENT.replace("-01", "-00").as_str()));
    let (ended, _) = world.stop();
    let line = ended.stderr.lines().find(|line| line.contains("\"outcome\":\"success\"")).expect("a line of the call");
    let line: Value = serde_json::from_str(line).unwrap();
    assert_eq!((&line["request_id"], &line["trace_id"]), (&json!(request), &json!(TRACE)), "{line}");
}
