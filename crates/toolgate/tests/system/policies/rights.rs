//! The right to change policies is its own: nobody has it by any other, and it gives no other. Every change is in the log.

use serde_json::{Value, json};
use toolgate_model::permission::Permission;

use super::office::{Office, no_note, to_json};
use crate::world::{Actor, World, on_both_engines, text};

on_both_engines! {
    who_may_do_everything_else_can_neither_change_policies_nor_come_to_that_right,
    who_may_do_everything_else_cannot_change_the_labels_that_rules_speak_of,
    who_may_neither_change_policies_nor_read_the_log_sees_none_of_it,
    who_may_change_policies_can_do_nothing_else_by_that,
    every_change_is_in_the_log_with_who_which_version_and_what,
    policies_of_one_tenant_are_nothing_to_another,
}

/// A person with all permissions of a tenant but these.
fn without(admin: &Actor, id: &str, missing: &[Permission]) -> Actor {
    let all = Permission::ALL.iter().filter(|permission| !missing.contains(permission));
    let permissions: Vec<&str> = all.map(|permission| permission.as_str()).collect();
    admin.registers_as(&json!({"id": id, "kind": "user", "permissions": permissions}))
}

/// Everything that changes policies, or tries them out.
fn changes() -> Vec<(&'static str, &'static str, Value)> {
    let files = to_json(&[("rules.cedar", "")]);
    vec![
        ("PUT", "/api/v1/policies", json!({"files": files})),
        ("POST", "/api/v1/policies/check", json!({"files": files})),
        ("POST", "/api/v1/policies/rollback", json!({"version": 1})),
        ("POST", "/api/v1/policies/promote", json!({"policy_id": "watching"})),
        ("POST", "/api/v1/policies/simulate", json!({"files": files, "since": "2026-01-01T00:00:00Z"})),
    ]
}

/// Everything that tells of policies.
const READS: [&str; 4] =
    ["/api/v1/policies", "/api/v1/policies/schema", "/api/v1/policies/versions", "/api/v1/policies/versions/1"];
const READS_OF_THE_LOG: [&str; 2] = ["/api/v1/policies/shadow?since=2026-01-01T00:00:00Z", "/api/v1/runs/r-1/replay"];

/// An office with one rule in force and one that only watches.
fn open(world: &World) -> Office {
    let office = Office::open(world);
    office.applies(&format!("{}\n@mode(\"shadow\")\n{}", no_note("no-lunch", "lunch"), no_note("watching", "dinner")));
    office
}

#[track_caller]
fn nothing_changed(office: &Office) {
    assert_eq!(office.admin.get("/api/v1/policies").ok()["version"], 1);
    office.note("lunch").refused(403, "POLICY_DENIED");
}

fn who_may_do_everything_else_can_neither_change_policies_nor_come_to_that_right(world: &World) {
    let office = open(world);
    let bob = without(&office.admin, "bob", &[Permission::ManagePolicies]);
    for (method, path, body) in changes() {
        bob.ask(method, path, Some(&body)).refused(403, "PERMISSION_DENIED");
    }
    nothing_changed(&office);
    // Whoever reads the log may read the rules that are named in it.
    for path in READS {
        bob.get(path).ok();
    }
    // It makes nobody who could, and no key of somebody who can.
    let more = json!({"permissions": ["policies.manage"]});
    bob.patch("/api/v1/agents/clerk", &more).refused(403, "PERMISSION_DENIED");
    bob.patch("/api/v1/agents/bob", &more).refused(403, "PERMISSION_DENIED");
    let new = json!({"id": "eve", "permissions": ["policies.manage"]});
    bob.post("/api/v1/agents", &new).refused(403, "PERMISSION_DENIED");
    bob.post("/api/v1/agents/admin/keys", &json!({})).refused(403, "PERMISSION_DENIED");
}

fn who_may_do_everything_else_cannot_change_the_labels_that_rules_speak_of(world: &World) {
    let office = Office::open(world);
    office.admin.patch("/api/v1/agents/clerk", &json!({"labels": ["apprentice"]})).ok();
    office.applies("@id(\"no\")\nforbid (principal in Label::\"apprentice\", action in Action::\"call\", resource);");
    let bob = without(&office.admin, "bob", &[Permission::ManagePolicies]);
    for labels in [json!([]), json!(["apprentice", "master"]), json!(["master"])] {
        bob.patch("/api/v1/agents/clerk", &json!({"labels": labels})).refused(403, "PERMISSION_DENIED");
    }
    let new = json!({"id": "dan", "labels": ["master"]});
    bob.post("/api/v1/agents", &new).refused(403, "PERMISSION_DENIED");
    office.note("hello").refused(403, "POLICY_DENIED");
    // Anything else about the agent is still theirs to change.
    bob.patch("/api/v1/agents/clerk", &json!({"name": "Clerk", "labels": ["apprentice"]})).ok();
    office.admin.patch("/api/v1/agents/clerk", &json!({"labels": []})).ok();
    office.note("hello").ok();
}

