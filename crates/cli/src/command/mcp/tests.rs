//! The bridge against servers of the testkit: what it sends, and what the client reads.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader, DuplexStream, Lines};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, block_in_place};
use toolgate_model::secret::Secret;
use toolgate_testkit::mcp_server::{Conduct, McpServer};
use toolgate_testkit::upstream::{Reply, Upstream};

use super::bridge::Input;
use super::*;

/// A client at a bridge.
struct Talk {
    input: mpsc::Sender<Input>,
    output: Lines<BufReader<DuplexStream>>,
    stop: oneshot::Sender<()>,
    bridge: JoinHandle<()>,
}

impl Talk {
    fn with(url: &str) -> Self {
        let client = Client::new(url, &Secret::new("tgk_key".to_owned())).unwrap();
        let (input, lines) = mpsc::channel(4);
        let (written, read) = tokio::io::duplex(1 << 20);
        let (output, _writing) = Output::new(written);
        let (stop, stopped) = oneshot::channel();
        let stop_signal = async {
            let _ = stopped.await;
        };
        let bridge = tokio::spawn(Bridge::new(client, output).run(lines, stop_signal));
        Self { input, output: BufReader::new(read).lines(), stop, bridge }
    }

    async fn send(&self, message: Value) {
        self.input.send(read(Ok(message.to_string().into_bytes()))).await.unwrap();
    }

    async fn next(&mut self) -> Value {
        let line = self.output.next_line().await.unwrap().expect("a message");
        serde_json::from_str(&line).unwrap()
    }

    async fn ask(&mut self, id: u64, method: &str, params: Value) -> Value {
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        let response = self.next().await;
        assert_eq!(response["id"], json!(id), "{response}");
        response
    }

    async fn initialize(&mut self) {
        let response = self.ask(1, "initialize", json!({"protocolVersion": "2025-11-25", "capabilities": {}})).await;
        assert_eq!(response["result"]["protocolVersion"], "2025-11-25", "{response}");
        self.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    }

    /// Ends the input, and returns what is still written.
    async fn end(mut self) -> Vec<String> {
        drop(self.input);
        let mut rest = Vec::new();
        while let Some(line) = self.output.next_line().await.unwrap() {
            rest.push(line);
        }
        self.bridge.await.unwrap();
        drop(self.stop);
        rest
    }
}

fn modern(mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    params
}

