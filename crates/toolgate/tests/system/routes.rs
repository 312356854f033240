//! Every guarded route with a path and a body that would work, so that tests go through all of them. A route that is new
//! and takes a body must be added here.

use serde_json::{Value, json};

use crate::world::{Actor, Reply, id, stripe, text, until};

mod work;

/// What the agent calls a conversation of its own.
const SESSION: &str = "conversation_1";
/// The token of a link that leads nowhere: only webhooks make some that do.
const TOKEN: &str = "a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7";

/// One thing of every kind, to fill the placeholders of paths with.
#[derive(Debug, Clone)]
pub struct Things {
    pub tenant: String,
    pub agent: String,
    pub key: String,
    pub vault: String,
    pub credential: String,
    pub grant: String,
    pub service: String,
    pub invocation: String,
    pub approval: String,
    pub standing: String,
    pub intent: String,
    pub lease: String,
    pub task: String,
    pub plan: String,
    pub coordinator: String,
}

/// A route with its placeholders.
#[derive(Debug, Clone)]
pub struct Route {
    pub method: String,
    pub path: &'static str,
}

/// All routes that need a key.
pub fn guarded() -> Vec<Route> {
    let routes = toolgate_server::router::guarded_routes();
    routes.into_iter().map(|route| Route { method: route.method.to_string(), path: route.path }).collect()
}

impl Things {
    /// Makes one thing of every kind; the agent is called this and holds the grant.
    pub fn made_by(admin: &Actor, agent: &str) -> Self {
        let made = admin.registers(agent, &["tools.invoke", "tools.delegate"]);
        let keys = admin.get(&format!("/api/v1/agents/{agent}/keys")).ok();
        let vault = admin.vault();
        let credential = id(&admin.post(&format!("/api/v1/vaults/{vault}/credentials"), &stripe()).created());
        let grant = id(&admin.grants(&credential, agent, json!({"delegatable": true, "delegation_depth": 5})));
        let tenant = text(&made.get("/api/v1/whoami").ok(), "/tenant_id").to_owned();
        let key = text(&keys, "/keys/0/id").to_owned();
        let service = format!("service-of-{agent}");
        admin.post("/api/v1/services", &definition(&service)).created();
        let report = json!({"grant_id": grant, "service": "stripe", "tool": "charges.read", "agent_id": agent});
        let invocation = id(&admin.post("/api/v1/invocations", &report).created());
        let (approval, standing) = approved(admin, &made);
        let intent = id(&admin.post("/api/v1/intents", &json!({"title": "a secret of stripe"})).created());
        let leases = format!("/api/v1/intents/{intent}/leases");
        let lease = id(&admin.post(&leases, &json!({"scope": "a scope"})).created());
        let task = id(&admin.post("/api/v1/tasks", &json!({"intent_id": intent, "name": "a task"})).created());
        let plan = id(&admin.post("/api/v1/plans", &json!({"intent_id": intent})).created());
        let body = json!({"agent_id": agent, "intent_id": intent});
        let coordinator = id(&admin.post("/api/v1/coordinators", &body).created());
        let agent = agent.to_owned();
        Self {
            tenant,
            agent,
            key,
            vault,
            credential,
            grant,
            service,
            invocation,
            approval,
            standing,
            intent,
            lease,
            task,
            plan,
            coordinator,
        }
    }

    /// Names of nothing, as long as those of something.
    pub fn unknown(agent: &str, tenant: &str) -> Self {
        let nothing = |prefix: &str| format!("{prefix}_01K9ZZZZZZ0000000000000000");
        Self {
            tenant: tenant.to_owned(),
            agent: agent.to_owned(),
            key: nothing("key"),
            vault: nothing("vault"),
            credential: nothing("cred"),
            grant: nothing("grant"),
            service: "no-service".to_owned(),
            invocation: nothing("inv"),
            approval: nothing("appr"),
            standing: nothing("standing"),
            intent: nothing("intent"),
            lease: nothing("lease"),
            task: nothing("task"),
            plan: nothing("plan"),
            coordinator: nothing("coord"),
        }
    }

