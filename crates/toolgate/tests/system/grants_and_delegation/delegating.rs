//! Delegation: the six rules of §5.1, by agents who hold what they pass on.

use std::time::Duration;

use serde_json::{Value, json};

use crate::world::{World, id, on_both_engines, text};

on_both_engines! {
    the_rfcs_delegation_is_taken_as_it_is_written,
    only_scopes_that_the_source_holds_are_passed_on,
    a_grant_that_is_not_delegatable_stays_with_its_holder,
    depth_decreases_with_every_level_and_ends,
    an_unlimited_depth_stays_unlimited_until_somebody_limits_it,
    a_bound_context_only_gets_closer,
    a_delegation_ends_no_later_than_its_source,
    delegating_needs_the_permission_and_the_grant,
}

const DELEGATOR: &[&str] = &["tools.invoke", "tools.delegate"];

fn the_rfcs_delegation_is_taken_as_it_is_written(world: &World) {
    let admin = world.admin();
    let coordinator = world.agent("coordinator_01", DELEGATOR);
    let credential = admin.credential();
    let more = json!({"scopes": ["charges.read", "charges.create"], "delegatable": true, "constraints": {"amount_max": 50000}});
    let source = admin.grants(&credential, &coordinator.id, more);
    let end = admin.time().plus(Duration::from_secs(7200)).to_string();
    // §5.1
    let body = json!({
        "action": "delegate_grant",
        "source_grant_id": id(&source),
        "target_agent_id": "agent_worker_01",
        "scopes": ["charges.read"],
        "constraints": {"max_invocations_per_hour": 10},
        "context": {"task_id": "task_01HXYZ"},
        "expires_at": end
    });
    let path = format!("/api/v1/grants/{}/delegate", id(&source));
    let grant = coordinator.post(&path, &body).created();
    assert_eq!((&grant["agent_id"], &grant["granted_by"]), (&json!("agent_worker_01"), &json!("coordinator_01")));
    assert_eq!((&grant["source"], &grant["source_grant_id"]), (&json!("delegated"), &source["id"]));
    assert_eq!(grant["delegated_from"], source["id"]);
    assert_eq!((&grant["credential_id"], &grant["service"]), (&json!(credential), &json!("stripe")));
    assert_eq!((&grant["scopes"], &grant["expires_at"]), (&json!(["charges.read"]), &json!(end)));
    assert_eq!(grant["context"], json!({"task_id": "task_01HXYZ"}));
    assert_eq!((&grant["delegation_depth"], &grant["delegatable"]), (&json!(0), &json!(false)));
    assert_eq!(grant["constraints"], json!({"max_invocations_per_hour": 10}), "what was stated");
    let effective = json!({"max_invocations_per_hour": 10, "allowed_parameters": {"amount_max": 50000}});
    assert_eq!(grant["effective"]["constraints"], effective, "and what is inherited");
    let lineage = json!([
        {"grant_id": source["id"], "agent_id": "coordinator_01", "granted_by": "admin", "status": "active"}
    ]);
    assert_eq!(grant["lineage"], lineage);

    for (wrong, field) in [
        (json!({"action": "revoke_grant", "target_agent_id": "w", "scopes": ["charges.read"]}), "action"),
        (json!({"source_grant_id": id(&grant), "target_agent_id": "w", "scopes": ["charges.read"]}), "source_grant_id"),
        (json!({"target_agent_id": "w", "agent_id": "v", "scopes": ["charges.read"]}), "agent_id"),
        (json!({"scopes": ["charges.read"]}), "target_agent_id"),
    ] {
        assert_eq!(coordinator.post(&path, &wrong).refused(400, "INVALID_FIELD")["path"], field);
    }
    let short = coordinator.post(&path, &json!({"agent_id": "w", "scopes": ["charges.read"]})).created();
    assert_eq!(short["agent_id"], "w", "agent_id is the target where target_agent_id is left out");
    coordinator.post(&path, &json!({"target_agent_id": "w"})).refused(400, "INVALID_FIELD");
}

