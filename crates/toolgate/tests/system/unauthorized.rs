//! Callers without leave, on every guarded route: no key, a wrong one, one that ended, and one that opens nothing.

use serde_json::{Value, json};

use crate::routes::{Things, guarded};
use crate::world::{Reply, World, id, on_both_engines, send_from, text, until, unused_source};

on_both_engines! {
    without_a_key_every_route_answers_401,
    with_a_wrong_key_every_route_answers_401,
    with_an_ended_key_every_route_answers_401,
    without_permissions_no_route_shows_or_changes_anything_of_others,
    every_route_asks_for_the_key_first,
}

/// What an agent without any permission may read: itself, its tenant, the grants that it holds, the tools that they
/// open, what it did with them, and what became of it where a person was asked.
const FREE_FOR_AGENTS: [&str; 14] = [
    "/api/v1/whoami",
    "/api/v1/budgets",
    "/api/v1/tenants/{tenant_id}",
    "/api/v1/grants",
    "/api/v1/tools",
    "/api/v1/tools/granted",
    "/api/v1/invocations",
    "/api/v1/detached-calls",
    "/api/v1/intents",
    "/api/v1/intents/{intent_id}/invocations",
    "/api/v1/tasks/{task_id}/invocations",
    "/api/v1/approvals",
    "/api/v1/standing-approvals",
    "/api/v1/approval-sessions/{session}",
];

/// Asks on every route about things that exist, each time from another address; nothing may come of it.
fn assert_refused_everywhere(world: &World, things: &Things, headers: &[(&str, &str)], code: &str) {
    let before = world.admin().events("").len();
    for route in guarded() {
        let path = route.filled(things);
        assert_unauthenticated(&send_from(unused_source(), world.gate.address(), &route.method, &path, headers), code);
    }
    assert_eq!(world.admin().events("").len(), before, "nothing happened");
}

fn assert_unauthenticated(reply: &Reply, code: &str) {
    reply.refused(401, code);
    assert_eq!(reply.answer.header("www-authenticate"), Some("Bearer"), "{}", reply.asked);
}

fn without_a_key_every_route_answers_401(world: &World) {
    let things = Things::made_by(&world.admin(), "somebody");
    assert_refused_everywhere(world, &things, &[], "UNAUTHENTICATED");
}

fn with_a_wrong_key_every_route_answers_401(world: &World) {
    let things = Things::made_by(&world.admin(), "somebody");
    let well_formed = World::sqlite().agent("of-another-gate", &["tools.manage"]).key;
    for wrong in ["a-key-that-nobody-has", "tgk_0000000000000000000000000000000000000000000000", &well_formed] {
        assert_refused_everywhere(world, &things, &[("X-API-Key", wrong)], "UNAUTHENTICATED");
    }
}

fn with_an_ended_key_every_route_answers_401(world: &World) {
    let admin = world.admin();
    let things = Things::made_by(&admin, "somebody");
    let body = json!({"id": "powerful", "permissions": admin.get("/api/v1/whoami").ok()["permissions"]});
    admin.post("/api/v1/agents", &body).created();
    let make_key = |body: Value| admin.post("/api/v1/agents/powerful/keys", &body).created();

    let made = make_key(json!({"expires_at": admin.soon()}));
    let expiring = world.actor("powerful", text(&made, "/key"));
    until("the key expires", || (expiring.get("/api/v1/tenants").status() == 401).then_some(()));
    assert_refused_everywhere(world, &things, &[("X-API-Key", &expiring.key)], "KEY_EXPIRED");

    let made = make_key(json!({}));
    let revoked = world.actor("powerful", text(&made, "/key"));
    revoked.get("/api/v1/tenants").ok();
    admin.delete(&format!("/api/v1/keys/{}", id(&made))).ok();
    assert_refused_everywhere(world, &things, &[("X-API-Key", &revoked.key)], "KEY_REVOKED");
}

fn without_permissions_no_route_shows_or_changes_anything_of_others(world: &World) {
    let admin = world.admin();
    let nobody = world.agent("nobody", &[]);
    let things = Things::made_by(&admin, "somebody");
    // A call that was refused is written down; it is no deed.
    let of_refusals = ["agent.toolCalled", "authorization.decided", "tool.denied"];
    let deeds = || {
        let events = admin.events("");
        events.iter().filter(|event| !of_refusals.contains(&event["type"].as_str().unwrap_or_default())).count()
    };
    let before = deeds();
    // What a stream shows to whom has tests of its own.
    for route in guarded().into_iter().filter(|route| !route.is_endless()) {
        let reply = nobody.asks(&route, &things);
        if route.method == "GET" && FREE_FOR_AGENTS.contains(&route.path) {
            reply.ok();
            continue;
        }
        reply.error();
        assert!(matches!(reply.status(), 403 | 404), "{}: {}", reply.asked, reply.answer.text());
        for hidden in ["stripe", "acct_1234", "production"] {
            assert!(!reply.answer.text().contains(hidden), "{}: {}", reply.asked, reply.answer.text());
        }
    }
    assert_eq!(nobody.get("/api/v1/grants").ok()["grants"], json!([]));
    assert_eq!(nobody.get("/api/v1/tools").ok()["services"], json!([]));
    assert_eq!(nobody.get("/api/v1/tools/granted").ok()["tools"], json!([]));
    assert_eq!(nobody.get("/api/v1/intents").ok()["intents"], json!([]));
    assert_eq!(nobody.get("/api/v1/approvals").ok()["approvals"], json!([]));
    assert_eq!(nobody.get("/api/v1/standing-approvals").ok()["standing_approvals"], json!([]));
    let records = nobody.get("/api/v1/invocations").ok()["invocations"].clone();
    let own = records.as_array().unwrap().iter().all(|record| record["agent_id"] == "nobody");
    assert!(own, "only its own refused calls: {records}");
    assert_eq!(deeds(), before, "nothing happened");
}

fn every_route_asks_for_the_key_first(world: &World) {
    // Whatever else is wrong with a request, a stranger learns only that it needs a key.
    for route in guarded() {
        let path = route.filled(&Things::unknown("a%00b", "..")).replace("_01K9", "_%ff");
        let joint = if path.contains('?') { '&' } else { '?' };
        let path = format!("{path}{joint}unheard_of=1&limit=x");
        let headers = [("Content-Type", "text/plain"), ("X-Agent-ID", "not an agent")];
        let reply = send_from(unused_source(), world.gate.address(), &route.method, &path, &headers);
        assert_unauthenticated(&reply, "UNAUTHENTICATED");
    }
}
