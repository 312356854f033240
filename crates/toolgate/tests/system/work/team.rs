//! What every scenario of work needs: a payments service, a lead that may delegate its tools, two workers without any, and an
//! intent that the lead coordinates.

use serde_json::{Value, json};

use crate::calls::shop::Shop;
use crate::world::{Actor, Reply, World, id, merged};

/// Who works together on one intent.
pub struct Team {
    pub shop: Shop,
    pub admin: Actor,
    pub lead: Actor,
    pub worker: Actor,
    pub other: Actor,
    pub intent: String,
    pub coordinator: String,
}

impl Team {
    /// A team whose coordinator delegates automatically.
    pub fn of(world: &World) -> Self {
        Self::within(world, json!({"auto_delegate": true}))
    }

    /// A team whose coordinator has these guardrails.
    pub fn within(world: &World, guardrails: Value) -> Self {
        let shop = Shop::open(world);
        let admin = world.admin();
        let lead = world.agent("lead", &["tools.invoke", "tools.delegate"]);
        let worker = world.agent("worker", &["tools.invoke"]);
        let other = world.agent("other", &["tools.invoke"]);
        shop.grant_to("lead", json!({"delegatable": true, "delegation_depth": 2}));
        let intent = id(&admin.post("/api/v1/intents", &json!({"title": "Quarterly compliance"})).created());
        let body = json!({"agent_id": "lead", "intent_id": intent, "guardrails": guardrails});
        let coordinator = id(&admin.post("/api/v1/coordinators", &body).created());
        Self { shop, admin, lead, worker, other, intent, coordinator }
    }

    /// Creates a task as the lead, adding `more` to the least that a task says; answers all of it.
    pub fn task(&self, name: &str, more: Value) -> Value {
        self.tries_task(name, more).created()
    }

    pub fn tries_task(&self, name: &str, more: Value) -> Reply {
        self.lead.post("/api/v1/tasks", &merged(json!({"intent_id": self.intent, "name": name}), more))
    }

    /// A task that needs to read charges.
    pub fn reading_task(&self) -> Value {
        self.task("read-charges", needs(&["charges.read"]))
    }

    /// Assigns a task to an agent, as the lead; answers all of it.
    pub fn assign(&self, task: &Value, agent: &str) -> Value {
        self.lead.changes_task(task, json!({"assigned_agent": agent})).ok()
    }

    /// Has the worker claim and start a task that is assigned to it.
    pub fn start(&self, task: &Value) -> Value {
        self.worker.changes_task(task, json!({"status": "claimed"})).ok();
        self.worker.changes_task(task, json!({"status": "running"})).ok()
    }

    /// The grants of an agent that are bound to a task.
    pub fn grants_for(&self, agent: &str, task: &Value) -> Vec<Value> {
        let all = self.admin.get(&format!("/api/v1/grants?agent_id={agent}")).ok();
        let bound = |grant: &&Value| grant["context"]["task_id"] == task["id"];
        all["grants"].as_array().unwrap().iter().filter(bound).cloned().collect()
    }

    pub fn path(&self, rest: &str) -> String {
        format!("/api/v1/intents/{}{rest}", self.intent)
    }
}

/// The requirement of these scopes of the payments service.
pub fn needs(scopes: &[&str]) -> Value {
    json!({"requires_tools": [{"service": "payments", "scopes": scopes}]})
}

/// A call that reads a charge for a task.
pub fn reading(task: &Value) -> Value {
    json!({
        "tool": "payments.charges.read", "parameters": {"charge_id": "ch_7"}, "context": {"task_id": task["id"]}
    })
}

impl Actor {
    /// The task as it is now.
    pub fn task(&self, task: &Value) -> Value {
        self.get(&format!("/api/v1/tasks/{}", id(task))).ok()
    }

    /// Changes a task, with the version that it has now.
    pub fn changes_task(&self, task: &Value, changes: Value) -> Reply {
        let version = self.task(task)["version"].to_string();
        self.changes_task_of(&version, task, changes)
    }

    /// Changes a task, with this version.
    pub fn changes_task_of(&self, version: &str, task: &Value, changes: Value) -> Reply {
        let path = format!("/api/v1/tasks/{}", id(task));
        self.ask_with("PATCH", &path, &[("If-Match", version)], Some(&changes))
    }
}
