//! The protocol's own examples in both directions, and lines that are no commands.

use serde_json::{Map, Value, json};
use toolgate_model::approval::{CallLabel, Category, Mode};
use toolgate_model::text::Line;

use super::*;

fn call(text: &str) -> CallLabel {
    CallLabel::parse(text).unwrap()
}

fn message(text: &str) -> Line {
    Line::parse(text).unwrap()
}

fn read(line: &str) -> Result<Incoming, LineError> {
    Incoming::parse(line.as_bytes())
}

/// The document writes its examples with blanks between the members; a line has none.
fn without_blanks(example: &str) -> String {
    let mut inside = false;
    example
        .chars()
        .filter(|letter| {
            inside ^= *letter == '"';
            inside || !letter.is_whitespace()
        })
        .collect()
}

fn assert_line(event: &Outgoing, example: &str) {
    assert_eq!(event.to_line().unwrap(), without_blanks(example));
}

#[test]
fn the_documents_commands_are_read_as_they_stand() {
    let approve = |line: &str| match read(line) {
        Ok(Incoming::ToolApprove(approve)) => approve,
        other => panic!("{line}: {other:?}"),
    };
    let expected = ToolApprove { call: call("c-9f3a"), scope: Scope::Once, answer: None };
    assert_eq!(approve(r#"{"type": "tool_approve", "call_id": "c-9f3a", "scope": "once"}"#), expected);
    assert_eq!(approve(r#"{"type": "tool_approve", "call_id": "c-9f3a"}"#), expected);
    assert_eq!(approve(r#"{"type": "tool_approve", "call_id": "c-9f3a", "scope": "always"}"#).scope, Scope::Always);
    let prefix = r#"{"type": "tool_approve", "call_id": "c", "scope": {"always_prefix":{"prefix":"cargo "}}}"#;
    assert_eq!(approve(prefix).scope, Scope::AlwaysPrefix { prefix: "cargo ".to_owned() });
    let answered = approve(r#"{"type": "tool_approve", "call_id": "c-7a1e", "scope": "once", "answer": "Choice C"}"#);
    assert_eq!(answered.answer.as_deref(), Some("Choice C"));

    let deny = r#"{"type": "tool_deny", "call_id": "c-9f3a", "reason": "Destructive command rejected by policy"}"#;
    let Ok(Incoming::ToolDeny(deny)) = read(deny) else { panic!("{deny}") };
    assert_eq!(deny.reason.as_deref(), Some("Destructive command rejected by policy"));
    assert_eq!(deny.call, call("c-9f3a"));
    for silent in [r#"{"type":"tool_deny","call_id":"c"}"#, r#"{"type":"tool_deny","call_id":"c","reason":" "}"#] {
        assert!(matches!(read(silent), Ok(Incoming::ToolDeny(ToolDeny { reason: None, .. }))), "{silent}");
    }

    let resume = r#"{ "type": "approval_resume", "resume_token": "rt-9b3c", "approved": true, "modifications": {"answer": "staging"}}"#;
    let Ok(Incoming::ApprovalResume(resume)) = read(resume) else { panic!("{resume}") };
    assert_eq!((resume.token.expose(), resume.approved), ("rt-9b3c", true));
    assert_eq!(resume.answer.as_deref(), Some("staging"));
}

#[test]
fn the_other_commands_are_read() {
    let line = r#"{"type":"tool_call","msg_id":"m 1","call_id":"c1","tool":"Bash","arguments":{"command":"ls"}}"#;
    let Ok(Incoming::ToolCall(read_call)) = read(line) else { panic!("{line}") };
    let arguments = Map::from_iter([("command".to_owned(), json!("ls"))]);
    let expected = ToolCall { message: message("m 1"), call: call("c1"), tool: "Bash".to_owned(), arguments };
    assert_eq!(read_call, expected);
    for (word, mode) in [("default", Mode::Default), ("auto_edit", Mode::AutoEdit), ("force", Mode::Force)] {
        let line = json!({"type": "set_mode", "mode": word}).to_string();
        assert!(matches!(read(&line), Ok(Incoming::SetMode(read)) if read == mode), "{line}");
    }
    assert!(matches!(read(r#"{"type":"set_mode","mode":"yolo"}"#), Ok(Incoming::SetMode(Mode::Force))));
    assert!(matches!(read(r#"{"type":"ping"}"#), Ok(Incoming::Ping)));
    assert!(matches!(read("{\"type\":\"stop\"}\r"), Ok(Incoming::Stop)));
}

#[test]
fn the_documents_events_are_written_as_they_stand() {
    let tool = ShownTool {
        name: "Bash".to_owned(),
        category: Category::Exec,
        args: json!({"command": "cargo test --lib"}),
        description: "Execute: cargo test --lib".to_owned(),
    };
    let request =
        Outgoing::ToolRequest { msg_id: message("m1"), call_id: call("c-9f3a"), tool, approval: Map::default() };
    assert_line(
        &request,
        r#"{ "type": "tool_request", "msg_id": "m1", "call_id": "c-9f3a", "tool": { "name": "Bash", "category": "exec", "args": {"command": "cargo test --lib"}, "description": "Execute: cargo test --lib" }}"#,
    );
    let required = Outgoing::ApprovalRequired {
        call_id: call("c-8b2d"),
        resume_token: "rt-9b3c".to_owned(),
        correlation_id: "rt-9b3c".to_owned(),
        reason: "Tool requires host decision".to_owned(),
        context: "AskUserQuestion: Which deployment target?".to_owned(),
    };
    assert_line(
        &required,
        r#"{ "type": "approval_required", "call_id": "c-8b2d", "resume_token": "rt-9b3c", "correlation_id": "rt-9b3c", "reason": "Tool requires host decision", "context": "AskUserQuestion: Which deployment target?"}"#,
    );
    let suspend = Outgoing::Suspend { reason: "awaiting host decision".to_owned(), resume_token: "rt-9b3c".to_owned() };
    assert_line(&suspend, r#"{"type": "suspend", "reason": "awaiting host decision", "resume_token": "rt-9b3c"}"#);
}

#[test]
fn the_other_events_have_the_protocols_members() {
    let ready = Outgoing::Ready {
        version: "0.1.0".to_owned(),
        session_id: "host-1".to_owned(),
        session_persistence: Persistence::Durable,
        capabilities: Capabilities::new(true, Mode::AutoEdit, 256),
    };
    assert_line(
        &ready,
        r#"{"type":"ready","version":"0.1.0","session_id":"host-1","session_persistence":"durable","capabilities":{
        "tool_approval":true,"hitl_suspend":true,"modes":["default","auto_edit","force"],"current_mode":"auto_edit",
        "max_open_requests":256,"mcp":false,"thinking":false,"effort":false,"streaming_tools":false,
        "sub_agent_traces":false,"cost_attribution":false}}"#,
    );
    let running = Outgoing::ToolRunning { msg_id: message("m"), call_id: call("c"), tool_name: "Bash".to_owned() };
    assert_line(&running, r#"{"type":"tool_running","msg_id":"m","call_id":"c","tool_name":"Bash"}"#);
    let result = ToolResult {
        msg_id: message("m"),
        call_id: call("c"),
        tool_name: "Bash".to_owned(),
        status: ResultStatus::Success,
        output: "one\ntwo".to_owned(),
        output_type: "text",
        metadata: Map::default(),
    };
    assert_line(
        &Outgoing::ToolResult(result),
        r#"{"type":"tool_result","msg_id":"m","call_id":"c","tool_name":"Bash","status":"success","output":"one\ntwo","output_type":"text"}"#,
    );
    let cancelled =
        Outgoing::ToolCancelled { msg_id: message("m"), call_id: call("c"), reason: "denied by host".to_owned() };
    assert_line(&cancelled, r#"{"type":"tool_cancelled","msg_id":"m","call_id":"c","reason":"denied by host"}"#);
    let resumed = Outgoing::ApprovalResume { resume_token: "rt-1".to_owned(), approved: false };
    assert_line(&resumed, r#"{"type":"approval_resume","resume_token":"rt-1","approved":false}"#);
    assert_line(&Outgoing::Pong, r#"{"type":"pong"}"#);
    let changed = Outgoing::ConfigChanged { current_mode: Mode::Force };
    assert_line(&changed, r#"{"type":"config_changed","current_mode":"force"}"#);
    let error = ErrorEvent::new(ErrorCode::EngineError, "no");
    assert_line(
        &Outgoing::Error(error.clone()),
        r#"{"type":"error","code":"engine_error","message":"no","retryable":false}"#,
    );
    assert_line(
        &Outgoing::Error(error.about(&call("c")).for_now()),
        r#"{"type":"error","call_id":"c","code":"engine_error","message":"no","retryable":true}"#,
    );
    let info = Outgoing::Info { call_id: None, message: "so".to_owned() };
    assert_line(&info, r#"{"type":"info","message":"so"}"#);
}

#[test]
fn a_line_never_holds_a_line_end() {
    let event = Outgoing::Info { call_id: None, message: "a\nb\r\u{2028}c\u{0}".to_owned() };
    let line = event.to_line().unwrap();
    assert!(!line.contains(['\n', '\r', '\0']), "{line}");
    assert_eq!(serde_json::from_str::<Value>(&line).unwrap()["message"], "a\nb\r\u{2028}c\u{0}");
}

#[test]
fn a_line_that_is_no_command_says_why() {
    for (line, says) in [
        ("", "is truncated"),
        ("hello", "invalid JSON"),
        (r#"{"type":"ping""#, "is truncated"),
        (r#"{"type":"ping"} {"type":"ping"}"#, "unexpected text after"),
        (r#"{"type":"ping","type":"stop"}"#, "duplicate key"),
        ("[]", "an object with a `type`"),
        ("7", "an object with a `type`"),
        ("{}", "an object with a `type`"),
        (r#"{"type":7}"#, "an object with a `type`"),
        (r#"{"type":null}"#, "an object with a `type`"),
        (r#"{"type":"dance"}"#, "no command `dance`"),
        (r#"{"type":"Ping"}"#, "no command `Ping`"),
        (r#"{"type":"ready"}"#, "no command `ready`"),
        (r#"{"type":"ping","extra":1}"#, "`ping` has no member `extra`"),
        (r#"{"type":"stop","extra":1}"#, "`stop` has no member `extra`"),
        (r#"{"type":"tool_approve"}"#, "`tool_approve` requires `call_id`"),
        (r#"{"type":"tool_approve","call_id":null}"#, "`tool_approve` requires `call_id`"),
        (r#"{"type":"tool_approve","call_id":7}"#, "must be a string"),
        (r#"{"type":"tool_approve","call_id":""}"#, "must not be empty"),
        (r#"{"type":"tool_approve","call_id":"a b"}"#, "must not contain ' '"),
        (r#"{"type":"tool_approve","call_id":"c","scope":"forever"}"#, "`scope` of `tool_approve` must be"),
        (r#"{"type":"tool_approve","call_id":"c","scope":{"always":{}}}"#, "`scope` of `tool_approve` must be"),
        (r#"{"type":"tool_approve","call_id":"c","scope":{"always_prefix":{}}}"#, "`scope`"),
        (r#"{"type":"tool_approve","call_id":"c","scope":{"always_prefix":{"prefix":"a","b":1}}}"#, "`scope`"),
        (r#"{"type":"tool_approve","call_id":"c","answer":["a"]}"#, "`answer` of `tool_approve` must be a string"),
        (r#"{"type":"tool_approve","call_id":"c","approved":true}"#, "has no member `approved`"),
        (r#"{"type":"tool_deny","call_id":"c","scope":"always"}"#, "has no member `scope`"),
        (r#"{"type":"approval_resume","resume_token":"","approved":true}"#, "must not be empty"),
        (r#"{"type":"approval_resume","approved":true}"#, "requires `resume_token`"),
        (r#"{"type":"approval_resume","resume_token":"rt-1"}"#, "requires `approved`"),
        (r#"{"type":"approval_resume","resume_token":"rt-1","approved":"yes"}"#, "must be true or false"),
        (r#"{"type":"approval_resume","resume_token":"rt-1","approved":1}"#, "must be true or false"),
        (r#"{"type":"approval_resume","resume_token":"r","approved":true,"modifications":"x"}"#, "must be an object"),
        (
            r#"{"type":"approval_resume","resume_token":"r","approved":true,"modifications":{"args":{}}}"#,
            "`modifications` has no member `args`",
        ),
        (r#"{"type":"set_mode"}"#, "requires `mode`"),
        (r#"{"type":"set_mode","mode":"Force"}"#, "must be default, auto_edit or force, and is `Force`"),
        (r#"{"type":"tool_call","msg_id":"m","call_id":"c","tool":"Bash"}"#, "requires `arguments`"),
        (r#"{"type":"tool_call","msg_id":"m","call_id":"c","tool":"Bash","arguments":[]}"#, "must be an object"),
        (r#"{"type":"tool_call","msg_id":"m","call_id":"c","tool":"../x","arguments":{}}"#, "must not contain '/'"),
        (r#"{"type":"tool_call","call_id":"c","tool":"Bash","arguments":{}}"#, "requires `msg_id`"),
        (r#"{"type":"tool_call","msg_id":"m\n","call_id":"c","tool":"Bash","arguments":{}}"#, "must not contain"),
        (
            r#"{"type":"tool_call","msg_id":"m","call_id":"c","tool":"Bash","arguments":{},"approved":true}"#,
            "has no member `approved`",
        ),
    ] {
        let error = read(line).expect_err(line).to_string();
        assert!(error.contains(says), "{line}: {error}");
    }
}

#[test]
fn what_is_told_back_is_short_and_harmless_wherever_it_stood() {
    let long = "\u{1b}[2J\u{202e}".repeat(2000);
    let deep = format!("{}1{}", "[".repeat(70), "]".repeat(70));
    let lines = [
        long.clone(),
        deep,
        json!({"type": long}).to_string(),
        json!({"type": "ping", &long: 1}).to_string(),
        json!({"type": "set_mode", "mode": long}).to_string(),
        json!({"type": "tool_deny", "call_id": long}).to_string(),
        format!("{{{:?}:1,{:?}:2}}", "k".repeat(4000), "k".repeat(4000)),
        format!("{{\"a\":{{{0}:1,{0}:2}}}}", json!(long)),
    ];
    for line in &lines {
        let error = read(line).expect_err("no command").to_string();
        assert!(error.len() < 2 * MAX_ECHO + 100, "{}: {error}", error.len());
        assert!(!error.contains(['\u{1b}', '\u{202e}', '\n']), "{error:?}");
    }
    let error = Incoming::parse(b"{\"type\":\"ping\xff\"}").expect_err("no text").to_string();
    assert!(error.contains("not UTF-8"), "{error}");
}
