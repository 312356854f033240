//! What is exported and applied again changes nothing, for states of every kind.

use serde_json::{Value, json};

use super::{acme, applies, changes, example, in_both, sends};
use crate::world::{Actor, id, stripe};

fn exported(admin: &Actor, query: &str) -> String {
    let document = admin.get(&format!("/api/v1/export{query}")).ok();
    document["document"].as_str().unwrap().to_owned()
}

fn is_no_change(admin: &Actor, query: &str) {
    let document = exported(admin, query);
    let applied = sends(admin, &document, json!({})).ok();
    assert_eq!((&applied["changes"], &applied["applied"]), (&json!([]), &json!(false)), "{document}");
}

#[test]
fn an_exported_workflow_is_the_one_that_was_applied() {
    in_both(|world| {
        let admin = world.admin();
        acme(&admin);
        admin.get("/api/v1/export?workflow=quarterly-compliance").refused(404, "WORKFLOW_NOT_FOUND");
        applies(&admin, &example());
        is_no_change(&admin, "?workflow=quarterly-compliance");
        is_no_change(&admin, "");
        let document = exported(&admin, "?workflow=quarterly-compliance");
        assert!(document.contains("capabilities: [billing, invoicing]"), "{document}");
        assert!(!document.contains("expires_at"), "{document}");
        let empty = "name: quarterly-compliance\nversion: '2'\n";
        assert_eq!(changes(&applies(&admin, empty)).len(), 6);
        is_no_change(&admin, "?workflow=quarterly-compliance");
    });
}

/// A choice among several, by a fixed sequence of numbers: the states differ, and every run sees the same ones.
struct Choices(u64);

impl Choices {
    fn below(&mut self, count: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % count
    }

    fn of<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[usize::try_from(self.below(u64::try_from(items.len()).unwrap())).unwrap()]
    }
}

#[test]
fn any_tenant_is_exported_as_a_file_that_changes_nothing() {
    in_both(|world| {
        let admin = world.admin();
        let mut choices = Choices(7);
        let vaults: Vec<String> = ["a", "b", "b"]
            .iter()
            .map(|name| id(&admin.post("/api/v1/vaults", &json!({"name": name})).created()))
            .collect();
        let mut credentials = Vec::new();
        for vault in vaults.iter().chain(&vaults[..1]) {
            let credential = admin.post(&format!("/api/v1/vaults/{vault}/credentials"), &stripe()).created();
            credentials.push(id(&credential));
        }
        let attributes = [
            json!({}),
            json!({"name": "yes: \"#1\"", "permissions": []}),
            json!({"permissions": ["tools.invoke", "tools.delegate"], "labels": ["team:payments"], "detach_calls": true}),
            json!({"scopes": ["tools:*"], "rate_limits": {"*": {"requests": 5, "per_seconds": 60, "burst": 2}}}),
            json!({"tool_allowlist": ["openwop:http.fetch"], "kind": "service"}),
            json!({"kind": "user", "progressive_discovery": true}),
            json!({"budget": {"calls_per_day": 5, "cost_total_usd": 2.5}}),
        ];
        let terms = [
            json!({}),
            json!({"delegatable": true, "delegation_depth": null}),
            json!({"delegatable": true, "delegation_depth": 3, "constraints": {"amount_max": 500}}),
            json!({"expires_at": null, "allow_indefinite": true}),
            json!({"expires_at": "2099-01-01T00:00:00Z", "context": {"intent_id": "intent_of_others"}}),
            json!({"constraints": {"allowed_parameters": {"a": ["x", 1, null], "b": {"pattern": "[^@]+: #", "required": true}},
                "denied_parameters": {"note": {"any": true}}, "ip_allowlist": [], "allowed_hosts": ["a.example"],
                "max_cost_per_invocation": 0.05, "max_invocations_per_hour": 0}}),
        ];
        for round in 0..4 {
            for number in 0..3 {
                let agent = format!("agent-{round}-{number}");
                let mut body = choices.of(&attributes).clone();
                body["id"] = json!(agent);
                admin.post("/api/v1/agents", &body).created();
                for _ in 0..choices.below(3) {
                    let credential = choices.of(&credentials).clone();
                    let scopes =
                        choices.of(&[json!(["charges.read"]), json!(["charges.read", "charges.create"])]).clone();
                    let mut more = choices.of(&terms).clone();
                    more["scopes"] = scopes;
                    let grant = admin.grants(&credential, &agent, more);
                    match choices.below(4) {
                        0 => drop(admin.patch(&format!("/api/v1/grants/{}/suspend", id(&grant)), &json!({})).ok()),
                        1 => drop(admin.delete(&format!("/api/v1/grants/{}", id(&grant))).ok()),
                        _ => {}
                    }
                }
            }
            let service = json!({"service": format!("s{round}"), "version": "2024", "description": "Two\nlines: #\n",
                "tools": {"a.b": {"parameters": {"id": {"type": "string", "required": true, "pattern": "^[^:]*$"}},
                    "http": {"method": "GET", "path": "/x/{id}"}, "estimated_cost_usd": 0.02}}});
            admin.post("/api/v1/services", &service).created();
            let rules = json!({"files": [{"name": "a.cedar", "text": format!("// {round}\n@id(\"a\")\nforbid (principal, action in Action::\"call\", resource) when {{ context.time.hour < 6 }};\n")}]});
            admin.ask("PUT", "/api/v1/policies", Some(&rules)).ok();
            is_no_change(&admin, "");
        }
        // What the gate maintains itself is not declared by files.
        admin.post("/api/v1/memory/stores", &json!({"name": "notes", "scope": "agent"})).created();
        admin.post("/api/v1/knowledge", &json!({"name": "manuals"})).created();
        assert!(!exported(&admin, "").contains("notes"));
        is_no_change(&admin, "");
        let events: Vec<Value> = admin.events("&type=workflow.applied");
        assert_eq!(events, Vec::<Value>::new());
    });
}
