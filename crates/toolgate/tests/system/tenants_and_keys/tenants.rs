//! Tenants, made by the platform's administrator, and the walls between them.

use serde_json::{Value, json};

use crate::routes::{Things, guarded};
use crate::world::{Actor, World, ids, names, on_both_engines, text};

on_both_engines! {
    a_tenant_comes_with_an_administrator_and_a_key_that_is_shown_once,
    only_the_platform_makes_and_lists_tenants,
    what_is_of_another_tenant_looks_like_nothing_on_every_route,
    lists_filters_and_logs_hold_nothing_of_other_tenants,
}

fn a_tenant_comes_with_an_administrator_and_a_key_that_is_shown_once(world: &World) {
    let admin = world.admin();
    let made = admin.post("/api/v1/tenants", &json!({"id": "acme", "name": "ACME Corporation"})).created();
    assert_eq!(names(&made), ["administrator", "budget", "created_at", "gate_stopped", "id", "name", "stopped"]);
    assert_eq!((&made["id"], &made["name"]), (&json!("acme"), &json!("ACME Corporation")));
    assert_eq!(made["administrator"]["id"], "admin");
    let key = text(&made, "/administrator/key");
    assert!(toolgate_model::key::ApiKey::parse(key).is_some());
    let whoami = world.actor("admin", key).get("/api/v1/whoami").ok();
    assert_eq!(
        (&whoami["id"], &whoami["tenant_id"], &whoami["kind"]),
        (&json!("admin"), &json!("acme"), &json!("user"))
    );
    let permissions = [
        "agents.act_as",
        "agents.manage",
        "approvals.decide",
        "audit.read",
        "policies.manage",
        "tools.delegate",
        "tools.invoke",
        "tools.manage",
    ];
    assert_eq!(whoami["permissions"], json!(permissions), "all but making tenants");
    admin.post("/api/v1/tenants", &json!({"id": "acme"})).refused(409, "ALREADY_EXISTS");
    admin.post("/api/v1/tenants", &json!({"id": "default"})).refused(409, "ALREADY_EXISTS");
    let shown = admin.get("/api/v1/tenants/acme");
    assert_eq!(names(&shown.ok()), ["budget", "created_at", "gate_stopped", "id", "name", "stopped"]);
    assert_eq!(ids(&admin.get("/api/v1/tenants").ok()["tenants"]), ["acme", "default"]);
    assert!(!admin.get("/api/v1/tenants").answer.text().contains(key));
    let page = admin.get("/api/v1/tenants?limit=1").ok();
    assert_eq!((ids(&page["tenants"]), &page["next_cursor"]), (vec!["acme".to_owned()], &json!("acme")));
    assert_eq!(ids(&admin.get("/api/v1/tenants?limit=1&cursor=acme").ok()["tenants"]), ["default"]);
}

fn only_the_platform_makes_and_lists_tenants(world: &World) {
    let acme = world.tenant("acme");
    let error = acme.post("/api/v1/tenants", &json!({"id": "mine"})).refused(403, "PERMISSION_DENIED");
    assert_eq!(error["required_permission"], "tenants.manage");
    acme.get("/api/v1/tenants").refused(403, "PERMISSION_DENIED");
    acme.get("/api/v1/master-keys").refused(403, "PERMISSION_DENIED");
    acme.ask("POST", "/api/v1/master-keys/rekey", None).refused(403, "PERMISSION_DENIED");
    assert_eq!(acme.get("/api/v1/tenants/acme").ok()["id"], "acme", "its own it sees");
    let more = json!({"id": "helper", "permissions": ["tenants.manage"]});
    acme.post("/api/v1/agents", &more).refused(403, "PERMISSION_DENIED");
    world.admin().get("/api/v1/tenants/mine").refused(404, "TENANT_NOT_FOUND");
}

