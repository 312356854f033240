//! A ledger that went back, is gone or is another one stops the gate until the operator decides.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toolgate_testkit::gate_process::{GateProcess, GateSetup};
use toolgate_testkit::postgres::TestDatabase;

const FLAG: &str = "--accept-ledger-rollback";

fn setup() -> GateSetup {
    GateSetup::new(env!("CARGO_BIN_EXE_toolgate"))
}

/// The one file of heads in a directory.
fn heads_in(directory: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(directory).ok()?.map(|entry| entry.unwrap().path());
    let mut found = entries.filter(|path| path.extension().is_some_and(|extension| extension == "heads"));
    let first = found.next();
    assert_eq!(found.next(), None, "there is one ledger");
    first
}

fn heads_file(setup: &GateSetup) -> PathBuf {
    heads_in(&setup.configuration_home()).expect("a file of heads")
}

fn makes_vault(gate: &GateProcess, name: &str) -> (u16, Value) {
    gate.request("POST", "/api/v1/vaults", Some(&json!({"name": name})))
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// The one event that says that a rollback was accepted.
fn accepted(gate: &GateProcess) -> Value {
    let (status, page) = gate.request("GET", "/api/v1/audit/events?type=ledger.rollback_accepted", None);
    let events = page["events"].as_array().unwrap_or_else(|| panic!("{status} {page}"));
    assert_eq!(events.len(), 1, "{page}");
    events[0]["data"].clone()
}

#[test]
fn an_older_copy_of_the_ledger_stops_the_start_until_the_operator_accepts_it() {
    // Given a copy of the ledger, after which an agent's key was revoked.
    let setup = setup();
    let gate = setup.start();
    assert_eq!(gate.request("POST", "/api/v1/agents", Some(&json!({"id": "billing"}))).0, 201);
    let (_, key) = gate.request("POST", "/api/v1/agents/billing/keys", Some(&json!({})));
    gate.stop();
    let older = setup.home().join("older");
    copy(&setup.data(), &older);
    let gate = setup.start();
    let path = format!("/api/v1/keys/{}", key["id"].as_str().unwrap());
    assert_eq!(gate.request("DELETE", &path, None).0, 200);
    assert_eq!(gate.request_as(key["key"].as_str().unwrap(), "GET", "/api/v1/whoami", None).0, 401);
    gate.stop();
    let newest = setup.home().join("newest");
    copy(&setup.data(), &newest);

    // When the copy is restored, then the gate does not start, and says what it knows and what to do.
    std::fs::remove_dir_all(setup.data()).unwrap();
    copy(&older, &setup.data());
    for _ in 0..2 {
        let ended = setup.start_refused();
        assert_eq!(ended.status.code(), Some(1));
        let message = &ended.stderr;
        let file = heads_file(&setup).display().to_string();
        for part in [file.as_str(), "tenant `default`", "events expected", "found", FLAG] {
            assert!(message.contains(part), "{part}: {message}");
        }
    }
    let recovery = setup.command().arg("recover").output().unwrap();
    assert_eq!(recovery.status.code(), Some(1), "nothing else changes such a ledger either");

    // When the newest is put back, then it goes on as if nothing had been.
    std::fs::remove_dir_all(setup.data()).unwrap();
    copy(&newest, &setup.data());
    let gate = setup.start();
    assert_eq!(gate.request_as(key["key"].as_str().unwrap(), "GET", "/api/v1/whoami", None).0, 401);
    gate.stop();

    // When the operator accepts the older one, then that is in its log, and later starts need no flag.
    std::fs::remove_dir_all(setup.data()).unwrap();
    copy(&older, &setup.data());
    let gate = setup.clone().argument(FLAG).start();
    let event = accepted(&gate);
    assert!(event["known_size"].as_u64() > event["found_size"].as_u64(), "{event}");
    assert_eq!(event["tenant_id"], "default");
    assert_eq!(makes_vault(&gate, "goes on").0, 201);
    gate.stop();
    let gate = setup.start();
    assert_eq!(gate.request("GET", "/readyz", None).0, 200);
    accepted(&gate);
}

#[test]
fn a_ledger_that_is_gone_is_not_replaced_by_an_empty_one() {
    let setup = setup();
    setup.start().stop();
    std::fs::remove_dir_all(setup.data()).unwrap();

    let ended = setup.start_refused();

    let ledger = setup.data().join("ledger.sqlite3");
    for part in [&ledger.display().to_string(), &heads_file(&setup).display().to_string(), FLAG] {
        assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
    }
    assert!(!ledger.exists(), "nothing is made in its place");

    let gate = setup.clone().argument(FLAG).start();
    assert_eq!(accepted(&gate)["found_size"], Value::Null);
    gate.kill();
    assert_eq!(setup.start().request("GET", "/readyz", None).0, 200);
}

#[test]
fn the_heads_file_may_be_missing_or_older_but_not_damaged() {
    let setup = setup();
    let gate = setup.start();
    assert_eq!(makes_vault(&gate, "first").0, 201);
    gate.stop();
    let path = heads_file(&setup);
    let mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    let older = std::fs::read(&path).unwrap();

    // Missing, as after an upgrade: accepted, said, and made.
    std::fs::remove_file(&path).unwrap();
    let gate = setup.start();
    assert_eq!(makes_vault(&gate, "second").0, 201);
    let stderr = gate.stop().stderr;
    assert!(stderr.contains("no signed heads of this ledger are known yet"), "{stderr}");
    assert!(path.exists());

    // Older, as after a crash between the commit and the file.
    std::fs::write(&path, &older).unwrap();
    let gate = setup.start();
    assert_eq!(makes_vault(&gate, "third").0, 201);
    gate.kill();
    setup.start().stop();

    // Damaged.
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.get(..text.len() / 2).unwrap()).unwrap();
    let ended = setup.start_refused();
    for part in [&path.display().to_string(), "is damaged", FLAG] {
        assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
    }
    let gate = setup.clone().argument(FLAG).start();
    assert_eq!(accepted(&gate)["known_size"], Value::Null);
    gate.stop();
    setup.start().stop();

    // Of a log that another key signed, while the own key is gone.
    let key = setup.configuration_home().join("audit.key");
    std::fs::remove_file(&key).unwrap();
    std::fs::remove_dir_all(setup.data()).unwrap();
    let ended = setup.start_refused();
    assert!(ended.stderr.contains(&heads_file(&setup).display().to_string()), "{}", ended.stderr);
    assert!(!key.exists(), "nothing is made in its place");
}

