//! Every stored event can be shown, what is shown fits the schema, and nothing of what a call carried is in it.

use super::*;
use crate::schema::Schema;

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
    let event = json!(RunEvent::of_stored(&stored(kind, data, more), 7).unwrap());
    let checked = Schema::compile(&RunEvent::schema()).unwrap().check(&event);
    assert!(checked.is_ok(), "{event}: {checked:?}");
    event
}

fn pair() -> Value {
    json!({"agentId": "billing", "toolName": "stripe.charges.create", "callId": "inv_1"})
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
    let more = json!({"causationId": "evt_1", "type": "agent.toolReturned", "status": "ok", "durationMs": 12});
    let record = json!({
        "invocation_id": "inv_1", "parameters_summary": {"customer": "cus_secret"}, "tool": "charges.create",
        "returned": with(pair(), more)
    });
    for kind in ["tool.invoked", "tool.denied"] {
        let event = shown(kind, record.clone(), json!({"run_id": "run-1"}));
        assert_eq!((&event["type"], &event["causationId"]), (&json!("agent.toolReturned"), &json!("evt_1")));
        assert_eq!(event["payload"], with(pair(), json!({"status": "ok", "durationMs": 12})));
        assert!(!event.to_string().contains("cus_secret"));
    }
}

#[test]
fn the_record_of_a_call_stands_in_for_a_return_that_was_not_written_down() {
    let record = |more: Value| {
        let call = json!({
            "invocation_id": "inv_1", "service": "stripe", "tool": "charges.create",
            "parameters_summary": {"customer": "cus_secret"}, "reason": "cus_secret is not known"
        });
        shown("tool.invoked", with(call, more), json!({"agent_id": "billing"}))
    };
    let done = record(json!({"status": "success", "duration_ms": 3}));
    assert_eq!(done["payload"], with(pair(), json!({"status": "ok", "durationMs": 3})));
    assert_eq!((&done["runId"], done.get("causationId")), (&json!(NO_RUN), None));
    for failed in [
        json!({"status": "error", "error_code": "SERVICE_ERROR"}),
        json!({"status": "unknown"}),
        json!({"error_code": "GRANT_REVOKED", "duration_ms": null}),
    ] {
        let event = record(failed);
        assert_eq!(event["payload"]["status"], "error");
        assert!(!event.to_string().contains("cus_secret"), "{event}");
    }
    let nobody = shown("tool.denied", json!({"invocation_id": "inv_1", "tool": "a"}), json!({}));
    assert_eq!((&nobody["payload"]["agentId"], &nobody["payload"]["toolName"]), (&json!(NO_AGENT), &json!("a")));
    let short = shown("tool.denied", json!({"invocation_id": "inv_1", "tool": "a"}), json!({"agent_id": "x"}));
    assert_eq!(short["payload"]["agentId"], "agent:x");
}

#[test]
fn sessions_decisions_and_denials_before_any_call_fit_their_payloads() {
    shown("tool.session.opened", json!({"sessionId": "session_1", "toolId": "connector:a.b"}), json!({"run_id": "r"}));
    for outcome in ["completed", "failed"] {
        let data = json!({"sessionId": "session_1", "toolId": "connector:a.b", "outcome": outcome});
        shown("tool.session.closed", data, json!({}));
    }
    let data =
        json!({"principal": "billing", "action": "tool.call", "resource": "a.b", "allowed": false, "reason": "SCOPE"});
    shown("authorization.decided", data, json!({}));
    let at_load = shown("agent.toolReturned", with(pair(), json!({"status": "forbidden"})), json!({}));
    assert_eq!(at_load.get("causationId"), None);
    let other = shown("grant.created", json!({"grant_id": "grant_1"}), json!({}));
    assert_eq!((&other["type"], &other["payload"]), (&json!("grant.created"), &json!({"grant_id": "grant_1"})));
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
    assert_eq!(stored_types("agent.toolReturned").unwrap(), ["tool.denied", "tool.invoked", "agent.toolReturned"]);
    assert_eq!(stored_types("grant.created").unwrap(), ["grant.created"]);
    assert_eq!((stored_types("tool.invoked"), stored_types("tool.denied")), (None, None));
}

#[test]
fn a_damaged_event_is_named_by_its_place() {
    for damaged in
        ["", "[]", "{}", &stored("a", json!({}), json!({"id": 1})), &stored("tool.invoked", json!({}), json!({}))]
    {
        assert_eq!(RunEvent::of_stored(damaged, 7), Err(DamagedEvent { sequence: 7 }), "{damaged}");
    }
}

#[test]
fn of_what_guardians_said_only_that_and_what_came_of_it_is_shown() {
    let data = json!({
        "hook": "tool_call_request", "dialect": "native", "invocation_id": "inv_1", "tool": "stripe.charges.create",
        "effective": "deny", "hash_before": "ab", "policy_version": 3, "session_id": "cus_secret",
        "guardians": [{"guardian": "policy", "reason": "cus_secret may not"}], "shadow": [{"policy_id": "cus_secret"}],
        "facts": {"marks": ["cus_secret"]}, "content": {"customer": "cus_secret"},
    });
    let event = shown("hook.decided", data, json!({"run_id": "run-1"}));
    let told = json!({
        "hook": "tool_call_request", "dialect": "native", "invocation_id": "inv_1", "tool": "stripe.charges.create",
        "effective": "deny", "hash_before": "ab", "policy_version": 3,
    });
    assert_eq!(event["payload"], told);
}
