//! The plan of a file: claimed in its order, done through its grants, created once for each version.

use serde_json::{Value, json};

use super::{acme, applies, changes, in_both, sends};
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
