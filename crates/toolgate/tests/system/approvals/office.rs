//! What every scenario of approvals needs: a bank on loopback some of whose tools ask, an agent that calls them, people
//! who answer, and short ways to call, to wait and to decide.

use std::thread::JoinHandle;

use serde_json::{Value, json};
use toolgate_testkit::upstream::{Reply as Answer, Upstream};

use crate::world::{Actor, Reply, World, id, merged, text, until};

/// A bank behind the gate, an agent with a grant on all of it, and somebody who answers.
pub struct Office {
    pub bank: Upstream,
    pub admin: Actor,
    pub agent: Actor,
    pub clerk: Actor,
}

/// A call that waits, in a thread of its own.
pub struct Waiting {
    thread: JoinHandle<Reply>,
    pub approval: String,
}

impl Office {
    pub fn open(world: &World) -> Self {
        let bank = Upstream::start(|_| Answer::json(200, json!({"done": true})));
        let admin = world.admin();
        admin.post("/api/v1/services", &bank_definition()).created();
        let tools = ["transfer", "transfer.two", "transfer.brief", "transfer.attended", "send_message", "balance"];
        let body = json!({
            "service": "bank", "label": "bank", "auth_type": "bearer_token", "scopes_available": tools,
            "metadata": {"base_url": bank.url()}, "material": {"token": "sk_live_of_the_bank_4242"},
        });
        let credential = id(&admin.post(&format!("/api/v1/vaults/{}/credentials", admin.vault()), &body).created());
        let agent = admin.registers("teller", &["tools.invoke"]);
        admin.grants(&credential, "teller", json!({"scopes": tools}));
        let clerk = person(&admin, "clerk", &["approvals.decide"], &[]);
        Self { bank, admin, agent, clerk }
    }

    /// The same office, at another gate of the same ledger.
    pub fn at(self, world: &World) -> Self {
        let (agent, clerk) = (world.actor("teller", &self.agent.key), world.actor("clerk", &self.clerk.key));
        Self { admin: world.admin(), agent, clerk, ..self }
    }

    /// Calls a tool of the bank and waits until it waits.
    pub fn asks(&self, tool: &str, amount: u64) -> Waiting {
        self.asks_with(call(tool, amount))
    }

    /// Sends a call and waits until it waits.
    pub fn asks_with(&self, body: Value) -> Waiting {
        let known = self.pending();
        let agent = self.agent.clone();
        let thread = std::thread::spawn(move || agent.post("/api/v1/tools/invoke", &body));
        let approval = until("a call that waits", || self.pending().into_iter().find(|id| !known.contains(id)));
        Waiting { thread, approval }
    }

    /// The ids of all that waits.
    pub fn pending(&self) -> Vec<String> {
        let list = self.clerk.get("/api/v1/approvals?status=pending&limit=1000").ok();
        crate::world::ids(&list["approvals"])
    }

    /// An approval as it is now.
    pub fn approval(&self, id: &str) -> Value {
        self.clerk.get(&format!("/api/v1/approvals/{id}")).ok()
    }

    /// The types of what happened to an approval, in order.
    pub fn events_of(&self, approval: &str) -> Vec<String> {
        let about = |event: &Value| event["data"]["approval_id"] == approval;
        let events = self.admin.events("").into_iter().filter(about);
        events.map(|event| text(&event, "/type").to_owned()).collect()
    }
}

impl Waiting {
    /// What the call was answered in the end.
    pub fn answer(self) -> Reply {
        self.thread.join().unwrap()
    }
}

impl Actor {
    /// Answers an approval, adding `more` to the decision.
    pub fn decides(&self, approval: &str, decision: &str, more: Value) -> Reply {
        let body = merged(json!({"decision": decision}), more);
        self.post(&format!("/api/v1/approvals/{approval}/decide"), &body)
    }
}

/// A person with these permissions and scopes.
pub fn person(admin: &Actor, id: &str, permissions: &[&str], scopes: &[&str]) -> Actor {
    principal(admin, "user", id, permissions, scopes)
}

/// A principal of this kind.
pub fn principal(admin: &Actor, kind: &str, id: &str, permissions: &[&str], scopes: &[&str]) -> Actor {
    admin.registers_as(&json!({"id": id, "kind": kind, "permissions": permissions, "scopes": scopes}))
}

/// A call of a tool of the bank.
pub fn call(tool: &str, amount: u64) -> Value {
    json!({"tool": format!("bank.{tool}"), "parameters": {"amount": amount, "to": "ann"}})
}

fn bank_definition() -> Value {
    let tool = |path: &str, more: Value| {
        let plain = json!({
            "parameters": {"amount": {"type": "integer"}, "to": {"type": "string"}},
            "http": {"method": "POST", "path": format!("/v1/{path}")},
        });
        merged(plain, more)
    };
    json!({
        "service": "bank", "version": "1",
        "tools": {
            "balance": tool("anything", json!({})),
            "transfer": tool("anything", json!({"approval": "always"})),
            "transfer.two": tool("anything", json!({
                "approval": "always",
                "approval_rule": {"approvers": 2, "groups": ["finance"], "separation_of_duties": true}
            })),
            "transfer.brief": tool("anything", json!({"approval": "always", "approval_rule": {"ttl_seconds": 1}})),
            "transfer.attended": tool("anything", json!({
                "approval": "always", "approval_rule": {"attendance": "required"}
            })),
            "send_message": tool("anything", json!({"approval": "always"})),
        }
    })
}
