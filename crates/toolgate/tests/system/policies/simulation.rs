//! A draft against the calls in the log: exactly those are listed that it judges otherwise, and nothing is guessed where
//! it looks at what was not recorded.

use serde_json::{Value, json};

use super::office::{KEY, Office, call_with, no_note, to_json};
use super::terminal::Terminal;
use crate::world::{Reply, World, on_both_engines, text};

on_both_engines! {
    before_any_policy_exactly_the_calls_are_listed_that_a_draft_would_judge_otherwise,
    what_was_not_recorded_is_undecidable_where_the_draft_reads_it,
    what_was_recorded_in_part_is_not_taken_for_the_whole,
    calls_that_were_refused_or_changed_are_judged_too,
    a_call_that_was_refused_before_any_policy_is_not_judged,
    a_draft_sees_the_circumstances_that_were_recorded,
    a_draft_that_is_wrong_is_told_and_not_run,
    a_simulation_can_be_followed_by_lines,
}

const SINCE: &str = "2026-01-01T00:00:00Z";

fn simulate(office: &Office, rules: &str) -> Value {
    let body = json!({"files": to_json(&[("rules.cedar", rules)]), "since": SINCE});
    office.admin.post("/api/v1/policies/simulate", &body).ok()
}

/// What is listed: the call, what was said and what would be, and by which rules or for want of what.
fn listed(simulation: &Value) -> Vec<(String, String)> {
    let changes = simulation["changes"].as_array().unwrap().iter();
    let told = |change: &Value| {
        let after = &change["after"];
        let because = if after["missing"] == json!([]) { &after["policies"] } else { &after["missing"] };
        format!("{} -> {} {because}", text(change, "/before"), text(after, "/verdict"))
    };
    changes.map(|change| (change["invocation_id"].as_str().unwrap_or_default().to_owned(), told(change))).collect()
}

fn invocation(reply: &Reply) -> String {
    text(&reply.json(), "/invocation_id").to_owned()
}

#[track_caller]
fn counts(simulation: &Value, calls: u64, changed: u64, undecidable: u64) {
    let found = (&simulation["calls"], &simulation["changed"], &simulation["undecidable"]);
    assert_eq!(found, (&json!(calls), &json!(changed), &json!(undecidable)), "{simulation}");
}

fn before_any_policy_exactly_the_calls_are_listed_that_a_draft_would_judge_otherwise(world: &World) {
    let office = Office::open(world);
    let lunch = office.note("lunch");
    for text in ["dinner", "breakfast"] {
        office.note(text).ok();
    }
    let page = office.call("page", json!({}));
    let draft = format!(
        "{}\n@id(\"ask-about-pages\")\n@remedy(\"ask\")\nforbid (principal == Principal::\"clerk\", \
         action == Action::\"call:desk.page\", resource);\n",
        no_note("no-lunch", "lunch")
    );
    let simulation = simulate(&office, &draft);
    counts(&simulation, 4, 2, 0);
    let wanted = [
        (invocation(&lunch), "allow -> deny [\"no-lunch\"]".to_owned()),
        (invocation(&page), "allow -> ask [\"ask-about-pages\"]".to_owned()),
    ];
    assert_eq!(listed(&simulation), wanted);
    // It was only a thought.
    assert_eq!(office.admin.get("/api/v1/policies").ok()["version"], Value::Null);
    office.note("lunch").ok();

    let terminal = Terminal::of(world, &office.admin);
    terminal.writes("rules.cedar", &draft);
    let said = terminal.reads(&["policy", "simulate", "policies", "--since", "1d"]);
    assert!(said.contains("5 calls since ") && said.contains("3 with another verdict, 0 undecidable"), "{said}");
    assert!(said.contains("desk.page  allow  ask       ask-about-pages"), "{said}");
    let none = terminal.gets(&["policy", "simulate", "policies", "--since", "2200-01-01T00:00:00Z"]);
    counts(&none, 0, 0, 0);
}

