//! What these scenarios need: a payments service in two versions, a credential for each, an agent, and a person.

use serde_json::{Value, json};
use toolgate_testkit::upstream::{Reply as Answer, Upstream};

use crate::world::{Actor, Reply, World, id, merged, until};

/// A payments service behind the gate, an agent, and somebody who decides.
pub struct Payments {
    pub service: Upstream,
    pub admin: Actor,
    pub agent: Actor,
    pub ann: Actor,
    vault: String,
}

/// A call that waits for a person, in a thread of its own.
pub struct Waiting {
    thread: std::thread::JoinHandle<Reply>,
    pub approval: Value,
}

impl Payments {
    pub fn open(world: &World) -> Self {
        let service = Upstream::start(|request| Answer::json(200, json!({"path": request.path(), "card": "4111"})));
        let admin = world.admin();
        let agent = world.agent("billing", &["tools.invoke"]);
        let ann = admin.registers_as(&json!({"id": "ann", "kind": "user", "permissions": ["approvals.decide"]}));
        let vault = admin.vault();
        Self { service, admin, agent, ann, vault }
    }

    /// Registers a version of the service whose `refund` says `more`.
    pub fn registers(&self, version: &str, more: Value) {
        self.admin.post("/api/v1/services", &definition(version, more)).created();
    }

    /// Replaces a version of the service.
    pub fn replaces(&self, version: &str, more: Value) {
        self.admin.ask("PUT", "/api/v1/services/payments", Some(&definition(version, more))).ok();
    }

    /// A credential with these additions to its metadata.
    pub fn credential(&self, label: &str, metadata: Value) -> String {
        let metadata = merged(json!({"base_url": self.service.url()}), metadata);
        let body = json!({
            "service": "payments", "label": label, "auth_type": "bearer_token", "scopes_available": ["refund"],
            "metadata": metadata, "material": {"token": format!("the token of {label}, long enough")},
        });
        id(&self.admin.post(&format!("/api/v1/vaults/{}/credentials", self.vault), &body).created())
    }

    /// A grant on a credential for the agent.
    pub fn grant(&self, credential: &str, more: Value) -> String {
        id(&self.admin.grants(credential, "billing", merged(json!({"scopes": ["refund"]}), more)))
    }

    pub fn refund(&self, more: Value) -> Reply {
        self.agent.invokes(refund(more))
    }

    /// Makes a call, and waits until it waits for a person.
    pub fn asks(&self, body: Value) -> Waiting {
        let known = crate::world::ids(&json!(self.pending()));
        let caller = self.agent.clone();
        let thread = std::thread::spawn(move || caller.invokes(body));
        let is_new = |approval: &Value| !known.contains(&id(approval));
        let approval = until("a call that waits", || self.pending().into_iter().find(is_new));
        Waiting { thread, approval }
    }

    pub fn pending(&self) -> Vec<Value> {
        let list = self.ann.get("/api/v1/approvals?status=pending&limit=1000").ok();
        list["approvals"].as_array().unwrap().clone()
    }

    #[track_caller]
    pub fn applies(&self, rules: &str) {
        self.admin.applies(&[("rules.cedar", rules)]).ok();
    }
}

impl Waiting {
    /// Decides as this person, and gives back what the call was answered.
    #[track_caller]
    pub fn decided(self, person: &Actor, decision: &str, more: Value) -> Reply {
        person.decides(&id(&self.approval), decision, more).ok();
        self.answer()
    }

    /// What the call was answered in the end.
    pub fn answer(self) -> Reply {
        self.thread.join().unwrap()
    }
}

/// A call of `refund`.
pub fn refund(more: Value) -> Value {
    merged(json!({"tool": "payments.refund", "parameters": {"amount": 5}}), more)
}

fn definition(version: &str, more: Value) -> Value {
    let http = json!({"http": {"method": "POST", "path": format!("/v{version}/refunds")}});
    json!({"service": "payments", "version": version, "tools": {"refund": merged(http, more)}})
}
