//! Killed in the middle of calls, the gate still knows of every one that the service saw, and of every answer that it
//! gave. What it cannot know, it says; and it does nothing twice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Sender, channel};

use serde_json::{Value, json};
use toolgate_testkit::gate_process::{GateSetup, request};
use toolgate_testkit::postgres::TestDatabase;
use toolgate_testkit::upstream::{Reply, Upstream};

use crate::tool_user::{ToolUser, bearer_with};
use crate::world::{World, block_on, setup, text};

const CALLERS: u64 = 6;

#[test]
fn thirty_kills_under_load_lose_no_call_on_sqlite() {
    survive_kills(&setup().reaching_loopback(), 30, true);
}

#[test]
fn kills_under_load_lose_no_call_on_postgresql() {
    let database = block_on(TestDatabase::create());
    // Whether another gate carries them out is not known until their time is over: calls stay running until then.
    survive_kills(&setup().reaching_loopback().database(database.url()), 8, false);
}

#[test]
fn a_gate_that_is_killed_releases_what_its_calls_had_reserved() {
    let upstream = Upstream::start(|_| Reply::json(200, json!({})));
    let setup = setup().reaching_loopback();
    let world = World::of(&setup, None);
    let user = ToolUser::of(&world, bearer_with(&upstream, json!({})));
    let agent = format!("/api/v1/agents/{}", user.agent.id);
    world.admin().patch(&agent, &json!({"budget": {"calls_total": 5, "calls_per_day": 5}})).ok();
    user.calls("any", json!({"number": 0})).ok();
    upstream.hold();
    let calls: Vec<_> = (1..=4)
        .map(|number| {
            let (address, key, body) = (world.gate.address(), user.agent.key.clone(), body(&user, number));
            std::thread::spawn(move || request(address, &key, "POST", "/api/v1/tools/invoke", Some(&body)).is_ok())
        })
        .collect();
    upstream.wait_for(5);
    user.calls("any", json!({"number": 9})).refused(429, "BUDGET_EXCEEDED");
    world.gate.kill();
    upstream.release();
    calls.into_iter().for_each(|call| assert!(!call.join().unwrap()));
    let world = World::of(&setup, None);
    let user = user.at(&world);
    let used = || world.admin().get(&format!("/api/v1/budgets?agent_id={}", user.agent.id)).ok()["budgets"].clone();
    crate::world::until("the calls are closed", || (used()[0]["used_calls"] == 1).then_some(()));
    assert_eq!(used()[1]["used_calls"], 1);
    for number in 10..14 {
        user.calls("any", json!({"number": number})).ok();
    }
    user.calls("any", json!({"number": 14})).refused(429, "BUDGET_EXCEEDED");
}

/// An answer that a client got.
struct Told {
    number: u64,
    invocation: String,
    status: String,
}

fn survive_kills(setup: &GateSetup, rounds: u64, closes_at_start: bool) {
    let upstream = Upstream::start(|request| match request.json()["number"].as_u64() {
        Some(number) if number.is_multiple_of(7) => Reply::json(500, json!({"failed": number})),
        number => Reply::json(200, json!({"done": number})),
    });
    let mut world = World::of(setup, None);
    let user = ToolUser::of(&world, bearer_with(&upstream, json!({"timeout_ms": 1000})));
    let mut told = Vec::new();
    let mut unknown = 0;
    for round in 0..rounds {
        told.extend(load_and_kill(world, &user, &upstream, round));
        world = World::of(setup, None);
        unknown += check(&user.at(&world), &upstream, &told, closes_at_start);
    }
    assert!(told.len() > 100, "{} answers", told.len());
    assert!(unknown > 0, "calls were cut off");
    assert_log_verifies(&world);
}

