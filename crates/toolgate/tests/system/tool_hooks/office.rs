//! What these scenarios need: a service that counts what reaches it, and an agent with a grant on all of its tools.

use serde_json::{Value, json};
use toolgate_testkit::upstream::{Received, Reply as Answer, Upstream};

use crate::world::{Actor, Reply, World, id, merged, text};

/// The secret of the credential. Without a shape that would give it away.
pub const TOKEN: &str = "correct horse battery staple";

const TOOLS: [&str; 5] = ["limited", "open", "scoped", "slow", "strict"];

pub struct Office {
    pub upstream: Upstream,
    pub admin: Actor,
    pub agent: Actor,
    pub credential: String,
    pub grant: Value,
}

impl Office {
    /// A service that says yes to everything.
    pub fn open(world: &World) -> Self {
        Self::answering(world, |_| Answer::json(200, json!({"done": true})))
    }

    /// A service that answers each request as told.
    pub fn answering(world: &World, answer: impl Fn(&Received) -> Answer + Send + Sync + 'static) -> Self {
        let (admin, upstream) = (world.admin(), Upstream::start(answer));
        admin.post("/api/v1/services", &definition()).created();
        let agent = world.agent("clerk", &["tools.invoke"]);
        let credential = credential(&admin, &upstream.url());
        let grant = admin.grants(&credential, "clerk", json!({"scopes": TOOLS}));
        Self { upstream, admin, agent, credential, grant }
    }

    /// Calls a tool of the service as the agent, adding `more` to the request.
    pub fn call(&self, tool: &str, more: Value) -> Reply {
        call(&self.agent, tool, more)
    }

    /// Changes the agent.
    pub fn change(&self, changes: Value) {
        self.admin.patch("/api/v1/agents/clerk", &changes).ok();
    }

    /// What reached the service, by tool.
    pub fn reached(&self) -> Vec<String> {
        self.upstream.received().iter().map(|request| request.path().trim_start_matches('/').to_owned()).collect()
    }
}

/// Calls a tool of the service, adding `more` to the request.
pub fn call(agent: &Actor, tool: &str, more: Value) -> Reply {
    agent.invokes(merged(json!({"tool": format!("office.{tool}"), "parameters": {"n": 1}}), more))
}

/// The id of a call that was answered in whatever way.
pub fn invocation(reply: &Reply) -> String {
    text(&reply.json(), "/invocation_id").to_owned()
}

/// Makes a credential for the service at this address; answers its id.
pub fn credential(admin: &Actor, base_url: &str) -> String {
    let body = json!({
        "service": "office", "label": "office", "auth_type": "bearer_token", "metadata": {"base_url": base_url},
        "scopes_available": TOOLS, "material": {"token": TOKEN},
    });
    id(&admin.post(&format!("/api/v1/vaults/{}/credentials", admin.vault()), &body).created())
}

fn definition() -> Value {
    let http = |path: &str| json!({"method": "POST", "path": path});
    json!({
        "service": "office", "version": "1",
        "tools": {
            "open": {"http": http("/open")},
            "scoped": {"required_scopes": ["tools:office:write"], "http": http("/scoped")},
            // So slow that no token comes back during a test.
            "limited": {"rate_limit": {"requests": 2, "per_seconds": 86_400}, "http": http("/limited")},
            "slow": {"timeout_ms": 1000, "http": http("/slow")},
            "strict": {
                "parameters": {"n": {"type": "integer", "required": true}, "comment": {"type": "string"}},
                "http": http("/strict")
            }
        }
    })
}
