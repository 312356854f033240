//! The example of the protocol from the file to the last call: applied, claimed in its order, called through the grants of
//! each task, and added up.

use serde_json::{Value, json};
use toolgate_testkit::upstream::{Reply as Answer, Upstream};

use super::plan::{keyed, named, tasks};
use super::{applies, granted, in_both};
use crate::world::{Actor, id};

const RFC: &str = include_str!("../../../../model/src/workflow/tests/quarterly-compliance.yaml");

/// The tasks in their order: who works on them, with which call, and what the call costs in millionths.
const STEPS: [(&str, &str, &str, u64); 3] = [
    ("gather-financial-data", "data-agent", "postgres-analytics.query.read", 5_000),
    ("process-billing", "billing-agent", "stripe.charges.create", 20_000),
    ("send-report", "report-agent", "email.send", 1_000),
];

/// The three services of the example on loopback, registered, with credentials in the vault that the file names.
fn acme_in_business(admin: &Actor) -> Upstream {
    let upstream = Upstream::start(|request| Answer::json(200, json!({"path": request.path()})));
    let vault = id(&admin.post("/api/v1/vaults", &json!({"name": "acme-corp-production"})).created());
    for (service, tools) in [
        ("stripe", vec![("charges.read", 0.001), ("charges.create", 0.02)]),
        ("postgres-analytics", vec![("query.read", 0.005)]),
        ("email", vec![("send", 0.001)]),
    ] {
        let scopes: Vec<&str> = tools.iter().map(|(tool, _)| *tool).collect();
        let defined: Value = tools
            .iter()
            .map(|(tool, cost)| {
                let http = json!({"method": "POST", "path": format!("/{service}/{tool}")});
                ((*tool).to_owned(), json!({"scope": tool, "estimated_cost_usd": cost, "http": http}))
            })
            .collect::<serde_json::Map<_, _>>()
            .into();
        admin.post("/api/v1/services", &json!({"service": service, "version": "1", "tools": defined})).created();
        let credential = json!({
            "service": service, "label": service, "auth_type": "bearer_token", "scopes_available": scopes,
            "metadata": {"base_url": upstream.url()}, "material": {"token": format!("the token of {service}, long enough")},
        });
        admin.post(&format!("/api/v1/vaults/{vault}/credentials"), &credential).created();
    }
    upstream
}

/// Works the plan off: each call is refused before its task runs and after it ended. Then the costs are checked.
fn works_off(admin: &Actor, intent: &Value, worker_of: impl Fn(&str) -> Actor, upstream: &Upstream) {
    for (place, (name, agent, tool, _)) in STEPS.into_iter().enumerate() {
        let now = tasks(admin, intent);
        let ready: Vec<&Value> =
            now.iter().filter(|task| task["status"] == "ready").map(|task| &task["name"]).collect();
        assert_eq!(ready, [name], "{place}");
        let (task, worker) = (named(&now, name), worker_of(agent));
        let call = json!({"tool": tool, "parameters": {}, "context": {"task_id": id(task)}});
        worker.invokes(call.clone()).refused(403, "GRANT_CONTEXT_MISMATCH");
        worker.changes_task(task, json!({"status": "claimed"})).ok();
        worker.changes_task(task, json!({"status": "running"})).ok();
        worker.invokes(call.clone()).ok();
        worker.changes_task(task, json!({"status": "completed", "output": {"done": true}})).ok();
        assert!(worker.invokes(call).status() == 403);
        assert_eq!(upstream.count(), place + 1);
    }
    let of_intent = format!("/api/v1/intents/{}/invocations?status=success", intent.as_str().unwrap());
    let of_intent = admin.get(&of_intent).ok()["invocations"].clone();
    let mut tools: Vec<String> = of_intent.as_array().unwrap().iter().map(qualified).collect();
    tools.reverse();
    assert_eq!(tools, STEPS.map(|(_, _, tool, _)| tool.to_owned()), "newest first");
    let ended = tasks(admin, intent);
    let costs = admin.get(&format!("/api/v1/intents/{}/costs", intent.as_str().unwrap())).ok();
    let summary = &costs["summary"];
    assert_eq!(summary["total"], json!(26_000), "{summary}");
    assert_eq!(costs["costs"].as_array().unwrap().len(), STEPS.len());
    for (name, agent, tool, cost) in STEPS {
        let task = id(named(&ended, name));
        assert_eq!(
            (&summary["by_task"][&task], &summary["by_agent"][agent]),
            (&json!(cost), &json!(cost)),
            "{summary}"
        );
        let made = admin.get(&format!("/api/v1/invocations?task_id={task}&status=success")).ok();
        let made = made["invocations"].as_array().unwrap();
        assert_eq!(made.len(), 1, "{name}");
        assert_eq!(made[0]["agent_id"], json!(agent));
        let of_task = admin.get(&format!("/api/v1/tasks/{task}/invocations?status=success")).ok();
        assert_eq!(of_task["invocations"], json!(made), "{name}");
        let refused = admin.get(&format!("/api/v1/tasks/{task}/invocations?status=denied")).ok();
        assert!(refused["invocations"].as_array().unwrap().iter().all(|call| call["agent_id"] == json!(agent)));
        assert!(tool.ends_with(made[0]["tool"].as_str().unwrap()), "{}", made[0]);
    }
}

