//! Very many rules: they are taken, they hold, and calls go on.

use super::office::Office;
use crate::world::{World, on_both_engines};

on_both_engines! {
    ten_thousand_rules_are_applied_and_hold,
}

const FILES: usize = 10;
const RULES_OF_A_FILE: usize = 1_000;

fn ten_thousand_rules_are_applied_and_hold(world: &World) {
    let office = Office::open(world);
    let rule = |number: usize| {
        format!(
            "@id(\"rule-{number}\")\nforbid (principal == Principal::\"agent-{number}\", \
             action == Action::\"call:desk.note\", resource)\n\
             when {{ context.arguments has text && context.arguments.text like \"*{number}*\" }};\n"
        )
    };
    let files: Vec<(String, String)> = (0..FILES)
        .map(|file| {
            let numbers = file * RULES_OF_A_FILE..(file + 1) * RULES_OF_A_FILE;
            (format!("rules-{file}.cedar"), numbers.map(rule).collect())
        })
        .collect();
    let mut files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let last = "@id(\"last\")\nforbid (principal == Principal::\"clerk\", action == Action::\"call:desk.note\", \
         resource)\nwhen { context.arguments has text && context.arguments.text == \"lunch\" };";
    files.push(("last.cedar", last));
    let made = office.admin.applies(&files).ok();
    assert_eq!(made["rules"].as_array().unwrap().len(), FILES * RULES_OF_A_FILE + 1);
    office.note("dinner").ok();
    assert_eq!(office.note("lunch").refused(403, "POLICY_DENIED")["policy_id"], "last");
    office.call("send", serde_json::json!({"text": "lunch"})).ok();
    assert_eq!(office.desk.count(), 2);
}
