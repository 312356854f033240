//! Sessions against a gate of the tests: order, answers in any order, ends, and tokens.

mod ends;
mod fake;
mod suspended;

use serde_json::json;
use toolgate_model::approval::{Mode, TIMED_OUT};

use self::fake::Host;
use super::engine::{Decided, Ended, EngineError};
use super::protocol::{ResultStatus, Scope};

#[tokio::test]
async fn a_call_is_asked_for_then_runs_then_answers() {
    let mut host = Host::start().await;
    host.call("c1", "Bash", json!({"command": "ls"})).await;
    let request = host.expect("tool_request", "c1").await;
    assert_eq!(request["msg_id"], "m1");
    let tool = json!({"name": "Bash", "category": "exec", "args": {"command": "ls"}, "description": "Execute: it"});
    assert_eq!(request["tool"], tool);
    assert_eq!(host.gate.made.lock().unwrap()[0].tool, "x-host-toolgate-workspace.Bash");
    // Nothing runs before the answer.
    host.expect_silence().await;
    host.send(json!({"type": "tool_approve", "call_id": "c1", "scope": "once"})).await;
    assert_eq!(host.expect("tool_running", "c1").await["tool_name"], "Bash");
    let result = host.expect("tool_result", "c1").await;
    assert_eq!((&result["status"], &result["output"]), (&json!("success"), &json!("done")));
    assert_eq!((&result["output_type"], &result["tool_name"]), (&json!("text"), &json!("Bash")));
    host.close_input();
    assert!(host.end().await);
}

#[tokio::test]
async fn a_denied_call_is_cancelled_with_the_reason() {
    let mut host = Host::start().await;
    for (label, deny, reason) in [
        ("c1", json!({"type": "tool_deny", "call_id": "c1", "reason": "Destructive"}), "Destructive"),
        ("c2", json!({"type": "tool_deny", "call_id": "c2"}), "denied by host"),
        ("c3", json!({"type": "tool_deny", "call_id": "c3", "reason": ""}), "denied by host"),
    ] {
        host.call(label, "Bash", json!({})).await;
        host.expect("tool_request", label).await;
        host.send(deny).await;
        assert_eq!(host.expect("tool_cancelled", label).await["reason"], reason);
    }
    host.expect_silence().await;
}

#[tokio::test]
async fn a_call_that_nobody_was_asked_for_is_announced_before_it_runs() {
    let mut host = Host::with(|terms| terms.mode = Mode::AutoEdit).await;
    host.call("c1", "Edit", json!({"file_path": "a.rs"})).await;
    let announced = host.expect("call_announced", "c1").await;
    assert_eq!(announced["auto"], json!({"source": "mode", "standing_approval_ids": []}));
    assert_eq!(announced["tool"]["description"], "Edit: a.rs");
    host.expect("tool_running", "c1").await;
    host.expect("tool_result", "c1").await;

    host.call("c2", "Bash", json!({"covered": ["standing_1"], "command": "cargo test"})).await;
    let announced = host.expect("call_announced", "c2").await;
    assert_eq!(announced["auto"], json!({"source": "standing", "standing_approval_ids": ["standing_1"]}));
    assert_eq!((&announced["tool"]["category"], &announced["msg_id"]), (&json!("exec"), &json!("m1")));
    host.expect("tool_running", "c2").await;
    host.expect("tool_result", "c2").await;

    host.call("c3", "payments.charges.read", json!({})).await;
    assert_eq!(host.expect("call_announced", "c3").await["auto"]["source"], "none");
    assert_eq!(host.gate.made.lock().unwrap()[2].tool, "payments.charges.read");
}

#[tokio::test]
async fn calls_wait_together_and_are_answered_in_any_order() {
    let mut host = Host::start().await;
    let labels: Vec<String> = (0..40).map(|number| format!("c{number}")).collect();
    for label in &labels {
        host.call(label, "Bash", json!({"print": label})).await;
        host.expect("tool_request", label).await;
    }
    for label in labels.iter().rev() {
        let approve = label.ends_with(|last: char| "02468".contains(last));
        let kind = if approve { "tool_approve" } else { "tool_deny" };
        host.send(json!({"type": kind, "call_id": label})).await;
        if approve {
            host.expect("tool_running", label).await;
            assert_eq!(host.expect("tool_result", label).await["output"], **label);
        } else {
            host.expect("tool_cancelled", label).await;
        }
    }
    host.expect_silence().await;
}

