//! The versions in which a client opens a session.

use serde_json::{Value, json};
use toolgate_testkit::gate_process::GateSetup;

use super::request;
use crate::calls::shop::Shop;
use crate::world::{Actor, Reply, World, on_both_engines, setup, text, until};

on_both_engines! {
    a_client_opens_a_session_lists_calls_and_ends_it,
    a_session_is_of_use_to_its_principal_alone,
    each_version_is_spoken_and_an_unknown_one_is_answered_with_the_newest,
}

impl Actor {
    /// Sends a message of a session.
    pub(super) fn legacy(&self, session: &str, message: &Value) -> Reply {
        let headers = [("Mcp-Session-Id", session), ("MCP-Protocol-Version", "2025-11-25")];
        self.ask_with("POST", "/mcp", &headers, Some(message))
    }

    /// Opens a session.
    pub(super) fn opens_session(&self) -> String {
        self.opens_session_with(&json!({}))
    }

    /// The same, declaring these capabilities.
    pub(super) fn opens_session_with(&self, capabilities: &Value) -> String {
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": {"name": "t", "version": "1"}
        });
        let reply = self.post("/mcp", &request("initialize", params));
        reply.rpc();
        reply.answer.header("mcp-session-id").unwrap().to_owned()
    }
}

fn initialized() -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/initialized"})
}

fn a_client_opens_a_session_lists_calls_and_ends_it(world: &World) {
    let shop = Shop::open(world);
    shop.grant(json!({}));
    let session = shop.agent.opens_session();
    assert_eq!(shop.agent.legacy(&session, &initialized()).status(), 202);
    let call = |method: &str, params: Value| shop.agent.legacy(&session, &request(method, params));
    assert_eq!(call("ping", json!({})).rpc(), json!({}));
    assert_eq!(call("logging/setLevel", json!({"level": "info"})).rpc(), json!({}));
    let listed = call("tools/list", json!({})).rpc();
    assert_eq!(listed["tools"].as_array().unwrap().len(), 3);
    assert_eq!((listed.get("resultType"), listed.get("ttlMs")), (None, None));
    let result =
        call("tools/call", json!({"name": "payments_charges__read", "arguments": {"charge_id": "ch_7"}})).rpc();
    assert_eq!((&result["structuredContent"]["id"], result.get("resultType")), (&json!("ch_7"), None));
    // Errors of requests are no failures of the connection.
    call("tools/call", json!({"name": "unknown_tool"})).rpc_error(200, -32602);
    call("unknown/method", json!({})).rpc_error(200, -32601);
    call("server/discover", json!({})).rpc_error(200, -32601);

    let headers = [("Mcp-Session-Id", session.as_str())];
    assert_eq!(shop.agent.ask_with("DELETE", "/mcp", &headers, None).status(), 204);
    assert_eq!(call("ping", json!({})).status(), 404);
    assert_eq!(shop.agent.ask_with("DELETE", "/mcp", &headers, None).status(), 404);
}

fn a_session_is_of_use_to_its_principal_alone(world: &World) {
    let (one, other) = (world.agent("one", &["tools.invoke"]), world.agent("other", &["tools.invoke"]));
    let session = one.opens_session();
    let ping = request("ping", json!({}));
    assert_eq!(other.legacy(&session, &ping).status(), 404);
    assert_eq!(other.legacy(&session, &initialized()).status(), 404);
    assert_eq!(other.ask_with("DELETE", "/mcp", &[("Mcp-Session-Id", &session)], None).status(), 404);
    one.legacy(&session, &ping).rpc();
    for wrong in ["", "a", &session.to_uppercase(), &format!("{session}0")] {
        assert_eq!(one.legacy(wrong, &ping).status(), 404, "{wrong}");
    }
    one.post("/mcp", &ping).rpc_error(400, -32600);
    for (version, status) in [("2025-11-25", 200), ("2025-03-26", 400), ("2025-06-18", 400)] {
        let headers = [("Mcp-Session-Id", session.as_str()), ("MCP-Protocol-Version", version)];
        let reply = one.ask_with("POST", "/mcp", &headers, Some(&ping));
        assert_eq!((reply.status(), &reply.json()["id"]), (status, &ping["id"]), "{version}");
    }
    assert_eq!(one.ask_with("POST", "/mcp", &[("Mcp-Session-Id", session.as_str())], Some(&ping)).status(), 200);
    let key = json!({});
    let made = world.admin().post("/api/v1/agents/one/keys", &key).created();
    world.actor("one", text(&made, "/key")).legacy(&session, &ping).rpc();
}

fn each_version_is_spoken_and_an_unknown_one_is_answered_with_the_newest(world: &World) {
    let agent = world.agent("agent", &["tools.invoke"]);
    for (asked, spoken) in [
        ("2025-11-25", "2025-11-25"),
        ("2025-06-18", "2025-06-18"),
        ("2025-03-26", "2025-03-26"),
        ("2024-11-05", "2025-11-25"),
        ("tomorrow", "2025-11-25"),
    ] {
        let params = json!({"protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let result = agent.post("/mcp", &request("initialize", params)).rpc();
        assert_eq!(result["protocolVersion"], spoken);
        assert_eq!(result["serverInfo"]["name"], "toolgate");
    }
    agent.post("/mcp", &request("initialize", json!({}))).rpc_error(200, -32602);
}

#[test]
fn a_session_that_nobody_uses_ends() {
    let world = World::of(&setup().configuration("[mcp]\nsession_idle_seconds = 10\n"), None);
    let agent = world.agent("agent", &["tools.invoke"]);
    let (idle, used) = (agent.opens_session(), agent.opens_session());
    let ping = request("ping", json!({}));
    let begun = world.admin().time();
    // Nothing tells the idle one apart but that it is not used.
    until("ten seconds have passed", || {
        agent.legacy(&used, &ping).rpc();
        (world.admin().time().as_millis() - begun.as_millis() > 11_000).then_some(())
    });
    assert_eq!(agent.legacy(&idle, &ping).status(), 404);
    agent.legacy(&used, &ping).rpc();
}

fn capped() -> GateSetup {
    setup().configuration("[mcp]\nsessions_per_principal = 50\nsessions = 200\n")
}

#[test]
fn ten_thousand_opened_sessions_leave_those_of_others_alone() {
    let world = World::of(&capped(), None);
    let (quiet, greedy) = (world.agent("quiet", &["tools.invoke"]), world.agent("greedy", &["tools.invoke"]));
    let ping = request("ping", json!({}));
    let kept = quiet.opens_session();
    let first = greedy.opens_session();
    for _ in 0..10_000 {
        greedy.opens_session();
    }
    assert_eq!(greedy.legacy(&first, &ping).status(), 404, "the one that was idle for the longest time ended");
    quiet.legacy(&kept, &ping).rpc();
}
