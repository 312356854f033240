//! Executions as they are in the log, and what is drawn of them.

use serde_json::{Value, json};

use super::*;

fn event(sequence: u64, millis: u64, kind: &str, data: Value) -> StoredEvent {
    let time = format!("2026-03-08T10:00:{:02}.{:03}+00:00", millis / 1000, millis % 1000);
    let event = json!({
        "sequence": sequence, "id": format!("evt_{sequence}"), "type": kind, "tenant": "default", "actor": "coder",
        "agent_id": "coder", "run_id": "run-1", "timestamp": time, "data": data,
    });
    StoredEvent::read(event).unwrap()
}

fn request(call: &str) -> Value {
    json!({
        "hook": "tool_call_request", "dialect": "native", "invocation_id": call, "tool": "shell.run",
        "effective": "ask", "policy_version": 3, "hash_before": "ab".repeat(32), "hash_after": "cd".repeat(32),
        "approval_id": "appr_1",
        "guardians": [
            {
                "guardian": "policy", "dialect": "native", "mode": "enforce", "outcome": "enforced", "verdict": "ask",
                "latency_us": 21, "reason": "exec always asks",
                "policies": [{"policy_id": "exec-asks", "policy_version": 3}],
            },
            {
                "guardian": "scanner", "dialect": "aos", "mode": "enforce", "outcome": "failed_open",
                "latency_us": 250_004, "failure": "timeout",
            },
            {
                "guardian": "trial", "dialect": "joch", "mode": "shadow", "outcome": "shadowed", "verdict": "deny",
                "latency_us": 1_500, "reason": "no\u{1b}[2J",
            },
        ],
        "shadow": [{"policy_id": "no-friday", "policy_version": 3, "verdict": "deny"}],
    })
}

fn approval(more: Value) -> Value {
    let mut data = json!({"approval_id": "appr_1", "invocation_id": "inv_1", "tool": "shell.run", "digest": "ee"});
    data.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    data
}

#[test]
fn an_execution_is_drawn_call_by_call_with_every_decision() {
    let asked =
        approval(json!({"asked_by": ["policy"], "approvers_needed": 1, "expires_at": "2026-03-08T10:15:00.000+00:00"}));
    let granted = approval(json!({"principal": "ann", "decision": "approve", "channel": "terminal"}));
    let called =
        |call: &str| json!({"callId": call, "argsHash": "cd".repeat(32), "toolName": "shell.run", "transport": "http"});
    let invoked = json!({
        "invocation_id": "inv_1", "service": "shell", "tool": "run", "status": "success", "http_status": 200,
        "duration_ms": 342, "cost": null,
    });
    let denied = json!({
        "invocation_id": "inv_2", "service": "shell", "tool": "rm", "stage": "guard", "error_code": "POLICY_DENIED",
        "reason": "not on a Friday",
    });
    let events = [
        event(1, 0, "tool.session.opened", json!({"sessionId": "s", "toolId": "t"})),
        event(2, 5, "hook.decided", request("inv_1")),
        event(3, 6, "approval.requested", asked),
        event(4, 700, "tool.denied", denied),
        event(5, 3_500, "approval.granted", granted),
        event(6, 3_501, "agent.toolCalled", called("inv_1")),
        event(7, 13_002, "tool.invoked", invoked),
    ];
    let drawn = Timeline::of(&events).draw();
    assert_eq!(
        drawn,
        r#"2 calls, 7 events in 13.002s, from 2026-03-08T10:00:00.000+00:00 on

+0.000s    tool.session.opened   {"sessionId":"s","toolId":"t"}

+0.005s    call inv_1 shell.run by coder
+0.005s      tool_call_request     ASK, policies of version 3, content changed: abababababab -> cdcdcdcdcdcd, appr_1
               policy   ask   enforce                    0.021 ms    exec-asks@3  "exec always asks"
               scanner  -     enforce PASSED BY FAILURE  250.004 ms  failure: timeout
               trial    deny  shadow                     1.500 ms    "no\u{1b}[2J"
               in shadow: no-friday@3 would deny
+0.006s      approval.requested    appr_1, asked by policy, needs 1, until 2026-03-08T10:15:00.000+00:00
+3.500s      approval.granted      appr_1, by ann, through terminal
+3.501s      agent.toolCalled      http, arguments cdcdcdcdcdcd
+13.002s     tool.invoked          success, http 200, 342 ms

+0.700s    call inv_2 shell.rm by coder
+0.700s      tool.denied           at guard, POLICY_DENIED, not on a Friday
"#
    );
}

#[test]
fn what_another_runtime_asked_about_stands_below_its_execution() {
    let hook = |hook: &str| {
        json!({
            "hook": hook, "dialect": "aos", "execution_id": "exec-9", "tool": "mail.send", "effective": "allow",
            "guardians": [], "hash_before": "ab".repeat(32),
        })
    };
    let message = json!({"hook": "user_message", "dialect": "aos", "effective": "deny", "guardians": []});
    let events = [
        event(1, 0, "hook.decided", message),
        event(2, 1, "hook.decided", hook("tool_call_request")),
        event(3, 2, "hook.decided", hook("tool_call_result")),
    ];
    let drawn = Timeline::of(&events).draw();
    let lines: Vec<&str> = drawn.lines().skip(2).collect();
    assert_eq!(
        lines,
        [
            "+0.000s    user_message          DENY, asked in aos",
            "",
            "+0.001s    call exec-9 mail.send by coder",
            "+0.001s      tool_call_request     ALLOW, mail.send, asked in aos, content abababababab",
            "+0.002s      tool_call_result      ALLOW, mail.send, asked in aos, content abababababab",
        ]
    );
}

#[test]
fn no_event_of_the_log_moves_the_cursor() {
    let events = [
        event(1, 0, "some.\u{1b}[2Jkind", json!({"a": "\u{1b}[2J"})),
        event(2, 0, "tool.denied", json!({"invocation_id": "i\u{1b}", "tool": "\u{202e}t", "reason": "\r\n"})),
    ];
    let drawn = Timeline::of(&events).draw();
    assert!(!drawn.chars().any(|letter| letter != '\n' && (letter.is_control() || letter == '\u{202e}')), "{drawn:?}");
}
