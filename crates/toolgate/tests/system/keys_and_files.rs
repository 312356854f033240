//! Key files that others could read, keys of other ledgers, and two processes on one ledger: refused, and said why.

use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use toolgate_testkit::gate_process::GateSetup;

fn setup() -> GateSetup {
    GateSetup::new(env!("CARGO_BIN_EXE_toolgate"))
}

#[test]
fn a_key_file_that_others_can_read_or_write_stops_the_start() {
    let setup = setup();
    setup.start().stop();
    for name in ["master.key", "audit.key"] {
        let path = setup.configuration_home().join(name);
        for bad in [0o640, 0o604, 0o620, 0o666] {
            set_permissions(&path, Permissions::from_mode(bad)).unwrap();
            let ended = setup.start_refused();
            assert_eq!(ended.status.code(), Some(1));
            let advice = format!("chmod 600 {}", path.display());
            assert!(ended.stderr.contains(&advice), "{name} {bad:o}: {}", ended.stderr);
        }
        set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    }
    assert_eq!(setup.start().stop().status.code(), Some(0));
}

#[test]
fn keys_and_a_ledger_that_others_could_replace_stop_the_start() {
    let setup = setup();
    setup.start().stop();
    let (keys, data) = (setup.configuration_home(), setup.data());
    for (path, bad, good) in [
        (keys.clone(), 0o770, 0o700),
        (keys, 0o703, 0o700),
        (data.clone(), 0o720, 0o700),
        (data.join("ledger.sqlite3"), 0o620, 0o600),
        (data.join("ledger.sqlite3"), 0o602, 0o600),
    ] {
        set_permissions(&path, Permissions::from_mode(bad)).unwrap();
        let ended = setup.start_refused();
        assert_eq!(ended.status.code(), Some(1));
        let advice = format!("chmod go-w {}", path.display());
        assert!(ended.stderr.contains(&advice), "{bad:o}: {}", ended.stderr);
        set_permissions(&path, Permissions::from_mode(good)).unwrap();
    }
    assert_eq!(setup.start().stop().status.code(), Some(0));
}

/// Stores a credential, so that something is sealed.
fn seal_something(gate: &toolgate_testkit::gate_process::GateProcess) {
    let (_, vault) = gate.request("POST", "/api/v1/vaults", Some(&json!({"name": "keys"})));
    let credential = json!({
        "service": "payments", "label": "live", "auth_type": "api_key", "scopes_available": ["pay"],
        "material": {"api_key": "sk_live_0123456789"}
    });
    let path = format!("/api/v1/vaults/{}/credentials", vault["id"].as_str().unwrap());
    let (status, body) = gate.request("POST", &path, Some(&credential));
    assert_eq!(status, 201, "{body}");
}

#[test]
fn a_lost_master_key_is_not_replaced_while_anything_is_sealed_under_it() {
    let setup = setup();
    let gate = setup.start();
    seal_something(&gate);
    gate.stop();
    let path = setup.configuration_home().join("master.key");
    let key: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let kept = setup.configuration_home().join("kept.key");
    std::fs::rename(&path, &kept).unwrap();
    let ended = setup.start_refused();
    let message = &ended.stderr;
    let id = key["current"].as_str().expect("the id of the current key");
    assert!(message.contains(&path.display().to_string()) && message.contains(id), "{message}");
    assert!(message.contains("--accept-lost-master-key"), "{message}");
    assert!(!path.exists(), "nothing is written");

    // Where the operator has no copy left the gate starts, and says what does not open.
    let gate = setup.clone().argument("--accept-lost-master-key").start();
    let (status, ready) = gate.request("GET", "/readyz", None);
    let message = ready["key_provider"]["message"].as_str().unwrap_or_default();
    assert!(status == 503 && message.contains(id), "{status} {ready}");
    gate.stop();

    std::fs::rename(&kept, &path).unwrap();
    let gate = setup.start();
    assert_eq!(gate.request("GET", "/readyz", None).0, 200);
}

