//! Every stored event can be shown, what is shown fits the schema, and nothing of what a call carried is in it.

use super::*;
use crate::hook::NO_AGENT;
use crate::schema::Schema;

const CALL: &str = "inv_01KGYB3881EC1R60R30C1G60R3";
const CAUSE: &str = "evt_01KGYB3881EC1R60R30C1G60R3";

fn stored(kind: &str, data: Value, more: Value) -> String {
    let mut event = json!({
        "actor": "admin", "data": data, "id": "evt_01K9ZZZZZZ0000000000000000", "tenant": "default",
        "timestamp": "2026-02-08T10:00:00.000+00:00", "type": kind
    });
    event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    event.to_string()
}

/// The event as it is shown, after a look at its shape.
fn shown(kind: &str, data: Value, more: Value) -> Value {
    let event = json!(RunEvent::of(&StoredEvent::read(&stored(kind, data, more), 9).unwrap(), 7).unwrap());
    let checked = Schema::compile(&RunEvent::schema()).unwrap().check(&event);
    assert!(checked.is_ok(), "{event}: {checked:?}");
    event
}

fn pair() -> Value {
    json!({"agentId": "billing", "toolName": "stripe.charges.create", "callId": CALL})
}

fn with(mut object: Value, more: Value) -> Value {
    object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    object
}

#[test]
fn a_call_is_shown_as_it_is_stored() {
    let data = with(pair(), json!({"argsHash": "ab".repeat(32), "principal": "billing", "transport": "http"}));
    let event = shown("agent.toolCalled", data.clone(), json!({"run_id": "run-1", "agent_id": "billing"}));
    let expected = json!({
        "eventId": "evt_01K9ZZZZZZ0000000000000000", "runId": "run-1", "type": "agent.toolCalled", "payload": data,
        "timestamp": "2026-02-08T10:00:00.000+00:00", "sequence": 7
    });
    assert_eq!(event, expected);
}

#[test]
fn both_stored_endings_of_a_call_are_shown_as_its_return_and_name_their_cause() {
    let more = json!({"causationId": CAUSE, "type": "agent.toolReturned", "status": "ok", "durationMs": 12});
    for (kind, record) in records() {
        let event =
            shown(kind, with(record, json!({"returned": with(pair(), more.clone())})), json!({"run_id": "run-1"}));
        assert_eq!((&event["type"], &event["causationId"]), (&json!("agent.toolReturned"), &json!(CAUSE)));
        assert_eq!(event["payload"], with(pair(), json!({"status": "ok", "durationMs": 12})));
        assert!(!event.to_string().contains("cus_secret"));
    }
}

