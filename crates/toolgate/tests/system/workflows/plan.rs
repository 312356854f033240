//! The plan of a file: claimed in its order, done through its grants, created once for each version.

use serde_json::{Value, json};

use super::{acme, applies, changes, granted, in_both, sends};
use crate::calls::shop::Shop;
use crate::world::{Actor, World, id};

const RFC: &str = include_str!("../../../../model/src/workflow/tests/quarterly-compliance.yaml");

pub fn tasks(admin: &Actor, intent: &Value) -> Vec<Value> {
    let tasks = admin.get(&format!("/api/v1/intents/{}/tasks", intent.as_str().unwrap())).ok();
    tasks["tasks"].as_array().unwrap_or_else(|| tasks.as_array().unwrap()).clone()
}

pub fn named<'a>(tasks: &'a [Value], name: &str) -> &'a Value {
    tasks.iter().find(|task| task["name"] == name).unwrap()
}

pub fn keyed(world: &World, agent: &str) -> Actor {
    let key = world.admin().post(&format!("/api/v1/agents/{agent}/keys"), &json!({})).created();
    world.actor(agent, key["key"].as_str().unwrap())
}

#[test]
fn the_plan_of_the_protocols_example_is_worked_off_in_its_order() {
    in_both(|world| {
        let admin = world.admin();
        acme(&admin);
        let applied = applies(&admin, RFC);
        assert_eq!(changes(&applied).last().unwrap(), "create plan");
        let found = tasks(&admin, &applied["intent_id"]);
        assert_eq!(found.len(), 3);
        assert_eq!(named(&found, "send-report")["depends_on"], json!([named(&found, "process-billing")["id"]]));
        let order = [
            ("gather-financial-data", "data-agent"),
            ("process-billing", "billing-agent"),
            ("send-report", "report-agent"),
        ];
        for (place, (name, agent)) in order.into_iter().enumerate() {
            let now = tasks(&admin, &applied["intent_id"]);
            let ready: Vec<&Value> =
                now.iter().filter(|task| task["status"] == "ready").map(|task| &task["name"]).collect();
            assert_eq!(ready, [name], "{place}");
            let (task, worker) = (named(&now, name), keyed(world, agent));
            assert_eq!(task["assigned_agent"], json!(agent));
            worker.changes_task(task, json!({"status": "claimed"})).ok();
            worker.changes_task(task, json!({"status": "running"})).ok();
            worker.changes_task(task, json!({"status": "completed", "output": {"done": true}})).ok();
        }
        // The same version again is no change, another plan under it is refused, a new version is a new intent.
        assert_eq!(changes(&applies(&admin, RFC)), Vec::<String>::new());
        let other = RFC.replace("  - task: send-report", "  - task: mail-report");
        let refused = sends(&admin, &other, json!({"dry_run": true})).refused(400, "WORKFLOW_INVALID");
        assert_eq!((&refused["problems"][0]["line"], &refused["problems"][0]["column"]), (&json!(2), &json!(10)));
        let next = applies(&admin, &other.replace("version: \"1.0\"", "version: \"1.1\""));
        assert_eq!(changes(&next), ["create plan"]);
        assert_ne!(next["intent_id"], applied["intent_id"]);
        let exported = admin.get("/api/v1/export?workflow=quarterly-compliance").ok();
        let document = exported["document"].as_str().unwrap();
        assert_eq!(changes(&sends(&admin, document, json!({})).ok()), Vec::<String>::new(), "{document}");
    });
}

#[test]
fn the_agents_of_a_plan_call_through_the_grants_of_its_file() {
    let world = World::sqlite();
    let admin = world.admin();
    let _shop = Shop::open(&world);
    let vaults = admin.get("/api/v1/vaults").ok();
    let vault = vaults["vaults"][0]["id"].as_str().unwrap();
    let file = format!(
        "name: w\nversion: '1'\ntools:\n  vault: {vault}\n  grants:\n    reader:\n      - service: payments\n        scopes: [charges.read]\n\
         agents:\n  reader: {{}}\nplan:\n  - task: read\n    agent: reader\n    requires_tools: [{{service: payments, scopes: [charges.read]}}]\n"
    );
    let applied = applies(&admin, &file);
    let reader = keyed(&world, "reader");
    let task = tasks(&admin, &applied["intent_id"])[0].clone();
    let call = json!({
        "tool": "payments.charges.read", "parameters": {"charge_id": "ch_7"}, "context": {"task_id": id(&task)}
    });
    reader.post("/api/v1/tools/invoke", &call).refused(403, "GRANT_CONTEXT_MISMATCH");
    reader.changes_task(&task, json!({"status": "claimed"})).ok();
    reader.changes_task(&task, json!({"status": "running"})).ok();
    reader.post("/api/v1/tools/invoke", &call).ok();
    reader.changes_task(&task, json!({"status": "completed"})).ok();
    reader.post("/api/v1/tools/invoke", &call).refused(403, "GRANT_CONTEXT_MISMATCH");
}

/// The file of a workflow whose `lead` coordinates one task of `reader`, on the vault of the shop. The lead holds a grant
/// that it may delegate.
fn coordinated(admin: &Actor, version: &str, plan: &str) -> String {
    let vaults = admin.get("/api/v1/vaults").ok();
    let vault = vaults["vaults"][0]["id"].as_str().unwrap();
    format!(
        "name: w\nversion: '{version}'\ntools:\n  vault: {vault}\n  grants:\n    lead:\n      - {{service: payments, \
         scopes: [charges.read], delegatable: true}}\nagents:\n  lead: {{permissions: [tools.invoke, tools.delegate]}}\n  \
         reader: {{}}\n{plan}"
    )
}

