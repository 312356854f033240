//! Files that are meant to hurt, at the endpoint.

use serde_json::json;

use super::{acme, example, sends};
use crate::world::World;

#[test]
fn bombs_and_monsters_are_refused_and_the_gate_stays_well() {
    let world = World::sqlite();
    let admin = world.admin();
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..30 {
        bomb.push_str(&format!("a{level}: &a{level} [{}]\n", vec![format!("*a{}", level - 1); 10].join(", ")));
    }
    for (file, expected) in [
        (bomb, "anchors and aliases"),
        (format!("name: w\nversion: '1'\n# {}\n", "x".repeat(10 * 1024 * 1024)), "the limit is 1048576"),
        ("[".repeat(100_000), "nested deeper"),
        ("name: w\nname: v\n".to_owned(), "given twice"),
        ("name: \u{202e}w\nversion: '1'\n".to_owned(), "must not contain"),
    ] {
        let refused = sends(&admin, &file, json!({})).refused(400, "WORKFLOW_INVALID");
        assert!(refused.to_string().contains(expected), "{expected}: {refused}");
    }
    sends(&admin, &"x".repeat(13 * 1024 * 1024), json!({})).refused(413, "BODY_TOO_LARGE");
    acme(&admin);
    sends(&admin, &example(), json!({"dry_run": true})).ok();
}

#[test]
fn objects_of_another_tenant_do_not_exist() {
    let world = World::sqlite();
    let admin = world.admin();
    acme(&admin);
    let vaults = admin.get("/api/v1/vaults").ok();
    let vault = vaults["vaults"][0]["id"].as_str().unwrap();
    let foreign = world.tenant("acme");
    for name in [vault, "acme-corp-production"] {
        let file = example().replace("acme-corp-production", name);
        let refused = sends(&foreign, &file, json!({"allow_widening": true})).refused(400, "WORKFLOW_INVALID");
        assert!(refused["problems"][0]["message"].as_str().unwrap().starts_with("there is no vault"), "{refused}");
    }
}
