//! Calls that are suspended and resumed by token.

use serde_json::{Value, json};

use super::super::engine::Ended;
use super::fake::Host;

async fn suspending() -> Host {
    Host::with(|terms| terms.suspend = true).await
}

/// A call that is suspended; answers its token.
async fn suspended(host: &mut Host, label: &str) -> String {
    host.call(label, "Bash", json!({"hold": true})).await;
    host.expect("tool_request", label).await;
    let required = host.expect("approval_required", label).await;
    let token = required["resume_token"].as_str().unwrap().to_owned();
    assert_eq!(required["correlation_id"], label);
    assert_eq!((&required["reason"], &required["context"]), (&json!("mode default asks"), &json!("Bash: Execute: it")));
    let suspend = json!({"type": "suspend", "reason": "awaiting host decision", "resume_token": token});
    assert_eq!(host.next().await, suspend);
    token
}

fn resume(token: &str, approved: bool) -> Value {
    json!({"type": "approval_resume", "resume_token": token, "approved": approved})
}

#[tokio::test]
async fn a_suspended_call_is_resumed_by_its_token_and_that_is_echoed() {
    let mut host = suspending().await;
    let token = suspended(&mut host, "c1").await;
    assert!(token.starts_with("rt-") && token.len() > 32, "{token}");
    let mut with_answer = resume(&token, true);
    with_answer["modifications"] = json!({"answer": "staging"});
    host.send(with_answer).await;
    assert_eq!(host.next().await, resume(&token, true));
    host.expect("tool_running", "c1").await;
    assert_eq!(host.gate.verdicts.lock().unwrap()[0].1.answer.as_deref(), Some("staging"));

    let token = suspended(&mut host, "c2").await;
    host.send(resume(&token, false)).await;
    assert_eq!(host.next().await, resume(&token, false));
    assert_eq!(host.expect("tool_cancelled", "c2").await["reason"], "denied by host");
}

#[tokio::test]
async fn neither_the_id_of_a_call_nor_a_used_nor_an_invented_token_resumes_anything() {
    let mut host = suspending().await;
    let token = suspended(&mut host, "c1").await;
    let shorter = token.get(..token.len() - 1).unwrap();
    for wrong in ["c1", "rt-", "appr_c1", shorter, &format!("{token}0"), &token.to_uppercase()] {
        host.send(resume(wrong, true)).await;
        host.expect_error("unknown_token").await;
    }
    host.send(resume("", true)).await;
    host.expect_error("engine_error").await;
    assert!(host.verdicts().is_empty());
    host.send(resume(&token, true)).await;
    assert_eq!(host.next().await, resume(&token, true));
    host.expect("tool_running", "c1").await;
    host.send(resume(&token, true)).await;
    host.expect_error("unknown_token").await;
    assert_eq!(host.verdicts().len(), 1);
}

#[tokio::test]
async fn every_call_has_a_token_of_its_own() {
    let mut host = suspending().await;
    let first = suspended(&mut host, "c1").await;
    let second = suspended(&mut host, "c2").await;
    assert_ne!(first, second);
    host.send(resume(&second, false)).await;
    assert_eq!(host.next().await, resume(&second, false));
    host.expect("tool_cancelled", "c2").await;
    host.send(resume(&first, true)).await;
    assert_eq!(host.next().await, resume(&first, true));
    host.expect("tool_running", "c1").await;
}

#[tokio::test]
async fn an_answer_by_another_way_is_echoed_too() {
    let mut host = suspending().await;
    let token = suspended(&mut host, "c1").await;
    host.send(json!({"type": "tool_approve", "call_id": "c1"})).await;
    assert_eq!(host.next().await, resume(&token, true));
    host.expect("tool_running", "c1").await;

    let token = suspended(&mut host, "c2").await;
    host.gate.end("c2", Ended::Cancelled { reason: "no, says ann".to_owned(), expired: false });
    assert_eq!(host.next().await, resume(&token, false));
    host.expect("tool_cancelled", "c2").await;
}

#[tokio::test]
async fn a_token_that_can_be_used_is_taken_out_of_what_tools_print() {
    let mut host = suspending().await;
    let token = suspended(&mut host, "c1").await;
    host.call("c2", "Read", json!({"print": format!("saw {token} here")})).await;
    host.expect("call_announced", "c2").await;
    host.expect("tool_running", "c2").await;
    assert_eq!(host.expect("tool_result", "c2").await["output"], "saw [resume token removed] here");
}

#[tokio::test]
async fn nothing_is_suspended_where_that_was_not_agreed() {
    let mut host = Host::start().await;
    host.call("c1", "Bash", json!({})).await;
    host.expect("tool_request", "c1").await;
    host.expect_silence().await;
    host.send(resume("c1", true)).await;
    host.expect_error("unknown_token").await;
}
