//! When the disk takes no more, changes are refused with a clear code, nothing acknowledged is lost, and the gate goes on
//! by itself once there is room again. The disk is filled by a limit on the size of files, which needs no privileges.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::json;
use toolgate_testkit::gate_process::{GateProcess, GateSetup};

#[test]
fn a_full_disk_refuses_changes_loses_nothing_and_recovers() {
    // Given a gate whose files cannot grow beyond half a megabyte.
    let directory = tempfile::TempDir::new().unwrap();
    let wrapper = directory.path().join("toolgate");
    let binary = env!("CARGO_BIN_EXE_toolgate");
    std::fs::write(&wrapper, format!("#!/bin/sh\ntrap '' XFSZ\nulimit -S -f 2048\nexec '{binary}' \"$@\"\n")).unwrap();
    std::fs::set_permissions(&wrapper, std::fs::Permissions::from_mode(0o755)).unwrap();
    let gate = GateSetup::new(&wrapper).start();

    // When it is written to until it refuses, and keeps refusing: a first refusal may find room again by itself, when the
    // write-ahead log is folded into the ledger.
    let mut acknowledged = Vec::new();
    let mut refused = 0;
    while refused < 20 {
        let (status, answer) = create(&gate, acknowledged.len());
        if status == 201 {
            acknowledged.push(answer["id"].as_str().unwrap().to_owned());
            assert!(acknowledged.len() < 20_000, "the limit on files is not in force");
            refused = 0;
        } else {
            // Then each refusal says so.
            assert_eq!((status, answer["error"]["code"].as_str()), (503, Some("LEDGER_UNAVAILABLE")), "{answer}");
            refused += 1;
        }
    }

    // And the probe finds it out, at the latest when its own small writes have taken what was left; reading still works.
    assert!((0..200).any(|_| gate.request("GET", "/readyz", None).0 == 503));
    assert!(!acknowledged.is_empty());
    all_there(&gate, &acknowledged);

    // And once there is room again it goes on without help.
    let lifted = Command::new("prlimit").args(["--pid", &gate.id().to_string(), "--fsize=unlimited"]).status();
    assert!(lifted.is_ok_and(|status| status.success()), "prlimit (package util-linux) is needed");
    let (status, answer) = create(&gate, 0);
    assert_eq!(status, 201, "{answer}");
    assert_eq!(gate.request("GET", "/readyz", None).0, 200);
    acknowledged.push(answer["id"].as_str().unwrap().to_owned());

    // And after a kill everything that was acknowledged is still there.
    let setup = gate.setup().clone();
    gate.kill();
    std::fs::write(&wrapper, format!("#!/bin/sh\nexec '{binary}' \"$@\"\n")).unwrap();
    all_there(&setup.start(), &acknowledged);
}

fn create(gate: &GateProcess, number: usize) -> (u16, serde_json::Value) {
    let name = format!("{number} {}", "x".repeat(200));
    gate.request("POST", "/api/v1/vaults", Some(&json!({"name": name})))
}

fn all_there(gate: &GateProcess, ids: &[String]) {
    for id in ids.iter().step_by(7).chain(ids.last()) {
        assert_eq!(gate.request("GET", &format!("/api/v1/vaults/{id}"), None).0, 200, "{id} is missing");
    }
}
