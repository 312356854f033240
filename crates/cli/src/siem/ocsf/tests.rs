//! Every stored type of event has its place in OCSF, with what the class demands, and without the content of calls.

use serde_json::{Value, json};

use super::*;

/// What must not be seen in any line.
const CONTENT: &str = "geheim";
const CALL: &str = "inv_01KGYB3881EC1R60R30C1G60R3";
const EVENT: &str = "evt_01KGYB3881EC1R60R30C1G60R3";
const GRANT: &str = "grant_01KGYB3880E81840G2081040G2";
const INTENT: &str = "intent_01KGYB3880E81840G2081040G2";
const PLAN: &str = "plan_01KGYB3880E81840G2081040G2";
const TASK: &str = "task_01KGYB3880E81840G2081040G2";
const LEASE: &str = "lease_01KGYB3880E81840G2081040G2";
const COORDINATOR: &str = "coord_01KGYB3880E81840G2081040G2";
const COST: &str = "cost_01KGYB3880E81840G2081040G2";
const CREDENTIAL: &str = "cred_01KGYB3880E40R2081040G2081";
const VAULT: &str = "vault_01KGYB3880E40R2081040G2081";
const KEY: &str = "key_01KGYB3880E40R2081040G2081";
const SESSION: &str = "session_01KGYB3883EG2881040G208104";

/// The attributes that a class demands besides those of every class, from the tables of OCSF 1.3.0.
const DEMANDED: [(u32, &[&str]); 5] = [
    (2004, &["action_id", "finding_info.title", "finding_info.uid"]),
    (6003, &["actor", "api", "api.operation", "src_endpoint", "src_endpoint.name"]),
    (3001, &["user", "user.uid"]),
    (3004, &["entity", "entity.uid", "entity.type"]),
    (3005, &["privileges", "user", "user.uid"]),
];
const DEMANDED_OF_ALL: [&str; 11] = [
    "activity_id",
    "category_uid",
    "class_uid",
    "metadata.product.vendor_name",
    "metadata.version",
    "metadata.uid",
    "metadata.sequence",
    "metadata.tenant_uid",
    "severity_id",
    "time",
    "type_uid",
];

