//! What these scenarios need: a desk on loopback with tools of every kind, an agent that may use all of them, a host that
//! acts for the agent, a person who answers, and short ways to apply rules, to call and to look at what was decided.

use std::thread::JoinHandle;

use serde_json::{Value, json};
use toolgate_testkit::upstream::{Received, Reply as Answer, Upstream};

use crate::world::{Actor, Reply, World, id, merged, text, until};

/// What a detector takes for a key, and what is left after it was taken out.
pub const KEY: &str = "AKIAIOSFODNN7EXAMPLE";

const TOOLS: [&str; 6] = ["customers", "file", "note", "page", "run", "send"];

pub struct Office {
    pub desk: Upstream,
    pub admin: Actor,
    pub agent: Actor,
    /// Acts for the agent.
    pub host: Actor,
    /// Answers approvals.
    pub ann: Actor,
}

/// A call that waits for a person, in a thread of its own.
pub struct Waiting {
    thread: JoinHandle<Reply>,
    pub approval: Value,
}

impl Office {
    pub fn open(world: &World) -> Self {
        let desk = Upstream::start(|request| match request.path() {
            "/file" => Answer::json(200, json!({"text": format!("the key is {KEY}"), "lines": 1})),
            _ => Answer::json(200, json!({"done": true})),
        });
        let admin = world.admin();
        admin.post("/api/v1/services", &definition()).created();
        let body = json!({
            "service": "desk", "label": "desk", "auth_type": "bearer_token", "metadata": {"base_url": desk.url()},
            "scopes_available": TOOLS, "material": {"token": "seven green bottles on the wall"},
        });
        let credential = id(&admin.post(&format!("/api/v1/vaults/{}/credentials", admin.vault()), &body).created());
        let agent = world.agent("clerk", &["tools.invoke"]);
        admin.grants(&credential, "clerk", json!({"scopes": TOOLS}));
        let host = admin
            .registers_as(&json!({"id": "host", "kind": "service", "permissions": ["tools.invoke", "agents.act_as"]}));
        let ann = admin.registers_as(&json!({"id": "ann", "kind": "user", "permissions": ["approvals.decide"]}));
        Self { desk, admin, agent, host, ann }
    }

    /// Makes these rules the active ones; answers the version.
    #[track_caller]
    pub fn applies(&self, rules: &str) -> u64 {
        self.admin.applies(&[("rules.cedar", rules)]).ok()["version"].as_u64().unwrap()
    }

    /// Calls a tool of the desk as the agent.
    pub fn call(&self, tool: &str, parameters: Value) -> Reply {
        self.agent.invokes(call(tool, parameters))
    }

    /// Writes a note as the agent, which no rule is about unless it says so.
    pub fn note(&self, text: &str) -> Reply {
        self.call("note", json!({"text": text}))
    }

    /// Makes a call as the agent, and waits until it waits.
    pub fn asks(&self, body: Value) -> Waiting {
        self.asks_as(&self.agent, body)
    }

    /// Makes a call, and waits until it waits.
    pub fn asks_as(&self, caller: &Actor, body: Value) -> Waiting {
        let known = crate::world::ids(&json!(self.pending()));
        let caller = caller.clone();
        let thread = std::thread::spawn(move || caller.invokes(body));
        let is_new = |approval: &Value| !known.contains(&id(approval));
        let approval = until("a call that waits", || self.pending().into_iter().find(is_new));
        Waiting { thread, approval }
    }

    /// All that waits.
    pub fn pending(&self) -> Vec<Value> {
        let list = self.ann.get("/api/v1/approvals?status=pending&limit=1000").ok();
        list["approvals"].as_array().unwrap().clone()
    }

    /// What was decided about a call, in order.
    pub fn decisions(&self, reply: &Reply) -> Vec<Value> {
        let invocation = reply.json()["invocation_id"].clone();
        let all = self.admin.events("&type=hook.decided").into_iter().map(|event| event["data"].clone());
        all.filter(|decision| decision["invocation_id"] == invocation).collect()
    }

    /// The bodies that this tool of the desk was sent.
    pub fn sent(&self, tool: &str) -> Vec<Value> {
        let path = format!("/{tool}");
        self.desk.received().iter().filter(|request| request.path() == path).map(Received::json).collect()
    }
}

impl Waiting {
    /// Answers as this person, and gives back what the call was answered.
    #[track_caller]
    pub fn decided(self, person: &Actor, decision: &str) -> Reply {
        person.decides(text(&self.approval, "/id"), decision, json!({})).ok();
        self.answer()
    }

    /// What the call was answered in the end.
    pub fn answer(self) -> Reply {
        self.thread.join().unwrap()
    }
}

impl Actor {
    /// Asks to make these files the active policies.
    pub fn applies(&self, files: &[(&str, &str)]) -> Reply {
        self.ask("PUT", "/api/v1/policies", Some(&json!({"files": to_json(files)})))
    }
}

/// Files as requests bring them.
pub fn to_json(files: &[(&str, &str)]) -> Value {
    files.iter().map(|(name, text)| json!({"name": name, "text": text})).collect()
}

/// A call of a tool of the desk.
pub fn call(tool: &str, parameters: Value) -> Value {
    json!({"tool": format!("desk.{tool}"), "parameters": parameters})
}

/// The same with more said about it.
pub fn call_with(tool: &str, parameters: Value, more: Value) -> Value {
    merged(call(tool, parameters), more)
}

/// A rule that refuses notes with this text.
pub fn no_note(id: &str, text: &str) -> String {
    format!(
        "@id(\"{id}\")\nforbid (principal, action == Action::\"call:desk.note\", resource)\n\
         when {{ context.arguments has text && context.arguments.text == \"{text}\" }};\n"
    )
}

/// The tools: two that leave labels, one that sends outside, one that runs commands, and of the two that write, one whose
/// arguments are recorded.
fn definition() -> Value {
    let tool = |method: &str, path: &str, more: Value| merged(json!({"http": {"method": method, "path": path}}), more);
    let message = json!({"to": {"type": "string"}, "text": {"type": "string"}, "count": {"type": "integer"}});
    json!({
        "service": "desk", "version": "1", "source": "host-extension",
        "tools": {
            "page": tool("GET", "/page", json!({"safety_tier": "read", "labels": ["untrusted-content"]})),
            "customers": tool("GET", "/customers", json!({"safety_tier": "read", "labels": ["private-data"]})),
            "file": tool("GET", "/file", json!({"safety_tier": "read"})),
            "note": tool("POST", "/note", json!({
                "safety_tier": "write", "parameters": message, "logging": {"inputs": true}, "estimated_cost_usd": 0.02,
            })),
            "send": tool("POST", "/send", json!({
                "safety_tier": "write", "parameters": message, "labels": ["sends-outside"],
            })),
            "run": tool("POST", "/run", json!({
                "safety_tier": "exec", "parameters": {"command": {"type": "string"}},
            })),
        }
    })
}
