//! The host protocol through the real binary: on its own gate, and as a client of a running one.

mod process;

use serde_json::{Value, json};
use toolgate_testkit::gate_process::{GateProcess, GateSetup};

use self::process::HostProcess;

const BINARY: &str = env!("CARGO_BIN_EXE_toolgate");

fn setup() -> GateSetup {
    let setup = GateSetup::new(BINARY);
    std::fs::create_dir(root(&setup)).unwrap();
    setup
}

fn root(setup: &GateSetup) -> std::path::PathBuf {
    setup.home().join("project")
}

fn host(setup: &GateSetup, arguments: &[&str]) -> HostProcess {
    HostProcess::start(setup.command().args(["host", "--root", "project"]).args(arguments))
}

#[test]
fn a_call_runs_after_a_yes_and_never_after_a_no() {
    let setup = setup();
    let mut host = host(&setup, &[]);
    let ready = host.ready.clone();
    assert_eq!(ready["capabilities"]["current_mode"], "default");
    assert_eq!(ready["session_persistence"], "durable");

    host.call("c1", "Write", json!({"file_path": "kept.txt", "content": "kept"}));
    let request = host.expect("tool_request", "c1");
    assert_eq!((&request["tool"]["name"], &request["tool"]["category"]), (&json!("Write"), &json!("edit")));
    assert_eq!(request["tool"]["args"], json!({"file_path": "kept.txt", "content": "kept"}));
    assert!(request["approval"]["expires_at"].is_string(), "{request}");
    assert!(!root(&setup).join("kept.txt").exists());
    host.send(json!({"type": "tool_approve", "call_id": "c1"}));
    host.expect("tool_running", "c1");
    assert_eq!(host.expect("tool_result", "c1")["status"], "success");
    assert_eq!(std::fs::read_to_string(root(&setup).join("kept.txt")).unwrap(), "kept");

    host.call("c2", "Bash", json!({"command": "touch ran.txt"}));
    assert_eq!(host.expect("tool_request", "c2")["tool"]["description"], "Execute: touch ran.txt");
    host.send(json!({"type": "tool_deny", "call_id": "c2", "reason": "Destructive command rejected by policy"}));
    assert_eq!(host.expect("tool_cancelled", "c2")["reason"], "Destructive command rejected by policy");
    assert!(!root(&setup).join("ran.txt").exists());
    host.send(json!({"type": "tool_approve", "call_id": "c2"}));
    assert_eq!(host.expect_error()["code"], "already_decided");

    host.call("c3", "payments.charges.create", json!({}));
    let result = host.expect("tool_result", "c3");
    assert_eq!(result["status"], "error", "{result}");
    host.close_input();
    assert_eq!(host.end(), Some(0));
}

#[test]
fn the_end_of_input_and_a_signal_deny_what_waits() {
    let setup = setup();
    for end in ["input", "signal", "stop"] {
        let mut host = host(&setup, &[]);
        for label in ["c1", "c2"] {
            host.call(label, "Bash", json!({"command": "touch ran.txt"}));
            host.expect("tool_request", label);
        }
        let reason = match end {
            "input" => {
                host.close_input();
                "host closed the command stream while this approval was pending"
            }
            "signal" => {
                host.signal("TERM");
                "host closed the command stream while this approval was pending"
            }
            _ => {
                host.send(json!({"type": "stop"}));
                "stopped by host"
            }
        };
        let mut cancelled = [host.next(), host.next()].map(|event| {
            assert_eq!((&event["type"], &event["reason"]), (&json!("tool_cancelled"), &json!(reason)));
            event["call_id"].as_str().unwrap().to_owned()
        });
        cancelled.sort();
        assert_eq!(cancelled, ["c1", "c2"]);
        assert_eq!(host.end(), Some(0), "{end}");
        assert!(!root(&setup).join("ran.txt").exists());
    }
}

