//! A rule in shadow is evaluated and written down, and changes nothing until it is put in force.

use serde_json::{Value, json};

use super::office::{KEY, Office};
use super::terminal::Terminal;
use crate::world::{World, on_both_engines, text};

on_both_engines! {
    a_rule_in_shadow_changes_nothing_and_is_written_down,
    what_rules_in_shadow_would_have_changed_is_counted_and_shown,
    a_promoted_rule_is_in_force_for_the_next_call,
    a_promotion_takes_the_rule_out_of_shadow_in_the_folder_too,
}

const RULES: &str = r#"// Lunch is a private matter.
@id("no-lunch")
@reason("lunch is not noted")
@mode("shadow")
forbid (principal, action == Action::"call:desk.note", resource)
when { context.arguments has text && context.arguments.text == "lunch" };

@id("ask-about-mail") @mode("shadow") @remedy("ask") @approvers("security")
forbid (principal, action == Action::"call:desk.send", resource);

@id("no-keys")
@remedy("redact")
@detectors("secret")
@mode("shadow")
forbid (principal, action in Action::"call", resource);
"#;

const SINCE: &str = "2026-01-01T00:00:00Z";

fn open(world: &World) -> Office {
    let office = Office::open(world);
    office.applies(RULES);
    office
}

fn report(office: &Office) -> Value {
    office.admin.get(&format!("/api/v1/policies/shadow?since={SINCE}")).ok()
}

fn a_rule_in_shadow_changes_nothing_and_is_written_down(world: &World) {
    let office = open(world);
    let noted = office.note("lunch");
    noted.ok();
    let mail = office.call("send", json!({"text": format!("use {KEY}")}));
    mail.ok();
    assert_eq!(office.sent("note"), [json!({"text": "lunch"})]);
    assert_eq!(office.sent("send"), [json!({"text": format!("use {KEY}")})]);
    assert!(office.pending().is_empty());
    let would_be = |reply| {
        let decisions = office.decisions(reply);
        assert_eq!(decisions[0]["effective"], "allow", "{decisions:?}");
        let shadow = decisions[0]["shadow"].as_array().unwrap().clone();
        let word = |would: &Value| format!("{} {}", text(would, "/policy_id"), text(would, "/verdict"));
        shadow.iter().map(word).collect::<Vec<_>>()
    };
    assert_eq!(would_be(&noted), ["no-lunch deny"]);
    assert_eq!(would_be(&mail), ["ask-about-mail ask", "no-keys modify"]);
}

fn what_rules_in_shadow_would_have_changed_is_counted_and_shown(world: &World) {
    let office = open(world);
    assert_eq!(report(&office)["rules"], json!([]));
    for text in ["lunch", "dinner", "lunch"] {
        office.note(text).ok();
    }
    let mail = office.call("send", json!({"text": "hello"}));
    let found = report(&office);
    assert_eq!((&found["decisions"], &found["truncated"]), (&json!(4), &json!(false)), "{found}");
    let told: Vec<_> =
        found["rules"].as_array().unwrap().iter().map(|rule| (&rule["policy_id"], &rule["verdicts"])).collect();
    let (asks, lunch) = (json!({"ask": 1}), json!({"deny": 2}));
    assert_eq!(told, [(&json!("ask-about-mail"), &asks), (&json!("no-lunch"), &lunch)]);
    assert_eq!(found["rules"][1]["would_change"], 2);
    let example = &found["rules"][0]["examples"][0];
    assert_eq!((&example["effective"], &example["would_be"]), (&json!("allow"), &json!("ask")), "{example}");
    assert_eq!((&example["subject"], &example["agent_id"]), (&json!("desk.send"), &json!("clerk")));
    assert_eq!(example["invocation_id"], mail.json()["invocation_id"]);

    let terminal = Terminal::of(world, &office.admin);
    let said = terminal.reads(&["policy", "shadow", "--since", "1d"]);
    assert!(said.starts_with("4 decisions since "), "{said}");
    assert!(said.contains("no-lunch        2             2     0    0"), "{said}");
    assert!(said.contains("desk.send  allow  ask"), "{said}");
    assert_eq!(terminal.gets(&["policy", "shadow"])["rules"], found["rules"]);
    let later = office.admin.get("/api/v1/policies/shadow?since=2200-01-01T00:00:00Z").ok();
    assert_eq!((&later["decisions"], &later["rules"]), (&json!(0), &json!([])));
}

fn a_promoted_rule_is_in_force_for_the_next_call(world: &World) {
    let office = open(world);
    office.note("lunch").ok();
    let promote = |policy: &str| office.admin.post("/api/v1/policies/promote", &json!({"policy_id": policy}));
    let made = promote("no-lunch").ok();
    assert_eq!((&made["version"], &made["note"]), (&json!(2), &json!("no-lunch is in force")));
    let error = office.note("lunch").refused(403, "POLICY_DENIED");
    assert_eq!((&error["message"], &error["policy_version"]), (&json!("lunch is not noted"), &json!("2")));
    // The others only watch, as before.
    office.call("send", json!({"text": "hello"})).ok();
    let error = promote("no-lunch").refused(404, "POLICY_NOT_FOUND");
    assert!(text(&error, "/message").contains("already enforced"), "{error}");
    promote("no-dinner").refused(404, "POLICY_NOT_FOUND");
    // One that is written on one line with others is promoted too.
    promote("ask-about-mail").ok();
    promote("no-keys").ok();
    let shown = office.admin.get("/api/v1/policies").ok();
    assert!(shown["rules"].as_array().unwrap().iter().all(|rule| rule["shadow"] == false), "{shown}");
}

fn a_promotion_takes_the_rule_out_of_shadow_in_the_folder_too(world: &World) {
    let office = Office::open(world);
    let terminal = Terminal::of(world, &office.admin);
    terminal.writes("rules.cedar", RULES);
    terminal.reads(&["policy", "apply", "policies"]);
    let said = terminal.reads(&["policy", "promote", "no-lunch", "--write", "policies"]);
    assert_eq!(said, "Version 2 is now active; no-lunch is enforced, and policies/rules.cedar was updated.\n");
    assert_eq!(terminal.file("rules.cedar"), RULES.replacen("@mode(\"shadow\")\n", "", 1));
    office.note("lunch").refused(403, "POLICY_DENIED");
    // The folder and the gate say the same: nothing is left to apply.
    assert_eq!(terminal.reads(&["policy", "diff", "policies"]), "No difference from version 2.\n");
    let again = terminal.fails(&["policy", "promote", "no-lunch", "--write", "policies"]);
    assert!(again.contains("no rule `no-lunch` in shadow mode"), "{again}");
    assert_eq!(office.admin.get("/api/v1/policies").ok()["version"], 2);
    terminal.reads(&["policy", "promote", "ask-about-mail", "--write", "policies"]);
    assert_eq!(terminal.reads(&["policy", "diff", "policies"]), "No difference from version 3.\n");
}