fn what_was_not_recorded_is_undecidable_where_the_draft_reads_it(world: &World) {
    let office = Office::open(world);
    let mail = office.call("send", json!({"to": "press", "text": "hello"}));
    let noted = office.agent.invokes(call_with("note", json!({"text": "x"}), json!({"reasoning": "because"})));
    office.note("lunch").ok();
    let draft = "@id(\"no-press\")\nforbid (principal, action == Action::\"call:desk.send\", resource)\n\
         when { context.arguments has to && context.arguments.to == \"press\" };\n\
         @id(\"no-because\")\nforbid (principal, action == Action::\"call:desk.note\", resource)\n\
         when { context has reasoning && context.reasoning == \"because\" };\n";
    let simulation = simulate(&office, draft);
    let of =
        |reply: &Reply| listed(&simulation).into_iter().find(|(id, _)| *id == invocation(reply)).map(|(_, told)| told);
    assert_eq!(of(&mail).as_deref(), Some("allow -> undecidable [\"arguments.to\"]"), "{simulation}");
    assert_eq!(of(&noted).as_deref(), Some("allow -> undecidable [\"reasoning\"]"), "{simulation}");
    assert_eq!(simulation["changed"], 0);
    // A rule that does not read it is decided.
    let blunt =
        simulate(&office, "@id(\"no-mail\")\nforbid (principal, action == Action::\"call:desk.send\", resource);");
    assert_eq!(listed(&blunt), [(invocation(&mail), "allow -> deny [\"no-mail\"]".to_owned())]);
    let terminal = Terminal::of(world, &office.admin);
    terminal.writes("rules.cedar", draft);
    let said = terminal.reads(&["policy", "simulate", "policies"]);
    assert!(said.contains("undecidable  no-press; not recorded: arguments.to"), "{said}");
}

fn what_was_recorded_in_part_is_not_taken_for_the_whole(world: &World) {
    let office = Office::open(world);
    // The log leaves out a field, hashes another, and shows no value that looks like a secret.
    let mut definition = office.admin.get("/api/v1/services/desk").ok()["versions"][0].clone();
    definition = definition.get("definition").cloned().unwrap_or(definition);
    definition["tools"]["note"]["logging"] = json!({"inputs": true, "fields": {"to": "omit", "text": "hash"}});
    let tools = definition["tools"].clone();
    let body = json!({"service": "desk", "version": "1", "source": "host-extension", "tools": tools});
    office.admin.ask("PUT", "/api/v1/services/desk", Some(&body)).ok();
    office.call("note", json!({"to": "press"})).ok();
    office.call("note", json!({"text": "lunch"})).ok();
    office.call("note", json!({"count": 7})).ok();
    let press = "@id(\"press\")\nforbid (principal, action == Action::\"call:desk.note\", resource)\n\
         unless { context.arguments has to || context.arguments has text || context.arguments has count };";
    // The last one was recorded in full, and the others were not.
    counts(&simulate(&office, press), 3, 0, 2);
    let lunch = no_note("lunch", "lunch");
    counts(&simulate(&office, &lunch), 3, 0, 2);
    let count = "@id(\"seven\")\nforbid (principal, action == Action::\"call:desk.note\", resource)\n\
         when { context.arguments has count && context.arguments.count == 7 };";
    assert_eq!(simulate(&office, count)["changed"], 1);
}

fn calls_that_were_refused_or_changed_are_judged_too(world: &World) {
    let office = Office::open(world);
    let redacting = "@id(\"no-keys\")\n@remedy(\"redact\")\n@detectors(\"secret\")\n\
         forbid (principal, action == Action::\"call:desk.note\", resource);\n";
    office.applies(&format!("{}{redacting}", no_note("no-lunch", "lunch")));
    let refused = office.note("lunch");
    refused.refused(403, "POLICY_DENIED");
    let changed = office.note(&format!("use {KEY}"));
    changed.ok();
    office.note("dinner").ok();
    // Without any rule both would have gone their way as they were.
    let simulation = simulate(&office, "");
    let wanted = [
        (invocation(&refused), "deny -> allow []".to_owned()),
        (invocation(&changed), "modify -> allow []".to_owned()),
    ];
    assert_eq!(listed(&simulation), wanted);
    counts(&simulation, 3, 2, 0);
    // What really happened is told besides: the first was denied, the second was not.
    let told = |change: &Value| (change["was"].clone(), change["denied_with"].clone());
    assert_eq!(told(&simulation["changes"][0]), (json!("denied"), json!("POLICY_DENIED")));
    assert_eq!(told(&simulation["changes"][1]), (json!("modify"), json!(null)));
    let terminal = Terminal::of(world, &office.admin);
    terminal.writes("rules.cedar", "// nothing is forbidden\n");
    let said = terminal.reads(&["policy", "simulate", "policies"]);
    assert!(said.contains("desk.note  denied  allow"), "{said}");
    // By the rules that are active nothing is known to change: what was refused or changed is not in the log as it came.
    let simulation = simulate(&office, &format!("{}{redacting}", no_note("no-lunch", "lunch")));
    counts(&simulation, 3, 0, 2);
}

