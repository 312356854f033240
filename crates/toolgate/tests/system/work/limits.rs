//! Everything that a caller creates has a limit, and what does not fit is refused by name.

use serde_json::{Value, json};

use super::team::{Team, needs};
use crate::world::{World, id, on_both_engines};

on_both_engines! {
    an_intent_has_at_most_a_thousand_tasks,
    dependencies_are_tasks_of_the_same_intent_without_cycles,
    oversize_documents_are_refused_and_named,
    members_that_nobody_knows_are_refused_by_name,
    guardrails_that_are_not_enforced_are_not_stored,
    a_coordinator_shows_what_is_left_of_its_limits,
}

fn an_intent_has_at_most_a_thousand_tasks(world: &World) {
    let team = Team::of(world);
    for number in 0..1000 {
        team.task(&format!("task-{number}"), json!({}));
    }
    team.tries_task("one-too-many", json!({})).refused(429, "WORK_LIMIT_REACHED");
    let tasks = team.lead.get(&team.path("/tasks?limit=1000")).ok();
    assert_eq!(tasks.as_array().unwrap().len(), 1000);
    let last = team.lead.get(&team.path("/tasks?limit=10&offset=995")).ok();
    assert_eq!(last.as_array().unwrap().len(), 5);
    // Another intent is not affected.
    let other = id(&team.lead.post("/api/v1/intents", &json!({"title": "another"})).created());
    team.lead.post("/api/v1/tasks", &json!({"intent_id": other, "name": "a-task"})).created();
    let plans = (0..64).map(|_| team.lead.post("/api/v1/plans", &json!({"intent_id": other})).created()).count();
    assert_eq!(plans, 64);
    team.lead.post("/api/v1/plans", &json!({"intent_id": other})).refused(429, "WORK_LIMIT_REACHED");
}

fn dependencies_are_tasks_of_the_same_intent_without_cycles(world: &World) {
    let team = Team::of(world);
    let task = team.task("one", json!({}));
    let other = id(&team.lead.post("/api/v1/intents", &json!({"title": "another"})).created());
    let foreign = team.lead.post("/api/v1/tasks", &json!({"intent_id": other, "name": "foreign"})).created();
    for unknown in [json!(foreign["id"]), json!("task_01K9ZZZZZZ0000000000000000"), json!("task_1")] {
        let reply = team.tries_task("two", json!({"depends_on": [unknown]}));
        assert!(matches!(reply.status(), 400 | 404), "{}: {}", reply.asked, reply.answer.text());
    }
    // What a task depends on exists before it and never changes, so that there is no way to a cycle.
    let error = team.lead.changes_task(&task, json!({"depends_on": [task["id"]]})).refused(400, "UNKNOWN_FIELD");
    assert_eq!(error["path"], "depends_on");
    let many: Vec<Value> = (0..101).map(|_| task["id"].clone()).collect();
    team.tries_task("two", json!({"depends_on": many})).refused(400, "INVALID_FIELD");
    team.tries_task("two", json!({"depends_on": [task["id"], task["id"]]})).created();
}

fn oversize_documents_are_refused_and_named(world: &World) {
    let team = Team::of(world);
    let large = json!({"text": "x".repeat(70_000)});
    for member in ["input", "metadata"] {
        let error = team.tries_task("large", json!({member: large})).refused(400, "INVALID_FIELD");
        assert_eq!(error["path"], member);
    }
    let task = team.task("a-task", json!({}));
    let error = team.lead.changes_task(&task, json!({"output": large})).refused(400, "INVALID_FIELD");
    assert_eq!(error["path"], "output");
    team.lead
        .post(&team.path("/events"), &json!({"event_type": "comment", "payload": large}))
        .refused(400, "INVALID_FIELD");
    let long = "x".repeat(9000);
    team.tries_task("long", json!({"description": long})).refused(400, "INVALID_FIELD");
    team.lead.post("/api/v1/intents", &json!({"title": long})).refused(400, "INVALID_FIELD");
    let scopes: Vec<String> = (0..33).map(|number| format!("service-{number}")).collect();
    let needs: Vec<Value> = scopes.iter().map(|service| json!({"service": service, "scopes": ["a"]})).collect();
    team.tries_task("needy", json!({"requires_tools": needs})).refused(400, "INVALID_FIELD");
    for (member, value) in [
        ("timeout_seconds", json!(0)),
        ("max_attempts", json!(0)),
        ("max_attempts", json!(101)),
        ("deadline", json!("2020-01-01T00:00:00Z")),
    ] {
        let error = team.tries_task("odd", json!({member: value})).refused(400, "INVALID_FIELD");
        assert_eq!(error["path"], member);
    }
    for seconds in [0, 86_401] {
        let body = json!({"scope": "research", "duration_seconds": seconds});
        let error = team.lead.post(&team.path("/leases"), &body).refused(400, "INVALID_FIELD");
        assert_eq!(error["path"], "duration_seconds");
    }
}

