//! The registry over HTTP: making, replacing and removing definitions, who may, and what is wrong with a bad one.

use serde_json::{Value, json};

use super::shop::{Shop, payments};
use crate::world::{World, merged, names, on_both_engines, text};

on_both_engines! {
    a_definition_is_kept_shown_replaced_and_removed,
    versions_are_kept_beside_each_other,
    to_keep_vaults_is_not_enough_to_say_where_credentials_go,
    a_bad_definition_is_refused_by_its_path,
    the_short_form_and_full_schemas_mean_the_same,
    the_next_call_sees_what_was_changed,
    changes_of_the_registry_are_in_the_log,
}

fn a_definition_is_kept_shown_replaced_and_removed(world: &World) {
    let admin = world.admin();
    let made = admin.post("/api/v1/services", &payments("1")).created();
    assert_eq!((&made["service"], &made["version"]), (&json!("payments"), &json!("1")));
    assert!(made["created_at"].is_string() && made["updated_at"] == made["created_at"], "{made}");
    let shown = admin.get("/api/v1/services/payments").ok();
    assert_eq!(shown, json!({"service": "payments", "versions": [made]}));
    let listed = admin.get("/api/v1/services").ok();
    assert_eq!(listed["services"], json!([made]));
    // What is shown can be put back as it is.
    let mut again = made.clone();
    for audit in ["created_at", "updated_at"] {
        again.as_object_mut().unwrap().remove(audit);
    }
    let replaced = admin.ask("PUT", "/api/v1/services/payments", Some(&again)).ok();
    assert_eq!((&replaced["tools"], &replaced["created_at"]), (&made["tools"], &made["created_at"]));
    let error = admin.post("/api/v1/services", &payments("1")).refused(409, "ALREADY_EXISTS");
    assert!(text(&error, "/message").contains("payments"), "{error}");
    let new = json!({"service": "payments", "version": "1", "description": "less", "tools": {}});
    let replaced = admin.ask("PUT", "/api/v1/services/payments", Some(&new)).ok();
    assert_eq!((&replaced["tools"], &replaced["description"]), (&json!({}), &json!("less")));
    let error = admin.ask("PUT", "/api/v1/services/other", Some(&new)).refused(400, "INVALID_FIELD");
    assert_eq!(error["path"], "service");
    let removed = admin.delete("/api/v1/services/payments").ok();
    assert_eq!(removed, json!({"status": "removed", "service": "payments", "removed_versions": 1}));
    admin.get("/api/v1/services/payments").refused(404, "SERVICE_NOT_FOUND");
    admin.delete("/api/v1/services/payments").refused(404, "SERVICE_NOT_FOUND");
    assert_eq!(admin.ask("PUT", "/api/v1/services/payments", Some(&new)).created()["version"], "1", "or made anew");
}

fn versions_are_kept_beside_each_other(world: &World) {
    let admin = world.admin();
    for version in ["1", "2", "10"] {
        admin.post("/api/v1/services", &payments(version)).created();
    }
    let versions = |path: &str| {
        let shown = admin.get(path).ok();
        let versions = shown["versions"].as_array().unwrap().iter().map(|version| version["version"].clone());
        Value::Array(versions.collect())
    };
    assert_eq!(versions("/api/v1/services/payments"), json!(["10", "2", "1"]), "the newest first");
    assert_eq!(versions("/api/v1/services/payments?version=2"), json!(["2"]));
    admin.get("/api/v1/services/payments?version=3").refused(404, "SERVICE_NOT_FOUND");
    assert_eq!(admin.delete("/api/v1/services/payments?version=2").ok()["removed_versions"], 1);
    assert_eq!(versions("/api/v1/services/payments"), json!(["10", "1"]));
    admin.delete("/api/v1/services/payments?version=2").refused(404, "SERVICE_NOT_FOUND");
    assert_eq!(admin.delete("/api/v1/services/payments").ok()["removed_versions"], 2);
}

fn to_keep_vaults_is_not_enough_to_say_where_credentials_go(world: &World) {
    let admin = world.admin();
    admin.post("/api/v1/services", &payments("1")).created();
    let before = admin.get("/api/v1/services").ok();
    for (agent, permissions, required) in [
        ("worker", vec!["tools.invoke", "tools.delegate"], "tools.manage"),
        ("registrar", vec!["agents.act_as", "agents.manage"], "tools.manage"),
        ("keeper", vec!["tools.manage"], "agents.act_as"),
    ] {
        let actor = world.agent(agent, &permissions);
        for reply in [
            actor.post("/api/v1/services", &payments("2")),
            actor.ask("PUT", "/api/v1/services/payments", Some(&payments("1"))),
            actor.delete("/api/v1/services/payments"),
        ] {
            let error = reply.refused(403, "PERMISSION_DENIED");
            assert_eq!(error["required_permission"], required);
        }
        let reads = permissions.contains(&"tools.manage");
        assert_eq!(actor.get("/api/v1/services").status(), if reads { 200 } else { 403 });
        assert_eq!(actor.get("/api/v1/services/payments").status(), if reads { 200 } else { 404 });
    }
    assert_eq!(admin.get("/api/v1/services").ok(), before);
}

