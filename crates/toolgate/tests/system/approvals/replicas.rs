//! Several gates on one PostgreSQL: a call waits at one and is answered at another.

use serde_json::json;
use toolgate_model::time::Timestamp;
use toolgate_testkit::postgres::TestDatabase;

use super::office::{Office, call};
use crate::openwop::follower::Follower;
use crate::world::{World, block_on, setup, text};

#[test]
fn a_call_that_waits_at_one_gate_is_answered_at_another_and_hears_of_it_soon() {
    let database = block_on(TestDatabase::create());
    let setup = setup().reaching_loopback().database(database.url());
    let (one, other) = (World::of(&setup, None), World::of(&setup, None));
    let office = Office::open(&one);
    let clerk = other.actor("clerk", &office.clerk.key);
    let mut waits = Vec::new();
    for round in 0..10 {
        let waiting = office.asks("transfer", round);
        let decided = clerk.decides(&waiting.approval, "approve", json!({})).ok();
        let answer = waiting.answer().ok();
        let run = format!("&type=agent.toolCalled&run_id={}", text(&answer, "/invocation_id"));
        let admitted = office.admin.events(&run);
        let time = |text: &str| Timestamp::parse(text).unwrap().as_millis();
        waits.push(time(text(&admitted[0], "/timestamp")) - time(text(&decided, "/resolved_at")));
    }
    waits.sort_unstable();
    // The median, since any one of them may fall upon a busy machine.
    assert!((0..250).contains(&waits[5]), "{waits:?} ms");
    assert_eq!(office.bank.count(), 10);
}

#[test]
fn somebody_who_follows_at_one_gate_is_there_for_calls_at_another() {
    let database = block_on(TestDatabase::create());
    let setup = setup().reaching_loopback().database(database.url());
    let (one, other) = (World::of(&setup, None), World::of(&setup, None));
    let office = Office::open(&one);
    office.agent.post("/api/v1/tools/invoke", &call("transfer.attended", 1)).refused(403, "APPROVAL_REQUIRED");
    let clerk = other.actor("clerk", &office.clerk.key);
    let _follower = Follower::open(&other, &clerk, "/api/v1/approvals/stream", None);
    // The other gate tells of it with its next beat.
    let agent = office.agent.clone();
    let thread = std::thread::spawn(move || {
        loop {
            let reply = agent.post("/api/v1/tools/invoke", &call("transfer.attended", 1));
            if reply.status() == 200 {
                return;
            }
            reply.refused(403, "APPROVAL_REQUIRED");
        }
    });
    let approval = crate::world::until("a call that waits", || office.pending().into_iter().next());
    clerk.decides(&approval, "approve", json!({})).ok();
    thread.join().unwrap();
}

#[test]
fn a_tool_that_needs_a_person_from_now_on_runs_without_one_at_no_gate() {
    let database = block_on(TestDatabase::create());
    let setup = setup().reaching_loopback().database(database.url());
    let (one, other) = (World::of(&setup, None), World::of(&setup, None));
    let office = Office::open(&one);
    let admin = other.actor("admin", &office.admin.key);
    let says = |approval: &str| {
        let tool = json!({"approval": approval, "approval_rule": {"ttl_seconds": 1},
            "http": {"method": "POST", "path": "/v1/anything"}});
        let definition = json!({"service": "bank", "version": "1", "tools": {"balance": tool}});
        admin.ask("PUT", "/api/v1/services/bank", Some(&definition)).ok();
    };
    for round in 0..5 {
        // Given a gate that has just made such a call without asking.
        says("never");
        let passes = || office.agent.post("/api/v1/tools/invoke", &call("balance", round)).status() == 200;
        crate::world::until("a call without a person", || passes().then_some(()));
        let before = office.bank.count();
        // When the other gate is told that a person must be asked.
        says("always");
        // Then the first one does not make another.
        let reply = office.agent.post("/api/v1/tools/invoke", &call("balance", round));
        assert!([403, 409].contains(&reply.status()), "{}", reply.answer.text());
        assert_eq!(office.bank.count(), before);
    }
}

#[test]
fn a_standing_approval_revoked_at_one_gate_covers_nothing_at_another() {
    let database = block_on(TestDatabase::create());
    let setup = setup().reaching_loopback().database(database.url());
    let (one, other) = (World::of(&setup, None), World::of(&setup, None));
    let office = Office::open(&one);
    let clerk = other.actor("clerk", &office.clerk.key);
    for round in 0..5 {
        let waiting = office.asks("transfer.brief", round);
        let decided = clerk.decides(&waiting.approval, "approve", json!({"scope": "always"})).ok();
        waiting.answer().ok();
        office.agent.post("/api/v1/tools/invoke", &call("transfer.brief", 100)).ok();
        let standing = decided["standing_approval_id"].as_str().unwrap();
        clerk.delete(&format!("/api/v1/standing-approvals/{standing}")).ok();
        office.agent.post("/api/v1/tools/invoke", &call("transfer.brief", 101)).refused(403, "APPROVAL_TIMED_OUT");
    }
}
