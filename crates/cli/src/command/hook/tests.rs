//! Hooks against a gate of the tests: what is sent, and what each answer, or none, becomes.

use serde_json::json;
use tokio::net::TcpListener;
use toolgate_api::Endpoint;
use toolgate_model::secret::Secret;
use toolgate_testkit::upstream::{Reply as Answer, Upstream};

use super::*;
use crate::client::Refused;
use crate::hook::Category;

fn client_of(url: &str) -> Client {
    Client::new(url, &Secret::new("tgk_test".to_owned())).unwrap()
}

fn call() -> HookCall {
    HookCall {
        session: "s-1".to_owned(),
        workspace: Some("/home/ann/shop".to_owned()),
        tool: "Bash".to_owned(),
        id: Some("toolu_1".to_owned()),
        category: Category::Exec,
        arguments: [("command".to_owned(), json!("ls"))].into_iter().collect(),
    }
}

fn asking(client: HookClient, agent: Option<&str>, call: HookCall) -> ExternalCallRequest {
    question(client, agent, call).unwrap()
}

/// What becomes of a gate's answer.
async fn asked(answer: Answer) -> HookResponse {
    let gate = Upstream::start(move |_| answer.clone());
    ask(&client_of(&gate.url()), &asking(HookClient::ClaudeCode, None, call())).await
}

#[test]
fn the_gate_is_asked_for_the_whole_call() {
    let asked = json!(asking(HookClient::ClaudeCode, Some("coder"), call()));
    let expected = json!({
        "tool": "claude-code.Bash",
        "category": "exec",
        "arguments": {"command": "ls"},
        "session": {"name": "s-1", "workspace": "/home/ann/shop"},
        "call_id": "toolu_1",
        "agent_id": "coder",
    });
    assert_eq!(asked, expected);
    let sparse = HookCall { workspace: None, id: None, ..call() };
    let asked = json!(asking(HookClient::Cursor, None, sparse));
    let expected = json!({
        "tool": "cursor.Bash", "category": "exec", "arguments": {"command": "ls"}, "session": {"name": "s-1"},
    });
    assert_eq!(asked, expected);
}

#[tokio::test]
async fn the_answer_of_the_gate_is_passed_on() {
    let yes = r#"{"decision": "allow", "reason": "the mode allows it", "approval_id": null, "source": "mode"}"#;
    let gate = Upstream::start(|_| Answer::json_text(200, yes));
    let question = asking(HookClient::Codex, None, call());
    let answer = ask(&client_of(&gate.url()), &question).await;
    assert_eq!(answer, HookResponse { allow: true, reason: "the mode allows it".to_owned() });
    let received = gate.received();
    assert_eq!(
        (received[0].path(), received[0].bearer(), received[0].json()),
        (AskForExternalCall::PATH, Some("tgk_test"), json!(question))
    );
    let no = r#"{"decision": "deny", "reason": "ann said no", "source": "person"}"#;
    assert_eq!(asked(Answer::json_text(200, no)).await, HookResponse::deny("ann said no"));
}

#[tokio::test]
async fn whatever_is_no_answer_of_a_gate_is_a_no_with_a_reason() {
    let unknown_key = Refused::sample("UNAUTHENTICATED", "the key is not known", json!({}));
    let unknown_key = serde_json::to_string(&unknown_key).unwrap();
    for (answer, reason) in [
        (Answer::json_text(200, r#"{"decision": "Allow"}"#), "neither allow nor deny"),
        (Answer::json_text(200, r#"{"decision": true}"#), "neither allow nor deny"),
        (Answer::json_text(200, r#"{"allow": true}"#), "neither allow nor deny"),
        (Answer::json_text(200, r#"["allow"]"#), "neither allow nor deny"),
        (Answer::text(200, ""), "neither allow nor deny"),
        (Answer::text(200, "<html>allow</html>"), "not a response of a Toolgate gate"),
        (Answer::json_text(401, &unknown_key), "the key is not known"),
        (Answer::json_text(404, r#"{"decision": "allow"}"#), "not a response of a Toolgate gate"),
        (Answer::text(500, ""), "not a response of a Toolgate gate"),
        (Answer::redirect("http://127.0.0.1:1/"), "not a response of a Toolgate gate"),
        (Answer::raw("HTTP/1.1 200 OK\r\ncontent-length: 30\r\n\r\n{\"decision\": \"allow\""), "did not respond"),
        (Answer::raw("allow"), "did not respond"),
    ] {
        let answer = asked(answer).await;
        assert!(!answer.allow && answer.reason.contains(reason), "{reason}: {answer:?}");
    }
}

#[tokio::test]
async fn a_gate_that_is_not_there_is_a_no_that_says_what_to_do() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let answer = ask(&client_of(&url), &asking(HookClient::Gemini, None, call())).await;
    assert!(!answer.allow && answer.reason.contains(&url) && answer.reason.contains("`toolgate serve`"), "{answer:?}");
}

#[tokio::test]
async fn a_gate_that_does_not_answer_in_time_is_a_no() {
    let silent = Upstream::start(|_| Answer::silence());
    let gate = client_of(&silent.url()).waiting(Duration::from_millis(20));
    let answer = ask(&gate, &asking(HookClient::Gemini, None, call())).await;
    assert!(!answer.allow && answer.reason.contains("it timed out"), "{answer:?}");
}

#[test]
fn an_input_without_end_is_not_read_to_its_end() {
    assert_eq!(read_input(&mut &b"{}"[..]).unwrap(), b"{}");
    let reason = read_input(&mut io::repeat(b' ')).unwrap_err();
    assert!(reason.contains("longer than 8388608 bytes"), "{reason}");
}

#[test]
fn an_answer_that_cannot_be_written_blocks() {
    /// A stream whose reader is gone.
    struct Gone;
    impl Write for Gone {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let yes = HookClient::ClaudeCode.reply("PreToolUse", &HookResponse { allow: true, reason: String::new() });
    let mut stderr = Vec::new();
    assert_eq!(format!("{:?}", give(&yes, &mut Gone, &mut stderr)), format!("{:?}", ExitCode::from(BLOCKED)));
    assert!(String::from_utf8(stderr).unwrap().contains("could not write"));
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    assert_eq!(format!("{:?}", give(&yes, &mut stdout, &mut stderr)), format!("{:?}", ExitCode::SUCCESS));
    assert_eq!((String::from_utf8(stdout).unwrap(), stderr), (format!("{}\n", yes.stdout), Vec::new()));
    let no = HookClient::Codex.reply("PreToolUse", &HookResponse::deny("ann said no"));
    let mut stderr = Vec::new();
    assert_eq!(format!("{:?}", give(&no, &mut Vec::new(), &mut stderr)), format!("{:?}", ExitCode::from(BLOCKED)));
    assert_eq!(stderr, b"ann said no\n");
}
