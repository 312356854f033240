//! What every scenario of calls needs: a payments service on loopback, registered and with a credential, an agent, and
//! short ways to call and to look at what stays.

use serde_json::{Value, json};
use toolgate_testkit::upstream::{Received, Reply as Answer, Upstream};

use crate::world::{Actor, Reply, World, id, merged, text};

/// The secret of the credential.
pub const TOKEN: &str = "sk_live_of_the_shop_4242";

/// A payments service behind the gate, and an agent that may be given grants on it.
pub struct Shop {
    pub upstream: Upstream,
    pub admin: Actor,
    pub agent: Actor,
    pub credential: String,
}

impl Shop {
    /// The small payments service of the fixtures, registered as `payments`.
    pub fn open(world: &World) -> Self {
        Self::of(world, Upstream::payments())
    }

    /// A service that answers each request as told, under the same name and with the same tools.
    pub fn answering(world: &World, answer: impl Fn(&Received) -> Answer + Send + Sync + 'static) -> Self {
        Self::of(world, Upstream::start(answer))
    }

    fn of(world: &World, upstream: Upstream) -> Self {
        let admin = world.admin();
        admin.post("/api/v1/services", &payments("2024-01")).created();
        let credential = credential(&admin, "payments", json!({"base_url": upstream.url()}));
        let agent = world.agent("billing", &["tools.invoke", "tools.delegate"]);
        Self { upstream, admin, agent, credential }
    }

    /// The same shop, at another gate of the same ledger.
    pub fn at(self, world: &World) -> Self {
        let agent = world.actor(&self.agent.id, &self.agent.key);
        Self { admin: world.admin(), agent, ..self }
    }

    /// Gives the agent a grant on all of the tools, but for what `more` says.
    pub fn grant(&self, more: Value) -> Value {
        self.grant_to("billing", more)
    }

    /// Gives this agent such a grant.
    pub fn grant_to(&self, agent: &str, more: Value) -> Value {
        let all = json!({"scopes": ["anything", "charges.create", "charges.read"]});
        self.admin.grants(&self.credential, agent, merged(all, more))
    }

    /// Calls a tool as the agent; the gate picks the grant.
    pub fn call(&self, tool: &str, parameters: Value) -> Reply {
        self.agent.invokes(json!({"tool": tool, "parameters": parameters}))
    }

    /// Reads a charge, adding `more` to the request.
    pub fn read(&self, more: Value) -> Reply {
        self.agent.invokes(read(more))
    }

    /// Sends anything to the tool that takes anything.
    pub fn send(&self, parameters: Value) -> Reply {
        self.call("payments.anything", parameters)
    }

    /// The error of a refused call, whose record and event are checked on the way: they tell the same.
    #[track_caller]
    pub fn denied(&self, reply: &Reply, status: u16, code: &str) -> Value {
        let error = reply.refused(status, code);
        let body = reply.json();
        let invocation = text(&body, "/invocation_id");
        let record = self.record(invocation);
        assert_eq!((&record["id"], &record["status"]), (&body["invocation_id"], &json!("denied")), "{record}");
        assert_eq!(record["error"], json!({"code": code, "message": error["message"]}), "{record}");
        assert_eq!((&record["result"], &record["http_status"]), (&Value::Null, &Value::Null), "{record}");
        assert_eq!(record["request_fingerprint"], Value::Null, "nothing was sent");
        let events = self.events_of(invocation);
        let [event] = events.as_slice() else { panic!("one event of {invocation}, and there are {events:?}") };
        assert_eq!((&event["type"], &event["agent_id"]), (&json!("tool.denied"), &record["agent_id"]));
        let told = &event["data"];
        assert_eq!((&told["error_code"], &told["reason"]), (&json!(code), &error["message"]));
        assert_eq!((&told["stage"], &told["tool"]), (&error["stage"], &record["tool"]));
        assert_eq!((&told["grant_id"], &told["service"]), (&record["grant_id"], &record["service"]));
        error
    }

    /// The body of a call that was admitted and failed, whose record is checked on the way.
    #[track_caller]
    pub fn failed(&self, reply: &Reply, status: u16, code: &str) -> Value {
        let body = reply.expect(status);
        assert_eq!((&body["status"], &body["error"]["code"]), (&json!("error"), &json!(code)), "{body}");
        assert_eq!(body["message"], body["error"]["message"], "{body}");
        let record = self.record(text(&body, "/invocation_id"));
        assert_eq!(record["status"], "error");
        assert_eq!(record["error"], json!({"code": code, "message": body["message"]}));
        body
    }

    /// What stays of a call.
    pub fn record(&self, invocation: &str) -> Value {
        self.admin.get(&format!("/api/v1/invocations/{invocation}")).ok()
    }

    /// The events about an invocation, in order.
    pub fn events_of(&self, invocation: &str) -> Vec<Value> {
        let about = |event: &Value| event["data"]["invocation_id"] == invocation;
        self.admin.events("").into_iter().filter(about).collect()
    }
}

impl Actor {
    /// Calls a tool.
    pub fn invokes(&self, body: Value) -> Reply {
        self.post("/api/v1/tools/invoke", &body)
    }
}

/// A call that reads a charge, with `more`.
pub fn read(more: Value) -> Value {
    merged(json!({"tool": "payments.charges.read", "parameters": {"charge_id": "ch_7"}}), more)
}

/// Makes a credential for this service with the scopes of the shop; answers its id.
pub fn credential(admin: &Actor, service: &str, metadata: Value) -> String {
    let body = json!({
        "service": service, "label": service, "auth_type": "bearer_token", "metadata": metadata,
        "scopes_available": ["anything", "charges.create", "charges.read", "refunds.create"],
        "material": {"token": TOKEN},
    });
    id(&admin.post(&format!("/api/v1/vaults/{}/credentials", admin.vault()), &body).created())
}

/// The definition of the service; two of its tools are those of RFC-0014 §8.1.
pub fn payments(version: &str) -> Value {
    json!({
        "service": "payments", "version": version,
        "tools": {
            "charges.create": {
                "description": "Create a new charge", "scope": "charges.create",
                "parameters": {
                    "amount": {"type": "integer", "required": true}, "currency": {"type": "string", "required": true},
                    "customer": {"type": "string", "required": false}, "description": {"type": "string"},
                    "api_key": {"type": "string"}, "metadata": {"type": "object"}
                },
                "returns": {"id": "string", "amount": "integer", "status": "string"},
                "idempotent": true, "estimated_cost_usd": 0.02,
                "http": {"method": "POST", "path": "/v1/charges"},
                "logging": {"fields": {"customer": "hash", "description": "omit"}}
            },
            "charges.read": {
                "description": "Retrieve a charge by ID", "scope": "charges.read",
                "parameters": {"charge_id": {"type": "string", "required": true}},
                "idempotent": true, "estimated_cost_usd": 0.001,
                "http": {"method": "GET", "path": "/v1/charges/{charge_id}"}
            },
            "refunds.create": {
                "scope": "refunds.create", "parameters": {"charge": {"type": "string", "required": true}},
                "http": {"method": "POST", "path": "/v1/refunds"}
            },
            "anything": {"timeout_ms": 1000, "http": {"method": "POST", "path": "/v1/anything"}}
        }
    })
}