#[tokio::test]
async fn scopes_and_answers_reach_the_gate_under_keys_of_their_own() {
    let mut host = Host::start().await;
    let prefix = json!({"always_prefix": {"prefix": "cargo "}});
    for (label, scope) in [("c1", json!("once")), ("c2", json!("always")), ("c3", prefix)] {
        host.call(label, "Bash", json!({})).await;
        host.expect("tool_request", label).await;
        host.send(json!({"type": "tool_approve", "call_id": label, "scope": scope, "answer": "yes"})).await;
        host.expect("tool_running", label).await;
        host.expect("tool_result", label).await;
    }
    let verdicts = host.gate.verdicts.lock().unwrap();
    let scopes: Vec<&Scope> = verdicts.iter().map(|(_, verdict)| &verdict.scope).collect();
    assert_eq!(scopes, [&Scope::Once, &Scope::Always, &Scope::AlwaysPrefix { prefix: "cargo ".to_owned() }]);
    let keys: Vec<&str> = verdicts.iter().map(|(_, verdict)| verdict.key.as_str()).collect();
    assert_eq!(keys, ["nonce-1", "nonce-2", "nonce-3"]);
    assert!(verdicts.iter().all(|(_, verdict)| verdict.answer.as_deref() == Some("yes")));
}

#[tokio::test]
async fn an_answer_to_no_call_to_a_running_and_to_an_ended_one_is_an_error_of_its_own() {
    let mut host = Host::start().await;
    host.send(json!({"type": "tool_approve", "call_id": "c1"})).await;
    assert_eq!(host.expect_error("unknown_call").await["call_id"], "c1");

    host.call("c1", "Bash", json!({"hold": true})).await;
    host.expect("tool_request", "c1").await;
    host.send(json!({"type": "tool_approve", "call_id": "c1"})).await;
    host.expect("tool_running", "c1").await;
    host.send(json!({"type": "tool_deny", "call_id": "c1"})).await;
    host.expect_error("already_decided").await;
    host.gate.release("c1");
    host.expect("tool_result", "c1").await;
    host.send(json!({"type": "tool_deny", "call_id": "c1"})).await;
    host.expect_error("already_decided").await;

    host.call("c2", "Read", json!({"hold": true})).await;
    host.expect("call_announced", "c2").await;
    host.expect("tool_running", "c2").await;
    host.send(json!({"type": "tool_approve", "call_id": "c2"})).await;
    host.expect_error("not_waiting").await;

    host.call("c3", "Bash", json!({})).await;
    host.expect("tool_request", "c3").await;
    host.gate.end("c3", Ended::Cancelled { reason: TIMED_OUT.to_owned(), expired: true });
    assert_eq!(host.expect("tool_cancelled", "c3").await["reason"], "approval timed out (no host response)");
    host.send(json!({"type": "tool_approve", "call_id": "c3"})).await;
    host.expect_error("expired").await;
    assert_eq!(host.verdicts().len(), 1);
}

#[tokio::test]
async fn an_open_call_keeps_its_id() {
    let mut host = Host::start().await;
    host.call("c1", "Bash", json!({"print": "first"})).await;
    host.expect("tool_request", "c1").await;
    host.call("c1", "Bash", json!({"print": "second"})).await;
    let error = host.expect_error("duplicate_call").await;
    assert_eq!((&error["call_id"], &error["msg_id"]), (&json!("c1"), &json!("m1")));
    host.send(json!({"type": "tool_approve", "call_id": "c1"})).await;
    host.expect("tool_running", "c1").await;
    assert_eq!(host.expect("tool_result", "c1").await["output"], "first");
    // What has ended has given its id back.
    host.call("c1", "Bash", json!({"print": "third"})).await;
    host.expect("tool_request", "c1").await;
    host.send(json!({"type": "tool_approve", "call_id": "c1"})).await;
    host.expect("tool_running", "c1").await;
    assert_eq!(host.expect("tool_result", "c1").await["output"], "third");
}

#[tokio::test]
async fn more_calls_than_may_be_open_are_refused_for_now() {
    let mut host = Host::start().await;
    for number in 0..256 {
        host.call(&format!("c{number}"), "Bash", json!({})).await;
        host.expect("tool_request", &format!("c{number}")).await;
    }
    host.call("more", "Bash", json!({})).await;
    assert_eq!(host.expect_error("too_many_calls").await["retryable"], true);
}

#[tokio::test]
async fn a_bad_line_is_one_error_and_the_session_goes_on() {
    let mut host = Host::start().await;
    host.call("c1", "Bash", json!({})).await;
    host.expect("tool_request", "c1").await;
    for line in ["", "nonsense", "{}", r#"{"type":"dance"}"#, r#"{"type":"tool_approve","call_id":"c1","yes":1}"#] {
        host.send_text(line).await;
        let error = host.expect_error("engine_error").await;
        assert_eq!(error["retryable"], false);
        assert!(error.get("msg_id").is_none() && error.get("call_id").is_none(), "{error}");
    }
    host.expect_silence().await;
    assert!(host.verdicts().is_empty());
}