/// One event of each type: its data, and the class, activity and outcome that it is told with.
fn samples() -> Vec<(&'static str, Value, u32, u32, u32)> {
    let returned = |status: &str| {
        json!({
            "agentId": "billing", "callId": CALL, "causationId": EVENT, "durationMs": 12, "status": status,
            "toolName": "payments.charges.create", "type": "agent.toolReturned",
        })
    };
    let reached = json!({
        "account": "agent", "account_id": "billing", "calls": 80, "cost_usd": 1.25, "limit_calls": 100, "period": "day",
        "period_start": "2026-02-08T00:00:00.000+00:00",
    });
    let called = json!({
        "agentId": "billing", "argsHash": "ab", "callId": CALL, "inputs": {"card": CONTENT}, "principal": "billing",
        "toolName": "payments.charges.create", "transport": "http",
    });
    let invoked = json!({
        "invocation_id": CALL, "grant_id": GRANT, "service": "payments", "tool": "charges.create",
        "parameters_summary": {"card": CONTENT}, "arguments_hash": "ab", "status": "success", "duration_ms": 12,
        "http_status": 200, "cost": {"api_units": 1, "estimated_cost_usd": null}, "returned": returned("ok"),
    });
    let denied = json!({
        "invocation_id": CALL, "grant_id": null, "service": null, "tool": "charges.create", "arguments_hash": "ab",
        "stage": "authorize", "error_code": "GRANT_NOT_FOUND", "reason": CONTENT, "returned": returned("forbidden"),
    });
    let load = json!({"agentId": "billing", "toolName": "x:y", "callId": "forbidden:ab", "status": "forbidden"});
    let decided =
        json!({"principal": "billing", "action": "invoke", "resource": "x:y", "allowed": false, "reason": "no_grant"});
    let hook = json!({
        "hook": "tool_call_request", "dialect": "aos", "tool": "payments.charges.create", "effective": "deny",
        "invocation_id": CALL, "session_id": "s-1", "hash_before": "ab", "hash_after": "cd", "policy_version": 3,
        "guardians": [{
            "guardian": "policy", "dialect": "native", "mode": "enforce", "verdict": "deny", "outcome": "enforced",
            "reason": CONTENT, "latency_us": 7,
            "policies": [{"policy_id": "no-sundays", "policy_version": "3"}],
        }],
        "shadow": [{"policy_id": "no-mondays", "policy_version": "3", "verdict": "ask"}],
        "facts": {"marks": [CONTENT]}, "content": {"card": CONTENT},
    });
    let policies = json!({
        "version": 3, "change": "promoted", "subject": "no-sundays", "rules": 9, "shadowed": 1, "digest": "ab",
        "note": "as agreed",
    });
    vec![
        ("agent.created", json!({"agent_id": "billing", "kind": "agent", "permissions": []}), 3001, 1, 1),
        ("agent.removed", json!({"agent_id": "billing", "revoked_keys": 1, "revoked_grants": 0}), 3001, 6, 1),
        ("agent.resumed", json!({"agent_id": "billing"}), 3004, 13, 1),
        ("agent.stopped", json!({"agent_id": "billing", "reason": "it pays twice"}), 3004, 12, 1),
        ("agent.toolCalled", called, 6003, 99, 0),
        ("agent.toolReturned", load, 6003, 99, 2),
        ("agent.updated", json!({"agent_id": "billing", "changed": ["scopes"], "revision": 2}), 3001, 99, 1),
        ("authorization.decided", decided, 6003, 99, 2),
        ("call.detached", json!({"invocation_id": CALL, "tool": "a.b", "arguments_hash": "ab"}), 6003, 99, 0),
        (
            "credential.created",
            json!({"auth_type": "api_key", "credential_id": CREDENTIAL, "vault_id": VAULT, "service": "s"}),
            3004,
            1,
            1,
        ),
        ("credential.expired", json!({"credential_id": CREDENTIAL}), 3004, 11, 1),
        (
            "credential.revoked",
            json!({"credential_id": CREDENTIAL, "reason": "leaked", "affected_grants_count": 0}),
            3004,
            4,
            1,
        ),
        ("credential.rotated", json!({"credential_id": CREDENTIAL, "rotated_by": "admin"}), 3004, 3, 1),
        ("grant.created", grant_created(), 3005, 1, 1),
        (
            "grant.delegated",
            json!({
                "delegation_depth": 1, "grant_id": GRANT, "source_grant_id": GRANT, "target_agent_id": "sub",
                "scopes": ["a"],
            }),
            3005,
            1,
            1,
        ),
        ("grant.expired", json!({"grant_id": GRANT}), 3005, 2, 1),
        ("grant.resumed", json!({"grant_id": GRANT}), 3004, 13, 1),
        ("grant.revoked", json!({"grant_id": GRANT, "reason": "done", "cascade_count": 0}), 3005, 2, 1),
        ("grant.suspended", json!({"grant_id": GRANT, "reason": "holiday"}), 3004, 12, 1),
        ("hook.decided", hook, 2004, 1, 1),
        ("key.created", json!({"key_id": KEY, "principal_id": "billing", "expires_at": null}), 3004, 1, 1),
        ("key.revoked", json!({"key_id": KEY, "principal_id": "billing"}), 3004, 4, 1),
        (
            "mount.added",
            json!({"address": "https://x.example/mcp", "mount": "m", "tools": 2, "trusted": false}),
            3004,
            1,
            1,
        ),
        ("mount.removed", json!({"mount": "m"}), 3004, 4, 1),
        (
            "knowledge.ingested",
            json!({
                "bytes": 9, "chunks": 1, "document": "d", "replaced": false, "store": "s",
                "removed": {"comments": 0, "hidden_characters": 1, "hidden_elements": 0, "scripts": 0, "styles": 0},
            }),
            3004,
            1,
            1,
        ),
        ("knowledge.removed", json!({"document": "d", "store": "s"}), 3004, 4, 1),
        ("memory.forgotten", json!({"count": 1, "items": ["ab"], "reason": "agent", "store": "s"}), 3004, 4, 1),
        ("store.created", json!({"kind": "memory", "store": "s", "terms": {}}), 3004, 1, 1),
        ("store.removed", json!({"kind": "memory", "store": "s"}), 3004, 4, 1),
        (
            "mount.server.accepted",
            json!({"hash": "sha256:ab", "mount": "m", "overridden": ["concealment"]}),
            3004,
            3,
            1,
        ),
        (
            "mount.server.quarantined",
            json!({"hash": "sha256:ab", "mount": "m", "pinned_hash": "sha256:cd", "replaced": true}),
            3004,
            12,
            1,
        ),
        (
            "mount.tool.accepted",
            json!({"change": "new", "hash": "sha256:ab", "mount": "m", "tool": "t", "upstream": "t"}),
            3004,
            3,
            1,
        ),
        (
            "mount.tool.quarantined",
            json!({"change": "removed", "mount": "m", "tool": "t", "upstream": "t"}),
            3004,
            12,
            1,
        ),
        ("mount.tool.rejected", json!({"hash": "sha256:ab", "mount": "m", "tool": "t", "upstream": "t"}), 3004, 4, 1),
        ("mount.tool.restored", json!({"hash": "sha256:ab", "mount": "m", "tool": "t", "upstream": "t"}), 3004, 13, 1),
        ("policies.changed", policies, 3004, 3, 1),
        ("service.applied", json!({"service": "s", "version": "1", "tools": 3, "digest": "ab"}), 3004, 3, 1),
        ("service.removed", json!({"service": "s", "version": "1"}), 3004, 4, 1),
        ("budget.exhausted", reached.clone(), 3004, 3, 1),
        ("budget.warned", reached, 3004, 3, 1),
        ("gate.resumed", json!({}), 3004, 13, 1),
        ("gate.stopped", json!({"reason": "an incident"}), 3004, 12, 1),
        ("tenant.created", json!({"tenant_id": "acme"}), 3004, 1, 1),
        ("tenant.resumed", json!({}), 3004, 13, 1),
        ("tenant.stopped", json!({}), 3004, 12, 1),
        ("tenant.updated", json!({"budget": null, "tenant_id": "acme"}), 3004, 3, 1),
        (
            "tool.denials.counted",
            json!({
                "principal_id": "billing", "count": 7, "codes": {"X": 7}, "first_at": "2026-03-08T10:00:00.000+00:00",
                "last_at": "2026-03-08T10:00:01.000+00:00",
            }),
            6003,
            99,
            2,
        ),
        ("tool.denied", denied, 6003, 99, 2),
        ("tool.invoked", invoked, 6003, 99, 1),
        ("tool.session.closed", json!({"sessionId": SESSION, "toolId": "x:y", "outcome": "failed"}), 6003, 99, 2),
        ("tool.session.opened", json!({"sessionId": SESSION, "toolId": "x:y"}), 6003, 99, 1),
        ("vault.created", json!({"vault_id": VAULT, "owner_id": "admin"}), 3004, 1, 1),
        ("vault.deleted", json!({"vault_id": VAULT, "revoked_credentials": 0, "revoked_grants": 0}), 3004, 4, 1),
        ("ledger.rollback_accepted", json!({"tenant_id": "acme", "known_size": 9, "found_size": null}), 3004, 3, 1),
        ("vault.rekeyed", json!({"key_id": "k2", "rewrapped": 7}), 3004, 3, 1),
        ("work.agent.assigned", json!({"agent_id": "a", "intent_id": INTENT, "role": "worker"}), 3004, 3, 1),
        ("work.agent.unassigned", json!({"agent_id": "a", "intent_id": INTENT}), 3004, 3, 1),
        (
            "work.coordinator.changed",
            json!({
                "changed": ["status"], "coordinator_id": COORDINATOR, "intent_id": INTENT, "status": "completed",
                "version": 2,
            }),
            3004,
            4,
            1,
        ),
        (
            "work.coordinator.created",
            json!({
                "agent_id": "a", "coordinator_id": COORDINATOR, "guardrails": {}, "intent_id": INTENT,
                "supervisor_id": "admin",
            }),
            3004,
            1,
            1,
        ),
        (
            "work.cost.recorded",
            json!({"amount_micros": 1, "cost_id": COST, "cost_type": "tokens", "intent_id": INTENT, "unit": "tokens"}),
            3004,
            1,
            1,
        ),
        ("work.intent.changed", json!({"intent_id": INTENT, "version": 2}), 3004, 3, 1),
        ("work.intent.created", json!({"created_by": "a", "intent_id": INTENT, "status": "draft"}), 3004, 1, 1),
        (
            "work.lease.acquired",
            json!({
                "agent_id": "a", "expires_at": "2026-03-08T10:00:00.000+00:00", "intent_id": INTENT, "lease_id": LEASE,
                "scope": "x",
            }),
            3004,
            1,
            1,
        ),
        (
            "work.lease.ended",
            json!({"intent_id": INTENT, "lease_id": LEASE, "scope": "x", "status": "expired"}),
            3004,
            4,
            1,
        ),
        (
            "work.plan.changed",
            json!({"intent_id": INTENT, "plan_id": PLAN, "state": "active", "tasks": 1, "version": 2}),
            3004,
            3,
            1,
        ),
        ("work.plan.created", json!({"intent_id": INTENT, "plan_id": PLAN, "tasks": 1}), 3004, 1, 1),
        (
            "work.task.assigned",
            json!({"agent_id": "a", "delegated": 1, "previous_agent_id": null, "revoked_grants": 0, "task_id": TASK}),
            3004,
            3,
            1,
        ),
        (
            "work.task.changed",
            json!({
                "attempt": 1, "from": "ready", "revoked_grants": 0, "task_id": TASK, "to": "claimed", "version": 2,
            }),
            3004,
            3,
            1,
        ),
        (
            "work.task.created",
            json!({"intent_id": INTENT, "plan_id": null, "status": "ready", "task_id": TASK}),
            3004,
            1,
            1,
        ),
        (
            "workflow.applied",
            json!({"changes": 4, "digest": "ab", "revision": 1, "version": "1.0", "widenings": 2, "workflow": "quarterly"}),
            3004,
            3,
            1,
        ),
    ]
}

