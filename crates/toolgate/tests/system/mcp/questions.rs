//! Servers of the legacy era that ask the client of a session during a call, and log to it.

use serde_json::{Value, json};
use toolgate_testkit::mcp_server::{Conduct, McpServer};

use super::mounted::mount;
use super::request;
use super::streams::Listener;
use crate::world::{Actor, World, text};

fn question(params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": "q-1", "method": "elicitation/create", "params": params})
}

fn form() -> Value {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    json!({"message": "Who has sk_live_of_the_mount?", "requestedSchema": schema})
}

fn desk(world: &World) -> (McpServer, Actor) {
    let (admin, agent) = (world.admin(), world.agent("agent", &["tools.invoke"]));
    let server = McpServer::start(false, true);
    let credential = mount(&admin, "mounted", &server);
    admin.grants(&credential, "agent", json!({"scopes": ["echo", "whoami"]}));
    server.script().conduct = Conduct::Questioning(question(&form()));
    (server, agent)
}

fn calling(world: &World, agent: &Actor, session: &str) -> Listener {
    let params = json!({"name": "mounted_echo", "arguments": {"text": "hello"}});
    let headers =
        format!("Mcp-Session-Id: {session}\r\nMCP-Protocol-Version: 2025-11-25\r\nAccept: application/json\r\n");
    Listener::open(world, agent, "POST", &headers, &request("tools/call", params).to_string())
}

/// What the server was sent in response to its question.
fn responses(server: &McpServer) -> Vec<Value> {
    let messages = server.upstream().received().into_iter().map(|request| request.json());
    messages.filter(|message| message["id"] == "q-1").collect()
}

#[test]
fn a_client_of_a_session_is_asked_on_the_stream_of_its_call_and_the_server_gets_its_response() {
    let world = World::sqlite();
    let (server, agent) = desk(&world);
    let session = agent.opens_session_with(&json!({"elicitation": {}, "sampling": {}}));
    let mut call = calling(&world, &agent, &session);
    let asked = call.next();
    assert_eq!((&asked["method"], &asked["params"]["mode"]), (&json!("elicitation/create"), &json!(null)), "{asked}");
    assert_eq!(asked["params"]["message"], "Who has [REDACTED]?");
    let id = text(&asked, "/id").to_owned();
    assert_ne!(id, "q-1", "the id is one of the gate");

    // Nobody else can respond: neither another principal, nor in another session, nor to another request.
    let stranger = world.agent("stranger", &["tools.invoke"]);
    let response = |id: &str, name: &str| json!({"jsonrpc": "2.0", "id": id, "result": {"action": "accept", "content": {"name": name}}});
    assert_eq!(stranger.legacy(&session, &response(&id, "Eve")).status(), 404);
    let foreign = stranger.opens_session_with(&json!({"elicitation": {}}));
    assert_eq!(stranger.legacy(&foreign, &response(&id, "Eve")).status(), 202);
    let another = agent.opens_session_with(&json!({"elicitation": {}}));
    assert_eq!(agent.legacy(&another, &response(&id, "Eve")).status(), 202);
    assert_eq!(agent.legacy(&session, &response("q-1", "Eve")).status(), 202);
    assert!(responses(&server).is_empty());

    assert_eq!(agent.legacy(&session, &response(&id, "Ann")).status(), 202);
    let result = call.next();
    assert_eq!(result["result"]["structuredContent"], json!({"text": "hello"}), "{result}");
    let sent = responses(&server);
    assert_eq!(sent, [response("q-1", "Ann")]);
    let begun = server.received("initialize");
    let declared = &begun.last().unwrap()["params"]["capabilities"];
    assert_eq!(declared, &json!({"elicitation": {"form": {}}, "sampling": {}}), "what the client declared");
    assert_eq!(agent.legacy(&session, &response(&id, "Ann")).status(), 202, "too late, and of no use");
    assert_eq!(responses(&server).len(), 1);
}

#[test]
fn a_client_that_declared_nothing_or_takes_no_stream_is_not_asked() {
    let world = World::sqlite();
    let (server, agent) = desk(&world);
    let call = request("tools/call", json!({"name": "mounted_echo", "arguments": {"text": "hello"}}));
    let silent = agent.opens_session();
    let result = agent.legacy(&silent, &call).rpc();
    assert_eq!(result["structuredContent"], json!({"text": "hello"}), "{result}");
    let asking = agent.opens_session_with(&json!({"elicitation": {}}));
    agent.legacy(&asking, &call).rpc();
    let body = json!({"tool": "mounted.echo", "parameters": {"text": "hello"}});
    agent.post("/api/v1/tools/invoke", &body).ok();
    let codes: Vec<Value> = responses(&server).iter().map(|sent| sent["error"]["code"].clone()).collect();
    assert_eq!(codes, [json!(-32601), json!(-32601), json!(-32601)]);
    // What a user should not open is refused as well.
    let page = json!({"mode": "url", "message": "Open this.", "url": "javascript:alert(1)"});
    server.script().conduct = Conduct::Questioning(question(&page));
    let opening = agent.opens_session_with(&json!({"elicitation": {"url": {}}}));
    let mut call = calling_logged(&world, &agent, &opening);
    let heard: Vec<Value> =
        std::iter::from_fn(|| Some(call.next())).take_while(|heard| heard.get("result").is_none()).collect();
    assert!(heard.iter().all(|heard| heard["method"] == "notifications/message"), "{heard:?}");
    assert_eq!(responses(&server).last().unwrap()["error"]["code"], -32602);
}