#[test]
fn an_answer_is_the_output_of_a_question_and_of_nothing_else() {
    let setup = setup();
    let mut host = host(&setup, &["--mode", "force", "--hitl-suspend"]);
    host.call("q1", "AskUserQuestion", json!({"question": "Where to?", "options": ["staging", "production"]}));
    assert_eq!(host.expect("tool_request", "q1")["approval"]["question"]["options"], json!(["staging", "production"]));
    let required = host.expect("approval_required", "q1");
    assert_eq!(required["context"], "AskUserQuestion: Where to?");
    let token = required["resume_token"].as_str().unwrap().to_owned();
    assert_eq!(host.next()["type"], "suspend");
    let resume = |token: &str, answer: &str| {
        json!({
            "type": "approval_resume", "resume_token": token, "approved": true, "modifications": {"answer": answer},
        })
    };
    host.send(resume("q1", "staging"));
    assert_eq!(host.expect_error()["code"], "unknown_token");
    host.send(resume(&token, "elsewhere"));
    assert_eq!(host.expect_error()["code"], "refused");
    host.send(resume(&token, "staging"));
    assert_eq!(host.next(), json!({"type": "approval_resume", "resume_token": token, "approved": true}));
    host.expect("tool_running", "q1");
    assert_eq!(host.expect("tool_result", "q1")["output"], "staging");
    host.send(json!({"type": "stop"}));
    assert_eq!(host.end(), Some(0));

    let mut host = self::host(&setup, &[]);
    host.call("c1", "Bash", json!({"command": "echo real"}));
    host.expect("tool_request", "c1");
    host.send(json!({"type": "tool_approve", "call_id": "c1", "answer": "invented"}));
    host.expect("tool_running", "c1");
    assert_eq!(host.expect("tool_result", "c1")["output"].as_str().unwrap().trim_end(), "real");
}

#[test]
fn what_was_approved_for_the_session_stands_for_the_tool_and_not_for_others() {
    let setup = setup();
    let mut host = host(&setup, &["--session", "mine"]);
    assert_eq!(host.ready["session_id"], "mine");
    host.call("c1", "Write", json!({"file_path": "a.txt", "content": "a"}));
    host.expect("tool_request", "c1");
    host.approve("c1", json!("always"));
    assert_eq!(host.finish("c1")["status"], "success");
    host.call("c2", "Write", json!({"file_path": "b.txt", "content": "b"}));
    let announced = host.expect("call_announced", "c2");
    assert_eq!(announced["auto"]["source"], "standing");
    assert_eq!(announced["auto"]["standing_approval_ids"].as_array().unwrap().len(), 1);
    host.finish("c2");
    // The category is not what was approved.
    host.call("c3", "Edit", json!({"file_path": "a.txt", "old_string": "a", "new_string": "c"}));
    host.expect("tool_request", "c3");

    let prefix = json!({"always_prefix": {"prefix": "echo "}});
    host.call("c4", "Bash", json!({"command": "echo one"}));
    host.expect("tool_request", "c4");
    host.approve("c4", prefix);
    host.finish("c4");
    host.call("c5", "Bash", json!({"command": "echo two && echo three"}));
    assert_eq!(host.expect("call_announced", "c5")["auto"]["source"], "standing");
    host.finish("c5");
    host.call("c6", "Bash", json!({"command": "echo two; touch ran.txt"}));
    host.expect("tool_request", "c6");

    // What can run anything cannot be left standing; the one call is approved all the same.
    host.call("c7", "Bash", json!({"command": "bash -c true"}));
    host.expect("tool_request", "c7");
    host.approve("c7", json!({"always_prefix": {"prefix": "bash "}}));
    let info = host.next_of("info");
    assert!(info["message"].as_str().unwrap().starts_with("only this call is approved"), "{info}");
    assert_eq!(host.close(), Some(0));

    // Another conversation does not inherit it, this one does.
    let mut other = self::host(&setup, &[]);
    other.call("c1", "Write", json!({"file_path": "d.txt", "content": "d"}));
    other.expect("tool_request", "c1");
    assert_eq!(other.close(), Some(0));
    let mut again = self::host(&setup, &["--session", "mine"]);
    again.call("c1", "Write", json!({"file_path": "e.txt", "content": "e"}));
    again.expect("call_announced", "c1");
}

#[test]
fn the_mode_lets_calls_pass_and_is_raised_only_where_that_was_allowed() {
    let setup = setup();
    let mut host = host(&setup, &["--mode", "auto_edit"]);
    assert_eq!(host.ready["capabilities"]["current_mode"], "auto_edit");
    host.call("c1", "Write", json!({"file_path": "a.txt", "content": "a"}));
    assert_eq!(host.expect("call_announced", "c1")["auto"], json!({"source": "mode", "standing_approval_ids": []}));
    host.finish("c1");
    host.call("c2", "Bash", json!({"command": "true"}));
    host.expect("tool_request", "c2");
    host.send(json!({"type": "set_mode", "mode": "force"}));
    assert_eq!(host.expect_error()["code"], "mode_refused");
    host.send(json!({"type": "set_mode", "mode": "default"}));
    assert_eq!(host.next(), json!({"type": "config_changed", "current_mode": "default"}));
    host.call("c3", "Write", json!({"file_path": "b.txt", "content": "b"}));
    host.expect("tool_request", "c3");
    assert_eq!(host.close(), Some(0));

    let mut host = self::host(&setup, &["--allow-mode-changes"]);
    host.call("c1", "Bash", json!({"command": "true"}));
    host.expect("tool_request", "c1");
    host.send(json!({"type": "set_mode", "mode": "force"}));
    assert_eq!(host.next(), json!({"type": "config_changed", "current_mode": "force"}));
    host.call("c2", "Bash", json!({"command": "true"}));
    host.expect("call_announced", "c2");
    host.finish("c2");
    host.send(json!({"type": "tool_deny", "call_id": "c1"}));
    assert_eq!(host.expect("tool_cancelled", "c1")["reason"], "denied by host");
}

