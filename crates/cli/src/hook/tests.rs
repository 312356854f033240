//! Recorded inputs of each client, and exactly what it is answered.

use serde_json::json;

use super::*;

/// The inputs that clients send, in the shapes of their documentation.
macro_rules! recorded {
    ($name:literal) => {
        include_bytes!(concat!("../../tests/fixtures/hooks/", $name, ".json"))
    };
}

const CLIENTS: [HookClient; 4] = [HookClient::ClaudeCode, HookClient::Codex, HookClient::Gemini, HookClient::Cursor];

#[track_caller]
fn call(client: HookClient, input: &[u8]) -> (String, HookCall) {
    match client.read(input) {
        Ok(HookInput::Call { event, call }) => (event, call),
        other => panic!("no call: {other:?}"),
    }
}

#[track_caller]
fn is_call(client: HookClient, input: &[u8], tool: &str, category: Category, id: Option<&str>, arguments: Value) {
    let (_, call) = call(client, input);
    assert_eq!((call.tool.as_str(), call.category, call.id.as_deref()), (tool, category, id));
    assert_eq!(Value::Object(call.arguments), arguments);
    assert_eq!(call.workspace.as_deref(), Some("/home/ann/shop"));
    assert!(!call.session.is_empty());
}

fn said(reply: Reply) -> (Value, String, u8) {
    (serde_json::from_str(&reply.stdout).unwrap(), reply.stderr, reply.code)
}

fn yes() -> HookResponse {
    HookResponse { allow: true, reason: "the mode allows it".to_owned() }
}

fn no() -> HookResponse {
    HookResponse::deny("ann said no")
}

#[test]
fn calls_of_claude_code_are_understood() {
    let client = HookClient::ClaudeCode;
    let arguments = json!({"command": "cargo test --workspace", "description": "Run the tests", "timeout": 120_000});
    is_call(client, recorded!("claude-code/bash"), "Bash", Category::Exec, Some("toolu_01J8Q3"), arguments);
    let arguments =
        json!({"file_path": "/home/ann/shop/src/cart.rs", "old_string": "let a = 1;", "new_string": "let a = 2;"});
    is_call(client, recorded!("claude-code/edit"), "Edit", Category::Edit, Some("toolu_01J8Q4"), arguments);
    let arguments = json!({"title": "Cart loses items"});
    let tool = "mcp__tracker__create_issue";
    is_call(client, recorded!("claude-code/mcp"), tool, Category::Mcp, Some("toolu_01J8Q5"), arguments);
    let arguments = json!({"command": "rm -r target"});
    is_call(client, recorded!("claude-code/permission-request"), "Bash", Category::Exec, None, arguments);
    let (_, call) = call(client, recorded!("claude-code/bash"));
    assert_eq!(call.session, "5f0c1d9e-7a52-4f0b-9d5e-0a4b7c1e2f30");
}