fn grant_created() -> Value {
    json!({
        "agent_id": "billing", "credential_id": CREDENTIAL, "expires_at": null, "grant_id": GRANT, "scopes": ["a", "b"],
    })
}

/// The members of one sample, with these instead.
fn sample(kind: &str, more: Value) -> Value {
    let (_, mut data, ..) = samples().into_iter().find(|(known, ..)| *known == kind).unwrap();
    data.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    data
}

fn line(kind: &str, data: Value) -> Value {
    let event = json!({
        "actor": "admin", "agent_id": "billing", "data": data, "id": EVENT, "run_id": "run-1", "sequence": 9,
        "tenant": "default", "timestamp": "2026-03-08T10:00:00.123+00:00", "type": kind,
    });
    Value::Object(to_ocsf(&StoredEvent::from_shown(event).unwrap()))
}

fn at<'a>(line: &'a Value, path: &str) -> &'a Value {
    path.split('.').fold(line, |value, name| value.get(name).unwrap_or(&Value::Null))
}

#[test]
fn every_type_but_those_of_approvals_has_a_class_of_its_own() {
    let samples = samples();
    for kind in EventKind::ALL {
        let sample = samples.iter().find(|(name, ..)| *name == kind.as_str());
        match EventKind::about_approvals().any(|about| about == *kind) {
            true => assert!(sample.is_none(), "{kind:?}"),
            false => assert!(sample.is_some(), "map {kind:?} and add a sample"),
        }
    }
    for (kind, data, ..) in samples {
        assert!(EventPayload::read(kind, &data).kind().is_some(), "{kind}: {data}");
    }
}