fn only_scopes_that_the_source_holds_are_passed_on(world: &World) {
    let admin = world.admin();
    let coordinator = world.agent("coordinator", DELEGATOR);
    let worker = world.agent("worker", DELEGATOR);
    let more = json!({"scopes": ["charges.read", "charges.create"], "delegatable": true, "delegation_depth": 2});
    let source = admin.grants(&admin.credential(), "coordinator", more);
    // The credential has the scope, the source grant has not.
    let reply = coordinator.tries_to_delegate(&source, "worker", json!({"scopes": ["charges.read", "refunds.create"]}));
    let error = reply.refused(403, "GRANT_SCOPE_INSUFFICIENT");
    assert_eq!((&error["requested_scope"], &error["grant_id"]), (&json!("refunds.create"), &source["id"]));
    assert_eq!(error["available_scopes"], json!(["charges.create", "charges.read"]));
    let below = coordinator.delegates(&source, "worker", json!({"scopes": ["charges.create"]}));
    let reply = worker.tries_to_delegate(&below, "sub", json!({"scopes": ["charges.read"]}));
    reply.refused(403, "GRANT_SCOPE_INSUFFICIENT");
    coordinator.delegates(&source, "worker", json!({"scopes": ["charges.read", "charges.create"]}));
}

fn a_grant_that_is_not_delegatable_stays_with_its_holder(world: &World) {
    let admin = world.admin();
    let coordinator = world.agent("coordinator", DELEGATOR);
    let credential = admin.credential();
    let plain = admin.grants(&credential, "coordinator", json!({}));
    coordinator.tries_to_delegate(&plain, "worker", json!({})).refused(403, "GRANT_NOT_DELEGATABLE");
    admin.tries_to_delegate(&plain, "worker", json!({})).refused(403, "GRANT_NOT_DELEGATABLE");
    let deep = admin.grants(&credential, "coordinator", json!({"delegatable": false, "delegation_depth": 5}));
    coordinator.tries_to_delegate(&deep, "worker", json!({})).refused(403, "GRANT_NOT_DELEGATABLE");
    let flat = admin.grants(&credential, "coordinator", json!({"delegatable": true, "delegation_depth": 0}));
    coordinator.tries_to_delegate(&flat, "worker", json!({})).refused(403, "DELEGATION_DEPTH_EXCEEDED");
}

fn depth_decreases_with_every_level_and_ends(world: &World) {
    let admin = world.admin();
    let agents = ["zero", "one", "two"].map(|id| world.agent(id, DELEGATOR));
    let more = json!({"delegatable": true, "delegation_depth": 2});
    let top = admin.grants(&admin.credential(), "zero", more);
    agents[0].tries_to_delegate(&top, "one", json!({"delegation_depth": 2})).refused(403, "DELEGATION_DEPTH_EXCEEDED");
    agents[0]
        .tries_to_delegate(&top, "one", json!({"delegation_depth": null}))
        .refused(403, "DELEGATION_DEPTH_EXCEEDED");
    let first = agents[0].delegates(&top, "one", json!({}));
    assert_eq!((&first["delegation_depth"], &first["delegatable"]), (&json!(1), &json!(true)));
    let second = agents[1].delegates(&first, "two", json!({}));
    assert_eq!((&second["delegation_depth"], &second["delegatable"]), (&json!(0), &json!(false)));
    agents[2].tries_to_delegate(&second, "three", json!({})).refused(403, "GRANT_NOT_DELEGATABLE");
    let still = agents[1].delegates(&first, "two", json!({"delegatable": true}));
    assert_eq!((&still["delegation_depth"], &still["delegatable"]), (&json!(0), &json!(true)));
    agents[2].tries_to_delegate(&still, "three", json!({})).refused(403, "DELEGATION_DEPTH_EXCEEDED");
    let kept = agents[0].delegates(&top, "one", json!({"delegatable": false}));
    assert_eq!(kept["delegatable"], false);
    agents[1].tries_to_delegate(&kept, "two", json!({})).refused(403, "GRANT_NOT_DELEGATABLE");
    let fewer = agents[0].delegates(&top, "one", json!({"delegation_depth": 0}));
    assert_eq!((&fewer["delegation_depth"], &fewer["delegatable"]), (&json!(0), &json!(false)));
}

fn an_unlimited_depth_stays_unlimited_until_somebody_limits_it(world: &World) {
    let admin = world.admin();
    let more = json!({"delegatable": true, "delegation_depth": null});
    let mut grant = admin.grants(&admin.credential(), "level-0", more);
    for level in 1..=6 {
        let holder = world.agent(&format!("level-{}", level - 1), DELEGATOR);
        grant = holder.delegates(&grant, &format!("level-{level}"), json!({}));
        assert_eq!((&grant["delegation_depth"], &grant["delegatable"]), (&Value::Null, &json!(true)));
        assert_eq!(grant["lineage"].as_array().unwrap().len(), level);
    }
    let holder = world.agent("level-6", DELEGATOR);
    let limited = holder.delegates(&grant, "level-7", json!({"delegation_depth": 1}));
    assert_eq!(limited["delegation_depth"], 1);
    let last = world.agent("level-7", DELEGATOR).delegates(&limited, "level-8", json!({}));
    assert_eq!(last["effective"]["delegation_depth"], 0);
}

