//! Events: the RFC's types and data fields, in the order in which things happened.

use serde_json::{Value, json};

use crate::world::{Actor, World, id, on_both_engines, stripe, text};

on_both_engines! {
    a_whole_lifecycle_is_in_the_log_in_order,
    filters_choose_among_events,
    refused_requests_leave_no_events,
}

fn a_whole_lifecycle_is_in_the_log_in_order(world: &World) {
    let admin = world.admin();
    let agent = world.agent("coordinator", &["tools.delegate"]);
    let key = id(&admin.get("/api/v1/agents/coordinator/keys").ok()["keys"][0]);
    let vault = admin.vault();
    let nested = format!("/api/v1/vaults/{vault}/credentials");
    let credential = id(&admin.post(&nested, &stripe()).created());
    let context = json!({"intent_id": "intent_1", "plan_id": "plan_1"});
    let grant = admin.grants(&credential, "coordinator", json!({"delegatable": true, "context": context}));
    let below = agent.delegates(&grant, "worker", json!({"context": {"task_id": "task_1"}}));
    let path = format!("/api/v1/grants/{}", id(&grant));
    admin.patch(&format!("{path}/suspend"), &json!({"reason": "an incident"})).ok();
    admin.ask("PATCH", &format!("{path}/resume"), None).ok();
    admin.patch(&format!("/api/v1/credentials/{credential}/rotate"), &json!({"material": {"api_key": "next"}})).ok();
    admin.ask("DELETE", &path, Some(&json!({"reason": "no longer needed"}))).ok();
    let last = admin.grants(&credential, "worker", json!({}));
    admin.ask("DELETE", &format!("/api/v1/credentials/{credential}"), Some(&json!({"reason": "leaked"}))).ok();
    admin.delete(&format!("/api/v1/vaults/{vault}")).ok();
    admin.delete(&format!("/api/v1/keys/{key}")).ok();
    admin.delete("/api/v1/agents/coordinator").ok();

    let all_but_tenants = json!(admin.get("/api/v1/whoami").ok()["permissions"]);
    let expected = [
        ("tenant.created", "core.system", Value::Null, json!({"tenant_id": "default"})),
        (
            "agent.created",
            "core.system",
            json!("admin"),
            json!({"agent_id": "admin", "kind": "user", "permissions": all_but_tenants}),
        ),
        ("key.created", "core.system", json!("admin"), Value::Null),
        (
            "agent.created",
            "admin",
            json!("coordinator"),
            json!({"agent_id": "coordinator", "kind": "agent", "permissions": ["tools.delegate"]}),
        ),
        (
            "key.created",
            "admin",
            json!("coordinator"),
            json!({"key_id": key, "principal_id": "coordinator", "expires_at": null}),
        ),
        ("vault.created", "admin", Value::Null, json!({"vault_id": vault, "owner_id": "admin"})),
        (
            "credential.created",
            "admin",
            Value::Null,
            json!({"credential_id": credential, "vault_id": vault, "service": "stripe", "auth_type": "api_key"}),
        ),
        (
            "grant.created",
            "admin",
            json!("coordinator"),
            json!({
                "grant_id": grant["id"], "credential_id": credential, "agent_id": "coordinator", "scopes": ["charges.read"],
                "expires_at": grant["expires_at"]
            }),
        ),
        (
            "grant.delegated",
            "coordinator",
            json!("worker"),
            json!({
                "grant_id": below["id"], "source_grant_id": grant["id"], "target_agent_id": "worker",
                "scopes": ["charges.read"], "delegation_depth": 0
            }),
        ),
        ("grant.suspended", "admin", json!("coordinator"), json!({"grant_id": grant["id"], "reason": "an incident"})),
        ("grant.resumed", "admin", json!("coordinator"), json!({"grant_id": grant["id"]})),
        ("credential.rotated", "admin", Value::Null, json!({"credential_id": credential, "rotated_by": "admin"})),
        (
            "grant.revoked",
            "admin",
            json!("coordinator"),
            json!({"grant_id": grant["id"], "reason": "no longer needed", "cascade_count": 1}),
        ),
        (
            "grant.revoked",
            "admin",
            json!("worker"),
            json!({
                "grant_id": below["id"], "cascade_count": 0,
                "reason": format!("{}, which it was delegated from, was revoked", id(&grant))
            }),
        ),
        ("grant.created", "admin", json!("worker"), Value::Null),
        (
            "grant.revoked",
            "admin",
            json!("worker"),
            json!({
                "grant_id": last["id"], "cascade_count": 0, "reason": format!("credential {credential} was revoked")
            }),
        ),
        (
            "credential.revoked",
            "admin",
            Value::Null,
            json!({"credential_id": credential, "reason": "leaked", "affected_grants_count": 1}),
        ),
        (
            "vault.deleted",
            "admin",
            Value::Null,
            json!({"vault_id": vault, "revoked_credentials": 0, "revoked_grants": 0}),
        ),
        ("key.revoked", "admin", json!("coordinator"), json!({"key_id": key, "principal_id": "coordinator"})),
        (
            "agent.removed",
            "admin",
            json!("coordinator"),
            json!({"agent_id": "coordinator", "revoked_keys": 0, "revoked_grants": 0}),
        ),
    ];
    let events = admin.events("");
    assert_eq!(
        events.iter().map(|event| text(event, "/type")).collect::<Vec<_>>(),
        expected.each_ref().map(|(kind, ..)| *kind)
    );
    let mut time = String::new();
    for (sequence, (event, (kind, actor, about, data))) in events.iter().zip(expected).enumerate() {
        assert_eq!(event["sequence"], sequence, "{event}");
        assert!(text(event, "/id").starts_with("evt_"));
        assert_eq!((&event["tenant"], &event["actor"]), (&json!("default"), &json!(actor)), "{kind}");
        assert_eq!(event.get("agent_id").unwrap_or(&Value::Null), &about, "{kind}");
        if !data.is_null() {
            assert_eq!(event["data"], data, "{kind}");
        }
        assert!(text(event, "/timestamp") >= time.as_str(), "time does not run back");
        time = text(event, "/timestamp").to_owned();
    }
    for event in events.iter().filter(|event| event["data"]["grant_id"] == grant["id"]) {
        assert_eq!((&event["intent_id"], &event["plan_id"]), (&json!("intent_1"), &json!("plan_1")), "{event}");
        assert!(event.get("task_id").is_none());
    }
    for event in events.iter().filter(|event| event["data"]["grant_id"] == below["id"]) {
        assert_eq!((&event["intent_id"], &event["task_id"]), (&json!("intent_1"), &json!("task_1")), "{event}");
    }
}