fn gate_of(server: &McpServer) -> String {
    server.url().trim_end_matches("/mcp").to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn modern_requests_get_their_headers_and_streams_become_lines() {
    for events in [false, true] {
        let server = McpServer::start(true, events);
        let mut talk = Talk::with(&gate_of(&server));
        let listed = talk.ask(1, "tools/list", modern(json!({}))).await;
        assert_eq!(listed["result"]["tools"][0]["name"], "echo", "{listed}");
        let called = talk.ask(2, "tools/call", modern(json!({"name": "echo", "arguments": {"text": "a\nb"}}))).await;
        assert_eq!(called["result"]["structuredContent"], json!({"text": "a\nb"}), "{called}");
        assert_eq!(talk.end().await, [""; 0]);
        let received = server.upstream().received();
        assert!(received.iter().all(|request| request.bearer() == Some("tgk_key")));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_before_a_response_are_lines_too() {
    let server = McpServer::start(true, true);
    server.script().conduct = Conduct::Announcing;
    let mut talk = Talk::with(&gate_of(&server));
    let params = modern(json!({"name": "echo", "arguments": {"text": "a"}}));
    talk.send(json!({"jsonrpc": "2.0", "id": "x", "method": "tools/call", "params": params})).await;
    assert!(talk.next().await["method"].is_string());
    assert_eq!(talk.next().await["id"], "x");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_is_opened_used_and_ended_and_one_that_is_gone_is_opened_again() {
    let server = McpServer::start(false, false);
    let mut talk = Talk::with(&gate_of(&server));
    talk.initialize().await;
    assert!(talk.ask(2, "tools/list", json!({})).await["result"]["tools"].is_array());
    server.script().sessions.clear();
    for id in 3..6 {
        talk.send(json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"})).await;
    }
    for _ in 3..6 {
        let response = talk.next().await;
        assert!(response["result"]["tools"].is_array(), "{response}");
    }
    assert_eq!(server.received("initialize").len(), 2, "the client has noticed nothing");
    assert_eq!(server.received("notifications/initialized").len(), 2);
    talk.end().await;
    let last = server.upstream().received().pop().unwrap();
    assert_eq!((last.method.as_str(), last.header("mcp-session-id")), ("DELETE", Some("session-2")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_client_cancels_closes_its_connection_and_gets_no_response() {
    let server = McpServer::start(true, false);
    server.script().conduct = Conduct::Silent;
    let mut talk = Talk::with(&gate_of(&server));
    let params = modern(json!({"name": "echo", "arguments": {"text": "a"}}));
    talk.send(json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params})).await;
    block_in_place(|| server.upstream().wait_for(1));
    talk.send(json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params})).await;
    let twice = talk.next().await;
    assert_eq!((&twice["id"], &twice["error"]["code"]), (&json!(7), &json!(-32600)), "an id is used once at a time");
    talk.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}})).await;
    block_in_place(|| server.upstream().wait_for_ended_connections(1));
    assert!(talk.ask(8, "tools/list", modern(json!({}))).await["result"].is_object());
    assert_eq!(talk.end().await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signal_ends_it_although_requests_are_in_flight() {
    let server = McpServer::start(true, false);
    server.script().conduct = Conduct::Silent;
    let talk = Talk::with(&gate_of(&server));
    let params = modern(json!({"name": "echo", "arguments": {"text": "a"}}));
    talk.send(json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params})).await;
    block_in_place(|| server.upstream().wait_for(1));
    talk.stop.send(()).unwrap();
    talk.bridge.await.unwrap();
    block_in_place(|| server.upstream().wait_for_ended_connections(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn marked_arguments_are_repeated_also_for_a_tool_that_was_listed_earlier() {
    let schema = json!({"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}});
    let gate = Upstream::start(move |request| {
        let message = request.json();
        let id = message["id"].clone();
        match (message["method"].as_str(), request.header("mcp-param-region")) {
            (Some("tools/list"), _) => {
                let tools = json!([{"name": "notes_add", "inputSchema": schema}]);
                Reply::json(200, json!({"jsonrpc": "2.0", "id": id, "result": {"tools": tools}}))
            }
            (_, Some(region)) => Reply::json(200, json!({"jsonrpc": "2.0", "id": id, "result": {"region": region}})),
            (_, None) => {
                Reply::json(400, json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32020, "message": "differs"}}))
            }
        }
    });
    let mut talk = Talk::with(&gate.url());
    let params = modern(json!({"name": "notes_add", "arguments": {"region": "eu"}}));
    assert_eq!(talk.ask(1, "tools/call", params.clone()).await["result"]["region"], "eu");
    assert_eq!(gate.count(), 3, "refused, listed, repeated");
    assert_eq!(talk.ask(2, "tools/call", params).await["result"]["region"], "eu");
    assert_eq!(gate.count(), 4);
    let unknown = talk.ask(3, "tools/call", modern(json!({"name": "notes_add", "arguments": {}}))).await;
    assert_eq!(unknown["error"]["code"], -32020);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_request_gets_a_response_whatever_the_gate_does() {
    let refused = json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32600, "message": "no such key"}});
    let gate = Upstream::start(move |request| match request.json()["method"].as_str() {
        Some("refused") => Reply::json(401, refused.clone()),
        Some("proxy") => Reply::bytes(502, "<html>"),
        Some("cut") => Reply::chunks(200, ["data: {\"jsonrpc\":\"2.0\",\"method\":\"a\"}\n\n"])
            .header("Content-Type", "text/event-stream"),
        _ => Reply::bytes(202, ""),
    });
    let mut talk = Talk::with(&gate.url());
    assert_eq!(talk.ask(1, "refused", modern(json!({}))).await["error"]["message"], "no such key");
    assert!(talk.ask(2, "proxy", modern(json!({}))).await["error"]["message"].as_str().unwrap().contains("502"));
    talk.send(json!({"jsonrpc": "2.0", "id": 3, "method": "cut", "params": modern(json!({}))})).await;
    assert_eq!(talk.next().await["method"], "a");
    assert_eq!(talk.next().await["error"]["code"], -32603);
    assert_eq!(talk.ask(4, "nothing", json!({})).await["error"]["code"], -32603);
    talk.input.send(read(Ok(b"nonsense".to_vec()))).await.unwrap();
    assert_eq!(
        talk.next().await,
        json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "the line is not a message in JSON"}})
    );
    talk.input.send(read(Err(TooLong))).await.unwrap();
    assert_eq!(talk.next().await["error"]["code"], -32600);
    drop(gate);
    let gone = talk.ask(5, "tools/list", modern(json!({}))).await;
    let said = gone["error"]["message"].as_str().unwrap();
    assert!(said.contains("could not connect") && !said.contains("tgk_key"), "{said}");
}
