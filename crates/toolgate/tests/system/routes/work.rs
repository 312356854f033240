//! The bodies of the routes about work.

use serde_json::{Value, json};

use super::Things;

/// Whether a path is one of coordinated work.
pub fn is_about(path: &str) -> bool {
    ["/api/v1/intents", "/api/v1/tasks", "/api/v1/plans", "/api/v1/coordinators"]
        .iter()
        .any(|start| path.starts_with(start))
}

/// A body that the route takes; `None` where it takes none.
pub fn body(method: &str, path: &str, things: &Things) -> Option<Value> {
    let body = match (method, path) {
        ("POST", "/api/v1/intents") => json!({
            "title": "Quarterly compliance", "description": "Collect,\nbill, report", "created_by": "admin",
            "status": "active", "state": {"phase": "start"}, "constraints": {"rules": ["be quick"]},
            "parent_intent_id": things.intent, "depends_on": [things.intent]
        }),
        ("POST", "/api/v1/intents/{intent_id}/state") => {
            json!({"patches": [{"op": "set", "path": "progress", "value": 0.5}, {"op": "remove", "path": "phase"}]})
        }
        ("POST", "/api/v1/intents/{intent_id}/status") => json!({"status": "active", "reason": "all are here"}),
        ("POST", "/api/v1/intents/{intent_id}/agents") => json!({"agent_id": things.agent, "role": "worker"}),
        ("POST", "/api/v1/intents/{intent_id}/events") => json!({
            "event_type": "comment", "actor": "admin", "payload": {"note": "starting"}, "trace_id": "trace_1",
            "parent_event_id": "evt_1"
        }),
        ("POST", "/api/v1/intents/{intent_id}/leases") => json!({"scope": "research", "duration_seconds": 60}),
        ("PATCH", "/api/v1/intents/{intent_id}/leases/{lease_id}") => json!({"duration_seconds": 60}),
        ("POST", "/api/v1/intents/{intent_id}/costs") => json!({
            "agent_id": "admin", "task_id": things.task, "cost_type": "tokens", "amount": 1200.5, "unit": "tokens",
            "provider": "a provider", "metadata": {"model": "m"}
        }),
        ("POST", "/api/v1/tasks") => json!({
            "intent_id": things.intent, "name": "send-report", "plan_id": things.plan, "description": "Send it",
            "priority": "high", "input": {"customer": "cus_1"}, "capabilities_required": ["email"],
            "depends_on": [things.task], "parent_task_id": things.task, "assigned_agent": things.agent,
            "requires_tools": [{"service": "stripe", "scopes": ["charges.read"], "required": false}],
            "timeout_seconds": 600, "deadline": "2030-01-01T00:00:00Z", "max_attempts": 2, "permissions": "inherit",
            "metadata": {"team": "billing"}
        }),
        ("PATCH", "/api/v1/tasks/{task_id}") => json!({
            "status": "ready", "assigned_agent": things.agent, "output": {"pages": 3}, "error": "none",
            "blocked_reason": "waits", "artifacts": ["report.pdf"], "name": "a task", "description": "A task",
            "priority": "low", "metadata": {"team": "billing"}, "deadline": null
        }),
        ("POST", "/api/v1/tasks/{task_id}/check") => json!({"agent_id": things.agent}),
        ("POST", "/api/v1/tasks/{task_id}/claim") => json!({"agent_id": "admin"}),
        ("POST", "/api/v1/plans") => json!({
            "intent_id": things.intent, "tasks": [things.task], "state": "draft", "on_failure": "notify",
            "on_complete": "notify", "metadata": {"quarter": "Q1"}
        }),
        ("PATCH", "/api/v1/plans/{plan_id}") => json!({
            "state": "active", "tasks": [things.task], "on_failure": "retry", "on_complete": "notify",
            "metadata": {"quarter": "Q2"}
        }),
        ("POST", "/api/v1/coordinators") => json!({
            "agent_id": things.agent, "intent_id": things.intent, "role": "coordinator", "scope": "intent",
            "supervisor_id": "admin", "coordinator_type": "llm", "guardrails": guardrails(),
            "heartbeat_interval_seconds": 60, "expires_at": "2099-01-01T00:00:00Z", "metadata": {"team": "billing"}
        }),
        ("PATCH", "/api/v1/coordinators/{coordinator_id}") => json!({
            "status": "paused", "guardrails": guardrails(), "heartbeat_interval_seconds": 30, "expires_at": null,
            "metadata": {"team": "billing"}
        }),
        ("POST", "/api/v1/coordinators/{coordinator_id}/heartbeat") | ("DELETE", _) => return None,
        (method, path) => panic!("say in the tests which body {method} {path} takes"),
    };
    Some(body)
}

fn guardrails() -> Value {
    json!({
        "max_tool_invocations": 500, "max_tool_cost_usd": 25.0, "max_budget_usd": 30, "allowed_services": ["stripe"],
        "denied_services": ["aws"], "require_approval_for": ["stripe.refunds.create"], "auto_delegate": true,
        "max_tasks_per_plan": 20, "max_delegation_depth": 3, "max_concurrent_tasks": 10, "warn_at_percentage": 80,
        "allowed_capabilities": null
    })
}
