//! Who takes no part in an intent cannot see it or anything below it: unknown and unauthorised look the same.

use serde_json::{Value, json};

use super::team::Team;
use crate::world::{World, id, ids, on_both_engines};

on_both_engines! {
    an_agent_that_takes_no_part_sees_nothing_on_any_route,
    whoever_takes_part_sees_the_intent_and_directs_it_only_by_right,
    lists_have_only_what_the_caller_takes_part_in,
}

fn an_agent_that_takes_no_part_sees_nothing_on_any_route(world: &World) {
    let team = Team::of(world);
    let task = id(&team.reading_task());
    let plan = id(&team.lead.post("/api/v1/plans", &json!({"intent_id": team.intent})).created());
    let lease = id(&team.lead.post(&team.path("/leases"), &json!({"scope": "research"})).created());
    let real = [&team.intent, &task, &plan, &lease, &team.coordinator].map(String::as_str);
    let nothing = ["intent", "task", "plan", "lease", "coord"].map(|kind| format!("{kind}_01K9ZZZZZZ0000000000000000"));
    let nothing = [&nothing[0], &nothing[1], &nothing[2], &nothing[3], &nothing[4]].map(String::as_str);
    let routes: [(&str, &str, Value); 30] = [
        ("GET", "/intents/I", Value::Null),
        ("POST", "/intents/I/state", json!({"state": {"a": 1}})),
        ("POST", "/intents/I/status", json!({"status": "abandoned"})),
        ("GET", "/intents/I/agents", Value::Null),
        ("POST", "/intents/I/agents", json!({"agent_id": "other"})),
        ("DELETE", "/intents/I/agents/lead", Value::Null),
        ("GET", "/intents/I/events", Value::Null),
        ("POST", "/intents/I/events", json!({"event_type": "comment"})),
        ("GET", "/intents/I/leases", Value::Null),
        ("POST", "/intents/I/leases", json!({"scope": "mine"})),
        ("PATCH", "/intents/I/leases/L", json!({"duration_seconds": 60})),
        ("DELETE", "/intents/I/leases/L", Value::Null),
        ("GET", "/intents/I/tasks", Value::Null),
        ("POST", "/tasks", json!({"intent_id": "I", "name": "mine"})),
        ("GET", "/tasks/T", Value::Null),
        ("PATCH", "/tasks/T", json!({"status": "cancelled"})),
        ("POST", "/tasks/T/claim", Value::Null),
        ("POST", "/tasks/T/check", Value::Null),
        ("GET", "/intents/I/plans", Value::Null),
        ("POST", "/plans", json!({"intent_id": "I"})),
        ("GET", "/plans/P", Value::Null),
        ("PATCH", "/plans/P", json!({"state": "cancelled"})),
        ("GET", "/plans/P/estimate", Value::Null),
        ("GET", "/intents/I/coordinators", Value::Null),
        ("POST", "/coordinators", json!({"agent_id": "other", "intent_id": "I"})),
        ("GET", "/coordinators/C", Value::Null),
        ("PATCH", "/coordinators/C", json!({"guardrails": {}})),
        ("DELETE", "/coordinators/C", Value::Null),
        ("POST", "/coordinators/C/heartbeat", Value::Null),
        ("GET", "/intents/I/costs", Value::Null),
    ];
    let filled = |text: &str, ids: [&str; 5]| {
        let mut text = text.to_owned();
        for (letter, id) in ["I", "T", "P", "L", "C"].iter().zip(ids) {
            text = text
                .replace(&format!("/{letter}"), &format!("/{id}"))
                .replace(&format!("\"{letter}\""), &format!("\"{id}\""));
        }
        text
    };
    let before = team.admin.events("").len();
    for (method, path, body) in &routes {
        let ask = |ids: [&str; 5]| {
            let body: Value = serde_json::from_str(&filled(&body.to_string(), ids)).unwrap();
            let body = Some(body).filter(|body| !body.is_null());
            let reply = team.other.ask_with(
                method,
                &filled(&format!("/api/v1{path}"), ids),
                &[("If-Match", "1")],
                body.as_ref(),
            );
            let mut text = reply.answer.text();
            for (letter, id) in ["I", "T", "P", "L", "C"].iter().zip(ids) {
                text = text.replace(id, letter);
            }
            reply.error();
            (reply.status(), text)
        };
        let (hidden, unknown) = (ask(real), ask(nothing));
        assert_eq!(hidden.0, 404, "{method} {path}: {}", hidden.1);
        assert_eq!(hidden, unknown, "{method} {path}");
    }
    assert_eq!(team.admin.events("").len(), before, "nothing happened");
}

fn whoever_takes_part_sees_the_intent_and_directs_it_only_by_right(world: &World) {
    let team = Team::of(world);
    let auditor = world.agent("auditor", &["audit.read"]);
    team.admin.post(&team.path("/agents"), &json!({"agent_id": "worker", "role": "helper"})).created();
    let task = team.reading_task();
    for actor in [&team.admin, &team.lead, &team.worker, &auditor] {
        actor.get(&team.path("")).ok();
        assert_eq!(ids(&actor.get(&team.path("/tasks")).ok()), [id(&task)]);
        actor.get(&format!("/api/v1/coordinators/{}", team.coordinator)).ok();
    }
    for actor in [&team.worker, &auditor] {
        for (path, body) in [
            ("/api/v1/tasks", json!({"intent_id": team.intent, "name": "mine"})),
            ("/api/v1/plans", json!({"intent_id": team.intent})),
            (&team.path("/agents"), json!({"agent_id": "other"})),
        ] {
            actor.post(path, &body).refused(403, "PERMISSION_DENIED");
        }
        let status = json!({"status": "abandoned"});
        let reply = actor.ask_with("POST", &team.path("/status"), &[("If-Match", "1")], Some(&status));
        reply.refused(403, "PERMISSION_DENIED");
    }
    // An assignee sees the intent, even if nobody has assigned it to the intent.
    team.other.get(&team.path("")).refused(404, "INTENT_NOT_FOUND");
    team.assign(&task, "other");
    team.other.get(&team.path("")).ok();
    team.admin.delete(&team.path("/agents/worker")).ok();
    team.worker.get(&team.path("")).refused(404, "INTENT_NOT_FOUND");
}

fn lists_have_only_what_the_caller_takes_part_in(world: &World) {
    let team = Team::of(world);
    let mine = id(&team.worker.post("/api/v1/intents", &json!({"title": "mine"})).created());
    let of = |actor: &crate::world::Actor| ids(&actor.get("/api/v1/intents").ok()["intents"]);
    assert_eq!(of(&team.worker), *std::slice::from_ref(&mine));
    assert_eq!(of(&team.lead), *std::slice::from_ref(&team.intent));
    assert!(of(&team.other).is_empty());
    assert_eq!(of(&team.admin), [team.intent.clone(), mine.clone()]);
    let stranger = world.tenant("acme");
    assert!(of(&stranger).is_empty());
    stranger.get(&format!("/api/v1/intents/{mine}")).refused(404, "INTENT_NOT_FOUND");
    assert_eq!(ids(&team.admin.get("/api/v1/intents?offset=1").ok()["intents"]), *std::slice::from_ref(&mine));
    let page = team.admin.get("/api/v1/intents?limit=1").ok();
    let cursor = page["next_cursor"].as_str().unwrap();
    assert_eq!(ids(&team.admin.get(&format!("/api/v1/intents?cursor={cursor}")).ok()["intents"]), [mine]);
    team.admin.get(&format!("/api/v1/intents?cursor={cursor}&offset=1")).refused(400, "INVALID_FIELD");
}