fn qualified(call: &Value) -> String {
    format!("{}.{}", call["service"].as_str().unwrap(), call["tool"].as_str().unwrap())
}

#[test]
fn the_example_is_applied_on_the_command_line_and_worked_off() {
    in_both(|world| {
        let admin = world.admin();
        let upstream = acme_in_business(&admin);
        let file = world.gate.setup().home().join("quarterly-compliance.yaml");
        std::fs::write(&file, RFC).unwrap();
        let apply = |more: &[&str]| {
            let mut command = world.gate.cli();
            command.env("TOOLGATE_TOKEN", world.gate.token()).args(["apply", "--json"]).arg(&file).args(more);
            command.output().unwrap()
        };
        let refused = apply(&[]);
        assert_eq!(refused.status.code(), Some(1));
        assert!(String::from_utf8_lossy(&refused.stderr).contains("WIDENING_NOT_ALLOWED"));
        let applied = apply(&["--allow-widening"]);
        assert_eq!(applied.status.code(), Some(0), "{}", String::from_utf8_lossy(&applied.stderr));
        let applied: Value = serde_json::from_slice(&applied.stdout).unwrap();
        works_off(&admin, &applied["intent_id"], |agent| keyed(world, agent), &upstream);
        assert_eq!(apply(&[]).status.code(), Some(0), "the same file again is no change");
    });
}

#[test]
fn the_example_is_worked_off_through_the_grants_of_its_file() {
    in_both(|world| {
        let admin = world.admin();
        let upstream = acme_in_business(&admin);
        let applied = applies(&admin, RFC);
        works_off(&admin, &applied["intent_id"], |agent| keyed(world, agent), &upstream);
        assert_eq!(granted(&admin, "billing-agent").len(), 1, "a direct grant is not of the task and stays");
    });
}

#[test]
fn with_a_coordinator_the_example_is_worked_off_through_delegated_grants_that_end_with_each_task() {
    in_both(|world| {
        let admin = world.admin();
        let upstream = acme_in_business(&admin);
        let agents = RFC.split("\nagents:").nth(1).unwrap();
        let grants: String = STEPS
            .iter()
            .map(|(_, _, tool, _)| tool.split_once('.').unwrap())
            .map(|(service, scope)| {
                let also = if service == "stripe" { ", charges.read" } else { "" };
                format!("      - {{service: {service}, scopes: [{scope}{also}], delegatable: true}}\n")
            })
            .collect();
        let file = format!(
            "name: quarterly-compliance\nversion: \"1.0\"\ntools:\n  vault: acme-corp-production\n  grants:\n    lead:\n{grants}\
             coordinator: lead\nguardrails: {{auto_delegate: true, max_tool_invocations: 3}}\nagents:\n  lead: {{permissions: [tools.invoke, tools.delegate]}}{agents}"
        );
        let applied = applies(&admin, &file);
        for (_, agent, _, _) in STEPS {
            let held = granted(&admin, agent);
            assert_eq!((held.len(), &held[0]["source"]), (1, &json!("delegated")), "{held:?}");
        }
        works_off(&admin, &applied["intent_id"], |agent| keyed(world, agent), &upstream);
        for (_, agent, _, _) in STEPS {
            assert_eq!(granted(&admin, agent), Vec::<Value>::new(), "{agent}");
        }
    });
}