#[test]
fn nothing_is_acknowledged_once_the_ledger_was_removed_or_replaced() {
    for lost in ["ledger.sqlite3", "ledger.sqlite3-wal"] {
        for replaced in [false, true] {
            let setup = setup();
            let gate = setup.start();
            let makes_vault = |name: &str| gate.request("POST", "/api/v1/vaults", Some(&json!({"name": name})));
            assert_eq!(makes_vault("before").0, 201);
            let (path, copy) = (setup.data().join(lost), setup.data().join("copy"));
            std::fs::copy(&path, &copy).unwrap();
            if replaced {
                std::fs::rename(&copy, &path).unwrap()
            } else {
                std::fs::remove_file(&path).unwrap()
            }

            for name in ["lost", "lost too"] {
                let (status, body) = makes_vault(name);
                assert_eq!((status, &body["error"]["code"]), (503, &json!("LEDGER_UNAVAILABLE")), "{lost}: {body}");
            }
            assert_eq!(gate.request("GET", "/readyz", None).0, 503);
            assert_eq!(gate.request("GET", "/healthz", None).0, 200);
            let stderr = gate.stop().stderr;
            assert!(stderr.contains("was removed or replaced while the gate was running"), "{stderr}");
        }
    }
}

#[test]
fn a_lost_audit_key_is_not_replaced_once_the_log_was_begun() {
    let setup = setup();
    setup.start().stop();
    let path = setup.configuration_home().join("audit.key");
    std::fs::rename(&path, setup.configuration_home().join("kept.key")).unwrap();
    let message = setup.start_refused().stderr;
    assert!(message.contains(&path.display().to_string()) && message.contains("toolgate+"), "{message}");
    assert!(!path.exists(), "nothing is written");
}

#[test]
fn a_ledger_accepts_only_the_audit_key_that_its_log_was_begun_with() {
    let setup = setup();
    setup.start().stop();
    let path = setup.configuration_home().join("audit.key");
    let kept = setup.configuration_home().join("kept.key");
    std::fs::rename(&path, &kept).unwrap();
    let another = self::setup();
    another.start().stop();
    std::fs::copy(another.configuration_home().join("audit.key"), &path).unwrap();
    let ended = setup.start_refused();
    assert_eq!(ended.status.code(), Some(1));
    assert!(ended.stderr.contains("restore that key file"), "{}", ended.stderr);
    std::fs::rename(&kept, &path).unwrap();
    assert_eq!(setup.start().stop().status.code(), Some(0));
}

#[test]
fn damaged_key_files_stop_the_start_without_being_shown() {
    for name in ["master.key", "audit.key"] {
        let setup = setup();
        setup.start().stop();
        let path = setup.configuration_home().join(name);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.get(..text.len() - 10).unwrap()).unwrap();
        let ended = setup.start_refused();
        assert!(ended.stderr.contains("damaged"), "{}", ended.stderr);
        let secret = text.rsplit('"').nth(1).unwrap();
        assert!(secret.len() > 30 && !ended.stderr.contains(secret.get(..20).unwrap()), "{}", ended.stderr);
    }
}

#[test]
fn keys_inside_the_data_directory_are_refused() {
    for variable in ["TOOLGATE_KEY_FILE", "TOOLGATE_AUDIT_KEY_FILE"] {
        let setup = setup();
        let setup = setup.clone().environment(variable, setup.data().join("inside.key"));
        let ended = setup.start_refused();
        assert_eq!(ended.status.code(), Some(1));
        assert!(ended.stderr.contains("inside the data directory"), "{}", ended.stderr);
        assert!(!setup.data().join("inside.key").exists());
    }
}

#[test]
fn a_second_process_on_the_same_data_is_refused_and_the_first_goes_on() {
    let setup = setup();
    let gate = setup.start();
    let ended = setup.start_refused();
    assert_eq!(ended.status.code(), Some(1));
    assert!(ended.stderr.contains("in use by another toolgate"), "{}", ended.stderr);
    assert_eq!(gate.request("GET", "/api/v1/whoami", None).0, 200);
    gate.kill();
    assert_eq!(setup.start().stop().status.code(), Some(0));
}

#[test]
fn a_master_key_from_the_environment_leaves_no_key_file() {
    let setup = setup()
        .environment("TOOLGATE_KEY_PROVIDER", "environment")
        .environment("TOOLGATE_MASTER_KEY", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=");
    let gate = setup.start();
    assert_eq!(gate.request("GET", "/readyz", None).0, 200);
    assert_eq!(gate.stop().status.code(), Some(0));
    assert!(!setup.configuration_home().join("master.key").exists());
    assert!(setup.configuration_home().join("audit.key").exists());
}

#[test]
fn a_key_command_that_does_not_work_stops_the_start() {
    let ended = setup()
        .environment("TOOLGATE_KEY_PROVIDER", "command")
        .environment("TOOLGATE_KEY_COMMAND", "/nowhere/kms-wrap --region 1")
        .start_refused();
    assert_eq!(ended.status.code(), Some(1));
    assert!(ended.stderr.contains("/nowhere/kms-wrap"), "{}", ended.stderr);
}
