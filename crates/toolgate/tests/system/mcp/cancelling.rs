//! Clients that give up a call while its server executes it: the server is told, and the record says so.

use std::io::Write;
use std::net::TcpStream;

use serde_json::{Value, json};
use toolgate_testkit::mcp_server::{Conduct, McpProcess, McpServer};

use super::mounted::mount;
use super::request;
use super::streams::Listener;
use crate::world::{Actor, World, id, on_both_engines, setup, text, until};

on_both_engines! {
    a_modern_client_that_closes_its_connection_gives_its_call_up,
    a_client_of_a_session_cancels_its_call_before_and_after_the_response_has_become_a_stream,
    a_call_with_an_idempotency_key_goes_on_for_whoever_repeats_it,
}

/// A server that is mounted and an agent that may call it.
fn desk(world: &World, modern: bool) -> (McpServer, Actor) {
    let (admin, agent) = (world.admin(), world.agent("agent", &["tools.invoke"]));
    let server = McpServer::start(modern, true);
    let credential = mount(&admin, "mounted", &server);
    admin.grants(&credential, "agent", json!({"scopes": ["echo", "whoami"]}));
    (server, agent)
}

fn echo() -> Value {
    json!({"name": "mounted_echo", "arguments": {"text": "hello"}})
}

fn called(server: &McpServer, count: usize) {
    until("the server has the call", || (server.received("tools/call").len() >= count).then_some(()));
}

/// Waits until so many calls of the agent have ended as given up.
fn abandoned(world: &World, count: usize) {
    until("the record", || {
        let calls = world.admin().get("/api/v1/invocations?agent_id=agent&limit=100").ok();
        let calls = calls["invocations"].as_array().unwrap().clone();
        let given_up = calls.iter().filter(|call| call["error"]["code"] == "CALL_ABANDONED");
        let given_up: Vec<&Value> = given_up.collect();
        assert!(given_up.iter().all(|call| call["status"] == "error"), "{given_up:?}");
        (given_up.len() == count).then_some(())
    });
}

fn modern_call(world: &World, agent: &Actor, params: Value) -> TcpStream {
    let body = request("tools/call", params).to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nAccept: application/json, text/event-stream\r\n\
         Content-Type: application/json\r\nMCP-Protocol-Version: {}\r\nMcp-Method: tools/call\r\n\
         Mcp-Name: mounted_echo\r\nContent-Length: {}\r\n\r\n",
        world.gate.address(),
        agent.key,
        super::VERSION,
        body.len()
    );
    let mut stream = TcpStream::connect(world.gate.address()).unwrap();
    stream.write_all((head + &body).as_bytes()).unwrap();
    stream
}

fn a_modern_client_that_closes_its_connection_gives_its_call_up(world: &World) {
    let (server, agent) = desk(world, true);
    let mut params = echo();
    params["_meta"] = super::meta(json!({}));
    server.script().conduct = Conduct::Silent;
    let connection = modern_call(world, &agent, params.clone());
    called(&server, 1);
    drop(connection);
    abandoned(world, 1);
    server.upstream().wait_for_ended_connections(1);
    // The same once the response is a stream.
    server.script().conduct = Conduct::Stalling;
    params["_meta"]["progressToken"] = json!("p");
    let headers =
        format!("MCP-Protocol-Version: {}\r\nMcp-Method: tools/call\r\nMcp-Name: mounted_echo\r\n", super::VERSION);
    let mut call = Listener::open(world, &agent, "POST", &headers, &request("tools/call", params).to_string());
    assert_eq!(call.next()["method"], "notifications/progress");
    drop(call);
    abandoned(world, 2);
    server.upstream().wait_for_ended_connections(2);
    server.script().conduct = Conduct::Honest;
    agent.mcp_call("mounted_echo", json!({"text": "hello"}));
}

