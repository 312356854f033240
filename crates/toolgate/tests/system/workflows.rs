//! Workflows as files, through the real binary: a file is applied as a whole or not at all, twice changes nothing, what it
//! no longer declares is revoked, and it gives nobody more than the caller could.

use serde_json::{Value, json};

use crate::world::{Actor, Reply, World, id, merged, stripe};

mod errors;
mod example;
mod export;
mod hostile;
mod plan;
mod rights;

/// A vault with the credentials that the example of the protocol needs.
fn acme(admin: &Actor) {
    let vault = id(&admin.post("/api/v1/vaults", &json!({"name": "acme-corp-production"})).created());
    for (service, scopes) in [
        ("stripe", json!(["charges.read", "charges.create"])),
        ("postgres-analytics", json!(["query.read"])),
        ("email", json!(["send"])),
    ] {
        let credential = merged(stripe(), json!({"service": service, "scopes_available": scopes}));
        admin.post(&format!("/api/v1/vaults/{vault}/credentials"), &credential).created();
    }
}

/// The example without its plan.
fn example() -> String {
    let text = include_str!("../../../model/src/workflow/tests/quarterly-compliance.yaml");
    text.split("\nplan:").next().unwrap().to_owned() + "\n"
}

fn sends(actor: &Actor, document: &str, options: Value) -> Reply {
    actor.post("/api/v1/apply", &merged(json!({"document": document}), options))
}

fn applies(actor: &Actor, document: &str) -> Value {
    sends(actor, document, json!({"allow_widening": true})).ok()
}

/// The changes as `action object`.
fn changes(applied: &Value) -> Vec<String> {
    let all = applied["changes"].as_array().unwrap().iter();
    all.map(|change| format!("{} {}", change["action"].as_str().unwrap(), change["object"].as_str().unwrap())).collect()
}

fn granted(admin: &Actor, agent: &str) -> Vec<Value> {
    let grants = admin.get(&format!("/api/v1/grants?agent_id={agent}&status=active")).ok();
    grants["grants"].as_array().unwrap().clone()
}

fn in_both(test: fn(&World)) {
    test(&World::sqlite());
    test(&World::postgres());
}

#[test]
fn the_example_of_the_protocol_is_applied_and_the_second_time_changes_nothing() {
    in_both(|world| {
        let admin = world.admin();
        acme(&admin);
        let planned = sends(&admin, &example(), json!({"dry_run": true})).ok();
        assert_eq!((&planned["applied"], &planned["widening"]), (&json!(false), &json!(3)));
        assert_eq!(granted(&admin, "billing-agent"), Vec::<Value>::new());
        let refused = sends(&admin, &example(), json!({})).refused(409, "WIDENING_NOT_ALLOWED");
        assert_eq!(refused["widening"].as_array().unwrap().len(), 3);
        assert_eq!(granted(&admin, "billing-agent"), Vec::<Value>::new());

        let applied = applies(&admin, &example());
        let expected = ["create agent"; 3].into_iter().chain(["create grant"; 3]);
        assert_eq!(changes(&applied), expected.collect::<Vec<_>>());
        assert_eq!(applied["changes"], planned["changes"]);
        let billing = granted(&admin, "billing-agent");
        let constraints = json!({"max_invocations_per_hour": 50, "allowed_parameters": {"amount_max": 10000}});
        assert_eq!(billing[0]["constraints"], constraints);
        assert_eq!(billing[0]["scopes"], json!(["charges.create", "charges.read"]));
        let event = admin.events("&type=workflow.applied").pop().unwrap();
        assert_eq!(
            (&event["data"]["workflow"], &event["data"]["widenings"]),
            (&json!("quarterly-compliance"), &json!(3))
        );

        for allowed in [true, false] {
            let again = sends(&admin, &example(), json!({"allow_widening": allowed})).ok();
            assert_eq!((&again["applied"], &again["changes"]), (&json!(false), &json!([])));
        }
        assert_eq!(admin.events("&type=workflow.applied").len(), 1);
    });
}