fn who_may_neither_change_policies_nor_read_the_log_sees_none_of_it(world: &World) {
    let office = open(world);
    let bob = without(&office.admin, "bob", &[Permission::ManagePolicies, Permission::ReadAudit]);
    for somebody in [&bob, &office.agent, &office.host, &office.ann] {
        for path in READS.iter().chain(&READS_OF_THE_LOG) {
            somebody.get(path).refused(403, "PERMISSION_DENIED");
        }
        for (method, path, body) in changes() {
            somebody.ask(method, path, Some(&body)).refused(403, "PERMISSION_DENIED");
        }
    }
    nothing_changed(&office);
}

fn who_may_change_policies_can_do_nothing_else_by_that(world: &World) {
    let office = open(world);
    let dan = office.admin.registers_as(&json!({"id": "dan", "kind": "user", "permissions": ["policies.manage"]}));
    for path in READS {
        dan.get(path).ok();
    }
    assert_eq!(dan.post("/api/v1/policies/promote", &json!({"policy_id": "watching"})).ok()["applied_by"], "dan");
    office.note("dinner").refused(403, "POLICY_DENIED");
    dan.post("/api/v1/policies/rollback", &json!({"version": 1})).ok();
    office.note("dinner").ok();
    dan.applies(&[("rules.cedar", &no_note("no-dinner", "dinner"))]).ok();
    office.note("dinner").refused(403, "POLICY_DENIED");
    // What was called is the log's to tell.
    let simulate = json!({"files": [], "since": "2026-01-01T00:00:00Z"});
    dan.post("/api/v1/policies/simulate", &simulate).refused(403, "PERMISSION_DENIED");
    for path in READS_OF_THE_LOG.into_iter().chain(["/api/v1/audit/events", "/api/v1/agents", "/api/v1/services"]) {
        dan.get(path).refused(403, "PERMISSION_DENIED");
    }
    dan.patch("/api/v1/agents/clerk", &json!({"labels": ["a"]})).refused(403, "PERMISSION_DENIED");
    dan.post("/api/v1/agents", &json!({"id": "eve"})).refused(403, "PERMISSION_DENIED");
    dan.post("/api/v1/vaults", &json!({"name": "mine"})).refused(403, "PERMISSION_DENIED");
    let call = json!({"tool": "desk.note", "agent_id": "clerk", "parameters": {"text": "x"}});
    dan.invokes(call).refused(403, "PERMISSION_DENIED");
}

fn every_change_is_in_the_log_with_who_which_version_and_what(world: &World) {
    let office = open(world);
    let dan = office.admin.registers_as(&json!({"id": "dan", "kind": "user", "permissions": ["policies.manage"]}));
    dan.post("/api/v1/policies/promote", &json!({"policy_id": "watching"})).ok();
    dan.post("/api/v1/policies/rollback", &json!({"version": 1})).ok();
    let body = json!({"files": to_json(&[("rules.cedar", &no_note("a", "b"))]), "note": "less"});
    dan.ask("PUT", "/api/v1/policies", Some(&body)).ok();
    let logged = office.admin.events("&type=policies.changed");
    let wanted = [
        ("admin", "applied", Value::Null, 2, 1),
        ("dan", "promoted", json!("watching"), 2, 0),
        ("dan", "rolled_back", json!("1"), 2, 1),
        ("dan", "applied", Value::Null, 1, 0),
    ];
    assert_eq!(logged.len(), wanted.len());
    for (event, (place, (who, change, subject, rules, shadowed))) in logged.iter().zip((1..).zip(wanted)) {
        let data = &event["data"];
        assert_eq!((&event["actor"], &data["version"]), (&json!(who), &json!(place)), "{event}");
        assert_eq!((&data["change"], &data["subject"]), (&json!(change), &subject), "{event}");
        assert_eq!((&data["rules"], &data["shadowed"]), (&json!(rules), &json!(shadowed)), "{event}");
        let version = office.admin.get(&format!("/api/v1/policies/versions/{place}")).ok();
        assert_eq!((&data["digest"], &data["note"]), (&version["digest"], &version["note"]), "{event}");
        assert_eq!(version["applied_by"], who);
    }
    assert_eq!(text(&logged[0], "/data/digest"), text(&logged[2], "/data/digest"), "the same files");
}

fn policies_of_one_tenant_are_nothing_to_another(world: &World) {
    let office = open(world);
    let other = world.tenant("acme");
    assert_eq!(other.get("/api/v1/policies").ok()["version"], Value::Null);
    other.get("/api/v1/policies/versions/1").refused(404, "POLICY_NOT_FOUND");
    other.post("/api/v1/policies/rollback", &json!({"version": 1})).refused(404, "POLICY_NOT_FOUND");
    assert!(!text(&other.get("/api/v1/policies/schema").ok(), "/schema").contains("desk."));
    other.applies(&[("rules.cedar", "@id(\"all\") forbid (principal, action in Action::\"call\", resource);")]).ok();
    office.note("hello").ok();
    nothing_changed(&office);
}
