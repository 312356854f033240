//! The commands beside the inbox, for people and for programs.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;
use toolgate_testkit::gate_process::{GateProcess, signal};

use super::Coder;
use crate::world::{World, until};

fn says(gate: &GateProcess, arguments: &[&str]) -> (i32, String) {
    let output = gate.cli().arg("approvals").args(arguments).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(text).unwrap())
}

#[track_caller]
fn gets(gate: &GateProcess, arguments: &[&str]) -> Value {
    let (code, text) = says(gate, &[arguments, &["--json"]].concat());
    assert_eq!(code, 0, "{arguments:?}: {text}");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn an_approval_is_listed_shown_and_decided() {
    let world = World::sqlite();
    let coder = Coder::of(&world);
    let waiting = coder.asks("cargo test --all");
    let id = &waiting.approval.clone();
    let listed = gets(&world.gate, &["list", "--status", "pending", "--agent", "coder", "--tool", "claude-code.Bash"]);
    assert_eq!(listed["approvals"][0]["id"], id.as_str());
    assert_eq!(says(&world.gate, &["list", "--status", "denied"]), (0, "none\n".to_owned()));
    let (code, text) = says(&world.gate, &["show", id]);
    assert!(code == 0 && text.contains("│ cargo test --all") && text.contains("+ new"), "{text}");

    let (code, text) = says(&world.gate, &["decide", id, "--deny", "--reason", "not now", "--idempotency-key", "k1"]);
    assert_eq!((code, text), (0, format!("{id} is denied by admin (terminal)\n")));
    assert_eq!(waiting.answer(), ("deny".to_owned(), "denied by admin: not now".to_owned()));
    let (code, text) = says(&world.gate, &["decide", id, "--approve"]);
    assert!(code == 1 && text.contains("[APPROVAL_DECIDED]"), "{text}");
    let (code, text) = says(&world.gate, &["decide", "appr_01ARZ3NDEKTSV4RRFFQ69G5FAV", "--approve"]);
    assert!(code == 1 && text.contains("[APPROVAL_NOT_FOUND]"), "{text}");
    for bad in
        [&["decide", id][..], &["decide", id, "--approve", "--deny"], &["decide", id, "--approve", "--max-uses", "2"]]
    {
        assert_eq!(says(&world.gate, bad).0, 2, "{bad:?}");
    }
}

#[test]
fn a_standing_approval_is_made_explained_and_taken_back() {
    let world = World::sqlite();
    let coder = Coder::of(&world);
    let waiting = coder.asks("cargo test --all");
    let id = waiting.approval.clone();
    gets(&world.gate, &["decide", &id, "--approve", "--prefix", "cargo test", "--scope", "user", "--max-uses", "5"]);
    assert_eq!(waiting.answer().0, "allow");
    let listed = gets(&world.gate, &["standing", "list", "--agent", "coder"]);
    let standing = listed["standing_approvals"][0].clone();
    let id = standing["id"].as_str().unwrap();
    assert_eq!((&standing["reach"], &standing["max_uses"]), (&Value::from("user"), &Value::from(5)));
    let explain = |command: &str| {
        let arguments = format!("{{\"command\": \"{command}\"}}");
        says(
            &world.gate,
            &["standing", "explain", "--agent", "coder", "--tool", "claude-code.Bash", "--arguments", &arguments],
        )
    };
    let (code, text) = explain("cargo test -q");
    assert!(code == 0 && text.starts_with("covered: ") && text.contains(id), "{text}");
    let (code, text) = explain("cargo publish");
    assert!(code == 1 && text.starts_with("approval would be required: "), "{text}");
    assert_eq!(gets(&world.gate, &["standing", "show", id])["state"], "active");
    assert_eq!(says(&world.gate, &["standing", "revoke", id]), (0, format!("{id} is revoked.\n")));
    assert_eq!(says(&world.gate, &["standing", "list"]), (0, "none\n".to_owned()));
    assert_eq!(gets(&world.gate, &["standing", "list", "--ended"])["standing_approvals"][0]["state"], "revoked");
    assert_eq!(explain("cargo test -q").0, 1);
}

/// Somebody who watches, and the lines that come.
fn watch(gate: &GateProcess, arguments: &[&str]) -> (Child, BufReader<ChildStdout>) {
    let mut command: Command = gate.cli();
    command.args(["approvals", "watch"]).args(arguments);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap());
    (child, lines)
}

fn next(lines: &mut BufReader<ChildStdout>) -> String {
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    line
}

#[test]
fn what_happens_is_watched_line_by_line_until_a_signal_or_the_reader_ends_it() {
    let world = World::sqlite();
    let coder = Coder::of(&world);
    let (mut programs, mut json) = watch(&world.gate, &["--json", "--after", "start"]);
    let (mut once, mut first) = watch(&world.gate, &["--once", "--after", "start"]);
    let waiting = coder.asks("ls");
    says(&world.gate, &["decide", &waiting.approval, "--deny"]);
    for kind in ["approval.requested", "approval.rejected"] {
        let event: Value = serde_json::from_str(&next(&mut json)).unwrap();
        assert_eq!((&event["type"], &event["approval"]["id"]), (&kind.into(), &waiting.approval.as_str().into()));
    }
    let line = next(&mut first);
    assert!(line.contains("approval.requested") && line.contains(&waiting.approval), "{line}");
    assert!(next(&mut first).is_empty());
    assert_eq!(once.wait().unwrap().code(), Some(0));
    signal("INT", programs.id());
    assert_eq!(programs.wait().unwrap().code(), Some(0));

    let (mut piped, reader) = watch(&world.gate, &[]);
    drop(reader);
    let status = until("the end of one whose reader is gone", || {
        coder.admin.get("/api/v1/approvals").ok();
        piped.try_wait().unwrap()
    });
    assert_eq!(status.code(), Some(0));
}
