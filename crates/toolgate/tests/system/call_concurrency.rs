//! Calls that come at once: a limit is never overshot, and one idempotency key reaches the service once, whether one
//! gate decides or two that share a database.

use std::collections::BTreeSet;
use std::sync::Barrier;
use std::thread;

use serde_json::json;
use toolgate_testkit::gate_process::GateSetup;
use toolgate_testkit::postgres::TestDatabase;
use toolgate_testkit::upstream::{Reply, Upstream};

use crate::tool_user::{ToolUser, bearer};
use crate::world::{Reply as Answer, World, block_on, setup};

#[test]
fn a_limit_of_two_admits_two_of_two_hundred() {
    limit_holds(&[World::of(&recording_each(setup().reaching_loopback()), None)]);
}

#[test]
fn a_limit_of_two_admits_two_of_two_hundred_at_two_gates() {
    at_two_gates(limit_holds);
}

#[test]
fn a_budget_of_a_hundred_calls_makes_a_hundred_of_two_hundred_at_two_gates() {
    at_two_gates(budget_holds);
}

/// Two hundred workers, each with one call; the ledger adds up to the millionth of a dollar.
fn budget_holds(worlds: &[World]) {
    let upstream = Upstream::start(|request| {
        let number = request.json()["number"].as_u64().unwrap();
        Reply::json(200, json!({"usage": {"cost_usd": format!("0.{number:06}")}}))
    });
    let admin = worlds[0].admin();
    let cost = json!({"from": "/usage/cost_usd", "at_most_usd": 0.001});
    let http = json!({"method": "POST", "path": "/any"});
    let tool = json!({"estimated_cost_usd": 0.000_1, "cost": cost, "http": http});
    admin.post("/api/v1/services", &json!({"service": "service", "version": "1", "tools": {"any": tool}})).created();
    let user = ToolUser::of(&worlds[0], bearer(&upstream));
    let agent = format!("/api/v1/agents/{}", user.agent.id);
    admin.patch(&agent, &json!({"budget": {"calls_total": 100, "cost_total_usd": 1}})).ok();
    let users: Vec<ToolUser> = worlds.iter().map(|world| user.at(world)).collect();
    let answers = at_once(&users, 200, |user, number| user.calls("any", json!({"number": number + 1})));
    let (made, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|reply| reply.status() == 200);
    assert_eq!((made.len(), upstream.count()), (100, 100));
    for reply in refused {
        let error = reply.refused(403, "BUDGET_EXCEEDED");
        assert_eq!((&error["limit_calls"], &error["period"]), (&json!(100), &json!("total")), "{error}");
    }
    let spent: u64 = upstream.received().iter().map(|request| request.json()["number"].as_u64().unwrap()).sum();
    for world in worlds {
        let budgets = world.admin().get(&format!("/api/v1/budgets?agent_id={}", user.agent.id)).ok();
        let budget = &budgets["budgets"][0];
        assert_eq!((&budget["used_calls"], &budget["remaining_calls"]), (&json!(100), &json!(0)), "{budget}");
        let used = (budget["used_cost_usd"].as_f64().unwrap() * 1e6).round();
        assert_eq!(used.to_string(), spent.to_string(), "{budget}");
    }
    let cost = |record: &serde_json::Value| record["cost"]["estimated_cost_usd"].as_f64().unwrap_or(0.0) * 1e6;
    let recorded: f64 = user.history().iter().map(|record| cost(record).round()).sum();
    assert_eq!(recorded.to_string(), spent.to_string());
}

#[test]
fn one_idempotency_key_reaches_the_service_once() {
    key_holds(&[World::sqlite()]);
}

#[test]
fn one_idempotency_key_reaches_the_service_once_from_two_gates() {
    at_two_gates(key_holds);
}

fn limit_holds(worlds: &[World]) {
    let upstream = Upstream::start(|_| Reply::json(200, json!({})));
    let limit = json!({"constraints": {"max_invocations_per_hour": 2}});
    let user = ToolUser::limited(&worlds[0], bearer(&upstream), limit);
    let users: Vec<ToolUser> = worlds.iter().map(|world| user.at(world)).collect();
    let answers = at_once(&users, 200, |user, number| user.calls("any", json!({"number": number})));
    let (admitted, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|reply| reply.status() == 200);
    assert_eq!((admitted.len(), upstream.count()), (2, 2));
    for reply in refused {
        let error = reply.refused(429, "GRANT_RATE_LIMITED");
        // Whoever was refused may have read the clock a moment before those that were admitted at the other gate.
        assert!((1..=3601).contains(&error["retry_after_seconds"].as_u64().unwrap()), "{error}");
    }
    let history = user.history();
    assert_eq!(history.len(), 200);
    assert_eq!(history.iter().filter(|record| record["status"] == "success").count(), 2);
    assert_eq!(history.iter().filter(|record| record["status"] == "denied").count(), 198);
}

fn key_holds(worlds: &[World]) {
    let upstream = Upstream::start(|request| Reply::json(200, request.json()));
    let user = ToolUser::of(&worlds[0], bearer(&upstream));
    let users: Vec<ToolUser> = worlds.iter().map(|world| user.at(world)).collect();
    for round in 0..5 {
        let call = |user: &ToolUser, _| {
            user.calls_with("any", json!({"round": round}), json!({"idempotency_key": format!("round-{round}")}))
        };
        upstream.hold();
        let answers = thread::scope(|scope| {
            let calls = scope.spawn(|| at_once(&users, 64, call));
            upstream.wait_for(round + 1);
            upstream.release();
            calls.join().unwrap()
        });
        assert_eq!(upstream.count(), round + 1);
        let mut carried_out = BTreeSet::new();
        for reply in &answers {
            match reply.status() {
                200 => {
                    let answer = reply.json();
                    assert_eq!(answer["result"], json!({"round": round}));
                    carried_out.insert(answer["invocation_id"].as_str().unwrap().to_owned());
                }
                _ => drop(reply.refused(409, "IDEMPOTENCY_IN_PROGRESS")),
            }
        }
        assert_eq!(carried_out.len(), 1, "all that were answered were answered the same");
        for user in &users {
            let again = call(user, 0);
            assert_eq!(
                (&again.ok()["replayed"], again.answer.header("idempotent-replayed")),
                (&json!(true), Some("true"))
            );
        }
        assert_eq!(upstream.count(), round + 1);
    }
}

/// So many calls at the same time, to each gate in turn.
fn at_once(users: &[ToolUser], count: usize, call: impl Fn(&ToolUser, usize) -> Answer + Sync) -> Vec<Answer> {
    let ready = Barrier::new(count);
    thread::scope(|scope| {
        let calls: Vec<_> = users
            .iter()
            .cycle()
            .take(count)
            .enumerate()
            .map(|(number, user)| {
                let (ready, call) = (&ready, &call);
                scope.spawn(move || {
                    ready.wait();
                    call(user, number)
                })
            })
            .collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    })
}

/// A gate that records every refused call by itself, however many there are at once.
fn recording_each(setup: GateSetup) -> GateSetup {
    setup.environment("TOOLGATE_AUDIT_REFUSALS_PER_SECOND", "1000")
}

fn at_two_gates(scenario: fn(&[World])) {
    let database = block_on(TestDatabase::create());
    let setup = recording_each(setup().reaching_loopback()).database(database.url());
    scenario(&[World::of(&setup, None), World::of(&setup, None)]);
}
