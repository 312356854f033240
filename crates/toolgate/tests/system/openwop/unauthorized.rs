//! Callers without leave, on every route that needs a key.

use serde_json::json;
use toolgate_server::openwop;

use crate::world::{Reply, World, id, on_both_engines, send_from, text, unused_source};

on_both_engines! {
    without_a_valid_key_every_route_answers_401_in_the_flat_envelope,
}

/// Asks on every route, each time from another address, whatever else is wrong with the request.
fn everywhere(world: &World, headers: &[(&str, &str)], check: impl Fn(&Reply)) {
    for route in openwop::routes() {
        let path = route
            .path
            .replace("{toolId}", "connector%3Aa.b")
            .replace("{runId}", "%ff")
            .replace("{sessionId}", "session_1");
        for path in [path.clone(), format!("{path}?unheard_of=1")] {
            let headers = [headers, &[("Content-Type", "text/plain")]].concat();
            let reply = send_from(unused_source(), world.gate.address(), route.method.as_str(), &path, &headers);
            assert_eq!(reply.answer.header("www-authenticate"), Some("Bearer"), "{}", reply.asked);
            check(&reply);
        }
    }
}

fn without_a_valid_key_every_route_answers_401_in_the_flat_envelope(world: &World) {
    everywhere(world, &[], |reply| drop(reply.flat(401, "unauthenticated")));
    everywhere(world, &[("X-API-Key", "nobody")], |reply| drop(reply.flat(401, "unauthenticated")));
    everywhere(world, &[("Authorization", "Basic YTpi")], |reply| drop(reply.flat(401, "unauthenticated")));
    let admin = world.admin();
    admin.post("/api/v1/agents", &json!({"id": "former"})).created();
    let made = admin.ask("POST", "/api/v1/agents/former/keys", None).created();
    admin.delete(&format!("/api/v1/keys/{}", id(&made))).ok();
    everywhere(world, &[("X-API-Key", text(&made, "/key"))], |reply| drop(reply.flat(401, "key_revoked")));
}