#[tokio::test]
async fn an_answer_that_the_gate_does_not_take_leaves_the_call_waiting() {
    let mut host = Host::start().await;
    host.gate.outcomes.lock().unwrap().extend([
        Err(EngineError::Refused("give an `answer`".to_owned())),
        Err(EngineError::Unavailable("could not connect".to_owned())),
        Ok(Decided::Counted { given: 1, needed: 2 }),
    ]);
    host.call("c1", "Bash", json!({})).await;
    host.expect("tool_request", "c1").await;
    let approve = json!({"type": "tool_approve", "call_id": "c1"});
    host.send(approve.clone()).await;
    assert_eq!(host.expect_error("refused").await["message"], "give an `answer`");
    host.send(approve.clone()).await;
    assert_eq!(host.expect_error("gate_unavailable").await["retryable"], true);
    host.send(approve.clone()).await;
    let info = host.expect("info", "c1").await;
    assert_eq!(info["message"], "1 of 2 have approved this call; it waits for the others");
    host.send(approve).await;
    host.expect("tool_running", "c1").await;
}

#[tokio::test]
async fn somebody_else_who_was_faster_is_told_of() {
    let mut host = Host::start().await;
    host.gate.outcomes.lock().unwrap().extend([
        Err(EngineError::Already("the approval was already denied by ann over terminal".to_owned())),
        Err(EngineError::Expired("its time is over".to_owned())),
    ]);
    for (label, code) in [("c1", "already_decided"), ("c2", "expired")] {
        host.call(label, "Bash", json!({})).await;
        host.expect("tool_request", label).await;
        host.send(json!({"type": "tool_approve", "call_id": label})).await;
        assert_eq!(host.expect_error(code).await["call_id"], label);
        host.gate.end(label, Ended::Cancelled { reason: "no".to_owned(), expired: false });
        host.expect("tool_cancelled", label).await;
    }
}

#[tokio::test]
async fn a_standing_approval_that_was_not_made_is_told_of_and_the_call_still_runs() {
    let mut host = Host::start().await;
    host.call("c1", "Bash", json!({})).await;
    host.expect("tool_request", "c1").await;
    let notice = "only this call is approved: `bash` is an interpreter";
    let outcome = Decided::Ended { approved: true, notice: Some(notice.to_owned()) };
    host.gate.outcomes.lock().unwrap().push_back(Ok(outcome));
    let scope = json!({"always_prefix": {"prefix": "bash "}});
    host.send(json!({"type": "tool_approve", "call_id": "c1", "scope": scope})).await;
    assert_eq!(host.expect("info", "c1").await["message"], notice);
    let done = Ended::Finished { status: ResultStatus::Success, output: String::new(), metadata: Default::default() };
    host.gate.end("c1", done);
    host.expect("tool_running", "c1").await;
}

#[tokio::test]
async fn the_mode_is_raised_only_where_that_was_allowed_and_never_answers_what_waits() {
    let mut host = Host::start().await;
    host.call("c1", "Bash", json!({})).await;
    host.expect("tool_request", "c1").await;
    for mode in ["auto_edit", "force", "yolo"] {
        host.send(json!({"type": "set_mode", "mode": mode})).await;
        host.expect_error("mode_refused").await;
    }
    host.send(json!({"type": "set_mode", "mode": "default"})).await;
    assert_eq!(host.next().await, json!({"type": "config_changed", "current_mode": "default"}));

    let mut host = Host::with(|terms| terms.mode_changes = true).await;
    host.call("c1", "Bash", json!({})).await;
    host.expect("tool_request", "c1").await;
    host.send(json!({"type": "set_mode", "mode": "force"})).await;
    assert_eq!(host.next().await, json!({"type": "config_changed", "current_mode": "force"}));
    host.expect_silence().await;
    assert!(host.verdicts().is_empty());
    host.gate.modes.lock().unwrap().push_back(Err(EngineError::Refused("not here".to_owned())));
    host.send(json!({"type": "set_mode", "mode": "force"})).await;
    assert_eq!(host.expect_error("mode_refused").await["message"], "not here");
    // What is in effect is what the gate says.
    host.gate.modes.lock().unwrap().push_back(Ok(Mode::AutoEdit));
    host.send(json!({"type": "set_mode", "mode": "force"})).await;
    assert_eq!(host.next().await["current_mode"], "auto_edit");
}