fn filters_choose_among_events(world: &World) {
    let admin = world.admin();
    let agent = world.agent("coordinator", &["tools.delegate"]);
    let credential = admin.credential();
    let more =
        json!({"delegatable": true, "delegation_depth": 3, "context": {"intent_id": "intent_1", "task_id": "task_1"}});
    let grant = admin.grants(&credential, "coordinator", more);
    agent.delegates(&grant, "worker", json!({}));
    admin.grants(&credential, "worker", json!({"context": {"intent_id": "intent_2"}}));
    let types = |query: &str| -> Vec<String> {
        admin.events(query).iter().map(|event| text(event, "/type").to_owned()).collect()
    };
    assert_eq!(types("&type=grant.created"), ["grant.created"; 2]);
    assert_eq!(types("&actor=coordinator"), ["grant.delegated"]);
    assert_eq!(types("&agent_id=worker"), ["grant.delegated", "grant.created"]);
    assert_eq!(types("&agent_id=coordinator"), ["agent.created", "key.created", "grant.created"]);
    assert_eq!(types("&intent_id=intent_1"), ["grant.created", "grant.delegated"]);
    assert_eq!(types("&task_id=task_1"), ["grant.created", "grant.delegated"]);
    assert_eq!(types("&intent_id=intent_1&type=grant.delegated&agent_id=worker"), ["grant.delegated"]);
    assert_eq!(types("&type=tool.invoked"), [""; 0]);

    let all = admin.events("");
    let middle = text(&all[all.len() / 2], "/timestamp").replace('+', "%2B");
    let (before, after) = (types(&format!("&until={middle}")), types(&format!("&since={middle}")));
    assert_eq!(before.len() + after.len(), all.len(), "`since` includes its moment, `until` does not");
    assert_eq!(walk(&admin, 3), all, "page by page it is the same log");
}

fn walk(actor: &Actor, limit: usize) -> Vec<Value> {
    let mut all = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = actor.get(&format!("/api/v1/audit/events?limit={limit}{cursor}")).ok();
        all.extend(page["events"].as_array().unwrap().iter().cloned());
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return all,
        }
    }
}

fn refused_requests_leave_no_events(world: &World) {
    let admin = world.admin();
    let credential = admin.credential();
    let before = admin.events("").len();
    admin.post("/api/v1/vaults", &json!({"name": ""})).error();
    admin.post("/api/v1/agents", &json!({"id": "admin"})).error();
    admin.post("/api/v1/tenants", &json!({"id": "default"})).error();
    let beyond = json!({"credential_id": credential, "agent_id": "a", "scopes": ["payouts.create"]});
    admin.post("/api/v1/grants", &beyond).error();
    admin.patch(&format!("/api/v1/credentials/{credential}/rotate"), &json!({"material": {"token_type": "x"}})).error();
    assert_eq!(admin.events("").len(), before);
}