fn members_that_nobody_knows_are_refused_by_name(world: &World) {
    let team = Team::of(world);
    for (path, body, member) in [
        ("/api/v1/intents".to_owned(), json!({"title": "a", "governance_policy": {}}), "governance_policy"),
        (
            "/api/v1/tasks".to_owned(),
            json!({"intent_id": team.intent, "name": "a", "memory_policy": {}}),
            "memory_policy",
        ),
        ("/api/v1/plans".to_owned(), json!({"intent_id": team.intent, "checkpoints": []}), "checkpoints"),
        (team.path("/leases"), json!({"scope": "a", "force": true}), "force"),
        (
            team.path("/costs"),
            json!({"cost_type": "tokens", "amount": 1, "unit": "a", "cost_metadata": {}}),
            "cost_metadata",
        ),
    ] {
        assert_eq!(team.lead.post(&path, &body).refused(400, "UNKNOWN_FIELD")["path"], member);
    }
    let needs = json!({"requires_tools": [{"service": "payments", "scope": "charges.read"}]});
    team.tries_task("typo", needs).refused(400, "UNKNOWN_FIELD");
}

fn guardrails_that_are_not_enforced_are_not_stored(world: &World) {
    let team = Team::of(world);
    let create = |guardrails: Value| {
        let body = json!({"agent_id": "lead", "intent_id": team.intent, "guardrails": guardrails});
        team.admin.post("/api/v1/coordinators", &body)
    };
    for (member, value) in [
        ("max_plan_versions", json!(7)),
        ("requires_plan_review", json!(true)),
        ("allowed_capabilities", json!(["billing"])),
        ("unheard_of", json!(1)),
        ("max_tool_invocations", json!(-1)),
        ("max_tool_cost_usd", json!("25")),
        ("allowed_services", json!("payments")),
    ] {
        let error = create(json!({member: value})).error();
        assert!(error["message"].as_str().unwrap().contains(member), "{error}");
    }
    let usual = json!({"max_plan_versions": 5, "requires_plan_review": false, "allowed_capabilities": null});
    assert_eq!(create(usual).created()["guardrails"], json!({}));
}

fn a_coordinator_shows_what_is_left_of_its_limits(world: &World) {
    let limits = json!({"auto_delegate": true, "max_tool_invocations": 3, "max_tool_cost_usd": 1});
    let team = Team::within(world, limits);
    let path = format!("/api/v1/coordinators/{}", team.coordinator);
    let unused = json!({"calls": 0, "remaining_calls": 3, "cost_usd": 0.0, "remaining_cost_usd": 1.0});
    assert_eq!(team.lead.get(&path).ok()["usage"], unused);
    let task = team.task("charge", needs(&["charges.create"]));
    team.assign(&task, "worker");
    team.start(&task);
    let charge = json!({
        "tool": "payments.charges.create", "parameters": {"amount": 1200, "currency": "usd"},
        "context": {"task_id": task["id"]}
    });
    team.worker.invokes(charge).ok();
    let used = json!({"calls": 1, "remaining_calls": 2, "cost_usd": 0.02, "remaining_cost_usd": 0.98});
    assert_eq!(team.lead.get(&path).ok()["usage"], used);
    assert_eq!(team.lead.get(&team.path("/coordinators")).ok()[0]["usage"], used);
    // The same among the budgets: for who sees all of them, and for the agent itself, and for no other agent.
    for actor in [&team.admin, &team.lead] {
        let budgets = actor.get("/api/v1/budgets").ok()["budgets"].clone();
        let found = budgets.as_array().unwrap().iter().find(|one| one["account"] == "coordinator").unwrap().clone();
        assert_eq!(
            (&found["account_id"], &found["period"], &found["used_calls"], &found["remaining_cost_usd"]),
            (&json!(team.coordinator), &json!("total"), &json!(1), &json!(0.98))
        );
    }
    assert_eq!(team.worker.get("/api/v1/budgets").ok()["budgets"], json!([]));
    // Pages go on from the agents to the coordinators.
    team.admin.patch("/api/v1/agents/worker", &json!({"budget": {"calls_total": 5}})).ok();
    let first = team.admin.get("/api/v1/budgets?limit=1").ok();
    assert_eq!(first["budgets"][0]["account_id"], "worker");
    let cursor = first["next_cursor"].as_str().unwrap();
    let next = team.admin.get(&format!("/api/v1/budgets?limit=1&cursor={cursor}")).ok();
    assert_eq!((&next["budgets"][0]["account"], &next["next_cursor"]), (&json!("coordinator"), &Value::Null));
    // Without limits there is nothing to use up.
    team.admin.patch(&path, &json!({"guardrails": {}})).ok();
    assert_eq!(team.lead.get(&path).ok()["usage"], Value::Null);
}
