//! Policies that are not taken: whoever wrote them is told the file, the line, the rule and what helps, and what was in
//! force stays in force.

use serde_json::{Value, json};

use super::office::{Office, no_note, to_json};
use super::terminal::Terminal;
use crate::world::{World, on_both_engines, text};

on_both_engines! {
    what_does_not_exist_is_refused_with_its_place_and_a_hint,
    what_is_no_rule_of_the_gate_is_refused,
    a_failing_test_beside_the_policies_keeps_them_out,
    a_refused_set_leaves_the_active_one_in_force,
}

/// A text of rules, the line and the id of what is wrong in it, and what is said about that and helps.
struct Wrong {
    rules: &'static str,
    line: u64,
    policy: &'static str,
    message: &'static str,
    help: Option<&'static str>,
}

const UNKNOWN: [Wrong; 4] = [
    Wrong {
        rules: "// One that is right.\n@id(\"right\")\nforbid (principal, action == Action::\"call:desk.run\", resource);\n\n\
                @id(\"no-tool\")\nforbid (principal, action == Action::\"call:desk.nota\", resource);\n",
        line: 5,
        policy: "no-tool",
        message: "unknown action `call:desk.nota`",
        help: Some("did you mean `call:desk.note`?"),
    },
    Wrong {
        rules: "@id(\"no-resource\")\nforbid (principal, action in Action::\"call\", resource == Tool::\"desk.sent\");\n",
        line: 1,
        policy: "no-resource",
        message: "unknown tool `desk.sent`",
        help: Some("did you mean `desk.send`?"),
    },
    Wrong {
        rules: "@id(\"no-parameter\")\nforbid (principal, action == Action::\"call:desk.note\", resource)\n\
                when { context.arguments has text && context.arguments.txet == \"x\" };\n",
        line: 3,
        policy: "no-parameter",
        message: "arguments.txet",
        help: Some("text"),
    },
    Wrong {
        rules: "@id(\"wrong-type\")\nforbid (principal, action == Action::\"call:desk.note\", resource)\n\
                when { context.arguments has count && context.arguments.count == \"7\" };\n",
        line: 3,
        policy: "wrong-type",
        message: "",
        help: None,
    },
];

const NO_RULES: [Wrong; 4] = [
    Wrong {
        rules: "@id(\"generous\")\npermit (principal, action, resource);\n",
        line: 1,
        policy: "generous",
        message: "`permit` is not supported",
        help: None,
    },
    Wrong {
        rules: "@id(\"misspelt\")\n@remdy(\"ask\")\nforbid (principal, action in Action::\"call\", resource);\n",
        line: 1,
        policy: "misspelt",
        message: "unknown annotation `@remdy`",
        help: Some("did you mean `@remedy`?"),
    },
    Wrong {
        rules: "@id(\"a\")\nforbid (principal, action in Action::\"call\", resource);\n\n\
                @id(\"a\")\nforbid (principal, action in Action::\"result\", resource);\n",
        line: 4,
        policy: "a",
        message: "duplicate rule id",
        help: None,
    },
    Wrong {
        rules: "@id(\"too-late\")\n@remedy(\"ask\")\nforbid (principal, action in Action::\"result\", resource);\n",
        line: 1,
        policy: "too-late",
        message: "a result cannot be sent for approval",
        help: None,
    },
];

/// Nobody can bring it into force, and everybody is told the same.
#[track_caller]
fn is_refused(world: &World, office: &Office, wrong: &Wrong) {
    let files = [("rules.cedar", wrong.rules)];
    let error = office.admin.applies(&files).refused(400, "POLICY_INVALID");
    let problems = error["problems"].as_array().unwrap();
    let [problem] = problems.as_slice() else { panic!("one problem: {problems:?}") };
    let place = (&problem["file"], &problem["line"], &problem["policy_id"]);
    assert_eq!(place, (&json!("rules.cedar"), &json!(wrong.line), &json!(wrong.policy)), "{problem}");
    assert!(text(problem, "/message").contains(wrong.message), "{problem}");
    if let Some(help) = wrong.help {
        assert!(text(problem, "/help").contains(help), "{problem}");
    }
    let checked = office.admin.post("/api/v1/policies/check", &json!({"files": to_json(&files)})).ok();
    assert_eq!((&checked["ok"], &checked["problems"]), (&json!(false), &error["problems"]));

    let terminal = Terminal::of(world, &office.admin);
    terminal.writes("rules.cedar", wrong.rules);
    for command in [["policy", "check", "policies"], ["policy", "apply", "policies"]] {
        let said = terminal.fails(&command);
        let place = format!("policies/rules.cedar:{}: rule {}: ", wrong.line, wrong.policy);
        assert!(said.contains(&place) && said.contains(wrong.message), "{said}");
        assert!(wrong.help.is_none_or(|help| said.contains(help)), "{said}");
    }
}

