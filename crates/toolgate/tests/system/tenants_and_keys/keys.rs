//! Keys: shown once, recognisable, with an end, revocable, and remembered by when they were last used.

use serde_json::{Value, json};
use toolgate_model::key::ApiKey;

use crate::world::{Actor, World, id, names, on_both_engines, send, text, until};

on_both_engines! {
    a_key_is_shown_once_and_kept_as_a_hint,
    a_key_with_a_wrong_letter_opens_nothing,
    a_key_ends_at_its_time,
    a_revoked_key_is_refused_from_then_on,
    agents_are_registered_listed_and_removed_for_good,
    either_header_carries_the_key,
}

#[test]
fn the_last_use_of_a_key_survives_a_restart_on_sqlite() {
    the_last_use_of_a_key_survives_a_restart(World::sqlite());
}

#[test]
fn the_last_use_of_a_key_survives_a_restart_on_postgres() {
    the_last_use_of_a_key_survives_a_restart(World::postgres());
}

fn keys_of(admin: &Actor, agent: &str) -> Vec<Value> {
    admin.get(&format!("/api/v1/agents/{agent}/keys")).ok()["keys"].as_array().unwrap().clone()
}

fn a_key_is_shown_once_and_kept_as_a_hint(world: &World) {
    let admin = world.admin();
    admin.post("/api/v1/agents", &json!({"id": "one"})).created();
    let made = admin.post("/api/v1/agents/one/keys", &json!({"label": "laptop", "expires_at": "2099-01-01T00:00:00Z"}));
    let made = made.created();
    let fields = ["agent_id", "created_at", "expires_at", "hint", "id", "key", "label", "last_used_at", "revoked_at"];
    assert_eq!(names(&made), fields);
    let key = text(&made, "/key").to_owned();
    assert!(key.starts_with("tgk_") && key.len() == 50, "a prefix that scanners know");
    assert!(ApiKey::parse(&key).is_some(), "and a checksum");
    assert!(text(&made, "/id").starts_with("key_"));
    assert_eq!((&made["agent_id"], &made["label"]), (&json!("one"), &json!("laptop")));
    assert_eq!(made["expires_at"], "2099-01-01T00:00:00.000+00:00");
    assert_eq!(made["hint"].as_str(), key.get(..8));
    assert_eq!(made["last_used_at"], Value::Null);
    assert_eq!(world.actor("one", &key).get("/api/v1/whoami").ok()["id"], "one");

    let second = admin.ask("POST", "/api/v1/agents/one/keys", None).created();
    assert_ne!(second["key"], made["key"], "an agent may have several");
    let listed = admin.get("/api/v1/agents/one/keys");
    assert_eq!(listed.ok()["keys"].as_array().unwrap().len(), 2);
    assert!(!listed.answer.text().contains(&key));
    assert!(listed.ok()["keys"][0].get("key").is_none());
    let events = admin.get("/api/v1/audit/events?type=key.created");
    assert!(!events.answer.text().contains(&key));
    assert!(events.answer.text().contains(text(&made, "/id")), "events name the key by its id");
    let past = json!({"expires_at": "2020-01-01T00:00:00Z"});
    assert_eq!(admin.post("/api/v1/agents/one/keys", &past).refused(400, "INVALID_FIELD")["path"], "expires_at");
    admin.ask("POST", "/api/v1/agents/nobody/keys", None).refused(404, "AGENT_NOT_FOUND");
    admin.get("/api/v1/agents/nobody/keys").refused(404, "AGENT_NOT_FOUND");
}

