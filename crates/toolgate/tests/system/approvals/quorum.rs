//! Rules: several people, of a group, and none of them who asked.

use serde_json::json;

use super::office::{Office, call, person};
use crate::world::{World, merged, on_both_engines, until};

on_both_engines! {
    also_behind_nginx:
    two_of_the_group_must_say_yes_and_each_must_be_another,
    one_no_of_the_group_ends_it,
    whoever_is_not_of_the_group_is_not_asked,
    a_person_who_made_the_call_is_no_approver_where_duties_are_separate,
    an_answer_of_several_covers_nothing_else,
    an_override_needs_a_rule_that_knows_it_and_a_reason,
}

fn two_of_the_group_must_say_yes_and_each_must_be_another(world: &World) {
    let office = Office::open(world);
    let ann = person(&office.admin, "ann", &["approvals.decide"], &["approver:finance"]);
    let bob = person(&office.admin, "bob", &["approvals.decide"], &["approver:finance"]);
    let waiting = office.asks("transfer.two", 10);
    let first = ann.decides(&waiting.approval, "approve", json!({})).ok();
    assert_eq!((&first["status"], &first["approvers"]), (&json!("pending"), &json!({"needed": 2, "given": 1})));
    ann.decides(&waiting.approval, "approve", json!({})).refused(409, "APPROVAL_DECIDED");
    assert_eq!(office.bank.count(), 0);
    let second = bob.decides(&waiting.approval, "approve", json!({})).ok();
    assert_eq!(second["status"], "approved");
    let approval = waiting.approval.clone();
    waiting.answer().ok();
    assert_eq!(office.events_of(&approval), ["approval.requested", "approval.counted", "approval.granted"]);
}

fn one_no_of_the_group_ends_it(world: &World) {
    let office = Office::open(world);
    let ann = person(&office.admin, "ann", &["approvals.decide"], &["approver:finance"]);
    let bob = person(&office.admin, "bob", &["approvals.decide"], &["approver:finance"]);
    let waiting = office.asks("transfer.two", 10);
    ann.decides(&waiting.approval, "approve", json!({})).ok();
    bob.decides(&waiting.approval, "deny", json!({"reason": "no"})).ok();
    waiting.answer().refused(403, "APPROVAL_DENIED");
    assert_eq!(office.bank.count(), 0);
}

fn whoever_is_not_of_the_group_is_not_asked(world: &World) {
    let office = Office::open(world);
    let waiting = office.asks("transfer.two", 10);
    for decision in ["approve", "deny"] {
        office.clerk.decides(&waiting.approval, decision, json!({})).refused(403, "PERMISSION_DENIED");
    }
    let ann = person(&office.admin, "ann", &["approvals.decide"], &["approver:*"]);
    ann.decides(&waiting.approval, "deny", json!({})).ok();
    waiting.answer().refused(403, "APPROVAL_DENIED");
}

fn a_person_who_made_the_call_is_no_approver_where_duties_are_separate(world: &World) {
    let office = Office::open(world);
    let every = ["tools.invoke", "agents.act_as", "approvals.decide"];
    let ann = person(&office.admin, "ann", &every, &["approver:finance"]);
    for (tool, status) in [("transfer", 200), ("transfer.two", 403)] {
        let (caller, body) = (ann.clone(), merged(call(tool, 1), json!({"agent_id": "teller"})));
        let thread = std::thread::spawn(move || caller.post("/api/v1/tools/invoke", &body));
        let approval = until("a call that waits", || office.pending().into_iter().next());
        // A person may answer for what they do for their agent, unless the rule wants another.
        assert_eq!(ann.decides(&approval, "approve", json!({})).status(), status, "{tool}");
        if status == 403 {
            let bob = person(&office.admin, "bob", &["approvals.decide"], &["approver:finance"]);
            bob.decides(&approval, "deny", json!({})).ok();
        }
        thread.join().unwrap();
    }
    assert_eq!(office.bank.count(), 1);
}

fn an_answer_of_several_covers_nothing_else(world: &World) {
    let office = Office::open(world);
    let ann = person(&office.admin, "ann", &["approvals.decide"], &["approver:finance"]);
    let bob = person(&office.admin, "bob", &["approvals.decide"], &["approver:finance"]);
    let waiting = office.asks("transfer.two", 10);
    ann.decides(&waiting.approval, "approve", json!({"scope": "always"})).ok();
    let ended = bob.decides(&waiting.approval, "approve", json!({"scope": "always"})).ok();
    assert_eq!((&ended["status"], &ended["standing_approval_id"]), (&json!("approved"), &json!(null)));
    assert!(ended["notice"].is_string(), "{ended}");
    waiting.answer().ok();
}

fn an_override_needs_a_rule_that_knows_it_and_a_reason(world: &World) {
    let office = Office::open(world);
    let ann = person(&office.admin, "ann", &["approvals.decide"], &["approver:finance"]);
    let waiting = office.asks("transfer.two", 10);
    ann.decides(&waiting.approval, "override", json!({"reason": "now"})).refused(403, "PERMISSION_DENIED");
    ann.decides(&waiting.approval, "deny", json!({})).ok();
    waiting.answer().refused(403, "APPROVAL_DENIED");

    let mut definition = office.admin.get("/api/v1/services/bank").ok()["versions"][0].clone();
    let members = definition.as_object_mut().unwrap();
    members.retain(|name, _| name != "created_at" && name != "updated_at");
    definition["tools"]["transfer.two"]["approval_rule"]["override_groups"] = json!(["duty"]);
    office.admin.ask("PUT", "/api/v1/services/bank", Some(&definition)).ok();
    let bob = person(&office.admin, "bob", &["approvals.decide"], &["approver:duty"]);
    let waiting = office.asks("transfer.two", 10);
    ann.decides(&waiting.approval, "override", json!({"reason": "now"})).refused(403, "PERMISSION_DENIED");
    bob.decides(&waiting.approval, "override", json!({})).refused(400, "INVALID_FIELD");
    assert_eq!(office.bank.count(), 0);
    let ended = bob.decides(&waiting.approval, "override", json!({"reason": "the branch is closed"})).ok();
    assert_eq!((&ended["status"], &ended["votes"][0]["decision"]), (&json!("approved"), &json!("override")));
    let approval = waiting.approval.clone();
    waiting.answer().ok();
    assert_eq!(office.bank.count(), 1);
    assert_eq!(office.events_of(&approval), ["approval.requested", "approval.overridden"]);
}
