//! Every way in which a call can end, in one log: all events of its export fit what is published, every call has its
//! return, and each says how it ended and nothing of what was in it.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use toolgate_testkit::gate_process::{GateSetup, request};
use toolgate_testkit::postgres::TestDatabase;
use toolgate_testkit::trail::whole_trail;
use toolgate_testkit::upstream::Reply as Answer;

use super::office::{Office, call, credential, invocation};
use crate::world::{Actor, Reply, World, block_on, setup, text, until};

/// What nobody may find in the trail.
const CONTENT: &str = "for the eyes of the service only";

#[test]
fn every_ending_is_told_as_it_is_published_on_sqlite() {
    tells_every_ending(&setup().reaching_loopback(), true);
}

#[test]
fn every_ending_is_told_as_it_is_published_on_postgresql() {
    let database = block_on(TestDatabase::create());
    // Another gate may carry out what was cut off: it is not told until its time is over.
    tells_every_ending(&setup().reaching_loopback().database(database.url()), false);
}

fn tells_every_ending(setup: &GateSetup, closes_at_start: bool) {
    let world = World::of(setup, None);
    let office = Office::answering(&world, |request| match (request.path(), request.json()["n"].as_u64()) {
        ("/slow", _) => Answer::silence(),
        (_, Some(500)) => Answer::json(500, json!({"message": CONTENT})),
        _ => Answer::json(200, json!({"message": CONTENT})),
    });
    let mut expected = BTreeMap::new();
    endings(&world, &office, &mut expected);

    // One is in flight when the gate is killed, and nobody can tell what became of it.
    let before = office.upstream.count();
    office.upstream.hold();
    let caller = std::thread::spawn({
        let (address, key) = (world.gate.address(), office.agent.key.clone());
        move || {
            let body = json!({"tool": "office.open", "parameters": {"n": 1}, "idempotency_key": "cut-off"});
            let sent = request(address, &key, "POST", "/api/v1/tools/invoke", Some(&body));
            assert!(sent.is_err(), "nothing was answered");
        }
    });
    office.upstream.wait_for(before + 1);
    world.gate.kill();
    office.upstream.release();
    caller.join().unwrap();
    let world = World::of(setup, None);
    let admin = world.admin();
    let cut_off = until("the call that was cut off", || {
        let record = admin.get("/api/v1/invocations?idempotency_key=cut-off").ok()["invocations"][0].clone();
        (record["status"] == "unknown" || !closes_at_start).then(|| text(&record, "/id").to_owned())
    });

    let events = exported(&admin);
    let shown = whole_trail(&events);
    assert_eq!(shown, shown_by_the_api(&admin));
    let calls: Vec<&Value> = shown.iter().filter(|event| event["type"] == "agent.toolCalled").collect();
    assert_eq!(calls.len(), expected.len() + 1, "every call, and the one that was cut off");
    let returned = |call: &str| {
        let own = |event: &&Value| event["type"] == "agent.toolReturned" && event["payload"]["callId"] == call;
        shown.iter().filter(own).map(|event| event["payload"].clone()).collect::<Vec<_>>()
    };
    for (call, (what, status, code, has_duration)) in &expected {
        let found = returned(call);
        let [payload] = found.as_slice() else { panic!("{what}: one return, and there are {found:?}") };
        assert_eq!(payload["status"], *status, "{what}: {payload}");
        assert_eq!(payload.pointer("/error/code").and_then(Value::as_str), *code, "{what}: {payload}");
        assert_eq!(payload.get("durationMs").is_some(), *has_duration, "{what}: {payload}");
    }
    let lost = returned(&cut_off);
    assert_eq!(lost.len(), usize::from(closes_at_start), "{lost:?}");
    for payload in lost {
        assert_eq!((&payload["status"], &payload["error"]["code"]), (&json!("error"), &json!("OUTCOME_UNKNOWN")));
        assert_eq!(payload.get("durationMs"), None);
    }
    assert!(!json!(shown).to_string().contains(CONTENT), "content-free");
}

/// How a call ended: what it was, its status, the code of its error, and whether it took time.
type Ending = (&'static str, &'static str, Option<&'static str>, bool);

fn endings(world: &World, office: &Office, expected: &mut BTreeMap<String, Ending>) {
    let with = |n: u64| json!({"parameters": {"n": n, "comment": CONTENT}});
    let mut expect = |reply: &Reply, status: u16, ending: Ending| {
        assert_eq!(reply.status(), status, "{}: {}", ending.0, reply.answer.text());
        expected.insert(invocation(reply), ending);
    };
    expect(&office.call("open", with(1)), 200, ("allowed", "ok", None, true));
    expect(&office.call("open", with(500)), 502, ("failed", "error", Some("SERVICE_ERROR"), true));
    expect(&office.call("slow", with(1)), 504, ("timed out", "error", Some("PROXY_ERROR"), true));
    expect(&office.call("scoped", with(1)), 403, ("forbidden", "forbidden", None, false));
    let invalid = json!({"parameters": {"n": CONTENT}});
    expect(&office.call("strict", invalid), 400, ("invalid", "error", Some("PARAMETERS_INVALID"), false));
    let unknown = office.agent.invokes(json!({"tool": "nowhere.unknown", "parameters": {"n": 1, "comment": CONTENT}}));
    expect(&unknown, 404, ("no such tool", "error", Some("TOOL_NOT_FOUND"), false));
    for _ in 0..2 {
        expect(&office.call("limited", with(1)), 200, ("allowed", "ok", None, true));
    }
    expect(&office.call("limited", with(1)), 429, ("limited", "rate_limited", None, false));

    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nowhere = credential(&office.admin, &format!("http://{gone}"));
    let lonely = world.agent("x", &["tools.invoke"]);
    office.admin.grants(&nowhere, "x", json!({"scopes": ["open"]}));
    let unreached = call(&lonely, "open", with(1));
    expect(&unreached, 502, ("nobody listens", "error", Some("PROXY_ERROR"), false));
}

/// All events of the export.
fn exported(admin: &Actor) -> Vec<Value> {
    let reply = admin.get("/api/v1/audit/export");
    let lines = reply.answer.text();
    let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|line| line.get("sequence").is_some()).collect()
}

/// All events as the API shows them.
fn shown_by_the_api(admin: &Actor) -> Vec<Value> {
    admin.get("/v1/events?limit=1000").ok()["events"].as_array().unwrap().clone()
}
