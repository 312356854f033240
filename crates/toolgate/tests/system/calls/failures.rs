//! Ways to a service that fail: nobody listens, nobody answers in time, the address is forbidden.

use serde_json::{Value, json};
use toolgate_testkit::upstream::Reply as Answer;

use super::shop::{Shop, credential};
use crate::world::{World, on_both_engines, text};

on_both_engines! {
    a_service_that_does_not_answer_in_time_is_a_timeout,
    a_service_where_nobody_listens_is_a_proxy_error,
    an_address_that_is_not_allowed_is_never_called,
}

fn a_service_that_does_not_answer_in_time_is_a_timeout(world: &World) {
    let shop = Shop::answering(world, |request| match request.json()["n"].as_u64() {
        Some(0) => Answer::silence(),
        Some(1) => Answer::raw_open("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"half\":"),
        _ => Answer::json(200, json!({"in": "time"})),
    });
    shop.grant(json!({}));
    for number in [0, 1] {
        // The tool allows a second.
        let reply = shop.send(json!({"n": number}));
        let body = shop.failed(&reply, 504, "PROXY_ERROR");
        assert_eq!(body["error"]["timed_out"], true);
        assert!(text(&body, "/message").starts_with("the call timed out"), "{body}");
        let duration = body["duration_ms"].as_u64().unwrap();
        assert!((1000..30_000).contains(&duration), "{duration}");
        let record = shop.record(text(&body, "/invocation_id"));
        assert_eq!((&record["duration_ms"], &record["http_status"]), (&body["duration_ms"], &Value::Null));
        assert!(record["request_fingerprint"].is_string(), "something was sent");
    }
    shop.send(json!({"n": 2})).ok();
    // It may have been carried out: the key stays taken, and says what became of it.
    let keyed = json!({"tool": "payments.anything", "parameters": {"n": 0}, "idempotency_key": "k1"});
    let first = shop.failed(&shop.agent.invokes(keyed.clone()), 504, "PROXY_ERROR");
    let again = shop.agent.invokes(keyed).expect(504);
    assert_eq!((&again["replayed"], &again["invocation_id"]), (&json!(true), &first["invocation_id"]));
}

fn a_service_where_nobody_listens_is_a_proxy_error(world: &World) {
    let shop = Shop::open(world);
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nobody = credential(&shop.admin, "payments", json!({"base_url": format!("http://{gone}")}));
    let grant = shop.admin.grants(&nobody, "billing", json!({}));
    let body = shop.failed(&shop.read(json!({})), 502, "PROXY_ERROR");
    assert_eq!((&body["grant_id"], body["error"].get("timed_out")), (&grant["id"], None));
    assert!(text(&body, "/message").contains("could not connect"), "{body}");
    let event = &shop.events_of(text(&body, "/invocation_id"))[0];
    assert_eq!((&event["type"], &event["data"]["error_code"]), (&json!("tool.invoked"), &json!("PROXY_ERROR")));
}

fn an_address_that_is_not_allowed_is_never_called(world: &World) {
    let shop = Shop::open(world);
    for base_url in ["http://169.254.169.254", "http://10.1.2.3:9", "http://[::1]:9", "http://0.0.0.0:9"] {
        let inside = credential(&shop.admin, "payments", json!({"base_url": base_url}));
        let grant = shop.admin.grants(&inside, "billing", json!({}));
        let body = shop.failed(&shop.read(json!({"grant_id": grant["id"]})), 502, "PROXY_ERROR");
        assert!(text(&body, "/message").contains("egress.allow"), "{base_url}: {body}");
    }
}
