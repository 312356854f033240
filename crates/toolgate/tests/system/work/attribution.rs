//! Attempts to work in the name of others. Each fails, and leaves everything as it was.

use serde_json::json;
use toolgate_model::work::limits::READ_WITH_GRANTS;

use super::team::{Team, reading};
use crate::calls::shop::read;
use crate::world::{Actor, Reply, World, id, on_both_engines};

on_both_engines! {
    nobody_claims_or_changes_the_task_of_another_agent,
    no_call_is_attributed_to_the_work_of_others,
    nobody_releases_or_renews_the_lease_of_another_agent,
    a_coordinator_cannot_widen_its_own_guardrails_or_end_itself,
    the_events_of_the_gate_cannot_be_forged,
    nobody_pushes_the_work_of_an_agent_out_of_sight,
}

fn nobody_claims_or_changes_the_task_of_another_agent(world: &World) {
    let team = Team::of(world);
    let task = team.reading_task();
    team.assign(&task, "worker");
    team.shop.grant_to("other", json!({}));
    let claim = format!("/api/v1/tasks/{}/claim", id(&task));
    team.other.ask("POST", &claim, None).refused(404, "TASK_NOT_FOUND");
    team.admin.post(&team.path("/agents"), &json!({"agent_id": "other"})).created();
    team.other.ask("POST", &claim, None).refused(409, "TASK_STATE_INVALID");
    team.other.post(&claim, &json!({"agent_id": "worker"})).refused(403, "PERMISSION_DENIED");
    team.other.post(&team.path("/leases"), &json!({"scope": task["id"]})).error();
    for changes in [
        json!({"status": "claimed"}),
        json!({"status": "cancelled"}),
        json!({"assigned_agent": "other"}),
        json!({"output": {"a": 1}}),
        json!({"name": "mine"}),
    ] {
        let refused = team.other.changes_task(&task, changes);
        assert!(matches!(refused.status(), 403 | 409), "{}: {}", refused.asked, refused.answer.text());
    }
    team.worker.changes_task(&task, json!({"assigned_agent": "other"})).refused(403, "PERMISSION_DENIED");
    let now = team.lead.task(&task);
    assert_eq!((&now["status"], &now["assigned_agent"]), (&json!("ready"), &json!("worker")));
    assert_eq!(now["version"], team.admin.task(&task)["version"]);
}

fn no_call_is_attributed_to_the_work_of_others(world: &World) {
    let team = Team::of(world);
    let task = team.reading_task();
    team.assign(&task, "worker");
    team.start(&task);
    team.shop.grant_to("other", json!({}));
    let nothing = "task_01K9ZZZZZZ0000000000000000";
    for context in [
        json!({"task_id": task["id"]}),
        json!({"intent_id": team.intent}),
        json!({"task_id": nothing}),
        json!({"intent_id": "intent_01K9ZZZZZZ0000000000000000"}),
        json!({"plan_id": "plan_01K9ZZZZZZ0000000000000000"}),
    ] {
        let reply = team.other.invokes(read(json!({"context": context})));
        reply.refused(403, "GRANT_CONTEXT_MISMATCH");
    }
    // The ids of another coordination system are compared only.
    team.other.invokes(read(json!({"context": {"task_id": "task_7"}}))).ok();
    team.worker.invokes(reading(&task)).ok();
    let foreign = json!({"task_id": task["id"], "intent_id": "intent_01K9ZZZZZZ0000000000000000"});
    team.worker.invokes(read(json!({"context": foreign}))).refused(403, "GRANT_CONTEXT_MISMATCH");
    let cost = json!({"cost_type": "tokens", "amount": 1, "unit": "tokens", "agent_id": "lead"});
    team.worker.post(&team.path("/costs"), &cost).refused(403, "PERMISSION_DENIED");
    team.other
        .post(&team.path("/costs"), &json!({"cost_type": "tokens", "amount": 1, "unit": "tokens"}))
        .refused(404, "INTENT_NOT_FOUND");
}

fn nobody_releases_or_renews_the_lease_of_another_agent(world: &World) {
    let team = Team::of(world);
    for agent in ["worker", "other"] {
        team.admin.post(&team.path("/agents"), &json!({"agent_id": agent})).created();
    }
    let lease = team.worker.post(&team.path("/leases"), &json!({"scope": "research"})).created();
    let path = team.path(&format!("/leases/{}", id(&lease)));
    for reply in [team.other.delete(&path), team.other.patch(&path, &json!({"duration_seconds": 1}))] {
        assert_eq!(reply.status(), 403, "{}: {}", reply.asked, reply.answer.text());
    }
    let held = team.worker.get(&team.path("/leases")).ok();
    assert_eq!(held["leases"][0]["expires_at"], lease["expires_at"]);
    // Not through another intent either.
    let own = id(&team.other.post("/api/v1/intents", &json!({"title": "mine"})).created());
    team.other.delete(&format!("/api/v1/intents/{own}/leases/{}", id(&lease))).refused(404, "LEASE_NOT_FOUND");
    team.worker.delete(&path).ok();
    team.worker.patch(&path, &json!({"duration_seconds": 60})).refused(404, "LEASE_NOT_FOUND");
}

