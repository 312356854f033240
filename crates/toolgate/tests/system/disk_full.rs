//! When the disk takes no more, changes are refused with a clear code, nothing acknowledged is lost, and the gate goes on
//! by itself once there is room again. The disk is filled by a limit on the size of files, which needs no privileges.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::json;
use toolgate_testkit::gate_process::{GateProcess, GateSetup};
use toolgate_testkit::upstream::{Reply, Upstream};

use crate::tool_user::{ToolUser, bearer};
use crate::world::World;

#[test]
fn a_full_disk_refuses_changes_loses_nothing_and_recovers() {
    // Given a gate whose files cannot grow beyond a megabyte.
    let directory = tempfile::TempDir::new().unwrap();
    let wrapper = limited(&directory);
    let binary = env!("CARGO_BIN_EXE_toolgate");
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

#[test]
fn a_call_that_was_not_made_is_refused_as_such_when_the_disk_fills() {
    // Given a gate whose files cannot grow, and agents that call a service through it at the same time.
    let directory = tempfile::TempDir::new().unwrap();
    let upstream = Upstream::start(|_| Reply::json(200, json!({"done": true})));
    let world = World::of(&GateSetup::new(limited(&directory)).reaching_loopback(), None);
    let user = ToolUser::of(&world, bearer(&upstream));

    // When they go on until nothing is taken any more.
    let answers: Vec<(String, u16, String)> = std::thread::scope(|scope| {
        let callers: Vec<_> = (0..6)
            .map(|caller| {
                let user = &user;
                scope.spawn(move || {
                    let (mut answers, mut refused) = (Vec::new(), 0);
                    for number in 0..20_000 {
                        let name = format!("call-{caller}-{number}-end");
                        let reply = user.calls("any", json!({"name": name, "filling": "x".repeat(500)}));
                        refused = if reply.status() == 200 { 0 } else { refused + 1 };
                        let code =
                            reply.json().pointer("/error/code").and_then(|code| code.as_str().map(str::to_owned));
                        answers.push((name, reply.status(), code.unwrap_or_default()));
                        if refused == 20 {
                            break;
                        }
                    }
                    answers
                })
            })
            .collect();
        callers.into_iter().flat_map(|caller| caller.join().unwrap()).collect()
    });

    // Then those that were not made say that they were not, and only of those that were made is the outcome unknown.
    let received: Vec<String> =
        upstream.received().iter().map(|request| String::from_utf8_lossy(&request.body).into_owned()).collect();
    let mut seen = std::collections::BTreeMap::new();
    for (name, status, code) in answers {
        let made = received.iter().any(|body| body.contains(&name));
        *seen.entry((status, code, made)).or_insert(0) += 1;
    }
    eprintln!("{seen:?}");
    for ((status, code, made), count) in &seen {
        let expected = match (status, code.as_str()) {
            (200, "") | (409, "OUTCOME_UNKNOWN") => true,
            (503, "LEDGER_UNAVAILABLE") => false,
            _ => panic!("{count} times {status} {code}: {seen:?}"),
        };
        assert_eq!(*made, expected, "{status} {code}: {seen:?}");
    }
    assert!(seen.keys().any(|(status, ..)| *status == 503), "{seen:?}");
}

/// The program with files that cannot grow beyond a megabyte.
fn limited(directory: &tempfile::TempDir) -> std::path::PathBuf {
    let wrapper = directory.path().join("toolgate");
    let binary = env!("CARGO_BIN_EXE_toolgate");
    std::fs::write(&wrapper, format!("#!/bin/sh\ntrap '' XFSZ\nulimit -S -f 2048\nexec '{binary}' \"$@\"\n")).unwrap();
    std::fs::set_permissions(&wrapper, std::fs::Permissions::from_mode(0o755)).unwrap();
    wrapper
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
