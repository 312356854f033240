//! Executions as they are in the log, and what is drawn of them.

use serde_json::{Value, json};

use super::*;

fn event(sequence: u64, millis: u64, kind: &str, data: Value) -> StoredEvent {
    let time = format!("2026-03-08T10:00:{:02}.{:03}+00:00", millis / 1000, millis % 1000);
    let event = json!({
        "sequence": sequence, "id": "evt_01KGYB3881EC1R60R30C1G60R3", "type": kind, "tenant": "default", "actor": "coder",
        "agent_id": "coder", "run_id": "run-1", "timestamp": time, "data": data,
    });
    let event = StoredEvent::from_shown(event).unwrap();
    assert!(event.event.payload.kind().is_some() || kind.starts_with("some."), "{}", event.whole);
    event
}

const CALL: &str = "inv_01KGYB3881EC1R60R30C1G60R3";
const OTHER_CALL: &str = "inv_01KGYB3882EC1R60R30C1G60R3";
const APPROVAL: &str = "appr_01KGYB3885EM2RA1850M2GA185";
const OTHER_APPROVAL: &str = "appr_01KGYB3886EM2RA1850M2GA185";
const SESSION: &str = "session_01KGYB3883EG2881040G208104";

fn invoked(more: Value) -> Value {
    with(
        json!({
            "arguments_hash": "ab", "cost": {"api_units": 1, "estimated_cost_usd": null}, "duration_ms": null,
            "grant_id": null, "invocation_id": CALL, "parameters_summary": {}, "service": "shell", "status": "success",
            "tool": "run",
        }),
        more,
    )
}

fn denied(more: Value) -> Value {
    with(
        json!({
            "arguments_hash": "ab", "error_code": "NO_GRANT", "grant_id": null, "invocation_id": OTHER_CALL,
            "reason": "no", "service": "shell", "stage": "authorize", "tool": "rm",
        }),
        more,
    )
}

fn with(mut object: Value, more: Value) -> Value {
    object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    object
}

