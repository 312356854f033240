//! A guardian that dies: nothing passes while it is gone, it is left alone after a while, and asked again when it is
//! back.

use serde_json::json;

use super::office::{Office, said};
use super::third_party::ThirdParty;
use crate::world::until;

#[test]
fn a_guardian_that_crashes_and_comes_back_is_left_alone_and_then_asked_again() {
    let mut guardian = ThirdParty::restartable(json!([{"do": "exit"}]));
    let office = Office::with(&guardian, "breaker_failures = 3\nbreaker_seconds = 3");
    let failure = || {
        let error = office.send("hello").refused(503, "GUARDIAN_FAILED");
        error["failure"].as_str().unwrap().to_owned()
    };
    assert_eq!(failure(), "malformed", "it breaks off while it answers");
    guardian.wait_for_its_end();
    assert_eq!(failure(), "connect");
    assert_eq!(failure(), "connect");
    assert_eq!(failure(), "circuit_open", "the third failure was one too many");

    guardian.start_again(&json!([]));
    assert_eq!(guardian.questions().len(), 1, "it is left alone for a while, there or not");
    let reply = until("a guardian that is asked again", || {
        let reply = office.send("hello");
        (reply.status() == 200).then_some(reply)
    });
    assert_eq!(said(&office.decision(&reply), "security")["verdict"], "allow");
    assert_eq!(office.mail.count(), 1, "nothing passed while it was gone");
    office.send("hello").ok();
}

#[test]
fn a_guardian_that_crashes_where_failures_pass_lets_calls_pass_marked() {
    let mut guardian = ThirdParty::restartable(json!([{"do": "exit"}]));
    let office = Office::with(&guardian, "breaker_failures = 2\nbreaker_seconds = 600\non_failure = \"allow\"");
    let mut classes = Vec::new();
    for _ in 0..4 {
        let reply = office.call("inbox", json!({}));
        reply.ok();
        for decision in office.decisions(&reply) {
            let said = said(&decision, "security");
            assert_eq!(said["outcome"], "failed_open");
            classes.push(said["failure"].as_str().unwrap().to_owned());
        }
    }
    guardian.wait_for_its_end();
    assert_eq!(classes.len(), 8, "about the request and about the result");
    assert!(classes[2..].iter().all(|class| class == "circuit_open"), "{classes:?}");
}