fn a_key_with_a_wrong_letter_opens_nothing(world: &World) {
    let agent = world.agent("one", &[]);
    for position in [0, 4, 20, 44, 49] {
        let mut letters: Vec<char> = agent.key.chars().collect();
        letters[position] = if letters[position] == 'x' { 'y' } else { 'x' };
        let wrong: String = letters.into_iter().collect();
        world.actor("one", &wrong).get("/api/v1/whoami").refused(401, "UNAUTHENTICATED");
    }
    let shorter = agent.key.get(..49).unwrap();
    for wrong in [shorter, &format!("{}x", agent.key), &agent.key.to_uppercase(), "tgk_", "x"] {
        world.actor("one", wrong).get("/api/v1/whoami").refused(401, "UNAUTHENTICATED");
    }
    agent.get("/api/v1/whoami").ok();
}

fn a_key_ends_at_its_time(world: &World) {
    let admin = world.admin();
    world.agent("one", &[]);
    let made = admin.post("/api/v1/agents/one/keys", &json!({"expires_at": admin.soon()})).created();
    let one = world.actor("one", text(&made, "/key"));
    one.get("/api/v1/whoami").ok();
    let last = until("the key expires", || {
        let reply = one.get("/api/v1/whoami");
        (reply.status() != 200).then_some(reply)
    });
    let error = last.refused(401, "KEY_EXPIRED");
    assert!(text(&error, "/message").contains(text(&made, "/id")), "it says which key");
    assert_eq!(last.answer.header("www-authenticate"), Some("Bearer"));
    one.get("/api/v1/whoami").refused(401, "KEY_EXPIRED");
}

fn a_revoked_key_is_refused_from_then_on(world: &World) {
    let admin = world.admin();
    let one = world.agent("one", &[]);
    let other = world.actor("one", text(&admin.ask("POST", "/api/v1/agents/one/keys", None).created(), "/key"));
    let hint = one.key.get(..8).unwrap();
    let listed = keys_of(&admin, "one");
    let record = listed.iter().find(|key| key["hint"] == hint).unwrap();
    let path = format!("/api/v1/keys/{}", id(record));
    let revoked = admin.delete(&path).ok();
    assert_eq!((&revoked["status"], &revoked["id"]), (&json!("revoked"), &record["id"]));
    assert!(revoked["revoked_at"].is_string());
    one.get("/api/v1/whoami").refused(401, "KEY_REVOKED");
    other.get("/api/v1/whoami").ok();
    assert_eq!(admin.delete(&path).ok()["revoked_at"], revoked["revoked_at"], "a second time changes nothing");
    assert_eq!(admin.events("&type=key.revoked").len(), 1);
    admin.delete("/api/v1/keys/key_01K9ZZZZZZ0000000000000000").refused(404, "KEY_NOT_FOUND");
    admin.delete("/api/v1/keys/not-a-key").refused(404, "KEY_NOT_FOUND");
}