fn request(call: &str) -> Value {
    json!({
        "hook": "tool_call_request", "dialect": "native", "invocation_id": call, "tool": "shell.run",
        "effective": "ask", "policy_version": 3, "hash_before": "ab".repeat(32), "hash_after": "cd".repeat(32),
        "approval_id": APPROVAL,
        "guardians": [
            {
                "guardian": "policy", "dialect": "native", "mode": "enforce", "outcome": "enforced", "verdict": "ask",
                "latency_us": 21, "reason": "exec always asks",
                "policies": [{"policy_id": "exec-asks", "policy_version": "3"}],
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
        "shadow": [{"policy_id": "no-friday", "policy_version": "3", "verdict": "deny"}],
    })
}

fn requested(more: Value) -> Value {
    with(
        json!({
            "approval_id": APPROVAL, "approvers_needed": 1, "asked_by": ["guardian"], "category": "exec", "digest": "ee",
            "expires_at": "2026-03-08T10:15:00.000+00:00", "gateId": APPROVAL, "invocation_id": CALL,
            "kind": "approval", "status": "pending", "tool": "shell.run",
        }),
        more,
    )
}

fn decided(more: Value) -> Value {
    with(
        json!({
            "approval_id": APPROVAL, "digest": "ee", "gateId": APPROVAL, "invocation_id": CALL, "status": "approved",
            "tool": "shell.run",
        }),
        more,
    )
}

#[test]
fn an_execution_is_drawn_call_by_call_with_every_decision() {
    let granted = decided(json!({"principal": "ann", "decision": "approve", "channel": "terminal"}));
    let called = json!({
        "agentId": "coder", "callId": CALL, "argsHash": "cd".repeat(32), "principal": "coder", "toolName": "shell.run",
        "transport": "http",
    });
    let refused = json!({"stage": "guard", "error_code": "POLICY_DENIED", "reason": "not on a Friday"});
    let events = [
        event(1, 0, "tool.session.opened", json!({"sessionId": SESSION, "toolId": "t"})),
        event(2, 5, "hook.decided", request(CALL)),
        event(3, 6, "approval.requested", requested(json!({}))),
        event(4, 700, "tool.denied", denied(refused)),
        event(5, 3_500, "approval.granted", granted),
        event(6, 3_501, "agent.toolCalled", called),
        event(7, 13_002, "tool.invoked", invoked(json!({"http_status": 200, "duration_ms": 342}))),
    ];
    let drawn = Timeline::of(&events, &Approvals::default()).draw();
    assert_eq!(
        drawn,
        r#"2 calls, 7 events in 13.002s, since 2026-03-08T10:00:00.000+00:00

+0.000s    tool.session.opened   {"sessionId":"session_01KGYB3883EG2881040G208104","toolId":"t"}

+0.005s    call inv_01KGYB3881EC1R60R30C1G60R3 shell.run by coder
+0.005s      tool_call_request     ASK, policy version 3, content changed: abababababab -> cdcdcdcdcdcd, appr_01KGYB3885EM2RA1850M2GA185
               policy   ask   enforce              0.021 ms    exec-asks@3  "exec always asks"
               scanner  -     enforce FAILED OPEN  250.004 ms  failure: timeout
               trial    deny  shadow               1.500 ms    "no\u{1b}[2J"
               shadow: no-friday@3 would deny
+0.006s      approval.requested    appr_01KGYB3885EM2RA1850M2GA185, asked by guardian, needs 1, until 2026-03-08T10:15:00.000+00:00
+3.500s      approval.granted      appr_01KGYB3885EM2RA1850M2GA185, by ann, via terminal
+3.501s      agent.toolCalled      http, arguments cdcdcdcdcdcd
+13.002s     tool.invoked          success, http 200, 342 ms

+0.700s    call inv_01KGYB3882EC1R60R30C1G60R3 shell.rm by coder
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
    let message = json!({
        "hook": "user_message", "dialect": "aos", "effective": "deny", "guardians": [], "hash_before": "ab".repeat(32),
    });
    let events = [
        event(1, 0, "hook.decided", message),
        event(2, 1, "hook.decided", hook("tool_call_request")),
        event(3, 2, "hook.decided", hook("tool_call_result")),
    ];
    let drawn = Timeline::of(&events, &Approvals::default()).draw();
    let lines: Vec<&str> = drawn.lines().skip(2).collect();
    assert_eq!(
        lines,
        [
            "+0.000s    user_message          DENY, dialect aos, content abababababab",
            "",
            "+0.001s    call exec-9 mail.send by coder",
            "+0.001s      tool_call_request     ALLOW, mail.send, dialect aos, content abababababab",
            "+0.002s      tool_call_result      ALLOW, mail.send, dialect aos, content abababababab",
        ]
    );
}

#[test]
fn no_event_of_the_log_moves_the_cursor() {
    let events = [
        event(1, 0, "some.\u{1b}[2Jkind", json!({"a": "\u{1b}[2J"})),
        event(2, 0, "tool.denied", denied(json!({"tool": "\u{202e}t", "reason": "\r\n"}))),
    ];
    let drawn = Timeline::of(&events, &Approvals::default()).draw();
    assert!(!drawn.chars().any(|letter| letter != '\n' && (letter.is_control() || letter == '\u{202e}')), "{drawn:?}");
}

/// An approval as the gate shows it.
fn shown(id: &str, call: &str, more: Value) -> Value {
    let mut approval = json!({
        "id": id, "status": "approved", "invocation_id": call, "agent_id": "coder", "actor_id": "host",
        "tool": "shell.run", "reasons": [{"source": "guardian", "text": "exec always asks"}],
        "approvers": {"needed": 1, "given": 1}, "groups": [], "separation_of_duties": false,
        "votes": [{"by": "ann", "decision": "approve", "channel": "terminal", "reason": null}],
        "reason": null, "standing_approval_id": null, "created_at": "2026-03-08T10:00:00.006+00:00",
        "expires_at": "2026-03-08T10:15:00.000+00:00", "resolved_at": "2026-03-08T10:00:03.500+00:00",
    });
    approval.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    approval
}

/// The lines of a timeline below its heading.
fn drawn(events: &[StoredEvent], approvals: &Approvals) -> Vec<String> {
    let decision = |line: &String| line.starts_with("   ");
    let text = Timeline::of(events, approvals).draw();
    text.lines().map(str::to_owned).skip(2).filter(|line| !decision(line)).collect()
}

#[test]
fn an_approval_is_drawn_in_its_call_when_it_was_asked_and_when_it_ended() {
    let two = json!({
        "reason": "go\u{1b}", "approvers": {"needed": 2, "given": 2}, "groups": ["finance", "legal"],
        "separation_of_duties": true, "votes": [
            {"by": "ann", "decision": "approve", "channel": "terminal"},
            {"by": "bob", "decision": "approve", "channel": "http"},
        ],
    });
    let timed_out = json!({
        "status": "timed_out", "votes": [], "created_at": "2026-03-08T10:00:01.000+00:00",
        "resolved_at": "2026-03-08T10:00:02.000+00:00",
    });
    let refused = denied(json!({"stage": "approve", "error_code": "APPROVAL_TIMED_OUT", "reason": "nobody decided"}));
    let events = [
        event(1, 2_000, "tool.denied", refused),
        event(2, 3_510, "hook.decided", request(CALL)),
        event(3, 3_600, "tool.invoked", invoked(json!({}))),
    ];
    let approvals = Approvals {
        shown: vec![shown(APPROVAL, CALL, two), shown(OTHER_APPROVAL, OTHER_CALL, timed_out)],
        hidden: vec![],
    };
    assert_eq!(
        drawn(&events, &approvals),
        [
            "+0.000s    call inv_01KGYB3881EC1R60R30C1G60R3 shell.run by coder",
            "+0.000s      asked                 appr_01KGYB3885EM2RA1850M2GA185, needs 2 approvers of finance or legal other than host, \
             until 2026-03-08T10:15:00.000+00:00, \"exec always asks\"",
            "+3.494s      approved              appr_01KGYB3885EM2RA1850M2GA185, by ann via terminal and bob via http, after 3.494s, \
             \"go\\u{1b}\"",
            "+3.504s      tool_call_request     ASK, policy version 3, \
             content changed: abababababab -> cdcdcdcdcdcd, appr_01KGYB3885EM2RA1850M2GA185",
            "+3.594s      tool.invoked          success",
            "",
            "+0.994s    call inv_01KGYB3882EC1R60R30C1G60R3 shell.rm by coder",
            "+0.994s      asked                 appr_01KGYB3886EM2RA1850M2GA185, needs 1 approver, until 2026-03-08T10:15:00.000+00:00, \
             \"exec always asks\"",
            "+1.994s      timed out             appr_01KGYB3886EM2RA1850M2GA185, after 1.000s",
            "+1.994s      tool.denied           at approve, APPROVAL_TIMED_OUT, nobody decided",
        ]
    );
}

#[test]
fn what_an_approval_says_is_not_said_again_by_its_events() {
    let events = [
        event(1, 6, "approval.requested", requested(json!({}))),
        event(2, 9, "approval.counted", decided(json!({"principal": "bob"}))),
        event(3, 10, "approval.rejected", decided(json!({"principal": "ann"}))),
    ];
    let denied = json!({
        "status": "denied", "reason": "no", "resolved_at": "2026-03-08T10:00:00.010+00:00", "votes": [
            {"by": "bob", "decision": "approve", "channel": "http"},
            {"by": "ann", "decision": "deny", "channel": "web"},
        ],
    });
    let approvals = Approvals { shown: vec![shown(APPROVAL, CALL, denied)], hidden: vec![] };
    let lines = drawn(&events, &approvals);
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert!(lines[1].contains("asked ") && lines[2].contains("approval.counted"), "{lines:?}");
    assert_eq!(
        lines[3],
        "+0.004s      denied                appr_01KGYB3885EM2RA1850M2GA185, by ann via web, after 0.004s, \"no\""
    );
}

#[test]
fn approvals_that_may_not_be_seen_are_named_in_one_line_and_their_events_stay() {
    let events = [event(1, 6, "approval.requested", requested(json!({})))];
    let approvals = Approvals { shown: vec![], hidden: vec![APPROVAL.to_owned(), "appr_2".to_owned()] };
    let lines = drawn(&events, &approvals);
    assert!(lines[1].contains("approval.requested"), "{lines:?}");
    let last = "Not shown: appr_01KGYB3885EM2RA1850M2GA185, appr_2; these approvals require `approvals.decide`, or are visible to their caller";
    assert_eq!(lines[2..], ["", last]);
}

#[test]
fn a_refusal_for_want_of_authority_stands_below_the_call_that_was_refused() {
    let denied = |call: &str| denied(json!({"invocation_id": call}));
    let decided = |tool: &str| {
        json!({
            "action": "tools:invoke", "principal": "coder", "resource": tool, "allowed": false, "reason": "NO_GRANT",
        })
    };
    let events = [
        event(1, 0, "tool.denied", denied(CALL)),
        event(2, 0, "authorization.decided", decided("shell.rm")),
        event(3, 1, "tool.denied", denied(OTHER_CALL)),
        event(4, 1, "authorization.decided", decided("mail.send")),
        event(5, 1, "authorization.decided", decided("shell.rm")),
    ];
    let calls = calls(&events);
    let calls: Vec<Option<&str>> = calls.iter().map(Option::as_deref).collect();
    assert_eq!(calls, [Some(CALL), Some(CALL), Some(OTHER_CALL), None, None]);
}
