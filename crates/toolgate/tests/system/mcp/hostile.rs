//! Clients that mean no good.

use std::net::SocketAddr;

use serde_json::{Value, json};

use super::{VERSION, meta, request};
use crate::calls::shop::Shop;
use crate::world::{Actor, World, on_both_engines, send, send_from, unused_source};

on_both_engines! {
    without_a_valid_key_nothing_is_told,
    pages_from_elsewhere_and_foreign_names_are_refused,
    what_is_no_message_is_refused,
    a_client_acts_for_nobody_else,
}

fn without_a_valid_key_nothing_is_told(world: &World) {
    for method in ["POST", "GET", "DELETE"] {
        for (headers, challenge) in [
            (&[][..], "Bearer"),
            (&[("X-API-Key", "nobody")], "Bearer error=\"invalid_token\""),
            (&[("Authorization", "Basic YTpi")], "Bearer"),
        ] {
            let reply = send_from(unused_source(), world.gate.address(), method, "/mcp", headers);
            assert_eq!(reply.status(), 401, "{method}: {}", reply.answer.text());
            assert_eq!(reply.answer.header("www-authenticate"), Some(challenge));
        }
    }
}

/// Discovers with exactly these headers besides those that are needed.
fn discover(address: SocketAddr, agent: &Actor, more: &[(&str, &str)]) -> u16 {
    let body = request("server/discover", json!({"_meta": meta(json!({}))})).to_string();
    let key = format!("Bearer {}", agent.key);
    let mut headers = vec![
        ("Authorization", key.as_str()),
        ("Content-Type", "application/json"),
        ("MCP-Protocol-Version", VERSION),
        ("Mcp-Method", "server/discover"),
    ];
    headers.extend_from_slice(more);
    send(address, "POST", "/mcp", &headers, body.as_bytes()).status()
}

fn pages_from_elsewhere_and_foreign_names_are_refused(world: &World) {
    let agent = world.agent("agent", &["tools.invoke"]);
    let address = world.gate.address();
    let own = format!("http://{address}");
    assert_eq!(discover(address, &agent, &[]), 200);
    assert_eq!(discover(address, &agent, &[("Origin", &own)]), 200);
    assert_eq!(discover(address, &agent, &[("Origin", "http://localhost:3000")]), 200);
    for origin in ["https://evil.example", "null", "http://127.0.0.1.evil.example", ""] {
        assert_eq!(discover(address, &agent, &[("Origin", origin)]), 403, "{origin}");
    }
    let raw = format!(
        "POST /mcp HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\nAuthorization: Bearer {}\r\n\
         Content-Length: 2\r\nContent-Type: application/json\r\n\r\n{{}}",
        agent.key
    );
    let answer = toolgate_testkit::http::send_raw(address, raw.as_bytes()).unwrap();
    assert_eq!(toolgate_testkit::http::parse(&answer).unwrap().status, 403);
}

#[test]
fn listed_origins_may_use_it() {
    let setup = crate::world::setup().configuration("[mcp]\nallowed_origins = [\"https://chat.example\"]\n");
    let world = World::of(&setup, None);
    let agent = world.agent("agent", &["tools.invoke"]);
    assert_eq!(discover(world.gate.address(), &agent, &[("Origin", "https://chat.example")]), 200);
    assert_eq!(discover(world.gate.address(), &agent, &[("Origin", "https://chat.example.evil")]), 403);
}

fn what_is_no_message_is_refused(world: &World) {
    let shop = Shop::open(world);
    shop.grant(json!({}));
    let key = format!("Bearer {}", shop.agent.key);
    let post = |body: &str, kind: &str| {
        let headers = [("Authorization", key.as_str()), ("Content-Type", kind), ("MCP-Protocol-Version", VERSION)];
        send(shop_address(world), "POST", "/mcp", &headers, body.as_bytes())
    };
    let json = |body: &str| post(body, "application/json");
    json("{").rpc_error(400, -32700);
    json("").rpc_error(400, -32700);
    json(r#"{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}"#).rpc_error(400, -32700);
    json(&format!("{}1{}", "[".repeat(100), "]".repeat(100))).rpc_error(400, -32700);
    json("[]").rpc_error(400, -32600);
    json(&json!([request("ping", json!({}))]).to_string()).rpc_error(400, -32600);
    json(r#"{"jsonrpc":"2.0","id":{},"method":"a"}"#).rpc_error(400, -32600);
    json(r#"{"jsonrpc":"2.0","id":7,"result":{}}"#).rpc_error(400, -32600);
    assert_eq!(post("{}", "text/plain").status(), 415);
    let huge = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"a","params":{{"a":"{}"}}}}"#, "x".repeat(2 * 1024 * 1024));
    assert_eq!(json(&huge).status(), 413);
    assert_eq!(shop.agent.ask("POST", "/mcp?a=1", Some(&json!({}))).status(), 400);
    assert_eq!(shop.upstream.count(), 0);
}

fn shop_address(world: &World) -> SocketAddr {
    world.gate.address()
}

fn a_client_acts_for_nobody_else(world: &World) {
    let admin = world.admin();
    world.agent("victim", &["tools.invoke"]);
    let body: Value = request("server/discover", json!({"_meta": meta(json!({}))}));
    let headers = [("X-Agent-ID", "victim"), ("MCP-Protocol-Version", VERSION), ("Mcp-Method", "server/discover")];
    let reply = admin.ask_with("POST", "/mcp", &headers, Some(&body));
    assert_eq!(reply.status(), 400, "{}", reply.answer.text());
}
