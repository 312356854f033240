//! Files as they are written, with their mistakes.

use serde_json::json;

use super::*;

mod hostile;
mod round_trip;
mod widenings;

/// The example of RFC-0014 §9.
pub(super) const RFC: &str = include_str!("tests/quarterly-compliance.yaml");

fn read(text: &str) -> Workflow {
    let Read { workflow, problems } = Workflow::read(text);
    assert_eq!(problems, []);
    workflow.unwrap()
}

/// The problems of a file, each as `line:column: message`.
fn problems(text: &str) -> Vec<String> {
    Workflow::read(text).problems.iter().map(ToString::to_string).collect()
}

#[test]
fn the_example_of_the_protocol_is_read_as_it_stands() {
    let workflow = read(RFC);
    assert_eq!(workflow.name.value.as_str(), "quarterly-compliance");
    assert_eq!(workflow.version.value.as_str(), "1.0");
    assert_eq!(workflow.vault.as_ref().unwrap().value, "acme-corp-production");
    let billing = &workflow.grants[0];
    assert_eq!((billing.agent.value.as_str(), billing.service.value.as_str()), ("billing-agent", "stripe"));
    let constraints = json!({"max_invocations_per_hour": 50, "allowed_parameters": {"amount_max": 10000}});
    assert_eq!(billing.constraints.to_json(), constraints);
    assert_eq!(workflow.grants.len(), 3);
    assert_eq!(workflow.agents.len(), 3);
    assert!(workflow.agents.iter().all(|agent| agent.attributes == PrincipalChanges::default()));
    let tasks = &workflow.plan.as_ref().unwrap().value.tasks;
    let order: Vec<(&str, Vec<&str>)> = tasks
        .iter()
        .map(|task| (task.name.value.as_str(), task.depends_on.iter().map(|name| name.value.as_str()).collect()))
        .collect();
    let expected = [
        ("gather-financial-data", vec![]),
        ("process-billing", vec!["gather-financial-data"]),
        ("send-report", vec!["process-billing"]),
    ];
    assert_eq!(order, expected);
}

#[test]
fn every_problem_of_a_file_is_reported_with_its_position() {
    let text = "\
name: quarterly
version: 1.0
tols: {}
guardians: []
agents:
  billing:
    permisions: private
    permissions: [tools.invok]
    capabilities: billing
tools:
  vault: main
  grants:
    billing:
      - service: stripe
        scopes: [charges.read, charges.read]
        constraints: {max_invocations_per_hour: many, amount_max: 10, max_calls: 1}
        delegatable: yes
      - scopes: [a b]
        service: stripe
plan:
  - task: a
    depends_on: [b]
  - task: b
    depends_on: [a, cc]
  - task: a
";
    assert_eq!(
        problems(text),
        [
            "2:10: `version` is a number; it must be a text; put it in quotes",
            "3:1: `tols` is unknown; did you mean `tools`?",
            "4:1: guardians are configured by the operator, in the file that `guardians.file` of the configuration \
             names; remove them from this file",
            "7:5: `agents.billing.permisions` is unknown; did you mean `permissions`?",
            "8:19: `tools.invok` in `agents.billing.permissions.0` is not a permission; did you mean `tools.invoke`?",
            "9:19: `agents.billing.capabilities` is a text; it must be a list (`[a, b]`)",
            "15:32: `charges.read` is listed twice",
            "16:23: `constraints.max_invocations_per_hour` must be an integer from 0 to 1000000000",
            "16:71: `constraints.max_calls` is not a known constraint; use allowed_hosts, allowed_parameters, \
             denied_parameters, ip_allowlist, max_cost_per_invocation, max_invocations_per_hour, or NAME_max or NAME_min \
             with a number",
            "17:22: `tools.grants.billing.0.delegatable` is a text; it must be true or false",
            "18:18: `a b` in `tools.grants.billing.1.scopes.0` must not contain ' '; use letters, digits and . _ : @ -",
            "22:18: these tasks wait for each other: `a` waits for `b` waits for `a`",
            "24:21: there is no task `cc`",
            "25:11: `a` is declared twice; remove one of the two",
        ]
    );
}

#[test]
fn a_service_of_a_file_is_checked_where_it_is_written() {
    let text = "\
name: w
version: '1'
services:
  - service: cards
    version: '1'
    tools:
      charges.read: {http: {method: GET, path: /x}, idempotnt: true}
      charges.create:
        safety_tier: wrte
";
    let found = problems(text);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("7:") && found[0].contains("`tools.charges.read.idempotnt` is unknown"), "{found:?}");
    assert!(found[1].starts_with("9:9: `tools.charges.create.safety_tier`"), "{found:?}");
}

#[test]
fn grants_need_a_vault_and_an_end_or_a_confirmation() {
    let text = "\
name: w
version: '1'
tools:
  grants:
    a:
      - {service: s, scopes: [x], expires_at: null}
";
    assert_eq!(
        problems(text),
        [
            "6:9: no vault: name it in `tools.vault`, or in this grant",
            "6:35: a grant that never expires also needs `allow_indefinite: true`; prefer an expiry time",
        ]
    );
}

#[test]
fn a_coordinator_and_guardrails_belong_to_a_plan_and_to_each_other() {
    assert_eq!(
        problems("name: w\nversion: '1'\nguardrails: {max_tool_invocations: 5}\n"),
        ["3:1: `guardrails` is about a plan, and this file has none"]
    );
    assert_eq!(
        problems("name: w\nversion: '1'\nguardrails: {max_tool_invocations: 5}\nplan: [{task: a}]\n"),
        ["3:13: `guardrails` limit a coordinator: name its agent in `coordinator`"]
    );
    assert_eq!(problems("name: w\nversion: '1'\nplan: []\n"), ["3:7: `plan` has no tasks; add one, or remove it"]);
}

#[test]
fn policies_are_a_directory_or_the_files_themselves() {
    let of = |policies: &str| read(&format!("name: w\nversion: '1'\npolicies: {policies}\n")).policies.unwrap().value;
    assert_eq!(of("./policies"), DeclaredPolicies::Directory("./policies".to_owned()));
    let file = |name: &str, text: &str| PolicyFile { name: name.to_owned(), text: text.to_owned() };
    let inline = of("\n  b.cedar: |\n    forbid (x);\n    // end\n  a.cedar: ''");
    assert_eq!(inline, DeclaredPolicies::Files(vec![file("a.cedar", ""), file("b.cedar", "forbid (x);\n// end\n")]));
}

#[test]
fn a_file_in_json_is_read_too() {
    let text = json!({"name": "w", "version": "1", "agents": {"a": null, "b": {"scopes": ["tools:*"]}}}).to_string();
    let workflow = read(&text);
    assert_eq!(workflow.agents.len(), 2);
    assert_eq!(serde_json::to_value(&workflow.agents[1].attributes.scopes).unwrap(), json!(["tools:*"]));
}