#[test]
fn a_changed_entry_replaces_its_grant_and_only_what_widens_needs_consent() {
    let world = World::sqlite();
    let admin = world.admin();
    acme(&admin);
    applies(&admin, &example());
    let before = granted(&admin, "billing-agent");

    let narrower = example().replace("amount_max: 10000", "amount_max: 500").replace(", charges.create", "");
    let applied = sends(&admin, &narrower, json!({})).ok();
    assert_eq!(changes(&applied), ["replace grant"]);
    assert_eq!(applied["changes"][0]["widens"], json!([]));
    let after = granted(&admin, "billing-agent");
    assert_eq!(after.len(), 1);
    assert_ne!(after[0]["id"], before[0]["id"]);
    assert_eq!(after[0]["scopes"], json!(["charges.read"]));
    // The default lifetime is not extended by the way.
    assert_eq!(after[0]["expires_at"], before[0]["expires_at"]);

    let refused = sends(&admin, &example(), json!({})).refused(409, "WIDENING_NOT_ALLOWED");
    assert_eq!(
        refused["widening"][0]["widens"],
        json!(["adds the scope `charges.create`", "loosens `constraints.allowed_parameters.amount`"])
    );
    assert_eq!(granted(&admin, "billing-agent"), after);
    assert_eq!(changes(&applies(&admin, &example())), ["replace grant"]);
}

#[test]
fn what_a_file_no_longer_declares_is_revoked_and_nothing_else() {
    in_both(|world| {
        let admin = world.admin();
        acme(&admin);
        let vaults = admin.get("/api/v1/vaults").ok();
        let vault = vaults["vaults"][0]["id"].as_str().unwrap();
        let credential = admin.get(&format!("/api/v1/vaults/{vault}/credentials")).ok();
        let credential =
            id(credential["credentials"].as_array().unwrap().iter().find(|one| one["service"] == "email").unwrap());
        admin.registers("other", &["tools.invoke"]);
        let others = admin.grants(&credential, "other", json!({"scopes": ["send"]}));
        applies(&admin, &example());
        let by_hand = admin.grants(&credential, "billing-agent", json!({"scopes": ["send"]}));

        // The agent that goes holds a grant that the file did not make.
        let without = "name: quarterly-compliance\nversion: '1.1'\n";
        let refused = sends(&admin, without, json!({})).refused(400, "WORKFLOW_INVALID");
        assert!(
            refused["problems"][0]["message"].as_str().unwrap().contains("which this workflow did not create"),
            "{refused}"
        );
        admin.delete(&format!("/api/v1/grants/{}", id(&by_hand))).ok();

        let applied = sends(&admin, without, json!({})).ok();
        let mut found = changes(&applied);
        found.sort();
        assert_eq!(
            found,
            ["remove agent", "remove agent", "remove agent", "revoke grant", "revoke grant", "revoke grant"]
        );
        assert_eq!(granted(&admin, "billing-agent"), Vec::<Value>::new());
        admin.get("/api/v1/agents/billing-agent").refused(404, "AGENT_NOT_FOUND");
        assert_eq!(admin.grant(&others)["status"], json!("active"));
        assert_eq!(changes(&applies(&admin, without)), Vec::<String>::new());
        let refused = sends(&admin, &example(), json!({})).refused(400, "WORKFLOW_INVALID");
        assert!(refused["problems"][0]["message"].as_str().unwrap().contains("ids of removed agents are not reused"));
    });
}

