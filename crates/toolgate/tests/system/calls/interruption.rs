//! Callers that go away and gates that are asked to end in the middle of a call: what was admitted is settled.

use std::io::Write;
use std::net::TcpStream;

use serde_json::{Value, json};

use super::shop::{Shop, read};
use crate::world::{Actor, World, id, on_both_engines, setup, text, until};

on_both_engines! {
    a_call_whose_caller_went_away_is_settled_all_the_same,
    a_revocation_does_not_wait_for_calls_that_were_admitted_before,
    a_refusal_is_recorded_for_a_caller_that_disconnects_at_once,
}

fn a_refusal_is_recorded_for_a_caller_that_disconnects_at_once(world: &World) {
    let shop = Shop::open(world);
    let grant = shop.grant(json!({"scopes": ["charges.read"]}));
    for number in 0..20 {
        let key = format!("gone-{number}");
        let large = if number % 4 == 0 { "x".repeat(10_000) } else { String::new() };
        let parameters = json!({"amount": 1, "note": large});
        let body = json!({"tool": "payments.charges.create", "parameters": parameters, "idempotency_key": key});
        let accept = if number % 3 == 0 { "application/x-ndjson" } else { "*/*" };
        drop(begin_with(world, &shop.agent, &body, &format!("Accept: {accept}\r\n")));
        let path = format!("/api/v1/invocations?idempotency_key={key}");
        let record = until("the refusal is recorded", || shop.admin.get(&path).ok()["invocations"].get(0).cloned());
        assert_eq!((&record["status"], &record["grant_id"]), (&json!("denied"), &grant["id"]), "{record}");
    }
    assert_eq!(shop.upstream.count(), 0);
}

/// Sends a call and does not read the answer.
fn begin(world: &World, agent: &Actor, body: &Value) -> TcpStream {
    begin_with(world, agent, body, "")
}

fn begin_with(world: &World, agent: &Actor, body: &Value, headers: &str) -> TcpStream {
    let body = body.to_string();
    let mut stream = TcpStream::connect(world.gate.address()).unwrap();
    let request = format!(
        "POST /api/v1/tools/invoke HTTP/1.1\r\nHost: gate\r\nAuthorization: Bearer {}\r\n\
         {headers}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        agent.key,
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

fn a_call_whose_caller_went_away_is_settled_all_the_same(world: &World) {
    let shop = Shop::open(world);
    let grant = shop.grant(json!({"constraints": {"max_invocations_per_hour": 2}}));
    shop.upstream.hold();
    let body = read(json!({"idempotency_key": "k1"}));
    let stream = begin(world, &shop.agent, &body);
    shop.upstream.wait_for(1);
    drop(stream);
    let of_key = || shop.agent.get("/api/v1/invocations?idempotency_key=k1").ok()["invocations"].clone();
    assert_eq!(of_key()[0]["status"], "running");
    shop.upstream.release();
    let record = until("the call is settled", || {
        let records = of_key();
        (records[0]["status"] != "running").then(|| records[0].clone())
    });
    assert_eq!((&record["status"], &record["grant_id"]), (&json!("success"), &grant["id"]));
    assert_eq!(shop.events_of(text(&record, "/id")).len(), 1);
    let again = shop.agent.invokes(body).ok();
    assert_eq!((&again["replayed"], &again["invocation_id"]), (&json!(true), &record["id"]));
    assert_eq!(shop.upstream.count(), 1);
}

fn a_revocation_does_not_wait_for_calls_that_were_admitted_before(world: &World) {
    let shop = Shop::open(world);
    let grant = shop.grant(json!({}));
    shop.upstream.hold();
    std::thread::scope(|scope| {
        let call = scope.spawn(|| shop.read(json!({})).ok());
        shop.upstream.wait_for(1);
        shop.admin.delete(&format!("/api/v1/grants/{}", id(&grant))).ok();
        shop.denied(&shop.read(json!({})), 403, "GRANT_REVOKED");
        shop.upstream.release();
        assert_eq!(call.join().unwrap()["status"], "success");
    });
    assert_eq!(shop.upstream.count(), 1);
}

#[test]
fn a_gate_that_is_asked_to_end_finishes_its_calls_first() {
    for waits in [true, false] {
        let setup = setup().reaching_loopback();
        let world = World::of(&setup, None);
        let shop = Shop::open(&world);
        shop.grant(json!({}));
        shop.upstream.hold();
        let call = begin(&world, &shop.agent, &read(json!({})));
        shop.upstream.wait_for(1);
        let caller = waits.then_some(call);
        world.gate.terminate();
        // Nothing new is taken, and what was begun is not given up.
        let address = world.gate.address();
        while TcpStream::connect(address).is_ok() {
            std::thread::yield_now();
        }
        shop.upstream.release();
        if let Some(mut caller) = caller {
            let mut answer = Vec::new();
            std::io::Read::read_to_end(&mut caller, &mut answer).unwrap();
            assert_eq!(toolgate_testkit::http::parse(&answer).unwrap().status, 200);
        }
        let ended = world.gate.wait();
        assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
        let world = World::of(&setup, None);
        let records = world.admin().get("/api/v1/invocations").ok()["invocations"].clone();
        assert_eq!(records.as_array().unwrap().len(), 1);
        assert_eq!(records[0]["status"], "success", "{records}");
        assert_eq!(world.admin().events("&type=tool.invoked").len(), 1);
    }
}
