//! A gate, an MCP server over HTTP and an agent.

use serde_json::{Value, json};
use toolgate_testkit::mcp_server::McpServer;

use crate::world::{Actor, Reply, World, id, text};

pub struct Office {
    pub server: McpServer,
    pub admin: Actor,
    pub agent: Actor,
    pub credential: String,
}

impl Office {
    /// A mount called `files`, with everything quarantined, and a credential of it.
    pub fn open(world: &World) -> Self {
        Self::of(world, McpServer::start(true, false))
    }

    pub fn of(world: &World, server: McpServer) -> Self {
        let admin = world.admin();
        let vault = admin.vault();
        let body = json!({"name": "files", "url": server.url(), "vault_id": vault});
        admin.post("/api/v1/mounts", &body).created();
        let credentials = admin.get(&format!("/api/v1/vaults/{vault}/credentials")).ok();
        let credential = id(&credentials["credentials"][0]);
        let agent = world.agent("reader", &["tools.invoke"]);
        Self { server, admin, agent, credential }
    }

    pub fn mount(&self) -> Value {
        self.admin.get("/api/v1/mounts/files").ok()
    }

    pub fn review(&self) -> Value {
        self.admin.get("/api/v1/mounts/files/review").ok()
    }

    pub fn check(&self) -> Value {
        self.admin.ask("POST", "/api/v1/mounts/files/check", None).ok()
    }

    /// A decision about these tools as the review shows them, and about the server where it waits.
    pub fn decision(&self, names: &[&str]) -> Value {
        let review = self.review();
        let tools = review["tools"].as_array().unwrap();
        let hash = |name: &&str| {
            let tool = tools.iter().find(|tool| tool["upstream"] == **name).unwrap();
            ((*name).to_owned(), tool["hash"].clone())
        };
        let mut body = json!({"tools": names.iter().map(hash).collect::<serde_json::Map<_, _>>()});
        if !review["server"].is_null() {
            body["server"] = json!(text(&review, "/server/hash"));
        }
        body
    }

    pub fn accept(&self, names: &[&str]) -> Value {
        self.admin.post("/api/v1/mounts/files/accept", &self.decision(names)).ok()
    }

    pub fn grant(&self, scopes: &[&str]) -> Value {
        self.admin.grants(&self.credential, "reader", json!({"scopes": scopes}))
    }

    pub fn call(&self, tool: &str, parameters: Value) -> Reply {
        self.agent.post("/api/v1/tools/invoke", &json!({"tool": tool, "parameters": parameters}))
    }

    /// Changes what the server says of its first tool.
    pub fn change(&self, description: &str) {
        self.server.script().tools[0]["description"] = json!(description);
    }
}