fn a_call_that_was_refused_before_any_policy_is_not_judged(world: &World) {
    let office = Office::open(world);
    office.call("note", json!({"text": 5})).refused(400, "PARAMETERS_INVALID");
    let note = office.note("lunch");
    let draft = "@id(\"no-notes\")\nforbid (principal, action == Action::\"call:desk.note\", resource);\n";
    let simulation = simulate(&office, draft);
    assert_eq!(listed(&simulation), [(invocation(&note), "allow -> deny [\"no-notes\"]".to_owned())]);
}

fn a_draft_sees_the_circumstances_that_were_recorded(world: &World) {
    let office = Office::open(world);
    // Some rule must be about these calls, or nothing is written down about them.
    office.applies(
        "@id(\"w\")\n@mode(\"shadow\")\nforbid (principal, action in Action::\"call\", resource)\n\
         when { context.marks.contains(\"none\") && context.calls.today > 1000000 };",
    );
    office.note("one").ok();
    office.call("page", json!({})).ok();
    let after = office.note("two");
    let marked = "@id(\"marked\")\nforbid (principal, action == Action::\"call:desk.note\", resource)\n\
         when { context.marks.contains(\"untrusted-content\") && context.address.isLoopback() };";
    let simulation = simulate(&office, marked);
    assert_eq!(listed(&simulation), [(invocation(&after), "allow -> deny [\"marked\"]".to_owned())]);
}

fn a_draft_that_is_wrong_is_told_and_not_run(world: &World) {
    let office = Office::open(world);
    office.note("one").ok();
    let wrong = "@id(\"a\")\nforbid (principal, action == Action::\"call:desk.nota\", resource);";
    let body = json!({"files": to_json(&[("rules.cedar", wrong)]), "since": SINCE});
    let error = office.admin.post("/api/v1/policies/simulate", &body).refused(400, "POLICY_INVALID");
    assert_eq!(error["problems"][0]["policy_id"], "a");
    let terminal = Terminal::of(world, &office.admin);
    terminal.writes("rules.cedar", wrong);
    let said = terminal.fails(&["policy", "simulate", "policies"]);
    assert!(said.contains("policies/rules.cedar:1: rule a: unknown action"), "{said}");
}

fn a_simulation_can_be_followed_by_lines(world: &World) {
    let office = Office::open(world);
    office.note("lunch");
    let rules = "@id(\"none\")\nforbid (principal, action, resource);";
    let body = json!({"files": to_json(&[("rules.cedar", rules)]), "since": SINCE});

    let lines = [("Accept", "application/x-ndjson")];
    let reply = office.admin.ask_with("POST", "/api/v1/policies/simulate", &lines, Some(&body));

    assert_eq!(reply.answer.header("content-type"), Some("application/x-ndjson"));
    let lines: Vec<Value> = reply.answer.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [progress, answered] = lines.as_slice() else { panic!("two lines: {lines:?}") };
    assert_eq!((&progress["event"], &progress["calls"]), (&json!("progress"), &json!(1)), "{progress}");
    assert!(progress["reached"].as_u64() < progress["size"].as_u64(), "{progress}");
    assert_eq!((&answered["event"], &answered["status"]), (&json!("answered"), &json!(200)), "{answered}");
    assert_eq!(answered["body"], simulate(&office, rules));

    let wrong = json!({"files": to_json(&[("rules.cedar", "nonsense")]), "since": SINCE});
    let accept = [("Accept", "application/x-ndjson")];
    office.admin.ask_with("POST", "/api/v1/policies/simulate", &accept, Some(&wrong)).refused(400, "POLICY_INVALID");
}