/// What both endings of a call are recorded with, without its return.
fn records() -> [(&'static str, Value); 2] {
    let call = json!({
        "invocation_id": CALL, "grant_id": null, "service": "stripe", "tool": "charges.create", "arguments_hash": "ab",
    });
    let cost = json!({"api_units": 1, "estimated_cost_usd": null});
    let invoked = json!({
        "parameters_summary": {"customer": "cus_secret"}, "status": "success", "duration_ms": 3, "cost": cost,
    });
    let denied = json!({"stage": "authorize", "error_code": "GRANT_REVOKED", "reason": "cus_secret is not known"});
    [("tool.invoked", with(call.clone(), invoked)), ("tool.denied", with(call, denied))]
}

#[test]
fn the_record_of_a_call_stands_in_for_a_return_that_was_not_written_down() {
    let [(kind, invoked), (denied_kind, denied)] = records();
    let record = |more: Value| shown(kind, with(invoked.clone(), more), json!({"agent_id": "billing"}));
    let done = record(json!({}));
    assert_eq!(done["payload"], with(pair(), json!({"status": "ok", "durationMs": 3})));
    assert_eq!((&done["runId"], done.get("causationId")), (&json!(NO_RUN), None));
    for failed in [
        record(json!({"status": "error", "error_code": "SERVICE_ERROR"})),
        record(json!({"status": "unknown"})),
        record(json!({"status": "error", "duration_ms": null})),
        shown(denied_kind, denied.clone(), json!({})),
    ] {
        assert_eq!(failed["payload"]["status"], "error");
        assert!(!failed.to_string().contains("cus_secret"), "{failed}");
    }
    let alone = with(denied, json!({"service": null, "tool": "a"}));
    let nobody = shown(denied_kind, alone.clone(), json!({}));
    assert_eq!((&nobody["payload"]["agentId"], &nobody["payload"]["toolName"]), (&json!(NO_AGENT), &json!("a")));
    let short = shown(denied_kind, alone, json!({"agent_id": "x"}));
    assert_eq!(short["payload"]["agentId"], "agent:x");
}

#[test]
fn sessions_decisions_and_denials_before_any_call_fit_their_payloads() {
    shown(
        "tool.session.opened",
        json!({"sessionId": "session_01KGYB3883EG2881040G208104", "toolId": "connector:a.b"}),
        json!({"run_id": "r"}),
    );
    for outcome in ["completed", "failed"] {
        let data =
            json!({"sessionId": "session_01KGYB3883EG2881040G208104", "toolId": "connector:a.b", "outcome": outcome});
        shown("tool.session.closed", data, json!({}));
    }
    let data =
        json!({"principal": "billing", "action": "tool.call", "resource": "a.b", "allowed": false, "reason": "SCOPE"});
    shown("authorization.decided", data, json!({}));
    let at_load = shown("agent.toolReturned", with(pair(), json!({"status": "forbidden"})), json!({}));
    assert_eq!(at_load.get("causationId"), None);
    // Also what this version cannot read, as long as it is not a type of which less is shown than is stored.
    for kind in ["grant.created", "approval.given"] {
        let other = shown(kind, json!({"grant_id": "grant_1"}), json!({}));
        assert_eq!((&other["type"], &other["payload"]), (&json!(kind), &json!({"grant_id": "grant_1"})));
    }
    let asked = shown("approval.requested", json!({"gateId": "a"}), json!({}));
    assert_eq!(asked["type"], "interrupt.requested");
}

#[test]
fn the_schema_refuses_returns_that_hide_a_failure_or_invent_a_duration() {
    let schema = Schema::compile(&RunEvent::schema()).unwrap();
    let event = |payload: Value| {
        json!({
            "eventId": "evt_1", "runId": "r", "type": "agent.toolReturned", "payload": with(pair(), payload),
            "timestamp": "2026-02-08T10:00:00.000+00:00", "sequence": 0
        })
    };
    assert!(schema.check(&event(json!({"status": "ok", "durationMs": 0}))).is_ok());
    let error = json!({"code": "X", "message": ""});
    for broken in [
        json!({"status": "error"}),
        json!({"status": "ok", "error": error}),
        json!({"status": "forbidden", "durationMs": 1}),
        json!({"status": "rate_limited", "error": error}),
        json!({"status": "invalid_args", "error": error}),
        json!({"status": "ok", "outcome": {"content": 1}}),
        json!({}),
    ] {
        assert!(schema.check(&event(broken.clone())).is_err(), "{broken}");
    }
    assert!(schema.check(&with(event(json!({"status": "ok"})), json!({"tenant": "default"}))).is_err());
}

#[test]
fn a_filter_by_what_is_shown_finds_what_is_stored() {
    assert_eq!(stored_types("agent.toolReturned").unwrap(), ["tool.denied", "agent.toolReturned", "tool.invoked"]);
    assert_eq!(stored_types("interrupt.requested").unwrap(), ["approval.requested"]);
    assert_eq!(stored_types("approval.given").unwrap(), ["approval.given"]);
    assert_eq!(stored_types("grant.created").unwrap(), ["grant.created"]);
    for never in ["tool.invoked", "tool.denied", "approval.requested"] {
        assert_eq!(stored_types(never), None);
    }
}

#[test]
fn what_cannot_be_read_is_not_shown_where_less_is_shown_than_is_stored() {
    for kind in EventKind::ALL.iter().filter(|kind| is_closed(**kind)) {
        let event = StoredEvent::read(&stored(kind.as_str(), json!({"secret": 1}), json!({})), 9).unwrap();
        let damaged = RunEvent::of(&event, 7).unwrap_err();
        assert_eq!(damaged.sequence, Some(9), "{kind:?}");
        assert!(!damaged.to_string().contains("secret"), "{damaged}");
    }
}

#[test]
fn of_what_guardians_said_only_that_and_what_came_of_it_is_shown() {
    let data = json!({
        "hook": "tool_call_request", "dialect": "native", "invocation_id": CALL, "tool": "stripe.charges.create",
        "effective": "deny", "hash_before": "ab", "policy_version": 3, "session_id": "cus_secret",
        "guardians": [{
            "guardian": "policy", "dialect": "native", "mode": "enforce", "outcome": "enforced", "latency_us": 1,
            "reason": "cus_secret may not",
        }],
        "shadow": [{"policy_id": "cus_secret", "policy_version": "1", "verdict": "deny"}],
        "facts": {"marks": ["cus_secret"]}, "content": {"customer": "cus_secret"},
    });
    let event = shown("hook.decided", data, json!({"run_id": "run-1"}));
    let told = json!({
        "hook": "tool_call_request", "dialect": "native", "invocation_id": CALL, "tool": "stripe.charges.create",
        "effective": "deny", "hash_before": "ab", "policy_version": 3,
    });
    assert_eq!(event["payload"], told);
}