    /// Placeholders and what stands for them.
    pub fn by_placeholder(&self) -> [(&'static str, &str); 23] {
        [
            // First, because it has the agent's name in it.
            ("{service}", &self.service),
            ("{tenant_id}", &self.tenant),
            ("{agent_id}", &self.agent),
            ("{key_id}", &self.key),
            ("{vault_id}", &self.vault),
            ("{credential_id}", &self.credential),
            ("{grant_id}", &self.grant),
            ("{invocation_id}", &self.invocation),
            ("{approval_id}", &self.approval),
            ("{standing_approval_id}", &self.standing),
            ("{intent_id}", &self.intent),
            ("{lease_id}", &self.lease),
            ("{task_id}", &self.task),
            ("{plan_id}", &self.plan),
            ("{coordinator_id}", &self.coordinator),
            ("{session}", SESSION),
            ("{token}", TOKEN),
            ("{run_id}", "run_1"),
            // One that is never reached, and so the same nothing for everybody.
            ("{version}", "4000000001"),
            // Nobody mounts it, so that there is no need of a server.
            ("{mount}", "no-mount"),
            ("{store}", "no-store"),
            ("{collection}", "no-collection"),
            ("{document}", "no-document"),
        ]
    }
}

impl Route {
    /// Whether it is about one thing.
    pub fn has_id(&self) -> bool {
        self.path.contains('{')
    }

    /// Whether its answer is a stream that goes on until somebody ends it.
    pub fn is_endless(&self) -> bool {
        self.path == "/api/v1/approvals/stream"
    }

    /// The path about these things, with a query where one is needed.
    pub fn filled(&self, things: &Things) -> String {
        let mut path = self.path.to_owned();
        for (placeholder, value) in things.by_placeholder() {
            path = path.replace(placeholder, value);
        }
        assert!(!path.contains('{'), "add the placeholder of {path} to the tests");
        match self.path {
            "/api/v1/audit/proof" => path + "?sequence=0",
            "/api/v1/policies/shadow" => path + "?since=2026-01-01T00:00:00Z",
            "/api/v1/tools/why" => format!("{path}?tool=stripe.charges.read&agent_id={}", things.agent),
            _ => path,
        }
    }

    /// The headers that the route needs besides the key.
    pub fn headers(&self) -> &'static [(&'static str, &'static str)] {
        let changes =
            ["/tasks/{task_id}", "/plans/{plan_id}", "/intents/{intent_id}/state", "/intents/{intent_id}/status"];
        let versioned =
            matches!(self.method.as_str(), "PATCH" | "POST") && changes.iter().any(|end| self.path.ends_with(end));
        if versioned { &[("If-Match", "1")] } else { &[] }
    }