/// Calls from several clients until the gate is killed; answers what they were told.
fn load_and_kill(world: World, user: &ToolUser, upstream: &Upstream, round: u64) -> Vec<Told> {
    let user = user.at(&world);
    let (tells, hears) = channel();
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let (user, tells, address) = (user.clone(), tells.clone(), world.gate.address());
            std::thread::spawn(move || {
                let first = (round * CALLERS + caller) * 1_000_000;
                // Ends when the gate has.
                let _ = (first..).try_for_each(|number| call(address, &user, number, &tells));
            })
        })
        .collect();
    drop(tells);
    let mut told: Vec<Told> = hears.iter().take(usize::try_from(5 + round * 11 % 37).unwrap()).collect();
    if round.is_multiple_of(2) {
        // The service has seen calls that it will not answer.
        let before = upstream.count();
        upstream.hold();
        upstream.wait_for(before + 1);
    }
    world.gate.kill();
    upstream.release();
    told.extend(hears);
    callers.into_iter().for_each(|caller| caller.join().unwrap());
    told
}

/// One call; `None` once the gate is gone. Every second one has an idempotency key.
fn call(address: std::net::SocketAddr, user: &ToolUser, number: u64, tells: &Sender<Told>) -> Option<()> {
    let reply = request(address, &user.agent.key, "POST", "/api/v1/tools/invoke", Some(&body(user, number))).ok()?;
    let answer = reply.json();
    let told = Told {
        number,
        invocation: text(&answer, "/invocation_id").to_owned(),
        status: text(&answer, "/status").to_owned(),
    };
    assert_eq!(
        (reply.status, told.status.as_str()),
        if number.is_multiple_of(7) { (502, "error") } else { (200, "success") }
    );
    tells.send(told).ok()
}

fn body(user: &ToolUser, number: u64) -> Value {
    let mut body = json!({"tool": "service.any", "grant_id": user.grant, "parameters": {"number": number}});
    if number.is_multiple_of(2) {
        body["idempotency_key"] = json!(format!("call-{number}"));
    }
    body
}

/// The ledger against what the service saw and what the clients were told; answers how many calls were cut off.
fn check(user: &ToolUser, upstream: &Upstream, told: &[Told], closes_at_start: bool) -> usize {
    let history = user.history();
    let mut kept: BTreeMap<u64, &Value> = BTreeMap::new();
    for record in history.iter().filter(|record| record["status"] != "denied") {
        let number = record["parameters"]["number"].as_u64().unwrap();
        assert!(kept.insert(number, record).is_none(), "call {number} was made twice");
    }
    let mut seen = BTreeSet::new();
    for request in upstream.received() {
        let number = request.json()["number"].as_u64().unwrap();
        assert!(seen.insert(number), "the service saw call {number} twice");
        assert!(kept.contains_key(&number), "the service saw call {number}, and the ledger does not know of it");
    }
    for told in told {
        let record = kept[&told.number];
        assert_eq!((text(record, "/id"), text(record, "/status")), (&*told.invocation, &*told.status));
    }
    let cut_off: Vec<u64> = kept
        .iter()
        .filter(|(_, record)| !matches!(text(record, "/status"), "success" | "error"))
        .map(|(number, _)| *number)
        .collect();
    let (status, code) =
        if closes_at_start { ("unknown", "OUTCOME_UNKNOWN") } else { ("running", "IDEMPOTENCY_IN_PROGRESS") };
    let before = upstream.count();
    for number in &cut_off {
        let record = kept[number];
        // On PostgreSQL its time may be over by now.
        let overdue = !closes_at_start && record["status"] == "unknown";
        assert!(overdue || record["status"] == status, "{record}");
        if number.is_multiple_of(2) && !overdue {
            user.agent.post("/api/v1/tools/invoke", &body(user, *number)).refused(409, code);
        }
    }
    assert_eq!(upstream.count(), before, "nothing is done again by itself, nor for the asking");
    cut_off.len()
}

/// By the command line, as an auditor does it.
pub fn assert_log_verifies(world: &World) {
    let head = world.admin().get("/api/v1/audit/head").ok();
    let export = world.gate.cli().args(["audit", "export", "-o", "audit.jsonl"]).output().unwrap();
    assert!(export.status.success(), "{}", String::from_utf8_lossy(&export.stderr));
    let key = text(&head, "/public_key");
    let verify = world.gate.cli().args(["audit", "verify", "audit.jsonl", "--public-key", key]).output().unwrap();
    assert!(verify.status.success(), "{}", String::from_utf8_lossy(&verify.stderr));
}