fn a_bound_context_only_gets_closer(world: &World) {
    let admin = world.admin();
    let coordinator = world.agent("coordinator", DELEGATOR);
    let bound = json!({"delegatable": true, "context": {"intent_id": "intent_1", "plan_id": "plan_1"}});
    let source = admin.grants(&admin.credential(), "coordinator", bound);
    for other in [json!({"intent_id": "intent_2"}), json!({"plan_id": "plan_2", "intent_id": "intent_1"})] {
        let reply = coordinator.tries_to_delegate(&source, "worker", json!({"context": other}));
        assert_eq!(reply.refused(403, "GRANT_CONTEXT_MISMATCH")["grant_id"], source["id"]);
    }
    let closer = coordinator.delegates(&source, "worker", json!({"context": {"task_id": "task_9"}}));
    let whole = json!({"intent_id": "intent_1", "plan_id": "plan_1", "task_id": "task_9"});
    assert_eq!(
        (&closer["context"], &closer["effective"]["context"]),
        (&whole, &whole),
        "what is left open is inherited"
    );
    let same = coordinator.delegates(&source, "worker", json!({"context": {"intent_id": "intent_1"}}));
    assert_eq!(same["context"], json!({"intent_id": "intent_1", "plan_id": "plan_1"}));
    let unknown = json!({"context": {"workflow_id": "w"}});
    coordinator.tries_to_delegate(&source, "worker", unknown).refused(400, "UNKNOWN_FIELD");
}

fn a_delegation_ends_no_later_than_its_source(world: &World) {
    let admin = world.admin();
    let coordinator = world.agent("coordinator", DELEGATOR);
    let credential = admin.credential();
    let end = admin.time().plus(Duration::from_secs(3600));
    let source = admin.grants(&credential, "coordinator", json!({"delegatable": true, "expires_at": end}));
    let later = end.plus(Duration::from_millis(1));
    let reply = coordinator.tries_to_delegate(&source, "worker", json!({"expires_at": later}));
    reply.refused(403, "GRANT_EXPIRY_EXCEEDED");
    let endless = json!({"expires_at": null, "allow_indefinite": true});
    coordinator.tries_to_delegate(&source, "worker", endless.clone()).refused(403, "GRANT_EXPIRY_EXCEEDED");
    coordinator.tries_to_delegate(&source, "worker", json!({"expires_at": null})).refused(400, "INVALID_FIELD");
    let past = json!({"expires_at": "2020-01-01T00:00:00Z"});
    coordinator.tries_to_delegate(&source, "worker", past).refused(400, "INVALID_FIELD");
    let same = coordinator.delegates(&source, "worker", json!({"expires_at": end}));
    assert_eq!(text(&same, "/expires_at"), end.to_string());
    let inherited = coordinator.delegates(&source, "worker", json!({}));
    assert_eq!(inherited["expires_at"], source["expires_at"], "without an end of its own it ends with its source");
    let more = json!({"delegatable": true, "expires_at": null, "allow_indefinite": true});
    let open = admin.grants(&credential, "coordinator", more);
    assert_eq!(coordinator.delegates(&open, "worker", endless)["expires_at"], Value::Null);
}

fn delegating_needs_the_permission_and_the_grant(world: &World) {
    let admin = world.admin();
    let plain = world.agent("plain", &["tools.invoke"]);
    let stranger = world.agent("stranger", DELEGATOR);
    let acting = world.agent("acting", &["tools.delegate", "agents.act_as"]);
    let credential = admin.credential();
    let source = admin.grants(&credential, "plain", json!({"delegatable": true, "delegation_depth": 3}));
    let error = plain.tries_to_delegate(&source, "worker", json!({})).refused(403, "PERMISSION_DENIED");
    assert_eq!(error["required_permission"], "tools.delegate");
    stranger.tries_to_delegate(&source, "stranger", json!({})).refused(404, "GRANT_NOT_FOUND");
    acting.tries_to_delegate(&source, "acting", json!({})).refused(404, "GRANT_NOT_FOUND");
    let by_admin = admin.delegates(&source, "stranger", json!({}));
    assert_eq!(by_admin["granted_by"], "plain", "the administrator delegates for the holder");
    // Whoever holds a grant further up sees what is below, but is not its holder.
    let top = admin.grants(&credential, "stranger", json!({"delegatable": true, "delegation_depth": 2}));
    let below = stranger.delegates(&top, "plain", json!({}));
    let error = stranger.tries_to_delegate(&below, "stranger", json!({})).refused(403, "PERMISSION_DENIED");
    assert_eq!(error["required_permission"], "agents.act_as");
}