#[test]
fn bad_lines_are_answered_one_by_one_and_the_stream_goes_on() {
    let setup = setup();
    let mut host = host(&setup, &[]);
    for line in [&b"nonsense"[..], b"", b"{\"type\":\"ping\"", b"\xff\xfe", b"{\"type\":\"dance\"}", b"[1]"] {
        host.send_bytes(line);
        let error = host.expect_error();
        assert_eq!((&error["code"], &error["retryable"]), (&json!("engine_error"), &json!(false)));
    }
    host.send_bytes(&vec![b'x'; 9 * 1024 * 1024]);
    assert_eq!(host.expect_error()["code"], "engine_error");
    host.send(json!({"type": "ping"}));
    assert_eq!(host.next(), json!({"type": "pong"}));
    host.close_output();
    host.send(json!({"type": "ping"}));
    assert_eq!(host.end(), Some(1));
}

#[test]
fn one_ledger_has_one_host() {
    let setup = setup();
    let _first = host(&setup, &[]);
    let second = setup.command().args(["host", "--root", "project"]).output().unwrap();
    assert_eq!((second.status.code(), second.stdout.as_slice()), (Some(1), &b""[..]));
    let said = String::from_utf8_lossy(&second.stderr);
    assert!(said.contains("in use by another toolgate"), "{said}");
}

#[test]
fn a_running_gate_is_answered_over_whichever_channel_is_first() {
    let setup = setup();
    let root = root(&setup);
    let gate = setup.environment("TOOLGATE_WORKSPACE_ROOT", &root).start();
    let agent = json!({"id": "coder", "scopes": ["workspace:exec"]});
    assert_eq!(gate.request("POST", "/api/v1/agents", Some(&agent)).0, 201);
    let mut command = gate.cli();
    let mut host = HostProcess::start(command.args(["host", "--agent", "coder", "--root"]).arg(&root));

    host.call("c1", "Bash", json!({"command": "echo elsewhere"}));
    let id = host.expect("tool_request", "c1")["approval"]["id"].as_str().unwrap().to_owned();
    let (status, decided) = decide(&gate, &id, json!({"decision": "approve"}));
    assert_eq!((status, &decided["status"]), (200, &json!("approved")), "{decided}");
    assert_eq!(host.finish("c1")["output"].as_str().unwrap().trim_end(), "elsewhere");
    host.send(json!({"type": "tool_deny", "call_id": "c1"}));
    assert_eq!(host.expect_error()["code"], "already_decided");

    host.call("c2", "Bash", json!({"command": "echo here"}));
    let id = host.expect("tool_request", "c2")["approval"]["id"].as_str().unwrap().to_owned();
    host.send(json!({"type": "tool_deny", "call_id": "c2"}));
    assert_eq!(host.expect("tool_cancelled", "c2")["reason"], "denied by host");
    let (status, _) = decide(&gate, &id, json!({"decision": "approve"}));
    assert_eq!(status, 409);
    let (_, approval) = gate.request("GET", &format!("/api/v1/approvals/{id}"), None);
    assert_eq!((&approval["status"], &approval["votes"][0]["channel"]), (&json!("denied"), &json!("host")));
    assert_eq!((&approval["call_id"], &approval["agent_id"]), (&json!("c2"), &json!("coder")));
    assert_eq!(approval["session"]["workspace"], root.canonicalize().unwrap().to_str().unwrap());

    // A host that dies takes its calls back.
    host.call("c3", "Bash", json!({"command": "touch ran.txt"}));
    let id = host.expect("tool_request", "c3")["approval"]["id"].as_str().unwrap().to_owned();
    host.kill();
    let status = loop {
        let (_, approval) = gate.request("GET", &format!("/api/v1/approvals/{id}"), None);
        if approval["status"] != "pending" {
            break approval["status"].clone();
        }
    };
    assert_eq!(status, "cancelled");
    assert!(!root.join("ran.txt").exists());
}

fn decide(gate: &GateProcess, id: &str, decision: Value) -> (u16, Value) {
    gate.request("POST", &format!("/api/v1/approvals/{id}/decide"), Some(&decision))
}