fn agents_are_registered_listed_and_removed_for_good(world: &World) {
    let admin = world.admin();
    let body = json!({"id": "svc:mail@eu-1", "kind": "service", "name": "Mail", "scopes": ["b", "a"], "permissions": ["audit.read"]});
    let mut made = admin.post("/api/v1/agents", &body).created();
    assert_eq!(made.as_object_mut().unwrap().remove("unresolved_tools"), Some(json!([])));
    assert_eq!((&made["kind"], &made["scopes"]), (&json!("service"), &json!(["a", "b"])));
    assert_eq!(made["permissions"], json!(["audit.read"]));
    let least = admin.post("/api/v1/agents", &json!({"id": "plain"})).created();
    assert_eq!((&least["kind"], &least["permissions"]), (&json!("agent"), &json!(["tools.invoke"])));
    assert_eq!((&least["name"], &least["scopes"]), (&Value::Null, &json!([])));
    admin.post("/api/v1/agents", &json!({"id": "plain"})).refused(409, "ALREADY_EXISTS");
    admin.post("/api/v1/agents", &json!({"id": "core.system"})).refused(409, "ALREADY_EXISTS");
    admin
        .post("/api/v1/agents", &json!({"id": "x", "permissions": ["tools.everything"]}))
        .refused(400, "INVALID_FIELD");
    admin.post("/api/v1/agents", &json!({"id": "x", "kind": "robot"})).refused(400, "INVALID_FIELD");
    let listed = admin.get("/api/v1/agents").ok();
    let listed: Vec<String> = listed["agents"].as_array().unwrap().iter().map(id).collect();
    assert_eq!(listed, ["admin", "plain", "svc:mail@eu-1"]);
    assert_eq!(admin.get("/api/v1/agents/svc:mail@eu-1").ok(), made);
    assert_eq!(admin.get("/api/v1/agents/svc%3Amail%40eu-1").ok(), made, "escaped or not");

    let removed = admin.delete("/api/v1/agents/plain").ok();
    assert_eq!(names(&removed), ["agent_id", "revision", "revoked_grants", "revoked_keys", "status"]);
    admin.get("/api/v1/agents/plain").refused(404, "AGENT_NOT_FOUND");
    admin.delete("/api/v1/agents/plain").refused(404, "AGENT_NOT_FOUND");
    admin.ask("POST", "/api/v1/agents/plain/keys", None).refused(404, "AGENT_NOT_FOUND");
    admin.post("/api/v1/agents", &json!({"id": "plain"})).refused(409, "ALREADY_EXISTS");
    let grant = json!({"credential_id": admin.credential(), "agent_id": "plain", "scopes": ["charges.read"]});
    admin.post("/api/v1/grants", &grant).refused(404, "AGENT_NOT_FOUND");
    admin.delete("/api/v1/agents/admin").refused(403, "PERMISSION_DENIED");
}

fn either_header_carries_the_key(world: &World) {
    let agent = world.agent("one", &[]);
    let whoami = |headers: &[(&str, &str)]| send(world.gate.address(), "GET", "/api/v1/whoami", headers, b"");
    let key = agent.key.as_str();
    let bearer = format!("Bearer {key}");
    whoami(&[("X-API-Key", key)]).ok();
    whoami(&[("Authorization", &bearer)]).ok();
    whoami(&[("authorization", &format!("bEaReR   {key}"))]).ok();
    whoami(&[("X-API-Key", key), ("Authorization", &bearer)]).ok();
    whoami(&[]).refused(401, "UNAUTHENTICATED");
    whoami(&[("Authorization", key)]).refused(401, "UNAUTHENTICATED");
    whoami(&[("Authorization", "Bearer ")]).refused(401, "UNAUTHENTICATED");
    whoami(&[("Authorization", &format!("Basic {key}"))]).refused(401, "UNAUTHENTICATED");
    whoami(&[("X-API-Key", "")]).refused(401, "UNAUTHENTICATED");
    whoami(&[("X-API-Key", world.gate.token()), ("Authorization", &bearer)]).refused(401, "UNAUTHENTICATED");
    whoami(&[("Authorization", &bearer), ("Authorization", &bearer)]).refused(400, "INVALID_FIELD");
    whoami(&[("X-API-Key", key), ("X-API-Key", key)]).refused(400, "INVALID_FIELD");
    whoami(&[("Cookie", &format!("key={key}"))]).refused(401, "UNAUTHENTICATED");
    send(world.gate.address(), "GET", &format!("/api/v1/whoami?api_key={key}"), &[], b"")
        .refused(401, "UNAUTHENTICATED");
}

fn the_last_use_of_a_key_survives_a_restart(world: World) {
    let used = world.agent("used", &[]);
    world.agent("unused", &[]);
    used.get("/api/v1/whoami").ok();
    let setup = world.gate.setup().clone();
    let (ended, database) = world.stop();
    assert!(ended.status.success(), "{}", ended.stderr);
    let world = World::of(&setup, database);
    let admin = world.admin();
    let record = &keys_of(&admin, "used")[0];
    assert!(text(record, "/last_used_at") >= text(record, "/created_at"));
    assert_eq!(keys_of(&admin, "unused")[0]["last_used_at"], Value::Null);
    world.actor("used", &used.key).get("/api/v1/whoami").ok();
}
