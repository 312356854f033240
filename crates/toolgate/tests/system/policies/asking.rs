//! A rule that asks: who may answer, how many must, how long they have; and that an answer covers what was shown under the
//! rules that asked, and nothing else.

use serde_json::{Value, json};

use super::office::{KEY, Office, call, no_note};
use crate::world::{Actor, World, on_both_engines, text};

on_both_engines! {
    only_the_groups_of_the_rule_may_answer_and_as_many_as_it_says,
    a_rule_says_how_long_there_is_to_answer,
    of_several_rules_all_must_be_met,
    rules_that_nobody_can_meet_together_refuse,
    an_answer_covers_the_changed_form,
    policies_that_changed_during_the_wait_count_and_not_those_that_asked,
    policies_that_ask_the_same_after_the_wait_are_met_by_the_answer,
}

const TWO_OF_FINANCE: &str = r#"
@id("two-of-finance")
@reason("commands cost money")
@remedy("ask")
@approvers("finance")
@quorum("2")
@within("2h")
forbid (principal, action == Action::"call:desk.run", resource);
"#;

const ANYBODY: &str = r#"
@id("anybody")
@remedy("ask")
forbid (principal, action == Action::"call:desk.run", resource);
"#;

fn person(office: &Office, id: &str, scope: &str) -> Actor {
    let body = json!({"id": id, "kind": "user", "permissions": ["approvals.decide"], "scopes": [scope]});
    office.admin.registers_as(&body)
}

fn make() -> Value {
    call("run", json!({"command": "make"}))
}

fn only_the_groups_of_the_rule_may_answer_and_as_many_as_it_says(world: &World) {
    let office = Office::open(world);
    office.applies(TWO_OF_FINANCE);
    let [bob, cat, dan] = [("bob", "finance"), ("cat", "finance"), ("dan", "legal")]
        .map(|(id, group)| person(&office, id, &format!("approver:{group}")));
    let waiting = office.asks(make());
    let approval = text(&waiting.approval, "/id").to_owned();
    assert_eq!(waiting.approval["approvers"], json!({"needed": 2, "given": 0}));
    assert!(waiting.approval["reasons"].to_string().contains("commands cost money (policy two-of-finance, version 1)"));
    for stranger in [&office.ann, &dan] {
        stranger.decides(&approval, "approve", json!({})).refused(403, "PERMISSION_DENIED");
    }
    bob.decides(&approval, "approve", json!({"scope": "always"})).ok();
    bob.decides(&approval, "approve", json!({})).refused(409, "APPROVAL_DECIDED");
    assert_eq!(office.desk.count(), 0);
    let ended = cat.decides(&approval, "approve", json!({"scope": "always"})).ok();
    assert_eq!((&ended["status"], &ended["standing_approval_id"]), (&json!("approved"), &Value::Null));
    waiting.answer().ok();
    assert_eq!(office.desk.count(), 1);
    // The next one is asked about again.
    let again = office.asks(make());
    again.decided(&bob, "deny").refused(403, "APPROVAL_DENIED");
}

fn a_rule_says_how_long_there_is_to_answer(world: &World) {
    let office = Office::open(world);
    office.applies(&ANYBODY.replace("@remedy", "@within(\"1s\")\n@remedy"));
    office.agent.invokes(make()).refused(403, "APPROVAL_TIMED_OUT");
    office.applies(TWO_OF_FINANCE);
    let waiting = office.asks(make());
    let time = |name: &str| toolgate_model::time::Timestamp::parse(text(&waiting.approval, name)).unwrap().as_millis();
    assert_eq!(time("/expires_at") - time("/created_at"), 2 * 60 * 60 * 1000);
    assert_eq!(office.desk.count(), 0);
}

