//! Every change makes a version that stays, and an earlier one comes back as a new one.

use serde_json::{Value, json};

use super::office::{Office, no_note, to_json};
use super::terminal::Terminal;
use crate::world::{World, on_both_engines, text};

on_both_engines! {
    an_earlier_version_comes_back_as_a_new_one,
    a_change_holds_only_for_the_version_that_it_was_made_for,
    of_changes_made_at_once_for_the_same_version_one_holds,
    versions_are_listed_newest_first_and_shown_with_their_files,
    the_command_line_tells_what_changes_and_goes_back,
}

fn an_earlier_version_comes_back_as_a_new_one(world: &World) {
    let office = Office::open(world);
    assert_eq!(office.applies(&no_note("no-lunch", "lunch")), 1);
    assert_eq!(office.applies(&no_note("no-dinner", "dinner")), 2);
    office.note("lunch").ok();
    let back = office.admin.post("/api/v1/policies/rollback", &json!({"version": 1})).ok();
    assert_eq!((&back["version"], &back["note"]), (&json!(3), &json!("back to version 1")));
    let error = office.note("lunch").refused(403, "POLICY_DENIED");
    assert_eq!((&error["policy_id"], &error["policy_version"]), (&json!("no-lunch"), &json!("3")));
    let version = |number: u64| office.admin.get(&format!("/api/v1/policies/versions/{number}")).ok();
    assert_eq!((&version(3)["files"], &version(3)["digest"]), (&version(1)["files"], &version(1)["digest"]));
    office.admin.post("/api/v1/policies/rollback", &json!({"version": 9})).refused(404, "POLICY_NOT_FOUND");
    assert_eq!(office.admin.get("/api/v1/policies").ok()["version"], 3);
}

fn a_change_holds_only_for_the_version_that_it_was_made_for(world: &World) {
    let office = Office::open(world);
    let apply = |expected: u64, rules: &str| {
        let body = json!({"files": to_json(&[("rules.cedar", rules)]), "expected_version": expected});
        office.admin.ask("PUT", "/api/v1/policies", Some(&body))
    };
    let lunch = no_note("no-lunch", "lunch");
    let error = apply(1, &lunch).refused(409, "VERSION_CONFLICT");
    assert_eq!((&error["expected_version"], &error["active_version"]), (&json!(1), &json!(0)));
    apply(0, &lunch).ok();
    apply(0, "").refused(409, "VERSION_CONFLICT");
    let stale = json!({"version": 1, "expected_version": 2});
    office.admin.post("/api/v1/policies/rollback", &stale).refused(409, "VERSION_CONFLICT");
    office.note("lunch").refused(403, "POLICY_DENIED");
    apply(1, "").ok();
    office.note("lunch").ok();
    // What was refused left no gap in the numbers.
    assert_eq!(office.admin.get("/api/v1/policies").ok()["version"], 2);
}

fn of_changes_made_at_once_for_the_same_version_one_holds(world: &World) {
    let office = Office::open(world);
    office.applies("");
    let threads: Vec<_> = (0..6)
        .map(|number| {
            let admin = office.admin.clone();
            let rules = no_note("no-lunch", &format!("lunch {number}"));
            let body = json!({"files": to_json(&[("rules.cedar", &rules)]), "expected_version": 1});
            std::thread::spawn(move || admin.ask("PUT", "/api/v1/policies", Some(&body)).status())
        })
        .collect();
    let mut statuses: Vec<u16> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409, 409, 409, 409, 409]);
    assert_eq!(office.admin.get("/api/v1/policies").ok()["version"], 2);
}

fn versions_are_listed_newest_first_and_shown_with_their_files(world: &World) {
    let office = Office::open(world);
    let none = office.admin.get("/api/v1/policies").ok();
    assert_eq!((&none["version"], &none["rules"]), (&Value::Null, &json!([])));
    for number in 1..=5 {
        office.applies(&no_note(&format!("rule-{number}"), "x"));
    }
    let mut seen = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = office.admin.get(&format!("/api/v1/policies/versions?limit=2{cursor}")).ok();
        seen.extend(page["versions"].as_array().unwrap().iter().map(|version| version["version"].as_u64().unwrap()));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen, [5, 4, 3, 2, 1]);
    let shown = office.admin.get("/api/v1/policies/versions/2").ok();
    assert_eq!(shown["files"], to_json(&[("rules.cedar", &no_note("rule-2", "x"))]));
    let rule = &shown["rules"][0];
    assert_eq!((&rule["id"], &rule["effect"], &rule["shadow"]), (&json!("rule-2"), &json!("deny"), &json!(false)));
    for missing in ["6", "0", "one", "-1"] {
        office.admin.get(&format!("/api/v1/policies/versions/{missing}")).refused(404, "POLICY_NOT_FOUND");
    }
    office.admin.get("/api/v1/policies/versions?cursor=x").refused(400, "INVALID_CURSOR");
}

fn the_command_line_tells_what_changes_and_goes_back(world: &World) {
    let office = Office::open(world);
    let terminal = Terminal::of(world, &office.admin);
    terminal.writes("rules.cedar", &no_note("no-lunch", "lunch"));
    let first = terminal.reads(&["policy", "apply", "policies", "--expected", "0", "--note", "one"]);
    assert_eq!(first, "Version 1 is now active.\n");
    assert_eq!(terminal.reads(&["policy", "diff", "policies"]), "No difference from version 1.\n");
    terminal.writes("rules.cedar", &no_note("no-lunch", "dinner"));
    let difference = terminal.reads(&["policy", "diff", "policies"]);
    assert!(difference.contains("-when { context.arguments has text && context.arguments.text == \"lunch\" };"));
    assert!(difference.contains("+when { context.arguments has text && context.arguments.text == \"dinner\" };"));
    let stale = terminal.fails(&["policy", "apply", "policies", "--expected", "0"]);
    assert!(stale.contains("VERSION_CONFLICT"), "{stale}");
    terminal.reads(&["policy", "apply", "policies"]);
    let back = terminal.reads(&["policy", "rollback", "1", "--expected", "2"]);
    assert_eq!(back, "Version 3 is now active, with the files of version 1.\n");
    let listed = terminal.gets(&["policy", "list"]);
    let notes: Vec<&Value> = listed["versions"].as_array().unwrap().iter().map(|version| &version["note"]).collect();
    assert_eq!(notes, [&json!("back to version 1"), &Value::Null, &json!("one")]);
    let written = terminal.gets(&["policy", "show", "2", "--out", "earlier"]);
    assert!(text(&written, "/written/0").ends_with("earlier/rules.cedar"), "{written}");
    office.note("lunch").refused(403, "POLICY_DENIED");
    let schema = terminal.reads(&["policy", "schema"]);
    assert!(schema.contains("action \"call:desk.note\""), "{schema}");
}