fn what_is_of_another_tenant_looks_like_nothing_on_every_route(world: &World) {
    let admin = world.admin();
    let (acme, globex) = (world.tenant("acme"), world.tenant("umbrella"));
    let theirs = Things::made_by(&acme, "an-agent");
    let nothing = Things::unknown("no-agent", "none");
    let before = snapshot(&acme, &theirs);
    for route in guarded().iter().filter(|route| route.has_id()) {
        for stranger in [&globex, &admin] {
            // The platform's administrator does see tenants.
            if stranger.key == admin.key && route.path.contains("{tenant_id}") {
                continue;
            }
            // These make something of the stranger's own, whatever others have.
            if route.method == "PUT" {
                continue;
            }
            let ask = |things: &Things| stranger.asks(route, things);
            let (hidden, none) = (ask(&theirs), ask(&nothing));
            assert_eq!(hidden.status(), none.status(), "{}: {}", hidden.asked, hidden.answer.text());
            assert_eq!(
                without(&hidden.answer.text(), &theirs),
                without(&none.answer.text(), &nothing),
                "{}",
                hidden.asked
            );
            // Empty lists, and a session that is the stranger's own.
            let empty = [
                "/api/v1/agents/{agent_id}/grants",
                "/api/v1/approval-sessions/{session}",
                "/api/v1/intents/{intent_id}/invocations",
                "/api/v1/tasks/{task_id}/invocations",
            ]
            .contains(&route.path);
            assert_eq!(hidden.status(), if empty { 200 } else { 404 }, "{}", hidden.asked);
        }
    }
    for (path, body) in [
        ("/api/v1/credentials", json!({"vault_id": "{vault_id}", "service": "s", "label": "l"})),
        ("/api/v1/grants", json!({"credential_id": "{credential_id}", "agent_id": "me", "scopes": ["charges.read"]})),
    ] {
        let ask = |things: &Things| {
            let mut text = body.to_string();
            for (placeholder, value) in things.by_placeholder() {
                text = text.replace(placeholder, value);
            }
            globex.post(path, &serde_json::from_str::<Value>(&text).unwrap())
        };
        let (hidden, none) = (ask(&theirs), ask(&nothing));
        assert_eq!((hidden.status(), none.status()), (404, 404));
        assert_eq!(without(&hidden.answer.text(), &theirs), without(&none.answer.text(), &nothing), "{path}");
    }
    assert_eq!(snapshot(&acme, &theirs), before, "and nothing of it was touched");
}

fn without(text: &str, things: &Things) -> String {
    let mut text = text.to_owned();
    for (placeholder, value) in things.by_placeholder() {
        text = text.replace(value, placeholder);
    }
    text
}

fn snapshot(actor: &Actor, things: &Things) -> Vec<Value> {
    [
        format!("/api/v1/agents/{}", things.agent),
        format!("/api/v1/vaults/{}", things.vault),
        format!("/api/v1/credentials/{}", things.credential),
        format!("/api/v1/grants?credential_id={}", things.credential),
        format!("/api/v1/services/{}", things.service),
        format!("/api/v1/invocations/{}", things.invocation),
        format!("/api/v1/approvals/{}", things.approval),
        format!("/api/v1/standing-approvals/{}", things.standing),
        format!("/api/v1/intents/{}", things.intent),
        format!("/api/v1/tasks/{}", things.task),
        format!("/api/v1/plans/{}", things.plan),
        format!("/api/v1/coordinators/{}", things.coordinator),
        "/api/v1/audit/events".to_owned(),
    ]
    .iter()
    .map(|path| actor.get(path).ok())
    .collect()
}

fn lists_filters_and_logs_hold_nothing_of_other_tenants(world: &World) {
    let (acme, globex) = (world.tenant("acme"), world.tenant("umbrella"));
    let theirs = Things::made_by(&acme, "twin");
    let own = Things::made_by(&globex, "twin");
    for path in [
        "/api/v1/agents".to_owned(),
        "/api/v1/vaults".to_owned(),
        "/api/v1/grants".to_owned(),
        "/api/v1/grants?agent_id=twin".to_owned(),
        format!("/api/v1/grants?credential_id={}", theirs.credential),
        format!("/api/v1/grants?source_grant_id={}", theirs.grant),
        format!("/api/v1/grants?cursor={}", theirs.grant.get(..12).unwrap()),
        "/api/v1/agents/twin/grants".to_owned(),
        "/api/v1/agents/twin/keys".to_owned(),
        "/api/v1/approvals".to_owned(),
        "/api/v1/approvals?agent_id=twin&status=approved".to_owned(),
        "/api/v1/standing-approvals?active=true".to_owned(),
        "/api/v1/intents".to_owned(),
        "/api/v1/audit/events".to_owned(),
        "/api/v1/audit/events?agent_id=twin".to_owned(),
        "/api/v1/audit/export".to_owned(),
    ] {
        let reply = globex.get(&path);
        let text = reply.answer.text();
        assert_eq!(reply.status(), 200, "{text}");
        let of_theirs =
            [&theirs.key, &theirs.vault, &theirs.credential, &theirs.grant, &theirs.approval, &theirs.intent];
        for foreign in of_theirs.into_iter().map(String::as_str).chain(["acme", &theirs.standing]) {
            assert!(!text.contains(foreign), "{foreign} in {path}");
        }
    }
    assert_eq!(ids(&globex.get("/api/v1/agents/twin/grants").ok()), [own.grant], "one name, two agents");
    // The platform reads its own log only: that a tenant was made, and nothing of what happens in it.
    let text = world.admin().get("/api/v1/audit/events").answer.text();
    assert!(text.contains("\"tenant_id\":\"acme\""));
    assert!(!text.contains(&theirs.vault) && !text.contains("twin"));
}