#[test]
fn ledgers_that_share_an_audit_key_are_told_apart() {
    let setup = setup();
    setup.start().stop();
    let one = heads_file(&setup);
    // Another ledger in a directory of its own, which then takes the place of the first.
    let elsewhere = setup.home().join("elsewhere");
    let other = setup.clone().argument("--data").argument(&elsewhere);
    other.start().stop();
    let files = || {
        let entries = std::fs::read_dir(setup.configuration_home()).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "heads")).count()
    };
    assert_eq!(files(), 2);
    setup.start().stop();
    other.start().stop();
    std::fs::remove_dir_all(setup.data()).unwrap();
    std::fs::rename(&elsewhere, setup.data()).unwrap();

    let ended = setup.start_refused();
    assert!(ended.stderr.contains(&one.display().to_string()), "{}", ended.stderr);

    setup.clone().argument(FLAG).start().stop();
    assert_eq!(files(), 1, "what was there before is given up");
    setup.start().stop();
}

#[tokio::test]
async fn a_database_restored_from_a_copy_is_noticed_by_running_gates_and_by_later_starts() {
    // Given two gates on a database, and a copy of it from before.
    let database = TestDatabase::create().await;
    let setup = setup().database(database.url());
    let of = |setup: &GateSetup| {
        let setup = setup.clone();
        tokio::task::spawn_blocking(move || setup.start())
    };
    let gate = of(&setup).await.unwrap();
    let gate = tokio::task::spawn_blocking(move || gate.stop()).await.unwrap();
    assert_eq!(gate.status.code(), Some(0));
    let older = database.copy().await;
    let elsewhere = setup.home().join("apart");
    let apart = setup.clone().environment("TOOLGATE_AUDIT_HEADS_DIRECTORY", &elsewhere);
    let (one, other) = (of(&setup).await.unwrap(), of(&apart).await.unwrap());
    let files = [setup.configuration_home(), elsewhere];
    let (one, other) = tokio::task::spawn_blocking(move || {
        let (status, made) = makes_vault(&one, "forgotten");
        assert_eq!(status, 201, "{made}");
        let (_, head) = one.request("GET", "/api/v1/audit/head", None);
        // Each knows of it once it keeps it.
        let line = format!("\\n{}\\n", head["size"]);
        for (gate, file) in [&one, &other].into_iter().zip(&files) {
            let knows = |_: &usize| {
                gate.request("GET", "/healthz", None);
                heads_in(file).is_some_and(|file| std::fs::read_to_string(file).unwrap().contains(&line))
            };
            assert!((0..20_000).any(|turn| knows(&turn)), "{} does not have {line}", file.display());
        }
        (one, other)
    })
    .await
    .unwrap();

    // When the copy takes its place.
    database.restore(older).await;

    // Then both find out by themselves, and refuse everything.
    tokio::task::spawn_blocking(move || {
        for gate in [&one, &other] {
            let ready = (0..20_000)
                .map(|_| gate.request("GET", "/readyz", None))
                .find(|(status, answer)| *status == 503 && answer["ledger"]["code"] == json!("LEDGER_ROLLED_BACK"));
            let (_, answer) = ready.expect("a gate that finds out");
            assert!(answer["ledger"]["message"].as_str().unwrap().contains("tenant `default`"), "{answer}");
            let (status, refused) = makes_vault(gate, "refused");
            assert_eq!((status, refused["error"]["code"].as_str()), (503, Some("LEDGER_ROLLED_BACK")), "{refused}");
        }
        one.stop();
        other.stop();
        let ended = setup.start_refused();
        assert!(ended.stderr.contains("tenant `default`") && ended.stderr.contains(FLAG), "{}", ended.stderr);
        let gate = setup.clone().argument(FLAG).start();
        assert_eq!(makes_vault(&gate, "anew").0, 201);
        accepted(&gate);
        gate.stop();
        setup.start().stop();
    })
    .await
    .unwrap();
}
