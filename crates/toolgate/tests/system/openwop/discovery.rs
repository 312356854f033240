//! What the host says of itself to everybody.

use serde_json::Value;
use toolgate_server::openwop;

use crate::documentation::page::Page;
use crate::world::{World, send};

#[test]
fn the_capabilities_are_public_cacheable_and_confirmed_by_their_tag() {
    let world = World::sqlite();
    let ask = |headers: &[(&str, &str)]| send(world.gate.address(), "GET", "/.well-known/openwop", headers, b"");
    let reply = ask(&[]);
    let document = reply.ok();
    assert_eq!(document["protocolVersion"], "1.0");
    assert_eq!(document["limits"]["maxRequestBodyBytes"], 1_048_576);
    assert!(document["toolHooks"]["supported"].as_bool().unwrap());
    assert_eq!(reply.answer.header("cache-control"), Some("public, max-age=300"));
    let tag = reply.answer.header("etag").unwrap().to_owned();
    let again = ask(&[("If-None-Match", &format!("\"other\", W/{tag}"))]);
    assert_eq!((again.status(), again.answer.body.len()), (304, 0));
    assert_eq!(again.answer.header("etag"), Some(tag.as_str()));
    ask(&[("If-None-Match", "\"other\"")]).ok();
}

#[test]
fn the_api_describes_itself_without_a_key() {
    let world = World::sqlite();
    let reply = send(world.gate.address(), "GET", "/v1/openapi.json", &[], b"");
    let document: Value = serde_json::from_str(toolgate_server::openapi::OPENWOP).unwrap();
    assert_eq!(reply.ok(), document);
}

#[test]
fn what_is_not_there_is_refused_in_the_flat_envelope() {
    let world = World::sqlite();
    let admin = world.admin();
    for path in ["/v1", "/v1/", "/v1/agents", "/v1/tools/a/b", "/.well-known/other"] {
        admin.get(path).flat(404, "not_found");
    }
    for path in ["/v1/tools", "/v1/tools/connector%3Aa.b", "/v1/events", "/.well-known/openwop"] {
        for method in ["POST", "PUT", "PATCH", "DELETE"] {
            let reply = admin.ask(method, path, None);
            reply.flat(405, "method_not_allowed");
            assert_eq!(reply.answer.header("allow"), Some("GET,HEAD"), "{}", reply.asked);
        }
    }
    assert_eq!(admin.ask("GET", "/v1/runs", None).answer.header("allow"), Some("POST"));
    admin.get("/api/v1/nothing").refused(404, "ROUTE_NOT_FOUND");
}

#[test]
fn every_route_is_documented() {
    let page = Page::named("docs/openwop.md");
    for route in openwop::routes().into_iter().chain(openwop::open_routes()) {
        let endpoint = format!("`{} {}`", route.method, route.path);
        assert!(page.text.contains(&endpoint), "docs/openwop.md does not name {endpoint}");
    }
}