fn of_several_rules_all_must_be_met(world: &World) {
    let office = Office::open(world);
    office.applies(&format!("{TWO_OF_FINANCE}{ANYBODY}"));
    let waiting = office.asks(make());
    let reasons = waiting.approval["reasons"].to_string();
    assert!(reasons.contains("two-of-finance") && reasons.contains("anybody"), "{reasons}");
    assert_eq!(waiting.approval["approvers"]["needed"], 2);
    let approval = text(&waiting.approval, "/id").to_owned();
    office.ann.decides(&approval, "approve", json!({})).refused(403, "PERMISSION_DENIED");
    let bob = person(&office, "bob", "approver:finance");
    waiting.decided(&bob, "deny").refused(403, "APPROVAL_DENIED");
}

fn rules_that_nobody_can_meet_together_refuse(world: &World) {
    let office = Office::open(world);
    let legal = ANYBODY.replace("@remedy", "@approvers(\"legal\")\n@remedy");
    office.applies(&format!("{TWO_OF_FINANCE}{legal}"));
    office.agent.invokes(make()).refused(403, "APPROVAL_REQUIRED");
    assert!(office.pending().is_empty());
    assert_eq!(office.desk.count(), 0);
}

fn an_answer_covers_the_changed_form(world: &World) {
    let office = Office::open(world);
    office.applies(&format!(
        "{ANYBODY}\n@id(\"no-keys\")\n@remedy(\"redact\")\n@detectors(\"secret\")\n\
         forbid (principal, action in Action::\"call\", resource);"
    ));
    let waiting = office.asks(call("run", json!({"command": format!("login {KEY}")})));
    let shown = waiting.approval.clone();
    assert_eq!(shown["original_arguments"]["command"], format!("login {KEY}"));
    assert!(!shown["arguments"].to_string().contains(KEY), "{shown}");
    let reply = waiting.decided(&office.ann, "approve");
    reply.ok();
    assert_eq!(office.sent("run"), [shown["arguments"].clone()]);
    let decision = &office.decisions(&reply)[0];
    assert_eq!((&decision["effective"], &decision["approval_id"]), (&json!("ask"), &shown["id"]), "{decision}");
    assert_ne!(decision["hash_before"], decision["hash_after"], "{decision}");
}

fn policies_that_changed_during_the_wait_count_and_not_those_that_asked(world: &World) {
    let office = Office::open(world);
    let stricter = ANYBODY.replace("@remedy", "@quorum(\"2\")\n@remedy");
    let other_group = ANYBODY.replace("@remedy", "@approvers(\"legal\")\n@remedy");
    let redacting = format!(
        "{ANYBODY}\n@id(\"plain\")\n@remedy(\"redact\")\n@fields(\"command\")\n\
         forbid (principal, action == Action::\"call:desk.run\", resource);"
    );
    let refusing = "@id(\"never\")\nforbid (principal, action == Action::\"call:desk.run\", resource);".to_owned();
    for (changed, code) in [
        (refusing, "POLICY_DENIED"),
        (stricter, "APPROVAL_REQUIRED"),
        (other_group, "APPROVAL_REQUIRED"),
        (redacting, "APPROVAL_REQUIRED"),
    ] {
        office.applies(ANYBODY);
        let waiting = office.asks(make());
        office.applies(&changed);
        let reply = waiting.decided(&office.ann, "approve");
        reply.refused(403, code);
        assert_eq!(office.desk.count(), 0, "{changed}");
    }
}

fn policies_that_ask_the_same_after_the_wait_are_met_by_the_answer(world: &World) {
    let office = Office::open(world);
    for (round, changed) in [format!("{ANYBODY}{}", no_note("other", "x")), String::new()].iter().enumerate() {
        office.applies(ANYBODY);
        let waiting = office.asks(make());
        let version = office.applies(changed);
        let reply = waiting.decided(&office.ann, "approve");
        reply.ok();
        assert_eq!(office.desk.count(), round + 1);
        if let Some(decision) = office.decisions(&reply).first() {
            assert_eq!(decision["policy_version"], version, "{decision}");
        }
    }
}
