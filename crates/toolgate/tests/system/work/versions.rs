//! Changes name the version that they were decided on.

use serde_json::json;

use super::team::Team;
use crate::world::{World, id, on_both_engines};

on_both_engines! {
    a_change_without_its_version_is_refused,
    a_change_of_another_version_is_a_conflict_that_names_the_current_one,
    patches_of_the_state_apply_together_or_not_at_all,
}

fn a_change_without_its_version_is_refused(world: &World) {
    let team = Team::of(world);
    let task = team.task("a-task", json!({}));
    let plan = team.lead.post("/api/v1/plans", &json!({"intent_id": team.intent})).created();
    for (path, body) in [
        (format!("/api/v1/tasks/{}", id(&task)), json!({"status": "cancelled"})),
        (format!("/api/v1/plans/{}", id(&plan)), json!({"state": "active"})),
    ] {
        team.lead.patch(&path, &body).refused(428, "VERSION_REQUIRED");
        for wrong in ["", "*", "one", "W/\"1\"", "1, 2", "-1"] {
            let reply = team.lead.ask_with("PATCH", &path, &[("If-Match", wrong)], Some(&body));
            assert_eq!(reply.refused(400, "INVALID_FIELD")["path"], "If-Match");
        }
        team.lead.ask_with("PATCH", &path, &[("If-Match", "\"1\"")], Some(&body)).ok();
    }
    let state = json!({"state": {"progress": 1}});
    assert_eq!(team.lead.post(&team.path("/state"), &state).refused(400, "INVALID_FIELD")["path"], "If-Match");
    let status = json!({"status": "active"});
    assert_eq!(team.lead.post(&team.path("/status"), &status).refused(400, "INVALID_FIELD")["path"], "If-Match");
}

fn a_change_of_another_version_is_a_conflict_that_names_the_current_one(world: &World) {
    let team = Team::of(world);
    let task = team.task("a-task", json!({}));
    let renamed = team.lead.changes_task(&task, json!({"name": "renamed"})).ok();
    let old = task["version"].to_string();
    let reply = team.lead.changes_task_of(&old, &task, json!({"status": "cancelled"}));
    reply.refused(409, "VERSION_CONFLICT");
    assert_eq!(reply.json()["current_version"], renamed["version"]);
    // By this word the Python client of OpenIntent takes a conflict for one of leases.
    assert!(!reply.answer.text().to_lowercase().contains("lease"), "{}", reply.answer.text());
    assert_eq!(team.lead.task(&task)["status"], "ready");

    let before = team.lead.get(&team.path("")).ok();
    let patch = json!({"patches": [{"op": "set", "path": "progress", "value": 0.5}]});
    let version = before["version"].to_string();
    let headers = [("If-Match", version.as_str())];
    let after = team.lead.ask_with("POST", &team.path("/state"), &headers, Some(&patch)).ok();
    let reply = team.lead.ask_with("POST", &team.path("/state"), &headers, Some(&patch));
    reply.refused(409, "VERSION_CONFLICT");
    assert_eq!(reply.json()["current_version"], after["version"]);
    assert!(!reply.answer.text().to_lowercase().contains("lease"), "{}", reply.answer.text());
}

fn patches_of_the_state_apply_together_or_not_at_all(world: &World) {
    let team = Team::of(world);
    let change = |patches: serde_json::Value| {
        let version = team.lead.get(&team.path("")).ok()["version"].to_string();
        let body = json!({"patches": patches});
        team.lead.ask_with("POST", &team.path("/state"), &[("If-Match", version.as_str())], Some(&body))
    };
    let set = |path: &str, value: serde_json::Value| json!({"op": "set", "path": path, "value": value});
    let state = change(json!([set("phase", json!("start")), set("report.pages", json!(3))])).ok()["state"].clone();
    assert_eq!(state, json!({"phase": "start", "report": {"pages": 3}}));
    let reply = change(json!([set("done", json!(true)), set("phase.deeper", json!(1))]));
    reply.refused(400, "INVALID_FIELD");
    assert_eq!(team.lead.get(&team.path("")).ok()["state"], state);
    let removed = change(json!([{"op": "remove", "path": "report"}])).ok();
    assert_eq!(removed["state"], json!({"phase": "start"}));
    for wrong in [json!([{"op": "move", "path": "a"}]), json!([{"op": "remove", "path": "a", "value": 1}]), json!([[]])]
    {
        change(wrong).refused(400, "INVALID_FIELD");
    }
}