#[test]
fn claude_code_is_answered_in_its_words() {
    let client = HookClient::ClaudeCode;
    let (event, _) = call(client, recorded!("claude-code/bash"));
    let answer = |decision: &str, reason: &str| {
        json!({"hookSpecificOutput": {
            "hookEventName": "PreToolUse", "permissionDecision": decision, "permissionDecisionReason": reason,
        }})
    };
    assert_eq!(said(client.reply(&event, &yes())), (answer("allow", "the mode allows it"), String::new(), 0));
    assert_eq!(said(client.reply(&event, &no())), (answer("deny", "ann said no"), "ann said no".to_owned(), 2));
    let (event, _) = call(client, recorded!("claude-code/permission-request"));
    let answer =
        |decision: Value| json!({"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}});
    assert_eq!(said(client.reply(&event, &yes())), (answer(json!({"behavior": "allow"})), String::new(), 0));
    let denied = answer(json!({"behavior": "deny", "message": "ann said no"}));
    assert_eq!(said(client.reply(&event, &no())), (denied, "ann said no".to_owned(), 2));
}

#[test]
fn calls_of_codex_are_understood() {
    let client = HookClient::Codex;
    let arguments = json!({"command": "git status --short"});
    is_call(client, recorded!("codex/bash"), "Bash", Category::Exec, Some("call_9aXk"), arguments);
    let (_, call) = call(client, recorded!("codex/apply-patch"));
    assert_eq!((call.tool.as_str(), call.category), ("apply_patch", Category::Edit));
}

#[test]
fn leaving_the_sandbox_of_codex_is_a_tool_of_its_own() {
    let arguments = json!({"command": "npm install", "description": "needs the network"});
    let input = recorded!("codex/permission-request");
    is_call(HookClient::Codex, input, "PermissionRequest:Bash", Category::Exec, None, arguments);
}

#[test]
fn codex_is_answered_in_its_words() {
    let client = HookClient::Codex;
    let (event, _) = call(client, recorded!("codex/bash"));
    assert_eq!(said(client.reply(&event, &yes())), (json!({}), String::new(), 0));
    let denied = json!({"hookSpecificOutput": {
        "hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "ann said no",
    }});
    assert_eq!(said(client.reply(&event, &no())), (denied, "ann said no".to_owned(), 2));
    let (event, _) = call(client, recorded!("codex/permission-request"));
    let allowed =
        json!({"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}}});
    assert_eq!(said(client.reply(&event, &yes())), (allowed, String::new(), 0));
    assert_eq!(client.reply(&event, &no()).code, 2);
}

#[test]
fn calls_of_gemini_are_understood() {
    let client = HookClient::Gemini;
    let arguments = json!({"command": "npm test", "description": "Run the tests"});
    is_call(client, recorded!("gemini/shell"), "run_shell_command", Category::Exec, None, arguments);
    let arguments = json!({"file_path": "/home/ann/shop/README.md", "content": "# Shop\n"});
    is_call(client, recorded!("gemini/write"), "write_file", Category::Edit, None, arguments);
}

#[test]
fn a_tool_of_a_server_does_not_pass_for_one_that_only_looks() {
    is_call(HookClient::Gemini, recorded!("gemini/mcp"), "read_file", Category::Mcp, None, json!({"path": "notes.md"}));
}

#[test]
fn gemini_is_answered_in_its_words() {
    let client = HookClient::Gemini;
    let (event, _) = call(client, recorded!("gemini/shell"));
    let allowed = json!({"decision": "allow", "reason": "the mode allows it"});
    assert_eq!(said(client.reply(&event, &yes())), (allowed, String::new(), 0));
    let denied = json!({"decision": "deny", "reason": "ann said no"});
    assert_eq!(said(client.reply(&event, &no())), (denied, "ann said no".to_owned(), 2));
}

#[test]
fn calls_of_cursor_are_understood_from_every_event_before_them() {
    let client = HookClient::Cursor;
    let arguments = json!({"command": "npm install", "working_directory": "/home/ann/shop/web"});
    is_call(client, recorded!("cursor/pre-tool-use-shell"), "Shell", Category::Exec, Some("tool_3f"), arguments);
    let arguments = json!({"command": "npm install", "working_directory": "/home/ann/shop/web", "sandbox": false});
    is_call(client, recorded!("cursor/before-shell-execution"), "Shell", Category::Exec, None, arguments);
    let arguments = json!({"server": {"command": "npx tracker-mcp"}, "input": {"title": "Cart loses items"}});
    is_call(client, recorded!("cursor/before-mcp-execution"), "MCP:create_issue", Category::Mcp, None, arguments);
    let arguments =
        json!({"subagent_type": "explore", "task": "Find where carts are stored", "subagent_model": "auto"});
    is_call(client, recorded!("cursor/subagent-start"), "Task", Category::Exec, Some("tc-5"), arguments);
}

#[test]
fn the_content_of_a_file_is_not_passed_on() {
    let arguments = json!({"file_path": "/home/ann/shop/.env"});
    is_call(HookClient::Cursor, recorded!("cursor/before-read-file"), "Read", Category::Info, None, arguments);
}

#[test]
fn cursor_is_answered_in_its_words() {
    let client = HookClient::Cursor;
    let (event, _) = call(client, recorded!("cursor/pre-tool-use-shell"));
    assert_eq!(said(client.reply(&event, &yes())), (json!({"permission": "allow"}), String::new(), 0));
    let denied = json!({"permission": "deny", "user_message": "ann said no", "agent_message": "ann said no"});
    assert_eq!(said(client.reply(&event, &no())), (denied, "ann said no".to_owned(), 2));
}

#[test]
fn events_that_decide_about_no_call_get_no_decision() {
    for (client, input, answer) in [
        (HookClient::ClaudeCode, &recorded!("claude-code/post-tool-use")[..], json!({})),
        (HookClient::Codex, recorded!("codex/stop"), json!({})),
        (HookClient::Gemini, recorded!("gemini/session-start"), json!({})),
        (HookClient::Cursor, recorded!("cursor/after-file-edit"), json!({})),
        (HookClient::Cursor, recorded!("cursor/before-submit-prompt"), json!({"continue": true})),
    ] {
        match client.read(input) {
            Ok(HookInput::Nothing(reply)) => assert_eq!(said(reply), (answer, String::new(), 0)),
            other => panic!("{client:?}: {other:?}"),
        }
    }
}

#[test]
fn an_event_that_is_not_known_is_an_error_that_names_it() {
    for client in CLIENTS {
        let error = client.read(br#"{"hook_event_name": "BeforeEverything", "session_id": "s"}"#).unwrap_err();
        assert!(error.to_string().contains("`BeforeEverything`"), "{error}");
    }
}

#[test]
fn malformed_input_is_an_error_and_its_reply_blocks() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for client in CLIENTS {
        for input in [
            "",
            "{",
            "null",
            "[]",
            "\"PreToolUse\"",
            "{}",
            r#"{"hook_event_name": 7}"#,
            r#"{"hook_event_name": "PreToolUse"}"#,
            r#"{"hook_event_name": "BeforeTool", "tool_name": "x", "tool_input": {}}"#,
            r#"{"hook_event_name": "preToolUse", "tool_name": "", "tool_input": {}, "conversation_id": "c"}"#,
            r#"{"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "Bash"}"#,
            r#"{"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "Bash", "tool_input": null}"#,
            r#"{"hook_event_name": "PreToolUse", "hook_event_name": "Stop"}"#,
            r#"{"hook_event_name": "beforeShellExecution", "conversation_id": "c", "command": ["ls"]}"#,
            deep.as_str(),
        ] {
            let error = client.read(input.as_bytes()).unwrap_err();
            let reply = client.reply_to_unreadable(error.to_string());
            assert!(!reply.stderr.is_empty() && reply.code == BLOCKED, "{client:?} {input}");
            assert!(reply.stdout.contains("deny"), "{client:?} {input}: {}", reply.stdout);
        }
        assert!(client.read(b"\xff\xfe").is_err());
    }
}

#[test]
fn a_no_always_has_a_reason_without_control_characters() {
    for client in CLIENTS {
        let reply = client.reply("PreToolUse", &HookResponse::deny(" \n"));
        assert_eq!((reply.stderr.as_str(), reply.code), ("denied by Toolgate", BLOCKED));
        let hostile = HookResponse::deny(format!("\u{1b}[2Jno\r\n\u{202e}{}", "x".repeat(10_000)));
        let reply = client.reply("PreToolUse", &hostile);
        let shown: String = serde_json::from_str::<Value>(&reply.stdout).unwrap().to_string();
        for text in [reply.stderr, shown] {
            assert!(text.len() < 10_000 && !text.contains(['\u{1b}', '\u{202e}', '\n', '\r']), "{text}");
        }
    }
}

#[test]
fn unknown_tools_are_of_the_strictest_category() {
    for (client, session) in CLIENTS.into_iter().zip(["session_id", "session_id", "session_id", "conversation_id"]) {
        let event = client.reply_to_unreadable(String::new());
        assert_eq!(event.code, BLOCKED);
        let name = ["PreToolUse", "PreToolUse", "BeforeTool", "preToolUse"][client as usize];
        let input = json!({"hook_event_name": name, session: "s", "tool_name": "read_all", "tool_input": "x"});
        let (_, call) = call(client, input.to_string().as_bytes());
        assert_eq!((call.category, call.workspace), (Category::Exec, None));
        assert_eq!(Value::Object(call.arguments), json!({"input": "x"}));
    }
}

#[test]
fn an_edit_of_a_clients_settings_is_no_mere_edit() {
    let edit = |arguments: Value, directory: &str| {
        let input = json!({
            "hook_event_name": "PreToolUse", "session_id": "s", "cwd": directory, "tool_name": "Edit",
            "tool_input": arguments,
        });
        call(HookClient::ClaudeCode, input.to_string().as_bytes()).1.category
    };
    for arguments in [
        json!({"file_path": "/home/ann/shop/.claude/settings.json"}),
        json!({"file_path": "/home/ann/.CODEX/hooks.json"}),
        json!({"edits": [{"path": "../.cursor/hooks.json"}]}),
        json!({"file_path": "/home/ann/.config/toolgate/token"}),
    ] {
        assert_eq!(edit(arguments.clone(), "/home/ann/shop"), Category::Exec, "{arguments}");
    }
    assert_eq!(edit(json!({"file_path": "settings.json"}), "/home/ann/.gemini"), Category::Exec);
    assert_eq!(edit(json!({"file_path": "/home/ann/shop/claude.rs"}), "/home/ann/shop"), Category::Edit);
}