    /// A body that the route takes; `None` where it takes none.
    pub fn body(&self, things: &Things) -> Option<Value> {
        let body = match (self.method.as_str(), self.path) {
            ("GET", _) => return None,
            ("POST", "/api/v1/tenants") => json!({"id": "globex", "name": "Globex"}),
            ("POST", "/api/v1/agents") => {
                json!({
                    "id": "newcomer", "kind": "agent", "name": "A", "scopes": ["a.b"], "permissions": ["tools.invoke"],
                    "rate_limits": {"*": {"requests": 10, "per_seconds": 60}}, "tool_allowlist": ["openwop:http.fetch"],
                    "labels": ["team:payments"], "detach_calls": false, "progressive_discovery": false
                })
            }
            ("PATCH", "/api/v1/agents/{agent_id}") => json!({
                "name": "B", "scopes": ["tools:*"], "permissions": ["tools.invoke", "tools.delegate"],
                "rate_limits": {"stripe.charges.read": {"requests": 10, "per_seconds": 60, "burst": 2}},
                "tool_allowlist": ["connector:stripe.charges.read"],
                "labels": ["trusted"], "detach_calls": false, "progressive_discovery": false
            }),
            ("PATCH", "/api/v1/tenants/{tenant_id}") => json!({"budget": null}),
            ("POST", "/api/v1/stop" | "/api/v1/resume") => json!({"agent": things.agent}),
            ("POST", "/api/v1/agents/{agent_id}/keys") => {
                json!({"label": "laptop", "expires_at": "2099-01-01T00:00:00Z"})
            }
            ("POST", "/api/v1/vaults") => json!({"owner_id": "admin", "name": "main"}),
            ("POST", "/api/v1/vaults/{vault_id}/credentials") => stripe(),
            ("POST", "/api/v1/credentials") => {
                let mut body = stripe();
                body["vault_id"] = json!(things.vault);
                body["expires_at"] = json!("2099-01-01T00:00:00Z");
                body
            }
            ("PATCH", "/api/v1/credentials/{credential_id}/rotate") => json!({
                "material": {"api_key": "sk_live_next"}, "metadata": {"environment": "test"},
                "expires_at": "2099-01-01T00:00:00Z"
            }),
            ("POST", "/api/v1/grants") => json!({
                "credential_id": things.credential, "agent_id": things.agent, "granted_by": "admin",
                "scopes": ["charges.read"], "context": {"intent_id": "intent_1", "task_id": "task_1"},
                "constraints": {
                    "max_invocations_per_hour": 10, "max_cost_per_invocation": 0.5, "amount_max": 500,
                    "allowed_parameters": {"currency": ["usd"], "name": {"pattern": "a.*", "required": true}},
                    "denied_parameters": {"metadata.test_mode": [true]}, "ip_allowlist": ["10.0.0.0/8"],
                    "allowed_hosts": ["example.com"]
                },
                "delegatable": true, "delegation_depth": 2, "expires_at": "2099-01-01T00:00:00Z",
                "allow_indefinite": false
            }),
            ("POST", "/api/v1/grants/{grant_id}/delegate") => json!({
                "action": "delegate_grant", "source_grant_id": things.grant, "target_agent_id": "worker",
                "scopes": ["charges.read"], "constraints": {"max_invocations_per_hour": 10},
                "context": {"task_id": "task_1"}, "delegatable": true, "delegation_depth": 1
            }),
            ("PATCH", "/api/v1/grants/{grant_id}/suspend") => json!({"reason": "an incident"}),
            ("POST", "/api/v1/services") => definition("a-new-service"),
            ("PUT", "/api/v1/services/{service}") => definition(&things.service),
            ("POST", "/api/v1/mounts") => json!({
                "name": "a-new-mount", "url": "http://127.0.0.1:9/mcp", "trusted": false, "hidden_characters": "strip",
                "vault_id": things.vault
            }),
            ("POST", "/api/v1/peers") => json!({
                "name": "a-new-peer", "url": "http://127.0.0.1:9", "vault_id": things.vault
            }),
            ("POST", "/api/v1/mounts/{mount}/accept") => json!({
                "server": "sha256:00", "tools": {"read_file": "sha256:00"}, "override_findings": true
            }),
            ("POST", "/api/v1/mounts/{mount}/reject") => json!({"tools": {"read_file": "sha256:00"}}),
            ("POST", "/api/v1/memory/stores") => json!({
                "name": "a-new-memory", "scope": "agent", "description": "Notes.", "retention_days": 30, "max_items": 10,
                "max_characters": 100, "writes_per_minute": 10, "vault_id": things.vault
            }),
            ("POST", "/api/v1/memory/stores/{store}/forget") => json!({"user": "worker"}),
            ("POST", "/api/v1/knowledge") => json!({
                "name": "a-new-collection", "description": "Pages.", "untrusted": true, "max_documents": 10,
                "vault_id": things.vault
            }),
            ("POST", "/api/v1/knowledge/{collection}/documents") => json!({
                "id": "refunds", "title": "Refunds", "source": "refunds.txt", "format": "text/plain", "text": "30 days."
            }),
            ("POST", "/api/v1/tools/invoke") => json!({
                "grant_id": things.grant, "tool": "stripe.charges.read", "agent_id": things.agent, "version": "2024-01",
                "parameters": {"charge_id": "ch_1", "expand": ["customer", {"name": 1}]},
                "context": {"intent_id": "intent_1", "plan_id": "plan_1", "task_id": "task_1"}, "idempotency_key": "k",
                "approval_session": {"name": SESSION, "workspace": "/home/me/project"}, "call_id": "call_1",
                "reasoning": "the customer asked for it"
            }),
            ("POST", "/api/v1/approvals/ask") => json!({
                "tool": "a-program.Bash", "category": "exec", "arguments": {"command": "cargo test"},
                "session": {"name": SESSION, "workspace": "/home/me/project"}, "call_id": "call_1",
                "agent_id": things.agent
            }),
            ("POST", "/api/v1/approvals/{approval_id}/decide") => json!({
                "decision": "approve", "reason": "it is needed", "answer": "yes", "idempotency_key": "k",
                "channel": "http", "scope": {"always_prefix": {
                    "prefix": "cargo test", "reach": "user", "expires_in_seconds": 60, "max_uses": 3
                }}
            }),
            ("POST", "/api/v1/standing-approvals/explain") => json!({
                "agent_id": things.agent, "tool": "a-program.Bash", "arguments": {"command": "cargo test"},
                "session": {"name": SESSION, "workspace": "/home/me/project"}
            }),
            ("PUT", "/api/v1/approval-sessions/{session}") => {
                json!({"mode": "default", "ttl_seconds": 60, "attendance": "required"})
            }
            ("PUT", "/api/v1/policies") => json!({
                "files": policies(), "note": "nothing is forbidden", "expected_version": 0
            }),
            ("POST", "/api/v1/apply") => json!({
                "document": "name: w\nversion: '1'\n", "dry_run": true, "allow_widening": false
            }),
            ("POST", "/api/v1/policies/check") => json!({"files": policies()}),
            ("POST", "/api/v1/policies/promote") => json!({"policy_id": "no-night-work"}),
            ("POST", "/api/v1/policies/rollback") => json!({"version": 1, "expected_version": 0}),
            ("POST", "/api/v1/policies/simulate") => json!({"files": policies(), "since": "2026-01-01T00:00:00Z"}),
            ("POST", "/api/v1/invocations") => json!({
                "grant_id": things.grant, "service": "stripe", "tool": "charges.read", "agent_id": things.agent,
                "parameters": {"charge_id": "ch_1"}, "status": "error", "error": "it broke", "result": {"a": 1},
                "cost": {"estimated_cost_usd": 0.5}, "duration_ms": 12, "idempotency_key": "k",
                "context": {"intent_id": "intent_1"}
            }),
            ("DELETE", "/api/v1/credentials/{credential_id}" | "/api/v1/grants/{grant_id}") => {
                json!({"reason": "done"})
            }
            (_, path) if work::is_about(path) => return work::body(&self.method, path, things),
            ("PATCH", "/api/v1/grants/{grant_id}/resume")
            | (
                "POST",
                "/api/v1/approvals/links/{token}/redeem"
                | "/api/v1/credentials/{credential_id}/verify"
                | "/api/v1/invocations/{invocation_id}/cancel"
                | "/api/v1/master-keys/rekey"
                | "/api/v1/mounts/{mount}/check",
            )
            | (
                "DELETE",
                "/api/v1/agents/{agent_id}"
                | "/api/v1/invocations/{invocation_id}/result"
                | "/api/v1/keys/{key_id}"
                | "/api/v1/knowledge/{collection}"
                | "/api/v1/knowledge/{collection}/documents/{document}"
                | "/api/v1/memory/stores/{store}"
                | "/api/v1/mounts/{mount}"
                | "/api/v1/services/{service}"
                | "/api/v1/standing-approvals/{standing_approval_id}"
                | "/api/v1/vaults/{vault_id}",
            ) => return None,
            (method, path) => panic!("say in the tests which body {method} {path} takes"),
        };
        Some(body)
    }
}

