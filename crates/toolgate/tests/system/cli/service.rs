//! Services from files: applied, listed, shown, exported, removed.

use serde_json::json;

use super::{Person, rows, setup};

const PAYMENTS: &str = "\
# One of them
service: payments
version: 2024-01
description: Takes payments
base_url: https://payments.example.com
tools:
  charges.create:
    description: Charge a card
    parameters:
      amount: {type: integer, required: true}
      note: {type: string}
    estimated_cost_usd: 0.02
    http: {method: POST, path: /v1/charges}
";

#[test]
fn a_file_is_created_then_unchanged_then_replaced() {
    let gate = setup().start();
    let person = Person::administrator(&gate);
    let file = gate.setup().home().join("payments.yaml");
    let name = file.to_str().unwrap();
    let apply = ["service", "apply", name];
    std::fs::write(&file, PAYMENTS).unwrap();
    let dry = person.reads(&["service", "apply", name, "--dry-run"]);
    assert!(dry.contains("would be created") && dry.contains("Nothing was changed"), "{dry}");
    assert_eq!(person.reads(&["service", "list"]).trim(), "none");
    assert_eq!(person.reads(&apply).trim(), format!("{name}: payments 2024-01, 1 tools: created"));
    let before = person.gets(&["service", "show", "payments"]);
    assert_eq!(person.gets(&apply)["applied"][0]["outcome"], "unchanged");
    assert_eq!(person.gets(&["service", "show", "payments"]), before);
    let events = person.gets(&["audit", "events", "--type", "service.applied"]);
    assert_eq!(events["events"].as_array().unwrap().len(), 1, "what is unchanged is not written down again");

    std::fs::write(&file, PAYMENTS.replace("Charge a card", "Charge")).unwrap();
    let dry = person.gets(&["service", "apply", name, "--dry-run"]);
    assert_eq!(
        dry,
        json!({"applied": [{"file": name, "service": "payments", "version": "2024-01", "tools": 1, "outcome": "would be replaced"}], "dry_run": true})
    );
    assert!(person.reads(&apply).contains("replaced"));
    let shown = person.gets(&["service", "show", "payments"]);
    assert_eq!(shown["versions"][0]["tools"]["charges.create"]["description"], "Charge");
}

#[test]
fn several_versions_from_files_and_standard_input_live_side_by_side() {
    let gate = setup().start();
    let person = Person::administrator(&gate);
    let two = gate.setup().home().join("two.yml");
    std::fs::write(&two, format!("{PAYMENTS}---\n{}", PAYMENTS.replace("2024-01", "2025-01"))).unwrap();
    let json = gate.setup().home().join("wiki.json");
    std::fs::write(&json, r#"{"service": "wiki", "version": "1", "tools": {"pages.read": {}}}"#).unwrap();
    let (two, json) = (two.to_str().unwrap(), json.to_str().unwrap());
    let piped = r#"{"service": "mail", "version": "1", "tools": {}}"#;
    let said = person.says_with(&["service", "apply", two, json, "-"], piped);
    let expected = [
        format!("{two}, document 1: payments 2024-01, 1 tools: created"),
        format!("{two}, document 2: payments 2025-01, 1 tools: created"),
        format!("{json}: wiki 1, 1 tools: created"),
        "standard input: mail 1, 0 tools: created".to_owned(),
    ];
    assert_eq!(said.stdout.lines().collect::<Vec<_>>(), expected, "{}", said.all());

    let list = person.reads(&["service", "list"]);
    assert_eq!(rows(&list).len(), 4, "{list}");
    let text = person.reads(&["service", "show", "payments", "--version", "2024-01"]);
    assert!(text.starts_with("payments 2024-01, updated ") && !text.contains("2025-01, updated"), "{text}");
    assert!(text.contains("https://payments.example.com") && text.contains("amount*, note"), "{text}");
    assert!(text.contains("POST /v1/charges"), "{text}");

    let exported = person.reads(&["service", "show", "payments", "--export"]);
    let again = person.says_with(&["service", "apply", "-", "--json"], &exported).json();
    let outcomes: Vec<_> = again["applied"].as_array().unwrap().iter().map(|one| &one["outcome"]).collect();
    assert_eq!(outcomes, ["unchanged", "unchanged"]);

    let removed = person.reads(&["service", "remove", "payments", "--version", "2025-01", "--yes"]);
    assert_eq!(removed.trim(), "payments: 1 versions removed.");
    assert_eq!(person.gets(&["service", "show", "payments"])["versions"].as_array().unwrap().len(), 1);
    assert_eq!(person.gets(&["service", "remove", "payments", "--yes"])["removed_versions"], 1);
    let gone = person.says(&["service", "show", "payments"]);
    assert!(gone.code == 1 && gone.stderr.contains("[SERVICE_NOT_FOUND]"), "{}", gone.all());
}

#[test]
fn a_fault_names_the_file_and_the_place_and_stops_everything() {
    let gate = setup().start();
    let person = Person::administrator(&gate);
    let good = gate.setup().home().join("good.yaml");
    let bad = gate.setup().home().join("bad.yaml");
    std::fs::write(&good, PAYMENTS).unwrap();
    let (good, name) = (good.to_str().unwrap(), bad.to_str().unwrap());
    for (text, words) in [
        (PAYMENTS.replace("path:", "pth:"), "`tools.charges.create.http.pth` is unknown"),
        (PAYMENTS.replace("2024-01", "2024"), "`version` must be a string; put it in quotes"),
        (PAYMENTS.replace("version: 2024-01", "version: b\nversion: c"), "line 4"),
        (PAYMENTS.to_owned(), "payments 2024-01 is already defined in"),
        (String::new(), "no definition"),
        ("x".repeat(32 * 1024 * 1024 + 1), "longer than"),
    ] {
        std::fs::write(&bad, text).unwrap();
        let said = person.says(&["service", "apply", good, name]);
        assert_eq!((said.code, said.stdout.as_str()), (1, ""), "{}", said.all());
        assert!(said.stderr.starts_with(&format!("toolgate: {name}: ")), "{}", said.all());
        assert!(said.stderr.contains(words), "{words}: {}", said.all());
    }
    std::fs::remove_file(&bad).unwrap();
    let missing = person.says(&["service", "apply", good, name]);
    assert!(missing.code == 1 && missing.stderr.contains(name), "{}", missing.all());
    assert_eq!(person.reads(&["service", "list"]).trim(), "none", "nothing was applied before the fault");

    let asked = person.says_with(&["service", "remove", "payments"], "y\n");
    assert!(asked.code == 2 && asked.stderr.contains("--yes"), "{}", asked.all());
    assert_eq!(person.says(&["service", "apply"]).code, 2);

    person.reads(&["agent", "create", "billing"]);
    let key = person.gets(&["key", "create", "billing"])["key"].as_str().unwrap().to_owned();
    let agent = Person { gate: &gate, key: &key };
    let refused = agent.says(&["service", "apply", good]);
    assert!(refused.code == 1 && refused.stderr.starts_with(&format!("toolgate: {good}: ")), "{}", refused.all());
    assert!(refused.stderr.contains("[PERMISSION_DENIED]"), "{}", refused.all());
}
