//! A gate that is killed: what waited is orphaned and never runs, before the answer and after it.

use serde_json::json;
use toolgate_testkit::postgres::TestDatabase;

use super::office::Office;
use crate::world::{World, block_on, setup};

/// A gate on either engine, and the way to start it again.
fn worlds() -> Vec<(World, toolgate_testkit::gate_process::GateSetup, Option<TestDatabase>)> {
    let sqlite = setup().reaching_loopback();
    let database = block_on(TestDatabase::create());
    let postgres = setup().reaching_loopback().database(database.url());
    let start = |setup: toolgate_testkit::gate_process::GateSetup, database| (World::of(&setup, None), setup, database);
    vec![start(sqlite, None), start(postgres, Some(database))]
}

#[test]
fn a_call_that_waited_when_the_gate_died_is_orphaned_and_never_runs() {
    for (world, setup, database) in worlds() {
        let office = Office::open(&world);
        let waiting = office.asks("transfer", 1);
        let approval = waiting.approval.clone();
        world.gate.kill();
        // With one owner of the ledger it is known at once who is dead; with several, when it has been silent for a while.
        let again = World::of(&setup, None);
        let office = office.at(&again);
        if database.is_none() {
            assert_eq!(office.approval(&approval)["status"], "orphaned");
            let late = office.clerk.decides(&approval, "approve", json!({})).refused(410, "APPROVAL_ENDED");
            assert_eq!(late["status"], "orphaned");
            assert_eq!(office.events_of(&approval), ["approval.requested", "approval.orphaned"]);
        } else {
            // Nobody waits for the answer: given, it changes nothing.
            let reply = office.clerk.decides(&approval, "approve", json!({}));
            assert!([200, 410].contains(&reply.status()), "{}", reply.answer.text());
        }
        assert_eq!(office.bank.count(), 0, "it was never run");
        drop(waiting);
        drop(again);
        drop(database);
    }
}

#[test]
fn an_answer_that_was_given_before_the_gate_died_is_kept_and_the_call_is_run_once_or_never() {
    for (world, setup, _database) in worlds() {
        let mut office = Office::open(&world);
        let mut world = world;
        for round in 0..4 {
            let waiting = office.asks("transfer", round);
            let approval = waiting.approval.clone();
            let before = office.bank.count();
            // When the answer is given and the gate is killed at the same moment.
            let clerk = office.clerk.clone();
            let decided = clerk.decides(&approval, "approve", json!({})).status();
            world.gate.kill();
            world = World::of(&setup, None);
            office = office.at(&world);
            // Then what was acknowledged is there, and the call ran at most once.
            assert_eq!(decided, 200);
            // A call that died between the two is told to be: on PostgreSQL when its process has been silent for a while.
            let status = office.approval(&approval)["status"].clone();
            match status.as_str() {
                Some("approved") => assert!(office.bank.count() <= before + 1),
                Some("orphaned") => assert_eq!(office.bank.count(), before, "it was never run"),
                _ => panic!("{status}"),
            }
            let (after, _) = (office.bank.count(), waiting);
            assert_eq!(office.bank.count(), after, "a restart runs nothing");
        }
    }
}
