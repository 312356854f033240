//! The Model Context Protocol through the real binary: both eras, every refusal, hostile clients.

use serde_json::{Value, json};

use crate::world::{Actor, Reply, merged};

mod approvals;
mod cancelling;
mod clients;
mod conformance;
mod credentials;
mod hostile;
mod hostile_servers;
mod input;
mod interruption;
mod legacy;
mod modern;
pub(crate) mod mounted;
mod progressive;
mod questions;
mod streams;

/// The modern version.
const VERSION: &str = "2026-07-28";

impl Actor {
    /// Sends a modern request as a well-behaved client does.
    pub(crate) fn mcp(&self, method: &str, params: Value) -> Reply {
        self.mcp_with(method, params, json!({}))
    }

    /// The same, declaring these capabilities.
    fn mcp_with(&self, method: &str, params: Value, capabilities: Value) -> Reply {
        let name = ["name", "uri", "taskId"].iter().find_map(|member| params[*member].as_str().map(str::to_owned));
        let mut headers = vec![
            ("MCP-Protocol-Version", VERSION),
            ("Mcp-Method", method),
            ("Accept", "application/json, text/event-stream"),
        ];
        if let Some(name) = &name {
            headers.push(("Mcp-Name", name));
        }
        let params = merged(params, json!({"_meta": meta(capabilities)}));
        self.ask_with("POST", "/mcp", &headers, Some(&request(method, params)))
    }

    /// Calls a tool as a modern client.
    pub(crate) fn mcp_call(&self, name: &str, arguments: Value) -> Value {
        self.mcp("tools/call", json!({"name": name, "arguments": arguments})).rpc()
    }

    /// The names of the tools that a modern client sees.
    pub(crate) fn mcp_tools(&self) -> Vec<String> {
        let listed = self.mcp("tools/list", json!({})).rpc();
        listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }
}

impl Reply {
    /// The result of a request.
    #[track_caller]
    pub(crate) fn rpc(&self) -> Value {
        let body = self.ok();
        assert_eq!(body["jsonrpc"], "2.0", "{}: {body}", self.asked);
        assert!(body.get("error").is_none(), "{}: {body}", self.asked);
        body["result"].clone()
    }

    /// The error of a request, with its status and code.
    #[track_caller]
    fn rpc_error(&self, status: u16, code: i64) -> Value {
        let body = self.expect(status);
        assert_eq!(self.answer.header("content-type"), Some("application/json"), "{}", self.asked);
        assert_eq!((&body["jsonrpc"], &body["error"]["code"]), (&json!("2.0"), &json!(code)), "{}: {body}", self.asked);
        assert!(body["error"]["message"].as_str().is_some_and(|message| !message.is_empty()), "{body}");
        body
    }
}

fn request(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

fn meta(capabilities: Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": capabilities,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    })
}
