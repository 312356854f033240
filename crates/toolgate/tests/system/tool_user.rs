//! The shortest way to a call: a credential of any kind for a service on loopback, and an agent with a grant on all of
//! its tools.

use serde_json::{Value, json};
use toolgate_testkit::upstream::Upstream;

use crate::world::{Actor, Reply, World, id, merged, text};

/// An agent and its grant. Every tool is called by POST to a path of its name, unless the
/// credential's metadata says otherwise.
#[derive(Clone)]
pub struct ToolUser {
    pub admin: Actor,
    pub agent: Actor,
    pub grant: String,
}

impl ToolUser {
    /// With this credential: `auth_type`, `material` and `metadata`. The tools are its endpoints and `any`.
    pub fn of(world: &World, credential: Value) -> Self {
        Self::limited(world, credential, json!({}))
    }

    /// The same, with `more` in the grant.
    pub fn limited(world: &World, credential: Value, more: Value) -> Self {
        let admin = world.admin();
        let mut tools = vec!["any".to_owned()];
        if let Some(endpoints) = credential.pointer("/metadata/endpoints").and_then(Value::as_object) {
            tools.extend(endpoints.keys().cloned());
        }
        let body = merged(json!({"service": "service", "label": "a test's", "scopes_available": tools}), credential);
        let credential = id(&admin.post(&format!("/api/v1/vaults/{}/credentials", admin.vault()), &body).created());
        let agent = admin.registers(&format!("user-of-{credential}"), &["tools.invoke"]);
        let grant = id(&admin.grants(&credential, &agent.id, merged(json!({"scopes": tools}), more)));
        Self { admin, agent, grant }
    }

    /// The same agent at another gate of the same ledger.
    pub fn at(&self, world: &World) -> Self {
        let agent = world.actor(&self.agent.id, &self.agent.key);
        Self { admin: world.admin(), agent, ..self.clone() }
    }

    /// Calls a tool.
    pub fn calls(&self, tool: &str, parameters: Value) -> Reply {
        self.calls_with(tool, parameters, json!({}))
    }

    /// Calls a tool, with `more` in the request.
    pub fn calls_with(&self, tool: &str, parameters: Value, more: Value) -> Reply {
        let body = json!({"tool": format!("service.{tool}"), "grant_id": self.grant, "parameters": parameters});
        self.agent.post("/api/v1/tools/invoke", &merged(body, more))
    }

    /// What stays of the call that was answered so.
    pub fn record(&self, reply: &Reply) -> Value {
        self.admin.get(&format!("/api/v1/invocations/{}", text(&reply.json(), "/invocation_id"))).ok()
    }

    /// All that stays of its calls, oldest or newest first.
    pub fn history(&self) -> Vec<Value> {
        let mut found = Vec::new();
        let mut cursor = String::new();
        loop {
            let page =
                self.admin.get(&format!("/api/v1/invocations?agent_id={}&limit=1000{cursor}", self.agent.id)).ok();
            found.extend(page["invocations"].as_array().unwrap().iter().cloned());
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return found,
            }
        }
    }
}

/// A credential that is a bearer token, for this service.
pub fn bearer(upstream: &Upstream) -> Value {
    bearer_with(upstream, json!({}))
}

/// The same, with `more` in the metadata.
pub fn bearer_with(upstream: &Upstream, more: Value) -> Value {
    let metadata = merged(json!({"base_url": upstream.url()}), more);
    json!({"auth_type": "bearer_token", "material": {"token": TOKEN}, "metadata": metadata})
}

/// The token of [`bearer`].
pub const TOKEN: &str = "tok_live/of+the~tool=user_9f3a";

/// The error of a call that was admitted and failed.
#[track_caller]
pub fn failure(reply: &Reply, status: u16, code: &str) -> Value {
    let body = reply.expect(status);
    assert_eq!((body["status"].as_str(), body["error"]["code"].as_str()), (Some("error"), Some(code)), "{body}");
    body["error"].clone()
}