fn what_does_not_exist_is_refused_with_its_place_and_a_hint(world: &World) {
    let office = Office::open(world);
    UNKNOWN.iter().for_each(|wrong| is_refused(world, &office, wrong));
    assert_eq!(office.admin.get("/api/v1/policies").ok()["version"], Value::Null);
}

fn what_is_no_rule_of_the_gate_is_refused(world: &World) {
    let office = Office::open(world);
    NO_RULES.iter().for_each(|wrong| is_refused(world, &office, wrong));
    for broken in ["forbid (principal, action", "forbid (principal == ?principal, action, resource);", "\u{feff}x"] {
        office.admin.applies(&[("rules.cedar", broken)]).refused(400, "POLICY_INVALID");
    }
    assert_eq!(office.admin.get("/api/v1/policies").ok()["version"], Value::Null);
}

fn a_failing_test_beside_the_policies_keeps_them_out(world: &World) {
    let office = Office::open(world);
    let rules = no_note("no-lunch", "lunch");
    let tests = |expected: &str| {
        format!(
            "tests:\n  - name: lunch is not noted\n    given:\n      tool: desk.note\n      arguments: {{ text: lunch }}\n    \
             expect: {expected}\n    by: no-lunch\n"
        )
    };
    let wrong = tests("allow");
    let error = office.admin.applies(&[("rules.cedar", &rules), ("rules.test.yaml", &wrong)]);
    let error = error.refused(400, "POLICY_INVALID");
    assert_eq!(error["failed_tests"][0]["name"], "lunch is not noted", "{error}");
    assert!(text(&error, "/failed_tests/0/failure").contains("expected allow, got deny by no-lunch"), "{error}");

    let terminal = Terminal::of(world, &office.admin);
    terminal.writes("rules.cedar", &rules);
    terminal.writes("rules.test.yaml", &wrong);
    for command in ["test", "check", "apply"] {
        let said = terminal.fails(&["policy", command, "policies"]);
        assert!(said.contains("FAILED  policies/rules.test.yaml: lunch is not noted"), "{said}");
    }
    // What cannot be read as tests, or speaks of nothing that there is, keeps them out too.
    for unreadable in ["tests: 7", "test: []", "tests:\n  - name: a\n    given: {tool: desk.nota}\n    expect: deny\n"]
    {
        let files = [("rules.cedar", rules.as_str()), ("rules.test.yaml", unreadable)];
        office.admin.applies(&files).refused(400, "POLICY_INVALID");
    }
    office.note("lunch").ok();
    terminal.writes("rules.test.yaml", &tests("deny"));
    assert!(terminal.reads(&["policy", "test", "policies"]).ends_with("1 tests, 0 failed\n"));
    terminal.reads(&["policy", "apply", "policies"]);
    office.note("lunch").refused(403, "POLICY_DENIED");
}

fn a_refused_set_leaves_the_active_one_in_force(world: &World) {
    let office = Office::open(world);
    office.applies(&no_note("no-lunch", "lunch"));
    for Wrong { rules, .. } in UNKNOWN.iter().chain(&NO_RULES) {
        office.admin.applies(&[("rules.cedar", rules)]).refused(400, "POLICY_INVALID");
    }
    assert_eq!(office.admin.get("/api/v1/policies").ok()["version"], 1);
    office.note("lunch").refused(403, "POLICY_DENIED");
    office.note("dinner").ok();
    assert_eq!(office.admin.events("&type=policies.changed").len(), 1);
}