#[test]
fn every_line_has_what_its_class_demands() {
    for (kind, data, class, activity, status) in samples() {
        let line = line(kind, data);
        assert_eq!((&line["class_uid"], &line["activity_id"]), (&json!(class), &json!(activity)), "{kind}");
        assert_eq!(line["type_uid"], json!(class * 100 + activity), "{kind}");
        assert_eq!(line["category_uid"], json!(class / 1000), "{kind}");
        assert_eq!(line["status_id"], json!(status), "{kind}");
        assert_eq!(line["time"], json!(1_772_964_000_123_u64), "{kind}");
        let (_, demanded) = DEMANDED.iter().find(|(uid, _)| *uid == class).unwrap();
        for path in demanded.iter().chain(&DEMANDED_OF_ALL) {
            assert!(!at(&line, path).is_null(), "{kind} has no {path}: {line}");
        }
    }
}

#[test]
fn no_line_tells_the_content_of_a_call() {
    for (kind, data, ..) in samples() {
        let line = line(kind, data).to_string();
        assert!(!line.contains(CONTENT), "{kind}: {line}");
    }
}

#[test]
fn both_ends_of_a_call_name_the_call_the_tool_and_the_run() {
    let samples = samples();
    for wanted in ["agent.toolCalled", "tool.invoked", "tool.denied"] {
        let (kind, data, ..) = samples.iter().find(|(kind, ..)| *kind == wanted).unwrap();
        let line = line(kind, data.clone());
        assert_eq!(at(&line, "api.request.uid"), CALL, "{kind}");
        assert_eq!(at(&line, "api.operation"), "payments.charges.create", "{kind}");
        assert_eq!(at(&line, "unmapped.argsHash"), "ab", "{kind}");
        assert_eq!(at(&line, "metadata.correlation_uid"), "run-1", "{kind}");
        assert_eq!(at(&line, "actor.session.uid"), "run-1", "{kind}");
        assert_eq!((at(&line, "actor.user.uid"), at(&line, "actor.app_uid")), (&json!("admin"), &json!("billing")));
    }
    let (_, invoked, ..) = samples.iter().find(|(kind, ..)| *kind == "tool.invoked").unwrap();
    let line = line("tool.invoked", invoked.clone());
    assert_eq!((at(&line, "duration"), at(&line, "api.response.code")), (&json!(12), &json!(200)));
    assert_eq!(at(&line, "api.service.name"), "payments");
}

