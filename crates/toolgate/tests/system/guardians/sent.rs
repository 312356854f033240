//! What a guardian is told: enough to judge, and neither keys nor secrets nor what its redaction names.

use serde_json::json;

use super::office::{Office, TOKEN};
use super::third_party::ThirdParty;

#[test]
fn a_guardian_is_told_who_does_what_and_nothing_that_it_must_not_know() {
    let guardian = ThirdParty::start(json!([]));
    let settings = "redact = [\"email\", \"secret\"]\nleave_out = [\"password\"]";
    let office = Office::with(&guardian, settings);
    let own_key = &office.agent.key;
    let body = format!("key {own_key}, token {TOKEN}, mail ann@example.org, aws AKIAIOSFODNN7EXAMPLE");
    let parameters = json!({"to": "team", "body": body, "password": "swordfish"});
    let call = json!({
        "tool": "mail.send", "parameters": parameters, "reasoning": format!("ann@example.org wants it with {own_key}"),
    });
    office.agent.ask_with("POST", "/api/v1/tools/invoke", &[("X-Trace", "trace-of-the-agent")], Some(&call)).ok();
    assert_eq!(office.sent(), [parameters], "what is hidden from the guardian is not taken from the call");

    let questions = guardian.questions();
    assert_eq!(questions.len(), 2);
    let all = json!(questions).to_string();
    for hidden in [own_key, TOKEN, "ann@example.org", "AKIAIOSFODNN7EXAMPLE", "swordfish", "trace-of-the-agent"] {
        assert!(!all.contains(hidden), "{hidden} was sent: {all}");
    }
    for question in &questions {
        assert_eq!(question["headers"].get("authorization"), None, "{question}");
    }
    let params = &questions[0]["body"]["params"];
    assert_eq!(params["toolCallRequest"]["toolId"], "mail.send");
    assert_eq!(params["context"]["agent"]["id"], "clerk");
    let inputs = params["toolCallRequest"]["inputs"].as_array().unwrap();
    assert!(inputs.contains(&json!({"name": "to", "value": "team"})), "{inputs:?}");
    let executions: Vec<_> = ["toolCallRequest", "toolCallResult"]
        .iter()
        .zip(&questions)
        .map(|(payload, question)| question["body"]["params"][payload]["executionId"].clone())
        .collect();
    assert_eq!(executions[0], executions[1], "a result is of the call that was asked about");
}

#[test]
fn a_secret_in_a_change_does_not_come_back_instead_of_what_was_hidden() {
    let guardian =
        ThirdParty::start(json!([{"do": "modify", "method": "steps/toolCallRequest", "set": {"to": "all"}}]));
    let office = Office::with(&guardian, "may_modify = true\nredact = [\"email\"]\nleave_out = [\"password\"]");
    let parameters = json!({"to": "team", "body": "from ann@example.org", "password": "swordfish"});
    office.call("send", parameters).ok();
    let changed = json!({"to": "all", "body": "from ann@example.org", "password": "swordfish"});
    assert_eq!(office.sent(), [changed], "what the guardian never saw stays as the agent wrote it");
}

#[test]
fn a_guardian_is_shown_the_gates_own_token_and_the_log_is_not() {
    let guardian = ThirdParty::start(json!([]));
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "token-of-the-link\n").unwrap();
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let office = Office::with(&guardian, &format!("bearer_token_file = \"{}\"", file.display()));
    office.send("hello").ok();
    for question in guardian.questions() {
        assert_eq!(question["headers"]["authorization"], "Bearer token-of-the-link");
    }
    assert!(!json!(office.admin.events("")).to_string().contains("token-of-the-link"));
    let ended = office.world.stop().0;
    assert!(!ended.stderr.contains("token-of-the-link"), "{}", ended.stderr);
}

#[test]
fn more_than_a_guardian_takes_is_a_no_even_where_failures_pass() {
    let guardian = ThirdParty::start(json!([]));
    let office = Office::with(&guardian, "max_request_bytes = 2000\non_failure = \"allow\"");
    office.send("hello").ok();
    let call = json!({"tool": "mail.send", "parameters": {"to": "x".repeat(4000), "body": "hello"}});
    let error = office.agent.invokes(call).refused(503, "GUARDIAN_FAILED");
    assert_eq!(error["failure"], "oversize");
    assert_eq!(office.mail.count(), 1);
}
