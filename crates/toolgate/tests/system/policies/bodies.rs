//! Requests about policies that are not understood: refused by name, with nothing changed.

use serde_json::{Value, json};

use super::office::{Office, no_note, to_json};
use crate::world::{Actor, Reply, World, merged, on_both_engines, send};

on_both_engines! {
    fields_that_are_unknown_missing_or_of_another_type_are_refused,
    names_that_are_none_of_a_policy_file_are_refused,
    what_is_too_large_is_refused,
    what_is_no_json_is_refused,
}

/// Everything that takes policies, with the rest of its body.
fn takers() -> [(&'static str, &'static str, Value); 3] {
    [
        ("PUT", "/api/v1/policies", json!({})),
        ("POST", "/api/v1/policies/check", json!({})),
        ("POST", "/api/v1/policies/simulate", json!({"since": "2026-01-01T00:00:00Z"})),
    ]
}

fn with(rest: &Value, files: Value) -> Value {
    merged(rest.clone(), json!({"files": files}))
}

fn open(world: &World) -> Office {
    let office = Office::open(world);
    office.applies(&no_note("no-lunch", "lunch"));
    office
}

#[track_caller]
fn nothing_changed(office: &Office) {
    assert_eq!(office.admin.get("/api/v1/policies").ok()["version"], 1);
    office.note("lunch").refused(403, "POLICY_DENIED");
    office.note("dinner").ok();
}

/// Sends bytes as they are.
fn sends(world: &World, actor: &Actor, method: &str, path: &str, bytes: &[u8]) -> Reply {
    let authorization = format!("Bearer {}", actor.key);
    let headers = [("Authorization", authorization.as_str()), ("Content-Type", "application/json")];
    send(world.gate.address(), method, path, &headers, bytes)
}

fn fields_that_are_unknown_missing_or_of_another_type_are_refused(world: &World) {
    let office = open(world);
    let admin = &office.admin;
    let file = json!({"name": "a.cedar", "text": ""});
    for (method, path, rest) in takers() {
        let ask = |body: Value| admin.ask(method, path, Some(&body));
        ask(merged(with(&rest, json!([file])), json!({"file": []}))).refused(400, "UNKNOWN_FIELD");
        let more = json!([{"name": "a.cedar", "text": "", "mode": 7}]);
        ask(with(&rest, more)).refused(400, "UNKNOWN_FIELD");
        ask(rest.clone()).refused(400, "INVALID_FIELD");
        for files in [
            json!(null),
            json!("forbid"),
            json!({"a.cedar": ""}),
            json!([["a.cedar", ""]]),
            json!([{"name": "a.cedar"}]),
            json!([{"text": ""}]),
            json!([{"name": 7, "text": ""}]),
            json!([{"name": "a.cedar", "text": null}]),
        ] {
            ask(with(&rest, files)).refused(400, "INVALID_FIELD");
        }
    }
    for wrong in [json!({"expected_version": -1}), json!({"expected_version": "1"}), json!({"note": "a\nb"})] {
        let body = merged(json!({"files": []}), wrong);
        admin.ask("PUT", "/api/v1/policies", Some(&body)).refused(400, "INVALID_FIELD");
    }
    for (path, body, code) in [
        ("rollback", json!({}), "INVALID_FIELD"),
        ("rollback", json!({"version": "1"}), "INVALID_FIELD"),
        ("rollback", json!({"version": 1, "to": 1}), "UNKNOWN_FIELD"),
        ("promote", json!({}), "INVALID_FIELD"),
        ("promote", json!({"policy_id": 1}), "INVALID_FIELD"),
        ("promote", json!({"policy": "no-lunch"}), "UNKNOWN_FIELD"),
        ("simulate", json!({"files": [], "since": "yesterday"}), "INVALID_FIELD"),
        ("simulate", json!({"files": []}), "INVALID_FIELD"),
    ] {
        admin.post(&format!("/api/v1/policies/{path}"), &body).refused(400, code);
    }
    for (query, code) in [
        ("", "INVALID_FIELD"),
        ("?since=7d", "INVALID_FIELD"),
        ("?since=2026-01-01T00:00:00Z&until=x", "UNKNOWN_FIELD"),
    ] {
        admin.get(&format!("/api/v1/policies/shadow{query}")).refused(400, code);
    }
    nothing_changed(&office);
}

fn names_that_are_none_of_a_policy_file_are_refused(world: &World) {
    let office = open(world);
    let long = format!("{}.cedar", "a".repeat(130));
    for (method, path, rest) in takers() {
        for name in
            ["", "rules", "rules.txt", ".cedar", ".test.yaml", "../a.cedar", "a/b.cedar", "a b.cedar", "ä.cedar", &long]
        {
            let body = with(&rest, to_json(&[(name, "")]));
            let error = office.admin.ask(method, path, Some(&body)).refused(400, "INVALID_FIELD");
            assert_eq!(error["path"], "files.0.name", "{name}: {error}");
        }
        let twice = with(&rest, to_json(&[("a.cedar", ""), ("b.cedar", ""), ("a.cedar", "")]));
        office.admin.ask(method, path, Some(&twice)).refused(400, "INVALID_FIELD");
    }
    nothing_changed(&office);
}

fn what_is_too_large_is_refused(world: &World) {
    let office = open(world);
    let comment = |bytes: usize| format!("//{}\n", "x".repeat(bytes));
    let many: Value = (0..501).map(|number| json!({"name": format!("{number}.cedar"), "text": ""})).collect();
    // More than the texts may have together, in a body that may still be read; and more than any body may have.
    let (long, endless) = (comment(8 * 1024 * 1024), comment(10 * 1024 * 1024));
    for (method, path, rest) in takers() {
        office.admin.ask(method, path, Some(&with(&rest, many.clone()))).refused(400, "INVALID_FIELD");
        let body = with(&rest, to_json(&[("a.cedar", &long)]));
        office.admin.ask(method, path, Some(&body)).refused(400, "INVALID_FIELD");
        let body = with(&rest, to_json(&[("a.cedar", &endless)]));
        office.admin.ask(method, path, Some(&body)).refused(413, "BODY_TOO_LARGE");
        // Whoever may not change policies has no more room than anybody else.
        let body = with(&rest, to_json(&[("a.cedar", &comment(4 * 1024 * 1024))]));
        office.agent.ask(method, path, Some(&body)).refused(413, "BODY_TOO_LARGE");
    }
    nothing_changed(&office);
    let large = format!("{}{}", comment(4 * 1024 * 1024), no_note("no-lunch", "lunch"));
    office.admin.applies(&[("rules.cedar", &large)]).ok();
    office.note("lunch").refused(403, "POLICY_DENIED");
}

fn what_is_no_json_is_refused(world: &World) {
    let office = open(world);
    for (method, path, _) in takers() {
        for bytes in [
            b"".as_slice(),
            b"{",
            b"forbid (principal, action, resource);",
            b"{\"files\": [{\"name\": \"a.cedar\", \"text\": \"\xff\xfe\"}]}",
            b"{\"files\": [], \"files\": []}",
        ] {
            let error = sends(world, &office.admin, method, path, bytes).error();
            let code = error["code"].as_str().unwrap();
            assert!(["MALFORMED_JSON", "INVALID_FIELD"].contains(&code), "{path}: {error}");
        }
        sends(world, &office.admin, method, path, b"[]").refused(400, "INVALID_FIELD");
    }
    nothing_changed(&office);
}