fn a_bad_definition_is_refused_by_its_path(world: &World) {
    let admin = world.admin();
    let tool = |tool: Value| json!({"service": "s", "version": "1", "tools": {"t": tool}});
    let http = |more: Value| tool(json!({"http": merged(json!({"method": "GET", "path": "/a"}), more)}));
    for (definition, path) in [
        (json!({}), "service"),
        (json!({"service": "s", "tools": {}}), "version"),
        (json!({"service": "s", "version": "1"}), "tools"),
        (json!({"service": "a b", "version": "1", "tools": {}}), "service"),
        (json!({"service": "s", "version": "1", "tools": {}, "owner": "me"}), "owner"),
        (json!({"service": "s", "version": "1", "tools": []}), "tools"),
        (json!({"service": "s", "version": "1", "tools": {"a b": {}}}), "tools.a b"),
        (json!({"service": "s", "version": "1", "tools": {}, "base_url": "file:///etc"}), "base_url"),
        (tool(json!({"scopes": "a"})), "tools.t.scopes"),
        (tool(json!({"scope": "a b"})), "tools.t.scope"),
        (tool(json!({"idempotent": "yes"})), "tools.t.idempotent"),
        (tool(json!({"estimated_cost_usd": -1})), "tools.t.estimated_cost_usd"),
        (tool(json!({"timeout_ms": 999})), "tools.t.timeout_ms"),
        (tool(json!({"parameters": {"a": "string"}})), "tools.t.parameters.a"),
        (tool(json!({"parameters": {"type": "array"}})), "tools.t.parameters.type"),
        (
            tool(json!({"parameters": {"type": "object", "properties": {"a": {"$ref": "https://a.example/x"}}}})),
            "tools.t.parameters",
        ),
        (tool(json!({"logging": {"default": "keep"}})), "tools.t.logging.default"),
        (http(json!({"method": "TRACE"})), "tools.t.http.method"),
        (http(json!({"path": "a"})), "tools.t.http.path"),
        (http(json!({"path": "/../a"})), "tools.t.http.path"),
        (http(json!({"headers": {"Host": "evil"}})), "tools.t.http.headers.Host"),
        (http(json!({"headers": {"X-A": "a\r\nb"}})), "tools.t.http.headers.X-A"),
        (http(json!({"parameters": {"a": "body"}})), "tools.t.http.parameters.a"),
        (http(json!({"success": [99]})), "tools.t.http.success"),
    ] {
        let error = admin.post("/api/v1/services", &definition).refused(400, "INVALID_FIELD");
        assert!(text(&error, "/path").starts_with(path), "{definition}: {error}");
        assert!(text(&error, "/message").contains(text(&error, "/path")), "{error}");
    }
    assert_eq!(admin.get("/api/v1/services").ok()["services"], json!([]));
}

fn the_short_form_and_full_schemas_mean_the_same(world: &World) {
    let admin = world.admin();
    let of = |service: &str, parameters: Value| {
        let definition = json!({"service": service, "version": "1", "tools": {"t": {"parameters": parameters}}});
        admin.post("/api/v1/services", &definition).created()["tools"]["t"]["parameters"].clone()
    };
    let short = json!({"amount": {"type": "integer", "required": true}, "note": {"type": "string", "required": false}});
    let full = json!({
        "type": "object", "properties": {"amount": {"type": "integer"}, "note": {"type": "string"}},
        "required": ["amount"], "additionalProperties": false,
    });
    assert_eq!(of("short", short), full, "shown in full");
    assert_eq!(of("full", full.clone()), full);
}

fn the_next_call_sees_what_was_changed(world: &World) {
    let shop = Shop::answering(world, |request| toolgate_testkit::upstream::Reply::text(200, request.path()));
    shop.grant(json!({}));
    let path = || shop.read(json!({})).ok()["result"]["raw"].clone();
    assert_eq!(path(), "/v1/charges/ch_7");
    for round in 2..6 {
        let mut changed = payments("2024-01");
        changed["tools"]["charges.read"]["http"]["path"] = json!(format!("/v{round}/charges/{{charge_id}}"));
        shop.admin.ask("PUT", "/api/v1/services/payments", Some(&changed)).ok();
        assert_eq!(path(), format!("/v{round}/charges/ch_7"));
    }
    let mut stricter = payments("2024-01");
    stricter["tools"]["charges.read"]["parameters"]["charge_id"] = json!({"type": "string", "maxLength": 2});
    stricter["tools"]["charges.read"]["parameters"]["charge_id"]["required"] = json!(true);
    shop.admin.ask("PUT", "/api/v1/services/payments", Some(&stricter)).ok();
    shop.denied(&shop.read(json!({})), 400, "PARAMETERS_INVALID");
}

fn changes_of_the_registry_are_in_the_log(world: &World) {
    let admin = world.admin();
    admin.post("/api/v1/services", &payments("1")).created();
    admin.post("/api/v1/services", &payments("2")).created();
    admin.delete("/api/v1/services/payments").ok();
    let applied = admin.events("&type=service.applied");
    assert_eq!(applied.len(), 2);
    assert_eq!(names(&applied[0]["data"]), ["digest", "service", "tools", "version"]);
    assert_eq!((&applied[0]["data"]["version"], &applied[0]["data"]["tools"]), (&json!("1"), &json!(4)));
    assert_eq!(text(&applied[0], "/data/digest").len(), 64);
    assert_ne!(applied[0]["data"]["digest"], applied[1]["data"]["digest"]);
    let removed = admin.events("&type=service.removed");
    assert_eq!(removed.len(), 2, "each version by itself");
}
