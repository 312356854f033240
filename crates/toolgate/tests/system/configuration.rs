//! The configuration as an operator meets it: the file, the check, the example.

use std::process::Output;

use serde_json::{Value, json};
use toolgate_testkit::gate_process::GateSetup;

fn setup() -> GateSetup {
    GateSetup::new(env!("CARGO_BIN_EXE_toolgate"))
}

fn check(setup: &GateSetup, arguments: &[&str]) -> Output {
    setup.command().args(["config", "check"]).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn from<'a>(checked: &'a Value, key: &str) -> (&'a Value, &'a str) {
    let found = checked["keys"].as_array().unwrap().iter().find(|entry| entry["key"] == key).unwrap();
    (&found["value"], found["from"].as_str().unwrap())
}

#[test]
fn the_check_shows_every_value_and_where_it_comes_from() {
    let setup = setup()
        .configuration("[server]\nmax_connections = 10\ndrain_seconds = 3\n[grants]\ndefault_lifetime_days = 7\n")
        .environment("TOOLGATE_DRAIN_SECONDS", "4");
    let output = check(&setup, &["--json", "--listen", "127.0.0.1:1234"]);
    assert_eq!(output.status.code(), Some(0));
    let checked: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(checked["valid"], true);
    assert_eq!(from(&checked, "server.max_connections"), (&json!(10), "file, line 2"));
    assert_eq!(from(&checked, "server.drain_seconds"), (&json!(4), "variable TOOLGATE_DRAIN_SECONDS"));
    assert_eq!(from(&checked, "server.listen"), (&json!("127.0.0.1:1234"), "flag --listen"));
    assert_eq!(from(&checked, "ledger.connections"), (&json!(16), "default"));
    let human = text(&check(&setup, &[]).stdout);
    assert!(human.contains("valid") && human.contains("grants.default_lifetime_days"), "{human}");
}

#[test]
fn the_check_never_shows_a_secret() {
    let setup = setup()
        .environment("TOOLGATE_DATABASE_URL", "postgres://ann:geheim@host/db?password=geheim")
        .environment("TOOLGATE_ADMIN_TOKEN", "geheim-geheim-geheim")
        .environment("TOOLGATE_MASTER_KEY", "geheim")
        .environment("TOOLGATE_KEY_PROVIDER", "environment");
    for arguments in [&[] as &[&str], &["--json"]] {
        let output = check(&setup, arguments);
        let shown = text(&output.stdout) + &text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{shown}");
        assert!(shown.contains("ann") && shown.contains("***") && shown.contains("TOOLGATE_MASTER_KEY"), "{shown}");
        assert!(!shown.contains("geheim"), "{shown}");
    }
}

#[test]
fn a_misspelt_key_stops_the_start_and_the_check_with_the_nearest_name() {
    let setup = setup().configuration("[server]\n\nmax_boddy_bytes = 10\n");
    let checked = check(&setup, &[]);
    let started = setup.start_refused();
    for (code, shown) in [(checked.status.code(), text(&checked.stderr)), (started.status.code(), started.stderr)] {
        assert_eq!(code, Some(1), "{shown}");
        assert!(shown.contains("line 3") && shown.contains("did you mean `server.max_body_bytes`?"), "{shown}");
    }
    assert!(!setup.data().exists(), "a refused start must leave nothing behind");
}

#[test]
fn the_file_that_is_named_counts() {
    let setup = setup().configuration("[server]\nmax_connections = 1\n");
    let other = setup.home().join("other.toml");
    std::fs::write(&other, "[server]\nmax_connections = 2\n").unwrap();
    let output = check(&setup, &["--json", "--config", other.to_str().unwrap()]);
    let checked: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(from(&checked, "server.max_connections").0, &json!(2));
    let missing = check(&setup, &["--config", "missing.toml"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(text(&missing.stderr).contains("missing.toml cannot be read"));
}

#[test]
fn the_example_is_a_valid_file() {
    let output = setup().command().args(["config", "example"]).output().unwrap();
    let example = text(&output.stdout);
    assert!(example.contains("#listen = \"127.0.0.1:7300\""), "{example}");
    let gate = setup().configuration(&example).start();
    assert_eq!(gate.request("GET", "/api/v1/whoami", None).0, 200);
}

#[test]
fn a_variable_that_is_probably_misspelt_is_warned_of() {
    let setup = setup().environment("TOOLGATE_LISTN", "127.0.0.1:1");
    let shown = text(&check(&setup, &[]).stderr);
    assert!(shown.contains("TOOLGATE_LISTN") && shown.contains("TOOLGATE_LISTEN"), "{shown}");
    let ended = setup.start().stop();
    assert!(ended.stderr.contains("TOOLGATE_LISTEN"), "{}", ended.stderr);
}

#[test]
fn configured_limits_take_effect() {
    let gate = setup().configuration("[server]\nmax_body_bytes = 1024\n[grants]\ndefault_lifetime_days = 1\n").start();
    let (status, refusal) = gate.request("POST", "/api/v1/vaults", Some(&json!({"name": "x".repeat(2000)})));
    assert_eq!((status, &refusal["error"]["code"]), (413, &json!("BODY_TOO_LARGE")));
}

#[test]
fn the_log_is_json_away_from_a_terminal_and_for_people_when_asked() {
    let ended = setup().start().stop();
    let logged: Vec<&str> = ended.stderr.lines().filter(|line| line.starts_with('{')).collect();
    assert!(!logged.is_empty());
    for line in logged {
        let parsed: Value = serde_json::from_str(line).unwrap();
        assert!(parsed["level"].is_string() && parsed["message"].is_string(), "{line}");
    }
    let ended = setup().environment("TOOLGATE_LOG_FORMAT", "human").environment("TOOLGATE_LOG", "warn").start().stop();
    assert!(!ended.stderr.contains("{\"timestamp\"") && !ended.stderr.contains("INFO"), "{}", ended.stderr);
}
