//! The life of tasks: dependencies, claims, what they require.

use serde_json::{Value, json};

use super::team::{Team, needs};
use crate::world::{World, id, ids, merged, on_both_engines};

on_both_engines! {
    a_task_is_ready_when_all_that_it_depends_on_has_ended_well,
    a_task_that_failed_is_tried_again_while_attempts_are_left,
    only_the_steps_of_the_table_are_possible,
    an_agent_without_the_required_tools_cannot_claim_a_task,
    what_is_not_required_is_reported_and_does_not_prevent_a_claim,
    of_concurrent_claims_exactly_one_succeeds,
    a_lease_on_a_task_claims_it_and_its_end_gives_it_back,
    a_plan_is_estimated_before_it_runs,
}

fn status(team: &Team, task: &Value) -> String {
    team.lead.task(task)["status"].as_str().unwrap().to_owned()
}

fn a_task_is_ready_when_all_that_it_depends_on_has_ended_well(world: &World) {
    let team = Team::of(world);
    let (one, two) = (team.task("one", json!({})), team.task("two", json!({})));
    let last = team.task("last", json!({"depends_on": [one["id"], two["id"]]}));
    assert_eq!((&one["status"], &last["status"]), (&json!("ready"), &json!("pending")));
    assert_eq!(team.lead.task(&one)["blocks"], json!([last["id"]]));
    team.lead.changes_task(&last, json!({"status": "claimed"})).refused(409, "TASK_STATE_INVALID");
    team.lead.changes_task(&one, json!({"status": "skipped"})).ok();
    assert_eq!(status(&team, &last), "pending");
    team.assign(&two, "worker");
    team.start(&two);
    assert_eq!(status(&team, &last), "pending");
    team.worker.changes_task(&two, json!({"status": "completed", "output": {"pages": 3}})).ok();
    assert_eq!(status(&team, &last), "ready");
    assert_eq!(team.lead.task(&two)["output"], json!({"pages": 3}));

    let failing = team.task("failing", json!({}));
    let waiting = team.task("waiting", json!({"depends_on": [failing["id"]]}));
    team.lead.changes_task(&failing, json!({"status": "cancelled"})).ok();
    assert_eq!(status(&team, &waiting), "pending", "what failed lets nothing begin");
}

fn a_task_that_failed_is_tried_again_while_attempts_are_left(world: &World) {
    let team = Team::of(world);
    let task = team.task("shaky", json!({"max_attempts": 2}));
    for attempt in 1..=2 {
        assert_eq!(team.lead.task(&task)["attempt"], json!(attempt));
        team.assign(&task, "worker");
        team.start(&task);
        let failed = team.worker.changes_task(&task, json!({"status": "failed", "error": "no\nsuch customer"})).ok();
        assert_eq!(failed["error"], "no\nsuch customer");
        let again = team.lead.changes_task(&task, json!({"status": "ready"}));
        if attempt == 1 {
            again.ok();
        } else {
            again.refused(409, "TASK_STATE_INVALID");
        }
    }
}

fn only_the_steps_of_the_table_are_possible(world: &World) {
    let team = Team::of(world);
    let task = team.task("a-task", json!({}));
    let error = team.lead.changes_task(&task, json!({"status": "running"})).refused(409, "TASK_STATE_INVALID");
    for next in ["claimed", "cancelled", "skipped"] {
        assert!(error["message"].as_str().unwrap().contains(next), "{error}");
    }
    team.assign(&task, "worker");
    team.start(&task);
    let same = team.worker.changes_task(&task, json!({"status": "running", "artifacts": ["report.pdf"]})).ok();
    assert_eq!((&same["status"], &same["artifacts"]), (&json!("running"), &json!(["report.pdf"])));
    team.worker.changes_task(&task, json!({"status": "blocked", "blocked_reason": "waits"})).ok();
    team.worker.changes_task(&task, json!({"status": "running"})).ok();
    team.worker.changes_task(&task, json!({"status": "completed"})).ok();
    for status in ["pending", "ready", "claimed", "running", "failed", "cancelled"] {
        team.lead.changes_task(&task, json!({"status": status})).refused(409, "TASK_STATE_INVALID");
    }
}

fn an_agent_without_the_required_tools_cannot_claim_a_task(world: &World) {
    let team = Team::within(world, json!({}));
    let task = team.task("bill", needs(&["charges.create", "charges.read"]));
    team.assign(&task, "worker");
    let missing = json!([{"service": "payments", "scopes": ["charges.create", "charges.read"]}]);
    let claim = format!("/api/v1/tasks/{}/claim", id(&task));
    let lease = json!({"scope": task["id"]});
    for refused in [
        team.worker.changes_task(&task, json!({"status": "claimed"})),
        team.worker.ask("POST", &claim, None),
        team.worker.post(&team.path("/leases"), &lease),
    ] {
        let error = refused.refused(403, "INSUFFICIENT_TOOL_ACCESS");
        assert_eq!(error["missing"], missing, "{error}");
    }
    assert_eq!(status(&team, &task), "ready");
    assert_eq!(team.worker.get(&team.path("/leases")).ok()["leases"], json!([]));

    // Not enough: another service's name, one scope of two, another task's context, an ended grant.
    team.shop.grant_to("worker", json!({"scopes": ["charges.read"]}));
    team.shop.grant_to("worker", json!({"context": {"task_id": "another"}}));
    let ended = team.shop.grant_to("worker", json!({}));
    team.admin.delete(&format!("/api/v1/grants/{}", id(&ended))).ok();
    let error = team.worker.ask("POST", &claim, None).refused(403, "INSUFFICIENT_TOOL_ACCESS");
    assert_eq!(error["missing"], json!([{"service": "payments", "scopes": ["charges.create"]}]), "{error}");
    let check = format!("/api/v1/tasks/{}/check", id(&task));
    let checked = team.worker.ask("POST", &check, None).ok();
    assert_eq!((&checked["allowed"], &checked["missing"]), (&json!(false), &error["missing"]), "{checked}");

    team.shop.grant_to("worker", json!({}));
    let checked = team.worker.ask("POST", &check, None).ok();
    assert_eq!((&checked["allowed"], &checked["missing"]), (&json!(true), &json!([])), "{checked}");
    assert_eq!(team.worker.ask("POST", &claim, None).ok()["status"], "claimed");
}

