//! Clients that listen for changes of their list of tools.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use toolgate_testkit::mcp_server::McpServer;

use super::{VERSION, meta, request};
use crate::calls::shop::Shop;
use crate::world::{Actor, World, id, on_both_engines, setup, text};

on_both_engines! {
    a_listening_client_hears_of_grants_definitions_and_nothing_else,
    a_session_has_a_stream_of_its_own,
    decisions_about_mounts_reach_clients_of_both_eras,
    what_cannot_be_listened_to_is_refused,
}

/// An open stream of messages.
pub(super) struct Listener(BufReader<TcpStream>);

impl Listener {
    /// Sends a request whose response is a stream.
    pub(super) fn open(world: &World, actor: &Actor, method: &str, headers: &str, body: &str) -> Self {
        let mut stream = TcpStream::connect(world.gate.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let request = format!(
            "{method} /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nAccept: text/event-stream\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n{headers}\r\n{body}",
            world.gate.address(),
            actor.key,
            body.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut listener = Self(BufReader::new(stream));
        assert!(listener.line().starts_with("HTTP/1.1 200"));
        listener
    }

    fn subscribed(world: &World, actor: &Actor, wanted: Value) -> Self {
        let params = json!({"notifications": wanted, "_meta": meta(json!({}))});
        let headers = format!("MCP-Protocol-Version: {VERSION}\r\nMcp-Method: subscriptions/listen\r\n");
        let body = request("subscriptions/listen", params).to_string();
        Self::open(world, actor, "POST", &headers, &body)
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        assert!(self.0.read_line(&mut line).unwrap() > 0, "the stream ended");
        line
    }

    /// The next message.
    pub(super) fn next(&mut self) -> Value {
        loop {
            if let Some(data) = self.line().strip_prefix("data: ") {
                return serde_json::from_str(data).unwrap();
            }
        }
    }
}

fn a_listening_client_hears_of_grants_definitions_and_nothing_else(world: &World) {
    let shop = Shop::open(world);
    let mut listener =
        Listener::subscribed(world, &shop.agent, json!({"toolsListChanged": true, "somethingChanged": true}));
    let acknowledged = listener.next();
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(acknowledged["params"]["notifications"], json!({"toolsListChanged": true}));
    assert_eq!(acknowledged["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 1);
    let hears = |listener: &mut Listener| {
        let changed = listener.next();
        assert_eq!(changed["method"], "notifications/tools/list_changed");
        assert_eq!(changed["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 1);
    };
    // What concerns others is not told: the next message is about the agent's own grant.
    world.agent("other", &["tools.invoke"]);
    shop.grant_to("other", json!({}));
    let grant = shop.grant(json!({"scopes": ["charges.read"]}));
    hears(&mut listener);
    assert_eq!(shop.agent.mcp_tools(), ["payments_charges__read"]);
    let mut definition = crate::calls::shop::payments("2024-01");
    definition["tools"]["charges.read"]["description"] = json!("Another description");
    shop.admin.ask("PUT", "/api/v1/services/payments", Some(&definition)).ok();
    hears(&mut listener);
    shop.admin.patch("/api/v1/agents/billing", &json!({"tool_allowlist": []})).ok();
    hears(&mut listener);
    shop.admin.patch("/api/v1/agents/billing", &json!({"tool_allowlist": null})).ok();
    hears(&mut listener);
    shop.admin.delete(&format!("/api/v1/grants/{}", id(&grant))).ok();
    hears(&mut listener);
    assert_eq!(shop.agent.mcp_tools(), [""; 0]);
}

fn a_session_has_a_stream_of_its_own(world: &World) {
    let shop = Shop::open(world);
    let session = shop.agent.opens_session();
    let headers = format!("Mcp-Session-Id: {session}\r\nMCP-Protocol-Version: 2025-11-25\r\n");
    let mut listener = Listener::open(world, &shop.agent, "GET", &headers, "");
    shop.grant(json!({}));
    assert_eq!(listener.next(), json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {}}));
}

fn decisions_about_mounts_reach_clients_of_both_eras(world: &World) {
    let (admin, agent) = (world.admin(), world.agent("agent", &["tools.invoke"]));
    let server = McpServer::start(true, false);
    server.script().prompts = vec!["greet".to_owned()];
    admin.post("/api/v1/mounts", &json!({"name": "notes", "url": server.url()})).created();
    let body = json!({
        "service": "notes", "label": "notes", "auth_type": "bearer_token", "metadata": {},
        "scopes_available": ["echo", "prompts.read", "resources.read"], "material": {"token": "sk_live_of_the_mount"},
    });
    let credential = id(&admin.post(&format!("/api/v1/vaults/{}/credentials", admin.vault()), &body).created());
    admin.grants(&credential, "agent", json!({"scopes": ["echo", "prompts.read", "resources.read"]}));
    let wanted = json!({"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true});
    let mut modern = Listener::subscribed(world, &agent, wanted.clone());
    assert_eq!(modern.next()["params"]["notifications"], wanted);
    let session = agent.opens_session();
    let headers = format!("Mcp-Session-Id: {session}\r\nMCP-Protocol-Version: 2025-11-25\r\n");
    let mut legacy = Listener::open(world, &agent, "GET", &headers, "");
    let mut hear = |kinds: &[&str]| {
        for listener in [&mut modern, &mut legacy] {
            for kind in kinds {
                assert_eq!(listener.next()["method"], format!("notifications/{kind}/list_changed"));
            }
        }
    };
    let accept = |wanted: &[&str]| {
        let review = admin.get("/api/v1/mounts/notes/review").ok();
        let tools = review["tools"].as_array().unwrap().iter().filter(|tool| wanted.contains(&text(tool, "/upstream")));
        let tools: serde_json::Map<String, Value> =
            tools.map(|tool| (text(tool, "/upstream").to_owned(), tool["hash"].clone())).collect();
        let body = json!({"server": review["server"]["hash"], "tools": tools});
        admin.post("/api/v1/mounts/notes/accept", &body).ok();
    };
    accept(&["echo"]);
    hear(&["tools", "prompts", "resources"]);
    assert_eq!(agent.mcp_tools(), ["notes_echo"]);
    // What was accepted changes: it is taken away until a person decides.
    server.script().tools[0]["description"] = json!("Repeats a text loudly.");
    admin.post("/api/v1/mounts/notes/check", &json!({})).ok();
    hear(&["tools"]);
    assert_eq!(agent.mcp_tools(), [""; 0]);
    accept(&["echo"]);
    hear(&["tools"]);
    admin.delete("/api/v1/mounts/notes").ok();
    hear(&["tools", "prompts", "resources"]);
}

fn what_cannot_be_listened_to_is_refused(world: &World) {
    let (one, other) = (world.agent("one", &["tools.invoke"]), world.agent("other", &["tools.invoke"]));
    let session = one.opens_session();
    let get = |actor: &Actor, session: &str, accept: &str| {
        actor.ask_with("GET", "/mcp", &[("Mcp-Session-Id", session), ("Accept", accept)], None).status()
    };
    assert_eq!(get(&other, &session, "text/event-stream"), 404);
    assert_eq!(get(&one, "nothing", "text/event-stream"), 404);
    assert_eq!(get(&one, &session, "application/json"), 406);
    let params = json!({"notifications": {}, "_meta": meta(json!({}))});
    let headers =
        [("MCP-Protocol-Version", VERSION), ("Mcp-Method", "subscriptions/listen"), ("Accept", "application/json")];
    let reply = one.ask_with("POST", "/mcp", &headers, Some(&request("subscriptions/listen", params)));
    assert_eq!(reply.status(), 406);
}

#[test]
fn a_stream_too_many_is_refused_in_the_response_to_its_request() {
    let world = World::of(&setup().configuration("[server]\nmax_streams_per_principal = 1\n"), None);
    let agent = world.agent("agent", &["tools.invoke"]);
    let wanted = json!({"toolsListChanged": true});
    let _open = Listener::subscribed(&world, &agent, wanted.clone());
    let headers =
        [("MCP-Protocol-Version", VERSION), ("Mcp-Method", "subscriptions/listen"), ("Accept", "text/event-stream")];
    let params = json!({"notifications": wanted, "_meta": meta(json!({}))});
    let reply = agent.ask_with("POST", "/mcp", &headers, Some(&request("subscriptions/listen", params)));
    let body = reply.json();
    assert_eq!((reply.status(), &body["id"]), (429, &json!(1)), "{body}");
    assert_eq!(body["error"]["data"]["code"], "TOO_MANY_STREAMS");
}