#[test]
fn services_policies_and_attributes_of_agents_are_part_of_a_file() {
    in_both(|world| {
        let admin = world.admin();
        let file = |more: &str| {
            format!(
                "name: gate\nversion: '1'\nservices:\n  - service: cards\n    version: '2024-01'\n    base_url: https://cards.example\n    \
                 tools:\n      charges.read: {{http: {{method: GET, path: /charges}}}}\nagents:\n  clerk:\n    scopes: ['tools:*']\n    \
                 rate_limits: {{'*': {{requests: 10, per_seconds: 60}}}}\n    tool_allowlist: ['connector:cards.charges.read']\n{more}"
            )
        };
        let rules = "policies:\n  night.cedar: |\n    @id(\"night\")\n    forbid (principal, action, resource == Tool::\"cards.charges.read\") when { context.time.hour < 6 };\n";
        let applied = applies(&admin, &file(rules));
        assert_eq!(changes(&applied), ["create agent", "create service", "update policies"]);
        let clerk = admin.get("/api/v1/agents/clerk").ok();
        assert_eq!(
            (&clerk["scopes"], &clerk["tool_allowlist"]),
            (&json!(["tools:*"]), &json!(["connector:cards.charges.read"]))
        );
        assert_eq!(admin.get("/api/v1/policies").ok()["rules"][0]["id"], json!("night"));
        assert_eq!(changes(&applies(&admin, &file(rules))), Vec::<String>::new());

        // A rule that goes lets more happen; a scope that goes does not.
        let refused = sends(&admin, &file(""), json!({})).refused(409, "WIDENING_NOT_ALLOWED");
        assert_eq!(refused["widening"][0]["widens"], json!(["removes the rules in night.cedar"]));
        let narrower = file(rules).replace("    scopes: ['tools:*']\n", "");
        assert_eq!(changes(&sends(&admin, &narrower, json!({})).ok()), ["update agent"]);
        assert_eq!(admin.get("/api/v1/agents/clerk").ok()["scopes"], json!([]));
        let applied = applies(&admin, "name: gate\nversion: '1'\n");
        assert_eq!(changes(&applied), ["remove agent", "remove service", "remove policies"]);
        assert_eq!(admin.get("/api/v1/policies").ok()["rules"], json!([]));
        admin.get("/api/v1/services/cards").refused(404, "SERVICE_NOT_FOUND");
    });
}

#[test]
fn the_budget_of_the_tenant_is_part_of_a_file() {
    in_both(|world| {
        let admin = world.admin();
        let file = |budgets: &str| format!("name: gate\nversion: '1'\n{budgets}");
        let budget = || admin.get("/api/v1/tenants/default").ok()["budget"].clone();
        let limited = file("budgets: {tenant: {calls_per_day: 100, cost_total_usd: 5}}\n");
        assert_eq!(changes(&sends(&admin, &limited, json!({})).ok()), ["update budget"]);
        let expected = json!({"calls_per_day": 100, "cost_total_usd": 5.0});
        assert_eq!(budget()["calls_per_day"], expected["calls_per_day"]);
        assert_eq!(budget()["cost_total_usd"], expected["cost_total_usd"]);
        assert_eq!(changes(&sends(&admin, &limited, json!({})).ok()), Vec::<String>::new());
        for query in ["", "?workflow=gate"] {
            let exported = admin.get(&format!("/api/v1/export{query}")).ok();
            let document = exported["document"].as_str().unwrap();
            assert!(document.contains("budgets:"), "{document}");
            assert_eq!(changes(&sends(&admin, document, json!({})).ok()), Vec::<String>::new(), "{document}");
        }
        // More than before needs consent, less does not.
        let more = limited.replace("100", "200");
        let refused = sends(&admin, &more, json!({})).refused(409, "WIDENING_NOT_ALLOWED");
        assert_eq!(refused["widening"][0]["widens"], json!(["raises or removes the budget of the tenant"]));
        assert_eq!(changes(&sends(&admin, &limited.replace("100", "50"), json!({})).ok()), ["update budget"]);
        // What somebody else has set since stays.
        admin.patch("/api/v1/tenants/default", &json!({"budget": {"calls_total": 7}})).ok();
        assert_eq!(changes(&sends(&admin, &file(""), json!({})).ok()), Vec::<String>::new());
        assert_eq!(budget()["calls_total"], json!(7));
        applies(&admin, &limited);
        sends(&admin, &file(""), json!({})).refused(409, "WIDENING_NOT_ALLOWED");
        assert_eq!(changes(&applies(&admin, &file(""))), ["remove budget"]);
        assert_eq!(budget(), Value::Null);
        for (wrong, expected) in [
            ("budgets: {tenant: {calls_a_day: 1}}\n", "calls_a_day"),
            ("budgets: {agents: {}}\n", "agents"),
            ("budgets: {tenant: {}}\n", "at least one limit"),
        ] {
            let refused = sends(&admin, &file(wrong), json!({})).refused(400, "WORKFLOW_INVALID");
            assert!(refused.to_string().contains(expected), "{refused}");
        }
        // No agent limits the tenant, whatever its permissions.
        let agent = world.agent("chief", &["tools.invoke", "agents.manage"]);
        sends(&agent, &limited.replace("gate", "other"), json!({})).refused(403, "PERMISSION_DENIED");
    });
}

