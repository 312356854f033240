//! How sessions end: with the input, at a command, by a signal, or because nobody listens.

use serde_json::json;
use toolgate_model::approval::HOST_CLOSED;

use super::super::engine::EngineError;
use super::fake::Host;

#[tokio::test]
async fn the_end_of_input_denies_what_waits_and_lets_finish_what_runs() {
    let mut host = Host::start().await;
    for label in ["waits", "waits-too", "runs"] {
        host.call(label, "Bash", json!({"hold": true, "print": label})).await;
        host.expect("tool_request", label).await;
    }
    host.send(json!({"type": "tool_approve", "call_id": "runs"})).await;
    host.expect("tool_running", "runs").await;
    host.close_input();
    for label in ["waits", "waits-too"] {
        let reason = "host closed the command stream while this approval was pending";
        assert_eq!(host.expect("tool_cancelled", label).await["reason"], reason);
    }
    host.gate.release("runs");
    assert_eq!(host.expect("tool_result", "runs").await["output"], "runs");
    assert!(host.end().await);
}

#[tokio::test]
async fn commands_before_the_end_of_input_still_count() {
    let mut host = Host::start().await;
    host.call("c1", "Bash", json!({})).await;
    host.expect("tool_request", "c1").await;
    host.send(json!({"type": "tool_approve", "call_id": "c1"})).await;
    // This one is asked for when the input has ended already.
    host.call("c2", "Bash", json!({})).await;
    host.close_input();
    let mut kinds = Vec::new();
    for _ in 0..4 {
        let event = host.next().await;
        kinds.push(format!("{} {}", event["call_id"].as_str().unwrap(), event["type"].as_str().unwrap()));
    }
    kinds.sort();
    assert_eq!(kinds, ["c1 tool_result", "c1 tool_running", "c2 tool_cancelled", "c2 tool_request"]);
    assert!(host.end().await);
}

#[tokio::test]
async fn stop_denies_what_waits_and_ends() {
    let mut host = Host::start().await;
    host.call("c1", "Bash", json!({})).await;
    host.expect("tool_request", "c1").await;
    host.send(json!({"type": "stop"})).await;
    assert_eq!(host.expect("tool_cancelled", "c1").await["reason"], "stopped by host");
    assert!(host.end().await);
}

#[tokio::test]
async fn a_signal_ends_as_the_end_of_input_does() {
    let mut host = Host::start().await;
    host.call("c1", "Bash", json!({})).await;
    host.expect("tool_request", "c1").await;
    host.terminate();
    assert_eq!(host.expect("tool_cancelled", "c1").await["reason"], HOST_CLOSED);
    assert!(host.end().await);
}

#[tokio::test]
async fn a_host_that_does_not_listen_any_more_approves_nothing() {
    let mut host = Host::start().await;
    host.call("c1", "Bash", json!({})).await;
    host.expect("tool_request", "c1").await;
    host.close_output();
    host.send(json!({"type": "ping"})).await;
    let gate = std::sync::Arc::clone(&host.gate);
    assert!(!host.end().await);
    let verdicts = gate.verdicts.lock().unwrap();
    assert_eq!(verdicts.len(), 1);
    assert!(!verdicts[0].1.approved);
    assert_eq!(verdicts[0].1.reason.as_deref(), Some(HOST_CLOSED));
}

#[tokio::test]
async fn an_end_does_not_wait_for_a_gate_that_takes_no_answer() {
    let mut host = Host::start().await;
    host.call("c1", "Bash", json!({})).await;
    host.expect("tool_request", "c1").await;
    host.gate.outcomes.lock().unwrap().push_back(Err(EngineError::Unavailable("could not connect".to_owned())));
    host.close_input();
    assert_eq!(host.expect("tool_cancelled", "c1").await["reason"], HOST_CLOSED);
    assert!(host.end().await);
}

#[tokio::test]
async fn a_yes_that_failed_is_no_yes_at_the_end() {
    let mut host = Host::start().await;
    host.call("c1", "Bash", json!({})).await;
    host.expect("tool_request", "c1").await;
    host.gate.outcomes.lock().unwrap().push_back(Err(EngineError::Refused("give an `answer`".to_owned())));
    host.send(json!({"type": "tool_approve", "call_id": "c1"})).await;
    host.close_input();
    host.expect_error("refused").await;
    assert_eq!(host.expect("tool_cancelled", "c1").await["reason"], HOST_CLOSED);
    assert!(host.end().await);
}
