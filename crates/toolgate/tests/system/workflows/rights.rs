//! A file gives nobody authority that its caller could not give.

use serde_json::{Value, json};

use super::{acme, applies, example, granted, sends};
use crate::world::World;

#[test]
fn who_may_not_make_a_change_may_not_declare_it() {
    let world = World::sqlite();
    let admin = world.admin();
    acme(&admin);
    let all = json!({"allow_widening": true});
    let agent = world.agent("agent", &["tools.invoke"]);
    for file in [
        example(),
        "name: w\nversion: '1'\nagents: {x: {}}\n".to_owned(),
        "name: w\nversion: '1'\nservices: [{service: x, version: '1', tools: {a: {}}}]\n".to_owned(),
        "name: w\nversion: '1'\npolicies: {a.cedar: ''}\n".to_owned(),
    ] {
        sends(&agent, &file, all.clone()).refused(403, "PERMISSION_DENIED");
        sends(&agent, &file, json!({"dry_run": true})).refused(403, "PERMISSION_DENIED");
    }
    agent.get("/api/v1/export").refused(403, "PERMISSION_DENIED");
    // A manager of agents gives no permissions that it does not have, and no grants.
    let manager = world.agent("manager", &["tools.invoke", "agents.manage"]);
    let file = "name: w\nversion: '1'\nagents: {x: {permissions: [tools.manage]}}\n";
    let refused = sends(&manager, file, all.clone()).refused(403, "PERMISSION_DENIED");
    assert_eq!(refused["change"]["name"], json!("x"));
    sends(&manager, &example(), all.clone()).refused(403, "PERMISSION_DENIED");
    // A manager of tools has only its own vaults, and registers no services.
    let tools = world.agent("tools", &["tools.invoke", "tools.manage", "agents.manage"]);
    let refused = sends(&tools, &example(), all.clone()).refused(400, "WORKFLOW_INVALID");
    assert!(refused["problems"][0]["message"].as_str().unwrap().starts_with("there is no vault"), "{refused}");
    let file = "name: w\nversion: '1'\nservices: [{service: x, version: '1', tools: {a: {}}}]\n";
    sends(&tools, file, all).refused(403, "PERMISSION_DENIED");
    assert_eq!(admin.events("&type=workflow.applied"), Vec::<Value>::new());
}

#[test]
fn somebody_else_neither_takes_over_nor_empties_a_workflow() {
    let world = World::sqlite();
    let admin = world.admin();
    acme(&admin);
    applies(&admin, &example());
    let manager = world.agent("manager", &["tools.invoke", "agents.manage"]);
    for file in
        ["name: quarterly-compliance\nversion: '2'\n", "name: quarterly-compliance\nversion: '1.0'\nagents: {x: {}}\n"]
    {
        sends(&manager, file, json!({"allow_widening": true})).refused(403, "PERMISSION_DENIED");
    }
    assert_eq!(granted(&admin, "billing-agent").len(), 1);
}