fn a_client_of_a_session_cancels_its_call_before_and_after_the_response_has_become_a_stream(world: &World) {
    let (server, agent) = desk(world, false);
    let session = agent.opens_session();
    let cancel = |id: &Value| {
        let params = json!({"requestId": id, "reason": "changed my mind"});
        let message = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
        assert_eq!(agent.legacy(&session, &message).status(), 202);
    };
    server.script().conduct = Conduct::Silent;
    std::thread::scope(|scope| {
        let call = scope.spawn(|| agent.legacy(&session, &request("tools/call", echo())).rpc());
        called(&server, 1);
        let again = agent.legacy(&session, &request("ping", json!({}))).rpc_error(200, -32600);
        assert!(text(&again, "/error/message").contains("same id"), "{again}");
        // Neither another id nor another session is meant.
        cancel(&json!("1"));
        let another = agent.opens_session();
        let message = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
        assert_eq!(agent.legacy(&another, &message).status(), 202);
        assert!(server.received("notifications/cancelled").is_empty());
        cancel(&json!(1));
        let result = call.join().unwrap();
        assert_eq!((&result["isError"], text(&result, "/_meta/toolgate~1code")), (&json!(true), "CALL_ABANDONED"));
    });
    until("the server is told", || (server.received("notifications/cancelled").len() == 1).then_some(()));
    abandoned(world, 1);

    server.script().conduct = Conduct::Stalling;
    let mut params = echo();
    params["_meta"] = json!({"progressToken": "p"});
    let headers = format!("Mcp-Session-Id: {session}\r\nMCP-Protocol-Version: 2025-11-25\r\n");
    let mut call = Listener::open(world, &agent, "POST", &headers, &request("tools/call", params).to_string());
    assert_eq!(call.next()["method"], "notifications/progress");
    agent.legacy(&session, &request("ping", json!({}))).rpc_error(200, -32600);
    cancel(&json!(1));
    assert_eq!(text(&call.next(), "/result/_meta/toolgate~1code"), "CALL_ABANDONED");
    until("the server is told", || (server.received("notifications/cancelled").len() == 2).then_some(()));
    abandoned(world, 2);
    let calls = server.received("tools/call");
    let told = server.received("notifications/cancelled");
    assert!(calls.iter().zip(&told).all(|(call, told)| call["id"] == told["params"]["requestId"]), "{told:?}");
    // The id can be used again, and so can the session.
    agent.legacy(&session, &request("ping", json!({}))).rpc();
}

fn a_call_with_an_idempotency_key_goes_on_for_whoever_repeats_it(world: &World) {
    let (server, agent) = desk(world, true);
    agent.mcp_call("mounted_echo", json!({"text": "first"}));
    server.upstream().hold();
    let body = json!({"tool": "mounted.echo", "parameters": {"text": "hello"}, "idempotency_key": "k1"});
    let text = body.to_string();
    let head = format!(
        "POST /api/v1/tools/invoke HTTP/1.1\r\nHost: gate\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        agent.key,
        text.len()
    );
    let mut stream = TcpStream::connect(world.gate.address()).unwrap();
    stream.write_all((head + &text).as_bytes()).unwrap();
    called(&server, 2);
    drop(stream);
    // Something else of the gate, after which it has seen that the client is gone.
    world.admin().time();
    server.upstream().release();
    let again = until("its result", || Some(agent.post("/api/v1/tools/invoke", &body)).filter(|it| it.status() == 200));
    assert_eq!(again.json()["replayed"], true);
    assert_eq!(server.received("tools/call").len(), 2);
}

#[test]
fn a_process_is_told_of_a_call_that_was_given_up() {
    let program = McpProcess::new();
    let (setup, cancelled) = (setup(), program.directory().join("cancelled"));
    let silent = program.directory().join("silent");
    let file = setup.home().join("mounts.toml");
    let mounts = format!(
        "[[mounts]]\nname = \"mounted\"\ncommand = {}\nenv = {{CANCELLED = \"{}\", SILENT = \"{}\"}}\nwritable = [\"{}\"]\n",
        json!(program.command()),
        cancelled.display(),
        silent.display(),
        program.directory().display()
    );
    std::fs::write(&file, mounts).unwrap();
    let world = World::of(&setup.environment("TOOLGATE_MOUNTS_FILE", file), None);
    let admin = world.admin();
    until("it is mounted", || (admin.get("/api/v1/mounts/mounted").status() == 200).then_some(()));
    crate::mounts::declared::accept(&admin, "mounted");
    let agent = world.agent("agent", &["tools.invoke"]);
    let credential = crate::mounts::declared::credential(&admin, "mounted");
    admin.grants(&id(&credential), "agent", json!({"scopes": ["count"]}));
    let session = agent.opens_session();
    let call = |arguments: Value| {
        agent.legacy(&session, &request("tools/call", json!({"name": "mounted_count", "arguments": arguments}))).rpc()
    };
    assert!(text(&call(json!({})), "/content/0/text").starts_with("1 of "));
    std::thread::scope(|scope| {
        let call = scope.spawn(|| call(json!({"do": "silent"})));
        let message = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
        until("the process has the call", || std::fs::read_to_string(&silent).ok().filter(|text| text.ends_with('\n')));
        assert_eq!(agent.legacy(&session, &message).status(), 202);
        assert_eq!(text(&call.join().unwrap(), "/_meta/toolgate~1code"), "CALL_ABANDONED");
    });
    assert!(text(&call(json!({})), "/content/0/text").starts_with("2 of "), "the process goes on");
    let (told, asked) = (std::fs::read_to_string(&cancelled).unwrap(), std::fs::read_to_string(&silent).unwrap());
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["params"]["requestId"].to_string(), asked.trim());
    abandoned(&world, 1);
}