#[test]
fn the_way_a_call_ended_is_told_by_status_code_and_severity() {
    let ended = |kind: &str, data: Value| {
        let line = line(kind, data);
        (line["status_id"].clone(), line["status_code"].clone(), line["severity_id"].clone())
    };
    let returned = |status: &str, error: Value| json!({"returned": {"agentId": "billing", "callId": CALL, "status": status, "toolName": "t", "error": error}});
    let failed = json!({"code": "SERVICE_ERROR", "message": "the service failed"});
    let unknown = json!({"status": "unknown", "returned": null});
    let success = json!({"status": "success", "returned": null});
    let error = json!({"status": "error", "error_code": "X", "returned": null});
    for (kind, more, expected) in [
        ("tool.invoked", returned("error", failed), (json!(2), json!("SERVICE_ERROR"), json!(2))),
        ("tool.denied", returned("forbidden", Value::Null), (json!(2), json!("GRANT_NOT_FOUND"), json!(3))),
        ("tool.denied", returned("rate_limited", Value::Null), (json!(2), json!("GRANT_NOT_FOUND"), json!(2))),
        ("tool.invoked", returned("rate_limited", Value::Null), (json!(2), json!("rate_limited"), json!(2))),
        ("tool.invoked", unknown, (json!(0), Value::Null, json!(2))),
        ("tool.invoked", success, (json!(1), Value::Null, json!(1))),
        ("tool.invoked", error, (json!(2), json!("X"), json!(2))),
        ("tool.denied", json!({"error_code": "X", "returned": null}), (json!(2), json!("X"), json!(3))),
    ] {
        let data = sample(kind, more);
        assert_eq!(ended(kind, data.clone()), expected, "{kind} {data}");
    }
}

#[test]
fn the_end_of_a_grant_takes_from_its_agent_what_the_grant_gave() {
    let given = line("grant.created", grant_created());
    let ended = line("grant.revoked", json!({"grant_id": GRANT, "reason": "done", "cascade_count": 0}));
    assert_eq!(given["privileges"], json!(["a", "b"]));
    assert_eq!(ended["privileges"], json!([GRANT]));
    assert_eq!((&given["resource"], &given["user"]), (&ended["resource"], &ended["user"]));
    assert_eq!(at(&ended, "unmapped.reason"), "done");
}

#[test]
fn what_guardians_said_is_a_finding_as_severe_as_their_verdict() {
    for (effective, severity, action) in [("allow", 1, 1), ("modify", 2, 4), ("ask", 3, 99), ("deny", 4, 2)] {
        let line = line("hook.decided", sample("hook.decided", json!({"effective": effective})));
        assert_eq!((&line["severity_id"], &line["action_id"]), (&json!(severity), &json!(action)), "{effective}");
        assert_eq!((&line["category_name"], &line["status"]), (&json!("Findings"), &json!("New")));
    }
    // What cannot be read is no yes.
    let unreadable = line("hook.decided", sample("hook.decided", json!({"effective": "?"})));
    assert_eq!((&unreadable["severity_id"], &unreadable["class_uid"]), (&json!(4), &json!(0)));
    assert!(!unreadable.to_string().contains(CONTENT));
    let line = line("hook.decided", sample("hook.decided", json!({})));
    let policies = json!([{"policy_id": "no-sundays", "policy_version": "3"}]);
    assert_eq!(at(&line, "unmapped.guardians")[0]["policies"], policies);
    assert_eq!(at(&line, "unmapped.invocation_id"), CALL);
    assert_eq!(at(&line, "resources")[0]["name"], "payments.charges.create");
}

#[test]
fn a_change_of_policies_names_the_version_that_is_active_now() {
    let (_, data, ..) = samples().into_iter().find(|(kind, ..)| *kind == "policies.changed").unwrap();
    let line = line("policies.changed", data);
    assert_eq!(line["entity"], json!({"type": "policy set", "uid": "default", "version": "3"}));
    assert_eq!((at(&line, "unmapped.subject"), &line["comment"]), (&json!("no-sundays"), &json!("as agreed")));
}

#[test]
fn a_type_that_is_younger_than_this_program_is_told_without_its_data() {
    let line = line("approval.given", json!({"text": CONTENT}));
    assert_eq!((&line["class_uid"], &line["type_uid"]), (&json!(0), &json!(99)));
    assert_eq!(at(&line, "metadata.event_code"), "approval.given");
    assert!(!line.to_string().contains(CONTENT));
}