#[test]
fn a_version_of_a_service_goes_only_with_consent() {
    let world = World::sqlite();
    let admin = world.admin();
    let version = |version: &str, tools: &str| {
        format!("  - {{service: cards, version: '{version}', base_url: 'https://cards.example', tools: {{{tools}}}}}\n")
    };
    let file = |services: &str| format!("name: gate\nversion: '1'\nservices:\n{services}");
    let old = version("1", "read: {}, pay: {}");
    let limited = version("2", "read: {}, pay: {parameters: {amount: {type: integer, maximum: 10}}}");
    applies(&admin, &file(&old));
    applies(&admin, &file(&(old.clone() + &limited)));
    // Without the newest version, calls are made in the one before it, which limits less.
    let refused = sends(&admin, &file(&old), json!({})).refused(409, "WIDENING_NOT_ALLOWED");
    assert_eq!(refused["widening"][0]["widens"], json!(["calls of `cards` fall back to version `1`"]));
    // A tool that its service no longer has can be one that a credential defines.
    let dropped = old + &version("2", "read: {}");
    let refused = sends(&admin, &file(&dropped), json!({})).refused(409, "WIDENING_NOT_ALLOWED");
    assert_eq!(
        refused["widening"][0]["widens"],
        json!(["drops the tool `pay`: calls of it fall back to what a credential defines"])
    );
    assert_eq!(changes(&applies(&admin, &file(&dropped))), ["update service"]);
}

#[test]
fn a_file_that_fails_half_way_leaves_nothing() {
    in_both(|world| {
        let admin = world.admin();
        acme(&admin);
        // The rule does not compile, which is found after the agents and grants were prepared.
        let broken = example() + "policies:\n  bad.cedar: |\n    forbid (principal;\n";
        sends(&admin, &broken, json!({"allow_widening": true})).refused(400, "POLICY_INVALID");
        admin.get("/api/v1/agents/billing-agent").refused(404, "AGENT_NOT_FOUND");
        // A service that the registry refuses, in the transaction itself: two tools with one full name.
        let clash = "services:\n  - {service: x, version: '1', tools: {y.z: {}}}\n  - {service: x.y, version: '1', tools: {z: {}}}\n";
        sends(&admin, &(example() + clash), json!({"allow_widening": true})).refused(409, "ALREADY_EXISTS");
        admin.get("/api/v1/agents/billing-agent").refused(404, "AGENT_NOT_FOUND");
        assert_eq!(granted(&admin, "billing-agent"), Vec::<Value>::new());
        assert_eq!(admin.events("&type=workflow.applied"), Vec::<Value>::new());
        admin.get("/api/v1/services/x").refused(404, "SERVICE_NOT_FOUND");
        assert_eq!(changes(&applies(&admin, &example())).len(), 6);
    });
}

#[test]
fn of_many_who_apply_one_file_at_once_one_does_and_nothing_is_made_twice() {
    let world = World::postgres();
    let admin = world.admin();
    acme(&admin);
    let outcomes: Vec<Reply> = std::thread::scope(|scope| {
        let attempts: Vec<_> = (0..6)
            .map(|_| world.admin())
            .map(|admin| scope.spawn(move || sends(&admin, &example(), json!({"allow_widening": true}))))
            .collect();
        attempts.into_iter().map(|attempt| attempt.join().unwrap()).collect()
    });
    let made = outcomes.iter().filter(|reply| reply.status() == 200 && reply.json()["applied"] == json!(true));
    assert_eq!(made.count(), 1);
    for reply in outcomes.iter().filter(|reply| reply.status() != 200) {
        reply.refused(409, "VERSION_CONFLICT");
    }
    for agent in ["billing-agent", "data-agent", "report-agent"] {
        assert_eq!(granted(&admin, agent).len(), 1, "{agent}");
    }
}

#[test]
fn another_workflow_does_not_take_what_is_declared_elsewhere() {
    let world = World::sqlite();
    let admin = world.admin();
    acme(&admin);
    applies(&admin, &example());
    let other = example().replace("name: quarterly-compliance", "name: other").replace("private", "[tools.delegate]");
    let refused = sends(&admin, &other, json!({})).refused(400, "WORKFLOW_INVALID");
    assert_eq!(refused["problems"].as_array().unwrap().len(), 3);
    assert!(
        refused["problems"][0]["message"].as_str().unwrap().contains("declared by the workflow `quarterly-compliance`")
    );
}
