//! What a person sees who starts the gate for the first time, and for the second.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::json;
use toolgate_testkit::gate_process::{ADMIN_TOKEN, GateSetup};
use toolgate_testkit::http;
use toolgate_testkit::postgres::TestDatabase;

fn setup() -> GateSetup {
    GateSetup::new(env!("CARGO_BIN_EXE_toolgate"))
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap_or_else(|error| panic!("{}: {error}", path.display())).permissions().mode() & 0o777
}

#[test]
fn the_first_start_shows_a_token_once_and_a_line_to_try_it() {
    let setup = setup().without_token();
    let mut gate = setup.start();
    let token = gate.token().to_owned();
    assert!(token.starts_with("tgk_"), "no token was shown: {}", gate.stderr());
    let (status, caller) = gate.request("GET", "/api/v1/whoami", None);
    assert_eq!((status, &caller["id"], &caller["tenant_id"]), (200, &json!("admin"), &json!("default")));

    let url = gate.url();
    let ended = gate.stop();
    assert_eq!(ended.status.code(), Some(0));
    assert_eq!(ended.stdout, format!("toolgate listening on {url}\n"));
    let curl = format!("curl -H \"Authorization: Bearer {token}\" {url}/api/v1/whoami");
    assert!(ended.stderr.contains(&curl), "{}", ended.stderr);
    for path in [setup.data().join("ledger.sqlite3"), setup.configuration_home().join("master.key")] {
        assert!(ended.stderr.contains(path.to_str().unwrap()), "{}", ended.stderr);
    }

    let again = setup.start().stop();
    assert!(!again.stderr.contains("tgk_"), "{}", again.stderr);
    assert!(again.stderr.contains("toolgate key create admin"), "{}", again.stderr);
}

#[test]
fn a_chosen_token_holds_and_is_never_shown() {
    let setup = setup();
    let gate = setup.start();
    assert_eq!(gate.request("GET", "/api/v1/whoami", None).0, 200);
    let ended = gate.stop();
    assert!(!ended.stderr.contains(ADMIN_TOKEN) && !ended.stdout.contains(ADMIN_TOKEN), "{}", ended.stderr);
    assert!(ended.stderr.contains("$TOOLGATE_ADMIN_TOKEN"), "{}", ended.stderr);

    let other = setup.clone().without_token().environment("TOOLGATE_ADMIN_TOKEN", "another-token-that-is-too-late");
    let gate = other.start();
    assert_eq!(gate.request_as("another-token-that-is-too-late", "GET", "/api/v1/whoami", None).0, 401);
    assert_eq!(gate.request_as(ADMIN_TOKEN, "GET", "/api/v1/whoami", None).0, 200);
}

#[test]
fn a_token_that_could_be_guessed_is_refused_without_being_shown() {
    let ended = setup().without_token().environment("TOOLGATE_ADMIN_TOKEN", "geheim").start_refused();
    assert_eq!(ended.status.code(), Some(1));
    assert!(ended.stderr.contains("at least 16") && !ended.stderr.contains("geheim"), "{}", ended.stderr);
}

#[test]
fn files_are_closed_to_other_users_and_the_keys_lie_apart_from_the_data() {
    let setup = setup();
    let gate = setup.start();
    assert_eq!(mode(&setup.data()), 0o700);
    for name in ["ledger.sqlite3", "ledger.sqlite3-wal", "ledger.sqlite3-shm", "ledger.sqlite3.lock"] {
        assert_eq!(mode(&setup.data().join(name)), 0o600, "{name}");
    }
    for name in ["master.key", "audit.key"] {
        assert_eq!(mode(&setup.configuration_home().join(name)), 0o600, "{name}");
        assert!(!setup.data().join(name).exists());
    }
    drop(gate);
}

#[test]
fn no_arguments_mean_serve() {
    let setup = setup().environment("TOOLGATE_LISTEN", "127.0.0.1:0");
    let mut child =
        setup.command().stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    let mut stdout = std::io::BufReader::new(child.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut stdout, &mut line).unwrap();
    let address = line.trim_end().strip_prefix("toolgate listening on http://").unwrap().parse().unwrap();
    assert_eq!(http::send(address, "GET", "/healthz", &[], b"").unwrap().status, 200);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[tokio::test]
async fn with_a_database_nothing_is_written_into_the_data_directory() {
    let database = TestDatabase::create().await;
    let setup = setup().database(database.url()).argument("--data").argument("unused");
    let gate = setup.start();
    assert_eq!(gate.request("GET", "/api/v1/whoami", None).0, 200);
    assert_eq!(gate.stop().status.code(), Some(0));
    assert!(!setup.data().exists() && !setup.home().join("unused").exists());
}

#[test]
fn without_a_home_the_error_says_what_to_pass() {
    let setup = setup();
    let output = setup.command().env_remove("HOME").args(["serve", "--listen", "127.0.0.1:0"]).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text.contains("pass --data") && text.contains("TOOLGATE_DATA"), "{text}");
}

#[test]
fn a_port_that_is_taken_is_named_and_costs_no_token() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let setup = setup().without_token();
    let mut command = setup.command();
    let output = command.args(["serve", "--listen", &address]).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text.contains(&format!("cannot listen on {address}")) && !text.contains("tgk_"), "{text}");
    assert!(setup.start().token().starts_with("tgk_"));
}

#[test]
fn listening_beyond_this_machine_is_warned_of() {
    let setup = setup();
    let mut command = setup.command();
    let mut child = command
        .args(["serve", "--listen", "0.0.0.0:0"])
        .env("TOOLGATE_ALLOW_PLAIN_HTTP", "true")
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut line).unwrap();
    assert!(line.starts_with("toolgate listening on http://0.0.0.0:"), "{line}");
    toolgate_testkit::gate_process::signal("TERM", child.id());
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("without TLS"), "{text}");
    assert!(text.contains("http://127.0.0.1:"), "the curl line must be usable: {text}");
}

#[test]
fn a_lost_token_is_recovered_by_whoever_has_the_ledger_and_its_keys() {
    // Given a gate that was set up, and is stopped.
    let setup = setup();
    setup.start().stop();

    // When the operator recovers the administrator's key.
    let output = setup.command().args(["recover", "--json"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let recovered: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();

    // Then the key opens the gate, and the log says that it was made by the program.
    let gate = setup.start();
    let (status, me) = gate.request_as(recovered["key"].as_str().unwrap(), "GET", "/api/v1/whoami", None);
    assert_eq!((status, me["id"].as_str()), (200, Some("admin")));
    let (_, events) = gate.request("GET", "/api/v1/audit/events?type=key.created", None);
    assert_eq!(events["events"].as_array().unwrap().last().unwrap()["actor"], "core.system");

    // And while the gate runs, its ledger is its own.
    let output = setup.command().arg("recover").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("in use"), "{output:?}");
}