fn what_is_not_required_is_reported_and_does_not_prevent_a_claim(world: &World) {
    let team = Team::of(world);
    let email = json!({"service": "email", "scopes": ["send"], "required": false});
    let task = team.task("report", json!({"requires_tools": [email]}));
    let claimed = team.lead.changes_task(&task, json!({"status": "claimed"})).ok();
    assert_eq!(claimed["optional_missing"], json!([{"service": "email", "scopes": ["send"]}]), "{claimed}");
}

fn of_concurrent_claims_exactly_one_succeeds(world: &World) {
    let team = Team::of(world);
    for agent in ["worker", "other"] {
        team.admin.post(&team.path("/agents"), &json!({"agent_id": agent})).created();
    }
    let task = team.task("contested", json!({}));
    let claim = format!("/api/v1/tasks/{}/claim", id(&task));
    let lease = json!({"scope": task["id"]});
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let ways = [&team.worker, &team.other].into_iter().flat_map(|agent| {
            let (claim, lease, team) = (&claim, &lease, &team);
            [
                scope.spawn(move || agent.ask("POST", claim, None).status()),
                scope.spawn(move || agent.post(&team.path("/leases"), lease).status()),
                scope.spawn(move || agent.changes_task_of("1", &task_of(lease), json!({"status": "claimed"})).status()),
            ]
        });
        let running: Vec<_> = ways.collect();
        running.into_iter().map(|way| way.join().unwrap()).collect()
    });
    assert_eq!(statuses.iter().filter(|status| **status < 300).count(), 1, "{statuses:?}");
    assert!(statuses.iter().all(|status| matches!(status, 200 | 201 | 409)), "{statuses:?}");
    assert_eq!(status(&team, &task), "claimed");
}

/// The task that a lease is for.
fn task_of(lease: &Value) -> Value {
    json!({"id": lease["scope"]})
}

fn a_lease_on_a_task_claims_it_and_its_end_gives_it_back(world: &World) {
    let team = Team::of(world);
    team.admin.post(&team.path("/agents"), &json!({"agent_id": "worker"})).created();
    let task = team.reading_task();
    team.assign(&task, "worker");
    let scope = format!("task:{}", id(&task));
    let lease = team.worker.post(&team.path("/leases"), &json!({"scope": scope})).created();
    assert_eq!((&lease["task_id"], &lease["status"]), (&task["id"], &json!("active")));
    let claimed = team.lead.task(&task);
    assert_eq!((&claimed["status"], &claimed["lease_id"]), (&json!("claimed"), &lease["id"]));
    let released = team.worker.delete(&team.path(&format!("/leases/{}", id(&lease)))).ok();
    assert_eq!(released["status"], "released");
    let given_back = team.lead.task(&task);
    assert_eq!((&given_back["status"], &given_back["assigned_agent"]), (&json!("ready"), &json!(null)));
    assert!(team.grants_for("worker", &task).iter().all(|grant| grant["status"] == "revoked"));

    let again = team.lead.post(&team.path("/leases"), &json!({"scope": "research"})).created();
    let error = team.worker.post(&team.path("/leases"), &json!({"scope": "research"})).refused(409, "LEASE_HELD");
    assert_eq!((&error["existing_lease"]["id"], &error["existing_lease"]["agent_id"]), (&again["id"], &json!("lead")));
    assert_eq!(ids(&team.worker.get(&team.path("/leases")).ok()["leases"]), [id(&again)]);
}

fn a_plan_is_estimated_before_it_runs(world: &World) {
    let team = Team::of(world);
    let bill = team.task("bill", needs(&["charges.create"]));
    let send = team.task("send", json!({"requires_tools": [{"service": "email", "scopes": ["send"]}]}));
    let body = json!({"intent_id": team.intent, "tasks": [bill["id"], send["id"]]});
    let plan = team.lead.post("/api/v1/plans", &body).created();
    let path = format!("/api/v1/plans/{}/estimate", id(&plan));
    let estimate = team.lead.get(&path).ok();
    assert_eq!((&estimate["min_usd"], &estimate["max_usd"]), (&json!(0.02), &json!(0.02)), "{estimate}");
    assert_eq!((&estimate["complete"], &estimate["tasks"][1]["unknown"]), (&json!(false), &json!(["email.send"])));
    // Who could not call a tool learns nothing about it.
    team.admin.post(&team.path("/agents"), &json!({"agent_id": "worker"})).created();
    let seen = team.worker.get(&path).ok();
    assert_eq!(seen["tasks"][0]["unknown"], json!(["payments.charges.create"]), "{seen}");
    team.other.get(&path).refused(404, "PLAN_NOT_FOUND");
    let again = merged(body, json!({}));
    team.lead.post("/api/v1/plans", &again).error();
}