#[test]
fn policies_decide_on_questions_and_responses_and_their_decisions_are_recorded() {
    let world = World::sqlite();
    let (server, agent) = desk(&world);
    world.admin().applies(&[("rules.cedar", super::input::RULES)]).ok();
    let session = agent.opens_session_with(&json!({"elicitation": {}}));
    let mut call = calling(&world, &agent, &session);
    let asked = call.next();
    let result = json!({"action": "accept", "content": {"name": "Eve"}});
    agent.legacy(&session, &json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}));
    assert!(call.next()["result"].is_object());
    let sent = responses(&server);
    assert_eq!((&sent[0]["error"]["code"], sent[0].to_string().contains("Eve")), (&json!(-32603), false), "{sent:?}");

    let codes = json!({"message": "What are the launch codes?", "requestedSchema": {"type": "object"}});
    server.script().conduct = Conduct::Questioning(question(&codes));
    // Without anything to hear, the response is no stream.
    let params = json!({"name": "mounted_echo", "arguments": {"text": "hello"}});
    let headers = [
        ("Mcp-Session-Id", session.as_str()),
        ("MCP-Protocol-Version", "2025-11-25"),
        ("Accept", "application/json, text/event-stream"),
    ];
    agent.ask_with("POST", "/mcp", &headers, Some(&request("tools/call", params))).rpc();
    assert_eq!(responses(&server)[1]["error"]["code"], -32603);
    let denied = world.admin().events("").into_iter().filter(|event| event.to_string().contains("no-codes")).count();
    assert!(denied >= 1, "the decision is in the log");
}

#[test]
fn a_client_of_a_session_is_asked_for_what_a_modern_server_wants_before_it_goes_on() {
    let world = World::sqlite();
    let (admin, agent) = (world.admin(), world.agent("agent", &["tools.invoke"]));
    let server = McpServer::start(true, false);
    let credential = mount(&admin, "mounted", &server);
    admin.grants(&credential, "agent", json!({"scopes": ["echo"]}));
    let requests = json!({"who": {"method": "elicitation/create", "params": form()}});
    server.script().conduct = Conduct::Interrupting(requests);
    let session = agent.opens_session_with(&json!({"elicitation": {}}));
    let mut call = calling(&world, &agent, &session);
    let asked = call.next();
    assert_eq!(asked["params"]["message"], "Who has [REDACTED]?", "{asked}");
    let result = json!({"action": "accept", "content": {"name": "Ann"}});
    agent.legacy(&session, &json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}));
    let responded = call.next();
    assert_eq!(responded["result"]["structuredContent"]["text"], json!({"who": result}).to_string(), "{responded}");
    assert!(!responded.to_string().contains("requestState"), "{responded}");
    // A client that does not respond gets an error, and the server nothing.
    let mut call = calling(&world, &agent, &session);
    let asked = call.next();
    agent.legacy(&session, &json!({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -1, "message": "no"}}));
    let failed = call.next();
    assert_eq!(failed["result"]["_meta"]["toolgate/code"], "INPUT_REQUIRED", "{failed}");
    assert_eq!(server.received("tools/call").len(), 3);
}

fn calling_logged(world: &World, agent: &Actor, session: &str) -> Listener {
    let level = request("logging/setLevel", json!({"level": "debug"}));
    assert_eq!(agent.legacy(session, &level).rpc(), json!({}));
    calling(world, agent, session)
}

#[test]
fn log_messages_of_a_server_reach_a_client_that_wants_them_from_its_level_on() {
    let world = World::sqlite();
    let (server, agent) = desk(&world);
    server.script().conduct = Conduct::Questioning(json!({"jsonrpc": "2.0", "method": "notifications/other"}));
    let session = agent.opens_session();
    agent.legacy(&session, &request("logging/setLevel", json!({"level": "loud"}))).rpc_error(200, -32602);
    let mut call = calling_logged(&world, &agent, &session);
    let heard = [call.next(), call.next(), call.next()];
    assert_eq!((&heard[0]["params"]["level"], &heard[1]["params"]["level"]), (&json!("debug"), &json!("warning")));
    assert_eq!(heard[2]["result"]["structuredContent"], json!({"text": "hello"}));
    agent.legacy(&session, &request("logging/setLevel", json!({"level": "warning"}))).rpc();
    let mut call = calling(&world, &agent, &session);
    assert_eq!(call.next()["params"]["level"], "warning");
    assert!(call.next()["result"].is_object());
}

#[test]
fn progress_of_a_server_reaches_a_client_of_either_era_that_asked_for_it() {
    let world = World::sqlite();
    let (server, agent) = desk(&world);
    server.script().conduct = Conduct::Reporting;
    let params = json!({"name": "mounted_echo", "arguments": {"text": "hello"}, "_meta": {"progressToken": "p-1"}});
    let session = agent.opens_session();
    let headers = format!("Mcp-Session-Id: {session}\r\nMCP-Protocol-Version: 2025-11-25\r\n");
    let legacy = Listener::open(&world, &agent, "POST", &headers, &request("tools/call", params).to_string());
    let meta = super::meta(json!({}));
    let mut params = json!({"name": "mounted_echo", "arguments": {"text": "hello"}, "_meta": meta});
    params["_meta"]["progressToken"] = json!("p-1");
    let headers =
        format!("MCP-Protocol-Version: {}\r\nMcp-Method: tools/call\r\nMcp-Name: mounted_echo\r\n", super::VERSION);
    let modern = Listener::open(&world, &agent, "POST", &headers, &request("tools/call", params).to_string());
    for mut call in [legacy, modern] {
        let heard = call.next();
        let expected = json!({"progressToken": "p-1", "progress": 1.0, "total": 2.0, "message": "[REDACTED]"});
        assert_eq!((&heard["method"], &heard["params"]), (&json!("notifications/progress"), &expected));
        assert_eq!(call.next()["result"]["structuredContent"], json!({"text": "hello"}));
    }
}
