//! The id of a request: in every response, and the caller's own only from a trusted proxy.

use std::collections::BTreeSet;

use serde_json::json;

use crate::calls::shop::{Shop, read};
use crate::world::{World, send, setup};

fn id_of(reply: &crate::world::Reply) -> String {
    let id =
        reply.answer.header("x-request-id").unwrap_or_else(|| panic!("{} has no id: {:?}", reply.asked, reply.answer));
    id.to_owned()
}

#[test]
fn every_response_has_a_request_id_of_its_own() {
    let world = World::sqlite();
    let shop = Shop::open(&world);
    let replies = [
        shop.admin.get("/healthz"),
        shop.admin.get("/metrics"),
        shop.admin.get("/nowhere"),
        shop.admin.get("/v1/nowhere"),
        shop.admin.ask("DELETE", "/healthz", None),
        shop.admin.get("/api/v1/whoami"),
        shop.agent.get("/api/v1/tenants"),
        shop.agent.invokes(read(json!({}))),
        shop.agent.post("/v1/hooks/aos", &json!([])),
        world.actor("nobody", "tg_wrong").get("/api/v1/whoami"),
        shop.admin.ask_with("GET", "/api/v1/whoami", &[("x-request-id", "mine")], None),
        shop.admin.ask_with("GET", "/api/v1/whoami", &[("x-request-id", "a\tb c")], None),
    ];
    let ids: BTreeSet<String> = replies.iter().map(id_of).collect();
    assert_eq!(ids.len(), replies.len());
    assert!(ids.iter().all(|id| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit())), "{ids:?}");
}

#[test]
fn a_trusted_proxy_names_its_requests() {
    let world = World::of(&setup().environment("TOOLGATE_TRUSTED_PROXIES", "127.0.0.1/32"), None);
    let id = |given: &str| id_of(&send(world.address(), "GET", "/healthz", &[("x-request-id", given)], b""));
    assert_eq!(id("edge-1:a/b"), "edge-1:a/b");
    for bad in ["a b", "a\"b", &"x".repeat(65)] {
        assert_eq!(id(bad).len(), 32, "{bad}");
    }
}
