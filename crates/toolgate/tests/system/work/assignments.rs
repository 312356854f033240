//! Grants that come with an assignment, work only while the task runs, and end with it.

use serde_json::json;

use super::team::{Team, needs, reading};
use crate::calls::shop::read;
use crate::world::{World, id, on_both_engines};

on_both_engines! {
    an_assignment_delegates_the_least_that_the_task_needs,
    the_grant_of_a_task_works_only_while_the_task_runs_and_only_for_its_assignee,
    the_grants_of_a_task_end_with_it_in_the_same_step,
    a_coordinator_that_does_not_delegate_assigns_without_grants,
    guardrails_bound_what_is_delegated_and_what_is_called,
}

fn an_assignment_delegates_the_least_that_the_task_needs(world: &World) {
    let team = Team::of(world);
    let task =
        team.task("read", crate::world::merged(needs(&["charges.read"]), json!({"deadline": "2030-01-01T00:00:00Z"})));
    let assigned = team.assign(&task, "worker");
    let grants = team.grants_for("worker", &task);
    let [grant] = grants.as_slice() else { panic!("one grant, and there are {grants:?}") };
    assert_eq!(assigned["delegated_grants"], json!([grant["id"]]), "{assigned}");
    assert_eq!((&grant["scopes"], &grant["source"]), (&json!(["charges.read"]), &json!("delegated")));
    assert_eq!((&grant["delegatable"], &grant["status"]), (&json!(false), &json!("active")));
    assert_eq!(grant["context"]["intent_id"], json!(team.intent));
    let source = team.admin.get(&format!("/api/v1/grants/{}", grant["source_grant_id"].as_str().unwrap())).ok();
    assert_eq!(source["agent_id"], "lead");
    assert_eq!(grant["expires_at"], source["expires_at"], "the source ends before the deadline");
    let events = team.admin.events("&type=grant.delegated");
    assert!(events.iter().any(|event| event["data"]["grant_id"] == grant["id"]), "{events:?}");

    // Whoever already has the tools gets nothing more.
    team.shop.grant_to("other", json!({}));
    let second = team.reading_task();
    team.assign(&second, "other");
    assert!(team.grants_for("other", &second).is_empty());
}

fn the_grant_of_a_task_works_only_while_the_task_runs_and_only_for_its_assignee(world: &World) {
    let team = Team::of(world);
    let task = team.reading_task();
    team.assign(&task, "worker");
    let grants = team.grants_for("worker", &task);
    let grant = &grants[0];
    let denied = |reply: crate::world::Reply| reply.refused(403, "GRANT_CONTEXT_MISMATCH");
    denied(team.worker.invokes(reading(&task)));
    team.worker.changes_task(&task, json!({"status": "claimed"})).ok();
    denied(team.worker.invokes(reading(&task)));
    team.worker.changes_task(&task, json!({"status": "running"})).ok();
    let called = team.worker.invokes(reading(&task)).ok();
    assert_eq!(called["grant_id"], grant["id"]);
    let record = team.shop.record(called["invocation_id"].as_str().unwrap());
    assert_eq!(record["context"]["intent_id"], json!(team.intent), "what the call did not say is filled in: {record}");
    // Not without the task, not for another one, and not by others.
    denied(team.worker.invokes(read(json!({"grant_id": grant["id"]}))));
    denied(team.worker.invokes(read(json!({"grant_id": grant["id"], "context": {"task_id": "task_7"}}))));
    denied(team.lead.invokes(reading(&task)));
    team.worker.changes_task(&task, json!({"status": "blocked"})).ok();
    denied(team.worker.invokes(reading(&task)));
    team.worker.changes_task(&task, json!({"status": "running"})).ok();
    team.worker.invokes(reading(&task)).ok();
    let path = format!("/api/v1/tasks/{}/invocations", id(&task));
    let records = team.admin.get(&path).ok();
    let executed = records["invocations"].as_array().unwrap().iter().filter(|call| call["status"] == "success").count();
    assert_eq!(executed, 2, "{records}");
}

fn the_grants_of_a_task_end_with_it_in_the_same_step(world: &World) {
    let team = Team::of(world);
    for end in ["completed", "failed", "cancelled"] {
        let task = team.reading_task();
        team.assign(&task, "worker");
        let own = team.shop.grant_to("worker", json!({"context": {"task_id": task["id"]}}));
        team.start(&task);
        team.worker.invokes(reading(&task)).ok();
        let by = if end == "cancelled" { &team.lead } else { &team.worker };
        let ended = by.changes_task(&task, json!({"status": end})).ok();
        assert_eq!((&ended["status"], &ended["revoked_grants"]), (&json!(end), &json!(2)), "{ended}");
        let grants = team.grants_for("worker", &task);
        assert_eq!(grants.len(), 2);
        assert!(grants.iter().all(|grant| grant["status"] == "revoked"), "{end}: {grants:?}");
        assert!(grants.iter().any(|grant| grant["id"] == own["id"]), "a direct grant that is bound to it, too");
        let refused = team.worker.invokes(reading(&task));
        assert_eq!(refused.status(), 403, "{}", refused.answer.text());
    }
    for back in [json!({"status": "ready"}), json!({"assigned_agent": "other"}), json!({"assigned_agent": null})] {
        let task = team.reading_task();
        team.assign(&task, "worker");
        team.worker.changes_task(&task, json!({"status": "claimed"})).ok();
        team.lead.changes_task(&task, back.clone()).ok();
        let grants = team.grants_for("worker", &task);
        assert!(grants.iter().all(|grant| grant["status"] == "revoked"), "{back}: {grants:?}");
        team.worker.invokes(reading(&task)).refused(403, "GRANT_CONTEXT_MISMATCH");
    }
}

fn a_coordinator_that_does_not_delegate_assigns_without_grants(world: &World) {
    let team = Team::within(world, json!({"auto_delegate": false}));
    let task = team.reading_task();
    let assigned = team.assign(&task, "worker");
    assert_eq!(assigned["assigned_agent"], "worker");
    assert!(team.grants_for("worker", &task).is_empty());
}

fn guardrails_bound_what_is_delegated_and_what_is_called(world: &World) {
    let team = Team::within(world, json!({"auto_delegate": true, "denied_services": ["payments"]}));
    let task = team.reading_task();
    let assigned = team.assign(&task, "worker");
    assert_eq!(assigned["undelegated"][0]["service"], "payments", "{assigned}");
    assert!(team.grants_for("worker", &task).is_empty());
    team.lead.invokes(read(json!({}))).refused(403, "GUARDRAIL_DENIED");
}
