//! A change holds for the very next call, at every gate: whoever has been told that policies are active need not wait.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use toolgate_testkit::postgres::TestDatabase;

use super::office::{Office, call, no_note};
use crate::world::{Actor, World, block_on, on_both_engines, setup, text};

on_both_engines! {
    the_next_call_is_judged_by_what_was_just_applied,
    no_call_is_admitted_by_policies_that_are_no_longer_active,
}

const ROUNDS: u64 = 20;
/// Fewer, since every one of them is gone through by several agents at once.
const ROUNDS_UNDER_LOAD: usize = 5;

fn the_next_call_is_judged_by_what_was_just_applied(world: &World) {
    let office = Office::open(world);
    for round in 0..ROUNDS {
        let version = office.applies(&no_note("no-lunch", "lunch"));
        let error = office.note("lunch").refused(403, "POLICY_DENIED");
        assert_eq!(error["policy_version"], version.to_string(), "round {round}");
        office.applies(&no_note("no-dinner", "dinner"));
        office.note("lunch").ok();
    }
}

fn no_call_is_admitted_by_policies_that_are_no_longer_active(world: &World) {
    let office = Office::open(world);
    switched_under_load(&office, &[&office.admin], &[&office.agent, &office.agent]);
}

#[test]
fn what_is_applied_at_one_gate_judges_the_next_call_at_another() {
    let database = block_on(TestDatabase::create());
    let setup = setup().reaching_loopback().database(database.url());
    let worlds = [World::of(&setup, None), World::of(&setup, None)];
    let office = Office::open(&worlds[0]);
    let (lunch, dinner) = (no_note("no-lunch", "lunch"), no_note("no-dinner", "dinner"));
    for round in 0..ROUNDS {
        let (one, other) = if round % 2 == 0 { (0, 1) } else { (1, 0) };
        let admin = worlds[one].actor("admin", &office.admin.key);
        let agent = worlds[other].actor("clerk", &office.agent.key);
        let note = |text: &str| agent.invokes(call("note", json!({"text": text})));
        // The other gate has just used what it knew.
        note("breakfast").ok();
        let made = admin.applies(&[("rules.cedar", &lunch)]).ok();
        let error = note("lunch").refused(403, "POLICY_DENIED");
        assert_eq!(error["policy_version"], made["version"].to_string(), "round {round}");
        admin.applies(&[("rules.cedar", &dinner)]).ok();
        note("lunch").ok();
    }
}

#[test]
fn no_call_is_admitted_at_one_gate_by_policies_that_another_has_replaced() {
    let database = block_on(TestDatabase::create());
    let setup = setup().reaching_loopback().database(database.url());
    let worlds = [World::of(&setup, None), World::of(&setup, None)];
    let office = Office::open(&worlds[0]);
    let (admin, agent) = (worlds[1].actor("admin", &office.admin.key), worlds[1].actor("clerk", &office.agent.key));
    switched_under_load(&office, &[&office.admin, &admin], &[&office.agent, &agent, &agent]);
}

/// Forbids and allows lunch by turns while agents go on calling. After lunch was forbidden, none is admitted before it is
/// allowed again; and what the log has in between was judged by nothing older than what it was.
fn switched_under_load(office: &Office, admins: &[&Actor], agents: &[&Actor]) {
    let (lunch, nothing) = (no_note("no-lunch", "lunch"), no_note("no-dinner", "dinner"));
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for agent in agents {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let reply = agent.invokes(call("note", json!({"text": "lunch"})));
                    // A call may find that policies change faster than it can be judged.
                    assert!([200, 403, 409].contains(&reply.status()), "{}", reply.answer.text());
                }
            });
        }
        let rounds = std::panic::AssertUnwindSafe(|| {
            for round in 0..ROUNDS_UNDER_LOAD {
                let admin = admins[round % admins.len()];
                admin.applies(&[("rules.cedar", &lunch)]).ok();
                let before = admitted(&office.admin);
                // At least one call from beginning to end, which is refused.
                agents[0].invokes(call("note", json!({"text": "lunch"}))).refused(403, "POLICY_DENIED");
                assert_eq!(admitted(&office.admin), before, "round {round}");
                admin.applies(&[("rules.cedar", &nothing)]).ok();
            }
        });
        let outcome = std::panic::catch_unwind(rounds);
        over.store(true, Ordering::Relaxed);
        outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
    let mut active = 0;
    for event in office.admin.events("") {
        match text(&event, "/type") {
            "policies.changed" => active = event["data"]["version"].as_u64().unwrap(),
            "hook.decided" if event["data"]["effective"] == "allow" => {
                assert_eq!(event["data"]["policy_version"], active, "{event}");
            }
            _ => {}
        }
    }
}

/// How many calls were admitted so far.
fn admitted(admin: &Actor) -> usize {
    let denied = |invocation: &&Value| invocation["status"] != "denied";
    let mut count = 0;
    let mut cursor = String::new();
    loop {
        let page = admin.get(&format!("/api/v1/invocations?limit=1000{cursor}")).ok();
        count += page["invocations"].as_array().unwrap().iter().filter(denied).count();
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return count,
        }
    }
}
