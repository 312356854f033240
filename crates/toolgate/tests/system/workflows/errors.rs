//! What a file refers to and the gate does not have is reported where it is written, all at once.

use serde_json::json;

use super::{acme, example, sends};
use crate::world::{World, id};

#[test]
fn every_name_that_the_gate_does_not_know_is_reported_with_its_position() {
    let world = World::sqlite();
    let admin = world.admin();
    acme(&admin);
    let file = "\
name: w
version: '1'
tools:
  vault: acme-corp-production
  grants:
    biling-agent:
      - service: strip
        scopes: [charges.read]
    billing-agent:
      - service: stripe
        scopes: [charge.read]
      - service: email
        scopes: [send]
        vault: acme
agents:
  billing-agent: {}
plan:
  - task: pay
    agent: billing-agent
    requires_tools:
      - {service: stripes, scopes: [charges.read]}
      - {service: email, scopes: [sent]}
  - task: check
    agent: nobody
    depends_on: [pai]
";
    let refused = sends(&admin, file, json!({"dry_run": true})).refused(400, "WORKFLOW_INVALID");
    let problems = refused["problems"].as_array().unwrap().iter();
    let found: Vec<String> = problems
        .map(|problem| format!("{}:{} {}", problem["line"], problem["column"], problem["message"].as_str().unwrap()))
        .collect();
    assert_eq!(
        found,
        [
            "6:5 there is no agent `biling-agent`; declare it under `agents`; did you mean `billing-agent`?",
            "7:18 the vault `acme-corp-production` has no credential for `strip`; did you mean `stripe`?",
            "11:18 the credential for `stripe` has no scope `charge.read`; did you mean `charges.read`?",
            "14:16 there is no vault `acme`; there is acme-corp-production",
            "21:19 there is no service `stripes`; did you mean `stripe`?",
            "22:35 `email` has no scope `sent`; did you mean `send`?",
            "24:12 there is no agent `nobody`; declare it under `agents`",
            "25:18 there is no task `pai`; did you mean `pay`?",
        ]
    );
}

#[test]
fn an_agent_without_a_grant_for_its_task_is_reported_at_the_task() {
    let world = World::sqlite();
    let admin = world.admin();
    acme(&admin);
    let plan = "plan:\n  - task: pay\n    agent: report-agent\n    requires_tools:\n      - {service: stripe, scopes: [charges.read]}\n      - {service: email, scopes: [send]}\n      - {service: postgres-analytics, scopes: [query.read], required: false}\n";
    let refused = sends(&admin, &(example() + plan), json!({"dry_run": true})).refused(400, "WORKFLOW_INVALID");
    let message = "`report-agent` has no grant for [charges.read] of `stripe`, which the task `pay` requires; add one under \
                   `tools.grants`";
    assert_eq!(refused["problems"].as_array().unwrap().len(), 1, "{refused}");
    assert_eq!(refused["problems"][0]["message"], json!(message));
}

#[test]
fn a_vault_or_credential_that_is_not_unique_is_not_guessed() {
    let world = World::sqlite();
    let admin = world.admin();
    acme(&admin);
    let second = id(&admin.post("/api/v1/vaults", &json!({"name": "acme-corp-production"})).created());
    let refused = sends(&admin, &example(), json!({"dry_run": true})).refused(400, "WORKFLOW_INVALID");
    let message = refused["problems"][0]["message"].as_str().unwrap();
    assert!(
        message.contains("several vaults are named `acme-corp-production`") && message.contains(&second),
        "{message}"
    );
    admin.delete(&format!("/api/v1/vaults/{second}")).ok();

    let vaults = admin.get("/api/v1/vaults").ok();
    let vault = vaults["vaults"][0]["id"].as_str().unwrap();
    let more = json!({
        "service": "email", "label": "other", "auth_type": "api_key", "scopes_available": ["send"],
        "material": {"api_key": "not-a-real-key-1"}
    });
    let credential = admin.post(&format!("/api/v1/vaults/{vault}/credentials"), &more).created();
    let refused = sends(&admin, &example(), json!({"dry_run": true})).refused(400, "WORKFLOW_INVALID");
    let message = refused["problems"][0]["message"].as_str().unwrap();
    assert!(message.contains("several credentials for `email`; name one in `credential`"), "{message}");
    let named = example()
        .replace("- service: email\n", &format!("- service: email\n        credential: {}\n", id(&credential)));
    sends(&admin, &named, json!({"dry_run": true})).ok();
}
