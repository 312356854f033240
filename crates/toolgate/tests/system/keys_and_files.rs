//! Key files that others could read, keys of other ledgers, and two processes on one ledger: refused, and said why.

use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;

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

#[test]
fn a_ledger_accepts_only_the_audit_key_that_its_log_was_begun_with() {
    let setup = setup();
    setup.start().stop();
    let path = setup.configuration_home().join("audit.key");
    let kept = setup.configuration_home().join("kept.key");
    std::fs::rename(&path, &kept).unwrap();
    let ended = setup.start_refused();
    assert_eq!(ended.status.code(), Some(1));
    assert!(ended.stderr.contains("give back the key file"), "{}", ended.stderr);
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