const DELEGATED: &str = "coordinator: lead\nguardrails: {auto_delegate: true, max_tool_invocations: 5}\nplan:\n  \
     - task: read\n    agent: reader\n    requires_tools:\n      - {service: payments, scopes: [charges.read]}\n";

#[test]
fn a_new_coordinator_and_what_it_delegates_widen() {
    in_both(|world| {
        let admin = world.admin();
        let _shop = Shop::open(world);
        applies(&admin, &coordinated(&admin, "1", ""));
        let file = coordinated(&admin, "1", DELEGATED);
        let refused = sends(&admin, &file, json!({})).refused(409, "WIDENING_NOT_ALLOWED");
        assert_eq!(
            refused["widening"][0]["widens"],
            json!(["makes `lead` a coordinator", "gives payments [charges.read] to `reader` for the task `read`"])
        );
        let details = refused["widening"][0]["details"].to_string();
        assert!(details.contains("delegates payments [charges.read] to `reader` for the task `read`"), "{details}");
        assert_eq!(granted(&admin, "reader"), Vec::<Value>::new());
        let applied = applies(&admin, &file);
        assert_eq!(changes(&applied), ["create plan"]);
        assert_eq!(granted(&admin, "reader").len(), 1);

        // Nothing is delegated to an agent that holds the access anyway.
        let own = "    reader:\n      - {service: payments, scopes: [charges.read]}\nagents:\n";
        let task = tasks(&admin, &applied["intent_id"])[0].clone();
        admin.changes_task(&task, json!({"status": "cancelled"})).ok();
        let file = coordinated(&admin, "2", DELEGATED).replace("agents:\n", own);
        let planned = sends(&admin, &file, json!({"dry_run": true})).ok();
        let plan = planned["changes"].as_array().unwrap().last().unwrap().clone();
        assert_eq!(plan["widens"], json!(["makes `lead` a coordinator"]));
    });
}

#[test]
fn a_file_whose_task_nobody_could_claim_is_refused_at_what_it_requires() {
    in_both(|world| {
        let admin = world.admin();
        let _shop = Shop::open(world);
        // The grant can be delegated, but the coordinator lacks the permission.
        let file = coordinated(&admin, "1", DELEGATED).replace(", tools.delegate]", "]");
        let refused = sends(&admin, &file, json!({"allow_widening": true})).refused(400, "WORKFLOW_INVALID");
        let problem = &refused["problems"][0];
        let line =
            file.lines().position(|line| line.starts_with("      - {service: payments, scopes: [charges.read]}"));
        assert_eq!(problem["line"], json!(line.unwrap() + 1), "{refused}");
        let message = problem["message"].as_str().unwrap();
        assert!(message.contains("`reader` would not hold [charges.read] of `payments`"), "{message}");
        assert!(message.contains("tools.delegate"), "{message}");
        admin.get("/api/v1/agents/lead").refused(404, "AGENT_NOT_FOUND");
    });
}

#[test]
fn tasks_of_a_file_have_the_limits_of_other_tasks() {
    let world = World::sqlite();
    let admin = world.admin();
    let _shop = Shop::open(&world);
    let task = |more: &str| coordinated(&admin, "1", &format!("plan:\n  - task: read\n{more}"));
    let many: String = (0..33).map(|_| "{service: payments, scopes: [charges.read]}, ").collect();
    let big = format!("    input: {{text: '{}'}}\n", "x".repeat(70_000));
    for (more, expected) in [
        (format!("    requires_tools: [{many}]\n"), "`requires_tools` must have at most 32 entries"),
        (big, "65536"),
        ("    deadline: '2020-01-01T00:00:00Z'\n".to_owned(), "`deadline` must be in the future"),
    ] {
        let refused = sends(&admin, &task(&more), json!({"allow_widening": true})).refused(400, "WORKFLOW_INVALID");
        let problem = &refused["problems"][0];
        assert!(problem["message"].as_str().unwrap().contains(expected), "{refused}");
        assert!(problem["line"].as_u64().unwrap() > 1, "{refused}");
    }
}

#[test]
fn the_guardrails_of_a_version_end_when_the_next_one_begins_and_not_while_its_tasks_run() {
    in_both(|world| {
        let admin = world.admin();
        let _shop = Shop::open(world);
        let first = applies(&admin, &coordinated(&admin, "1", DELEGATED));
        let intent = first["intent_id"].as_str().unwrap();
        let next = coordinated(&admin, "2", DELEGATED);
        let all = json!({"allow_widening": true});
        let refused = sends(&admin, &next, all.clone()).refused(400, "WORKFLOW_INVALID");
        let message = refused["problems"][0]["message"].as_str().unwrap();
        assert!(message.contains("1 open tasks") && message.contains(intent), "{message}");
        assert_eq!(refused["problems"][0]["line"], json!(2));

        let task = tasks(&admin, &first["intent_id"])[0].clone();
        let reader = keyed(world, "reader");
        reader.changes_task(&task, json!({"status": "claimed"})).ok();
        reader.changes_task(&task, json!({"status": "completed"})).ok();
        let refused = sends(&admin, &next, json!({})).refused(409, "WIDENING_NOT_ALLOWED");
        assert_eq!(refused["widening"][0]["widens"], json!(["ends guardrails of `lead`"]));
        let second = sends(&admin, &next, all).ok();
        assert_eq!(changes(&second), ["remove coordinator", "create plan"]);
        let status = |intent: &Value| {
            let path = format!("/api/v1/intents/{}/coordinators", intent.as_str().unwrap());
            admin.get(&path).ok()[0]["status"].clone()
        };
        assert_eq!((status(&first["intent_id"]), status(&second["intent_id"])), (json!("completed"), json!("active")));
        assert_eq!(changes(&applies(&admin, &next)), Vec::<String>::new());
    });
}