impl Actor {
    /// Asks on a route about these things, with the headers that it needs.
    pub fn asks(&self, route: &Route, things: &Things) -> Reply {
        self.ask_with(&route.method, &route.filled(things), route.headers(), route.body(things).as_ref())
    }
}

/// A policy set that forbids nothing, so that whatever is asked after it was applied is judged as before.
fn policies() -> Value {
    json!([{"name": "nothing.cedar", "text": "// Nothing is forbidden.\n"}])
}

/// A call of the agent's that waited and was approved, and the standing approval that the answer made.
fn approved(admin: &Actor, agent: &Actor) -> (String, String) {
    let session = format!("/api/v1/approval-sessions/{SESSION}");
    agent.ask("PUT", &session, Some(&json!({"attendance": "inbox"}))).ok();
    let asked = json!({
        "tool": "a-program.Bash", "category": "exec", "arguments": {"command": "cargo test"},
        "session": {"name": SESSION}
    });
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| agent.post("/api/v1/approvals/ask", &asked).ok());
        let pending = format!("/api/v1/approvals?status=pending&agent_id={}", agent.id);
        let approval = until("the call waits", || admin.get(&pending).ok()["approvals"].get(0).map(id));
        let answer = json!({"decision": "approve", "scope": "always"});
        let decided = admin.post(&format!("/api/v1/approvals/{approval}/decide"), &answer).ok();
        assert_eq!(waiting.join().unwrap()["decision"], "allow");
        (approval, text(&decided, "/standing_approval_id").to_owned())
    })
}

/// A service that says all that can be said.
fn definition(service: &str) -> Value {
    json!({
        "service": service, "version": "2024-01", "description": "A service", "base_url": "http://127.0.0.1:9/v1",
        "source": "connector",
        "tools": {"charges.read": {
            "title": "Read a charge", "safety_tier": "read", "required_scopes": ["tools:charges"], "approval": "never",
            "approval_rule": {
                "approvers": 2, "groups": ["finance"], "separation_of_duties": true, "ttl_seconds": 60,
                "attendance": "required", "standing": false
            },
            "egress": "host-mediated", "replay_policy": "idempotent", "cost_hint": "low", "latency_hint": "low",
            "rate_limit": {"requests": 10, "per_seconds": 60, "burst": 5}, "description": "Reads a charge",
            "scope": "charges.read", "idempotent": true, "estimated_cost_usd": 0.02, "timeout_ms": 5000,
            "parameters": {"charge_id": {"type": "string", "required": true}, "limit": {"type": "integer"}},
            "returns": {"id": "string", "amount": "integer"},
            "http": {
                "method": "GET", "path": "/charges/{charge_id}", "parameters": {"limit": {"in": "query", "name": "n"}},
                "headers": {"X-Api-Version": "3"}, "success": ["2xx", 404], "default_in": "query"
            },
            "labels": ["private-data"], "logging": {"default": "hash", "fields": {"charge_id": "log"}, "inputs": true}
        }}
    })
}
