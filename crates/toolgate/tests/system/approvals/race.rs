//! Many requests, several channels, one winner each.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use super::office::{Office, call};
use crate::world::{World, setup};

/// How many calls wait at once.
const REQUESTS: usize = 1000;

#[test]
fn of_three_channels_that_answer_a_thousand_requests_at_once_exactly_one_wins_each() {
    let setup = setup().reaching_loopback().environment("TOOLGATE_APPROVALS_WAIT_SECONDS", "3600");
    let world = World::of(&setup.environment("TOOLGATE_APPROVALS_OPEN_PER_AGENT", "1000"), None);
    let office = Office::open(&world);
    // Given a thousand calls that wait.
    let calls: Vec<_> = (0..REQUESTS)
        .map(|number| {
            let agent = office.agent.clone();
            let body = call("transfer", number as u64);
            let run = move || agent.post("/api/v1/tools/invoke", &body).status();
            std::thread::Builder::new().stack_size(256 * 1024).spawn(run).unwrap()
        })
        .collect();
    let all = || Some(office.pending()).filter(|all| all.len() == REQUESTS);
    let pending = Arc::new(crate::world::until("all of them", all));
    // When three channels answer each of them at the same time, two with yes and one with no.
    let mut answering = Vec::new();
    for (channel, decision) in [("http", "approve"), ("terminal", "deny"), ("host", "approve")] {
        let next = Arc::new(AtomicUsize::new(0));
        for _ in 0..2 {
            let (pending, clerk, next) = (Arc::clone(&pending), office.clerk.clone(), Arc::clone(&next));
            answering.push(std::thread::spawn(move || {
                let mut won = Vec::new();
                while let Some(approval) = pending.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let reply = clerk.decides(approval, decision, json!({"channel": channel}));
                    match reply.status() {
                        200 => won.push((approval.clone(), decision)),
                        409 => drop(reply.refused(409, "APPROVAL_DECIDED")),
                        other => panic!("{other}: {}", reply.answer.text()),
                    }
                }
                won
            }));
        }
    }
    let won: Vec<_> = answering.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    // Then each has one winner, and the calls went as the winners said.
    let winners: BTreeMap<_, _> = won.iter().cloned().collect();
    assert_eq!((won.len(), winners.len()), (REQUESTS, REQUESTS));
    let approved = winners.values().filter(|decision| **decision == "approve").count();
    let answers: Vec<u16> = calls.into_iter().map(|thread| thread.join().unwrap()).collect();
    let succeeded = answers.iter().filter(|status| **status == 200).count();
    let denied = answers.iter().filter(|status| **status == 403).count();
    assert_eq!((succeeded, denied), (approved, REQUESTS - approved));
    assert_eq!(office.bank.count(), approved, "nothing else was sent");
    assert_eq!(office.pending(), [""; 0]);
}
