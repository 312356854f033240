//! Attempts to get more than one was given. Each fails, and leaves everything as it was.

use serde_json::json;

use crate::world::{Actor, World, id, on_both_engines};

on_both_engines! {
    whoever_manages_agents_cannot_become_an_administrator,
    no_key_is_made_or_revoked_for_somebody_more_powerful,
    an_agent_cannot_widen_what_it_holds_by_giving_it_to_itself,
    nobody_takes_over_the_grants_of_a_removed_agent,
    acting_for_others_is_no_way_around_a_missing_permission,
}

fn permissions(actor: &Actor) -> serde_json::Value {
    actor.get("/api/v1/whoami").ok()["permissions"].clone()
}

fn whoever_manages_agents_cannot_become_an_administrator(world: &World) {
    let admin = world.admin();
    let manager = world.agent("manager", &["agents.manage", "tools.invoke"]);
    for stolen in
        ["tools.manage", "tenants.manage", "agents.act_as", "audit.read", "approvals.decide", "tools.delegate"]
    {
        let body = json!({"id": "puppet", "permissions": ["agents.manage", stolen]});
        let error = manager.post("/api/v1/agents", &body).refused(403, "PERMISSION_DENIED");
        assert_eq!(error["required_permission"], stolen);
    }
    manager.delete("/api/v1/agents/admin").refused(403, "PERMISSION_DENIED");
    manager.delete("/api/v1/agents/manager").refused(403, "PERMISSION_DENIED");
    manager.post("/api/v1/agents", &json!({"id": "admin"})).refused(409, "ALREADY_EXISTS");
    manager.post("/api/v1/agents", &json!({"id": "Admin", "kind": "user"})).created();
    assert_eq!(permissions(&manager), json!(["agents.manage", "tools.invoke"]));
    let puppet = manager.registers("puppet", &["agents.manage"]);
    assert_eq!(permissions(&puppet), json!(["agents.manage"]), "what one has one may pass on");
    puppet.post("/api/v1/agents", &json!({"id": "x"})).refused(403, "PERMISSION_DENIED");
    assert_eq!(admin.get("/api/v1/agents/admin").ok()["id"], "admin");
}

fn no_key_is_made_or_revoked_for_somebody_more_powerful(world: &World) {
    let admin = world.admin();
    let manager = world.agent("manager", &["agents.manage"]);
    let boss = world.agent("boss", &["agents.manage", "tools.manage"]);
    for above in ["admin", "boss"] {
        let path = format!("/api/v1/agents/{above}/keys");
        manager.ask("POST", &path, None).refused(403, "PERMISSION_DENIED");
        let keys = manager.get(&path).ok();
        let key = id(&keys["keys"][0]);
        manager.delete(&format!("/api/v1/keys/{key}")).refused(403, "PERMISSION_DENIED");
    }
    admin.get("/api/v1/whoami").ok();
    boss.get("/api/v1/whoami").ok();
    manager.ask("POST", "/api/v1/agents/manager/keys", None).created();
    boss.ask("POST", "/api/v1/agents/manager/keys", None).created();
}

fn an_agent_cannot_widen_what_it_holds_by_giving_it_to_itself(world: &World) {
    let admin = world.admin();
    let agent = world.agent("agent", &["tools.invoke", "tools.delegate"]);
    let more = json!({
        "scopes": ["charges.read", "charges.create"], "delegatable": true, "delegation_depth": 3,
        "constraints": {"amount_max": 100, "max_invocations_per_hour": 5}, "context": {"task_id": "task_1"}
    });
    let grant = admin.grants(&admin.credential(), "agent", more);
    for (wider, code) in [
        (json!({"scopes": ["refunds.create"]}), "GRANT_SCOPE_INSUFFICIENT"),
        (json!({"constraints": {"amount_max": 101}}), "GRANT_CONSTRAINT_EXCEEDED"),
        (json!({"constraints": {"max_invocations_per_hour": 6}}), "GRANT_CONSTRAINT_EXCEEDED"),
        (json!({"context": {"task_id": "task_2"}}), "GRANT_CONTEXT_MISMATCH"),
        (json!({"delegation_depth": 3}), "DELEGATION_DEPTH_EXCEEDED"),
        (json!({"delegation_depth": null}), "DELEGATION_DEPTH_EXCEEDED"),
        (json!({"expires_at": null, "allow_indefinite": true}), "GRANT_EXPIRY_EXCEEDED"),
        (json!({"expires_at": "9000-01-01T00:00:00Z"}), "GRANT_EXPIRY_EXCEEDED"),
    ] {
        agent.tries_to_delegate(&grant, "agent", wider).refused(403, code);
    }
    let copy = agent.delegates(&grant, "agent", json!({"context": {"intent_id": "any"}}));
    assert_eq!(copy["effective"]["constraints"], grant["effective"]["constraints"], "a copy is no wider");
    assert_eq!(copy["context"], json!({"intent_id": "any", "task_id": "task_1"}));
    agent
        .post("/api/v1/grants", &json!({"credential_id": grant["credential_id"], "agent_id": "agent"}))
        .refused(403, "PERMISSION_DENIED");
    // The copy ends with the grant that it was made from.
    admin.delete(&format!("/api/v1/grants/{}", id(&grant))).ok();
    assert_eq!(admin.grant(&copy)["status"], "revoked");
}

fn nobody_takes_over_the_grants_of_a_removed_agent(world: &World) {
    let admin = world.admin();
    let agent = world.agent("worker", &["tools.invoke"]);
    let grant = admin.grants(&admin.credential(), "worker", json!({}));
    admin.delete("/api/v1/agents/worker").ok();
    agent.get("/api/v1/grants").refused(401, "KEY_REVOKED");
    let manager = world.agent("manager", &["agents.manage", "tools.invoke"]);
    manager.post("/api/v1/agents", &json!({"id": "worker"})).refused(409, "ALREADY_EXISTS");
    manager.ask("POST", "/api/v1/agents/worker/keys", None).refused(404, "AGENT_NOT_FOUND");
    assert_eq!(admin.grant(&grant)["status"], "revoked");
}

fn acting_for_others_is_no_way_around_a_missing_permission(world: &World) {
    let admin = world.admin();
    let actor = world.agent("actor", &["agents.act_as"]);
    let as_admin = [("X-Agent-ID", "admin")];
    let whoami = actor.ask_with("GET", "/api/v1/whoami", &as_admin, None).ok();
    assert_eq!(whoami["id"], "actor", "the key decides who calls");
    for (method, path, body) in [
        ("POST", "/api/v1/vaults", Some(json!({"name": "v", "owner_id": "admin"}))),
        ("POST", "/api/v1/agents", Some(json!({"id": "x"}))),
        ("GET", "/api/v1/audit/events", None),
        ("GET", "/api/v1/tenants", None),
        ("GET", "/api/v1/vaults", None),
    ] {
        actor.ask_with(method, path, &as_admin, body.as_ref()).refused(403, "PERMISSION_DENIED");
    }
    let grant = admin.grants(&admin.credential(), "worker", json!({}));
    actor.get(&format!("/api/v1/grants/{}", id(&grant))).refused(404, "GRANT_NOT_FOUND");
}