fn a_coordinator_cannot_widen_its_own_guardrails_or_end_itself(world: &World) {
    let team = Team::within(world, json!({"max_tool_invocations": 5, "allowed_services": ["payments"]}));
    let path = format!("/api/v1/coordinators/{}", team.coordinator);
    for changes in [
        json!({"guardrails": {}}),
        json!({"guardrails": {"max_tool_invocations": 6}}),
        json!({"guardrails": {"max_tool_invocations": 1, "allowed_services": ["payments"]}}),
        json!({"status": "completed"}),
        json!({"expires_at": null}),
    ] {
        let reply = team.lead.patch(&path, &changes);
        assert_eq!(reply.status(), 403, "{}: {}", reply.asked, reply.answer.text());
    }
    assert_eq!(team.lead.delete(&path).status(), 403);
    // Nor by the end of the intent, which would end its coordinators.
    for status in ["completed", "abandoned"] {
        let reply = ends(&team.lead, &team.intent, status);
        assert_eq!(reply.refused(403, "PERMISSION_DENIED")["coordinator_id"], json!(team.coordinator));
    }
    let kept = team.admin.get(&path).ok();
    assert_eq!(kept["guardrails"], json!({"max_tool_invocations": 5, "allowed_services": ["payments"]}));
    assert_eq!((&kept["status"], &kept["supervisor_id"]), (&json!("active"), &json!("admin")));
    // A second coordinator without guardrails lifts those of the first one from nothing.
    let again = json!({"agent_id": "lead", "intent_id": team.intent});
    team.worker.post("/api/v1/coordinators", &again).error();

    // One that is its own supervisor may narrow, and nothing else.
    let own = id(&team.worker.post("/api/v1/intents", &json!({"title": "mine"})).created());
    let body = json!({"agent_id": "worker", "intent_id": own, "guardrails": {"max_tool_invocations": 5}});
    let mine = format!("/api/v1/coordinators/{}", id(&team.worker.post("/api/v1/coordinators", &body).created()));
    team.worker.patch(&mine, &json!({"guardrails": {"max_tool_invocations": 4}})).ok();
    let reply = team.worker.patch(&mine, &json!({"guardrails": {"max_tool_invocations": 5}}));
    assert_eq!(reply.status(), 403, "{}", reply.answer.text());
    ends(&team.worker, &own, "abandoned").refused(403, "PERMISSION_DENIED");
    assert_eq!(team.worker.get(&mine).ok()["status"], json!("active"));
    team.admin.patch(&path, &json!({"guardrails": {"max_tool_invocations": 50}})).ok();
    team.admin.delete(&path).ok();
}

/// Ends an intent, with the version that it has now.
fn ends(actor: &Actor, intent: &str, status: &str) -> Reply {
    let version = actor.get(&format!("/api/v1/intents/{intent}")).ok()["version"].to_string();
    let path = format!("/api/v1/intents/{intent}/status");
    actor.ask_with("POST", &path, &[("If-Match", &version)], Some(&json!({"status": status})))
}

fn the_events_of_the_gate_cannot_be_forged(world: &World) {
    let team = Team::of(world);
    let path = team.path("/events");
    for kind in
        ["intent_created", "status_changed", "task.completed", "lease_acquired", "coordinator.guardrails_updated"]
    {
        let reply = team.lead.post(&path, &json!({"event_type": kind}));
        assert!(matches!(reply.status(), 400 | 403), "{}: {}", reply.asked, reply.answer.text());
    }
    team.lead.post(&path, &json!({"event_type": "no_such_type"})).refused(400, "INVALID_FIELD");
    team.lead.post(&path, &json!({"event_type": "comment", "actor": "worker"})).refused(403, "PERMISSION_DENIED");
    let logged = team.lead.post(&path, &json!({"event_type": "comment", "payload": {"note": "hello"}})).created();
    let found = team.lead.get(&format!("{path}?event_type=comment")).ok();
    assert_eq!(found["events"], json!([logged]));
}

fn nobody_pushes_the_work_of_an_agent_out_of_sight(world: &World) {
    let team = Team::of(world);
    team.shop.grant_to("worker", json!({}));
    let own = id(&team.worker.post("/api/v1/intents", &json!({"title": "mine"})).created());
    let plan = id(&team.worker.post("/api/v1/plans", &json!({"intent_id": own})).created());
    // Another agent adds it to more intents than are read with its grants.
    for number in 0..READ_WITH_GRANTS + 1 {
        let other = json!({"title": format!("noise {number}")});
        let other = id(&team.other.post("/api/v1/intents", &other).created());
        team.other.post(&format!("/api/v1/intents/{other}/agents"), &json!({"agent_id": "worker"})).created();
        team.other.post("/api/v1/plans", &json!({"intent_id": other})).created();
    }
    for context in [json!({"intent_id": own}), json!({"plan_id": plan}), json!({"intent_id": own, "plan_id": plan})] {
        team.worker.invokes(read(json!({"context": context}))).ok();
        team.other.invokes(read(json!({"context": context}))).error();
    }
}
