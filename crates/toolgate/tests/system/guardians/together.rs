//! Several guardians: any no is a no, changes are made in order, those that are slow are waited for at the same time.

use serde_json::json;

use super::office::{Guarding, Office, said};
use super::third_party::ThirdParty;

fn start_three(rules: [serde_json::Value; 3]) -> [ThirdParty; 3] {
    rules.map(ThirdParty::start)
}

fn office(guardians: &[ThirdParty; 3], settings: [&str; 3]) -> Office {
    let named = ["one", "two", "three"].into_iter().zip(guardians).zip(settings);
    let all: Vec<_> =
        named.map(|((name, guardian), settings)| Guarding { name, url: guardian.url(), settings }).collect();
    Office::with_all(&all)
}

#[test]
fn three_slow_guardians_cost_the_slowest_and_not_the_sum() {
    let slow = json!([{"do": "hold", "method": "steps/toolCallRequest"}]);
    let guardians = start_three([slow.clone(), slow.clone(), slow]);
    let office = office(&guardians, ["", "", ""]);
    let agent = office.agent.clone();
    let call = json!({"tool": "mail.send", "parameters": {"to": "team", "body": "hello"}});
    let call = std::thread::spawn(move || agent.invokes(call));
    // All three have the question before any has answered: nobody waits for the answer of another.
    for guardian in &guardians {
        guardian.wait_until_it_holds(1);
    }
    for guardian in &guardians {
        guardian.release();
    }
    let reply = call.join().unwrap();
    reply.ok();
    let decision = office.decision(&reply);
    for name in ["one", "two", "three"] {
        assert_eq!(said(&decision, name)["verdict"], "allow");
    }
}

#[test]
fn one_no_is_a_no_and_the_others_are_not_waited_for() {
    let slow = json!([{"do": "hold", "method": "steps/toolCallRequest"}]);
    let guardians = start_three([slow.clone(), json!([{"do": "deny", "reason": "never"}]), slow]);
    let office = office(&guardians, ["", "", ""]);
    let reply = office.send("hello");
    let error = reply.refused(403, "GUARDIAN_DENIED");
    assert_eq!(error["guardian"], "two");
    let decision = office.decision(&reply);
    assert_eq!(said(&decision, "one")["outcome"], "cancelled");
    assert_eq!(said(&decision, "three")["outcome"], "cancelled");
    assert_eq!(office.mail.count(), 0);
}

#[test]
fn changes_are_made_in_order_and_each_sees_the_last_ones() {
    let set =
        |name: &str, value: &str| json!([{"do": "modify", "method": "steps/toolCallRequest", "set": {name: value}}]);
    let guardians = start_three([set("body", "of the last"), set("to", "of the first"), json!([])]);
    let office = office(&guardians, ["may_modify = true\norder = 20", "may_modify = true\norder = 10", ""]);
    let reply = office.send("of the agent");
    reply.ok();
    assert_eq!(office.sent(), [json!({"to": "of the first", "body": "of the last"})]);
    let seen = |guardian: &ThirdParty, to: &str, body: &str| {
        let inputs = json!([{"name": "to", "value": to}, {"name": "body", "value": body}]);
        let asked = guardian.asked_about("steps/toolCallRequest");
        asked.iter().any(|question| question["body"]["params"]["toolCallRequest"]["inputs"] == inputs)
    };
    assert!(seen(&guardians[0], "of the first", "of the agent"), "{:?}", guardians[0].questions());
    assert!(seen(&guardians[2], "of the first", "of the last"), "who changes nothing sees what came out");
    let decision = office.decision(&reply);
    let names = decision["guardians"].as_array().unwrap().iter().map(|said| said["guardian"].as_str().unwrap());
    let names: Vec<_> = names.filter(|name| *name != "policy").collect();
    assert_eq!(names, ["three", "two", "one"], "in the order in which they count");
}

#[test]
fn guardians_that_undo_each_others_changes_end_in_a_no() {
    let set = |value: &str| json!([{"do": "modify", "method": "steps/toolCallRequest", "set": {"body": value}}]);
    let guardians = start_three([set("mine"), set("no, mine"), json!([])]);
    let office = office(&guardians, ["may_modify = true", "may_modify = true\non_failure = \"allow\"", ""]);
    office.send("hello").refused(503, "GUARDIAN_FAILED");
    assert_eq!(office.mail.count(), 0);
}

#[test]
fn a_no_to_what_another_made_of_it_is_a_no() {
    let guardians = start_three([
        json!([{"do": "modify", "method": "steps/toolCallRequest", "set": {"body": "changed"}}]),
        json!([{"do": "deny", "reason": "no"}]),
        json!([]),
    ]);
    let office = office(&guardians, ["may_modify = true", "", ""]);
    office.send("hello").refused(403, "GUARDIAN_DENIED");
    assert_eq!(office.mail.count(), 0);
}
