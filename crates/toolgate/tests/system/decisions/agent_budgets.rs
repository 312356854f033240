//! Budgets of agents and tenants: what they refuse, who may read and change them, and what a call has really cost.

use serde_json::json;
use toolgate_testkit::upstream::{Reply as Answer, Upstream};

use super::office::Payments;
use crate::world::{World, on_both_engines, text};

on_both_engines! {
    a_budget_is_spent_to_the_last_call_and_says_when_it_begins_anew,
    a_total_is_refused_for_good_and_a_tenants_budget_is_shared,
    nobody_changes_what_limits_itself,
    everybody_reads_its_own_budget_and_nobody_elses,
    what_a_service_states_is_charged_and_what_it_cannot_have_cost_is_not,
    a_budget_is_set_shown_and_removed_on_the_command_line,
}

fn opened(world: &World, more: serde_json::Value) -> Payments {
    let payments = Payments::open(world);
    payments.registers("1", more);
    payments.grant(&payments.credential("live key", json!({})), json!({}));
    payments
}

fn a_budget_is_spent_to_the_last_call_and_says_when_it_begins_anew(world: &World) {
    let payments = opened(world, json!({"estimated_cost_usd": 0.1}));
    payments.admin.patch("/api/v1/agents/billing", &json!({"budget": {"cost_per_day_usd": 0.3}})).ok();
    let replies: Vec<_> = std::thread::scope(|scope| {
        let calls: Vec<_> = (0..10).map(|_| scope.spawn(|| payments.refund(json!({})))).collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    let (made, refused): (Vec<_>, Vec<_>) = replies.iter().partition(|reply| reply.status() == 200);
    assert_eq!((made.len(), payments.service.count()), (3, 3));
    for reply in refused {
        let error = reply.refused(429, "BUDGET_EXCEEDED");
        assert_eq!((&error["account_id"], &error["limit_cost_usd"]), (&json!("billing"), &json!(0.3)), "{error}");
        assert!(reply.answer.header("retry-after").is_some());
    }
    let own = payments.agent.get("/api/v1/budgets").ok();
    let budget = &own["budgets"][0];
    assert_eq!((&budget["used_calls"], &budget["used_cost_usd"]), (&json!(3), &json!(0.3)), "{own}");
    assert_eq!((&budget["remaining_cost_usd"], &budget["period"]), (&json!(0.0), &json!("day")), "{own}");
    let warned = payments.admin.events("&type=budget.warned");
    let ended = payments.admin.events("&type=budget.exhausted");
    assert_eq!((warned.len(), ended.len()), (1, 1));
}

fn a_total_is_refused_for_good_and_a_tenants_budget_is_shared(world: &World) {
    let payments = opened(world, json!({}));
    payments.admin.patch("/api/v1/agents/billing", &json!({"budget": {"calls_total": 1}})).ok();
    payments.refund(json!({})).ok();
    let error = payments.refund(json!({})).refused(403, "BUDGET_EXCEEDED");
    assert_eq!(error["period"], "total", "{error}");
    payments.admin.patch("/api/v1/agents/billing", &json!({"budget": null})).ok();
    payments.refund(json!({})).ok();
    payments.admin.patch("/api/v1/tenants/default", &json!({"budget": {"calls_per_day": 2}})).ok();
    let error = payments.refund(json!({})).refused(429, "BUDGET_EXCEEDED");
    assert_eq!(error["account"], "tenant", "{error}");
    payments.admin.patch("/api/v1/tenants/default", &json!({"budget": null})).ok();
    payments.refund(json!({})).ok();
}

fn nobody_changes_what_limits_itself(world: &World) {
    let admin = world.admin();
    let chief = admin.registers("chief", &["tools.invoke", "agents.manage", "audit.read"]);
    let wider = json!({"budget": {"calls_per_day": 1000}});
    admin.patch("/api/v1/agents/chief", &json!({"budget": {"calls_per_day": 1}})).ok();
    chief.patch("/api/v1/agents/chief", &wider).refused(403, "PERMISSION_DENIED");
    chief.patch("/api/v1/agents/chief", &json!({"budget": null})).refused(403, "PERMISSION_DENIED");
    chief.patch("/api/v1/tenants/default", &wider).refused(403, "PERMISSION_DENIED");
    chief.patch("/api/v1/tenants/other", &wider).refused(404, "TENANT_NOT_FOUND");
    chief.post("/api/v1/stop", &json!({"tenant": "default"})).refused(403, "PERMISSION_DENIED");
    chief.post("/api/v1/stop", &json!({"all": true})).refused(403, "PERMISSION_DENIED");
    chief.post("/api/v1/stop", &json!({"agent": "chief"})).ok();
    chief.post("/api/v1/resume", &json!({"agent": "chief"})).refused(403, "PERMISSION_DENIED");
    let worker = world.agent("worker", &["tools.invoke"]);
    worker.post("/api/v1/stop", &json!({"agent": "worker"})).refused(403, "PERMISSION_DENIED");
    worker.patch("/api/v1/agents/worker", &wider).refused(403, "PERMISSION_DENIED");
    for wrong in [json!({}), json!({"agent": "a", "all": true}), json!({"agent": "a", "tenant": "b"})] {
        admin.post("/api/v1/stop", &wrong).refused(400, "INVALID_FIELD");
    }
    admin.patch("/api/v1/agents/worker", &json!({"budget": {}})).refused(400, "INVALID_FIELD");
    let acme = world.tenant("acme");
    acme.patch("/api/v1/tenants/default", &wider).refused(404, "TENANT_NOT_FOUND");
    acme.post("/api/v1/stop", &json!({"agent": "worker"})).refused(404, "AGENT_NOT_FOUND");
    admin.patch("/api/v1/tenants/acme", &wider).ok();
    assert_eq!(acme.get("/api/v1/tenants/acme").ok()["budget"]["calls_per_day"], 1000);
}

fn everybody_reads_its_own_budget_and_nobody_elses(world: &World) {
    let admin = world.admin();
    let (one, other) = (world.agent("one", &["tools.invoke"]), world.agent("other", &["tools.invoke"]));
    for agent in ["one", "other"] {
        admin.patch(&format!("/api/v1/agents/{agent}"), &json!({"budget": {"calls_per_day": 5}})).ok();
    }
    admin.patch("/api/v1/tenants/default", &json!({"budget": {"calls_total": 50}})).ok();
    let accounts = |reply: serde_json::Value| -> Vec<String> {
        let budgets = reply["budgets"].as_array().unwrap();
        budgets.iter().map(|one| one["account_id"].as_str().unwrap_or("tenant").to_owned()).collect()
    };
    assert_eq!(accounts(admin.get("/api/v1/budgets").ok()), ["tenant", "one", "other"]);
    assert_eq!(accounts(admin.get("/api/v1/budgets?limit=1").ok()), ["tenant", "one"]);
    assert_eq!(accounts(one.get("/api/v1/budgets").ok()), ["one"]);
    assert_eq!(accounts(other.get("/api/v1/budgets?agent_id=other").ok()), ["other"]);
    one.get("/api/v1/budgets?agent_id=other").refused(404, "AGENT_NOT_FOUND");
    let auditor = world.agent("auditor", &["audit.read"]);
    assert_eq!(accounts(auditor.get("/api/v1/budgets?agent_id=one").ok()), ["one"]);
    assert_eq!(accounts(auditor.get("/api/v1/budgets").ok()).len(), 3);
}

fn what_a_service_states_is_charged_and_what_it_cannot_have_cost_is_not(world: &World) {
    let service = Upstream::start(|request| Answer::json(200, json!({"usage": {"cost_usd": request.json()["cost"]}})));
    let payments = Payments::open(world);
    let cost = json!({"from": "/usage/cost_usd", "at_most_usd": 0.5});
    payments.registers("1", json!({"estimated_cost_usd": 0.1, "cost": cost}));
    let credential = payments.credential("live key", json!({"base_url": service.url()}));
    payments.grant(&credential, json!({}));
    payments.admin.patch("/api/v1/agents/billing", &json!({"budget": {"cost_total_usd": 1.3}})).ok();
    let call = |cost: serde_json::Value| {
        let body = json!({"tool": "payments.refund", "parameters": {"cost": cost}});
        let reply = payments.agent.invokes(body).ok();
        let record = payments.admin.get(&format!("/api/v1/invocations/{}", text(&reply, "/invocation_id"))).ok();
        (record["cost"]["estimated_cost_usd"].clone(), record["cost_basis"].clone())
    };
    assert_eq!(call(json!(0.2)), (json!(0.2), json!("stated")));
    assert_eq!(call(json!("0.000001")), (json!(0.000_001), json!("stated")));
    assert_eq!(call(json!(-5)), (json!(0.1), json!("estimated")));
    assert_eq!(call(json!(9)), (json!(0.5), json!("capped")));
    let budget = payments.agent.get("/api/v1/budgets").ok()["budgets"][0].clone();
    assert_eq!((&budget["used_calls"], &budget["used_cost_usd"]), (&json!(4), &json!(0.800_001)));
    // What a call can cost at most is reserved, whatever it will cost.
    let body = json!({"tool": "payments.refund", "parameters": {"cost": 0}});
    payments.agent.invokes(body).refused(403, "BUDGET_EXCEEDED");
    let wrong = json!({"service": "x", "version": "1", "tools": {"y": {"cost": {"from": "/a"}}}});
    payments.admin.post("/api/v1/services", &wrong).refused(400, "INVALID_FIELD");
}

fn a_budget_is_set_shown_and_removed_on_the_command_line(world: &World) {
    let admin = world.admin();
    world.agent("billing", &["tools.invoke"]);
    let run = |arguments: &[&str]| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_toolgate"))
            .args(arguments)
            .env("TOOLGATE_URL", world.gate.url())
            .env("TOOLGATE_TOKEN", &admin.key)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code(), text + &String::from_utf8_lossy(&output.stderr))
    };
    let done = |arguments: &[&str], expected: &str| {
        let (code, text) = run(arguments);
        assert!(code == Some(0) && text.contains(expected), "{arguments:?}: {code:?} {text}");
    };
    done(&["budget", "set", "--agent", "billing", "--calls-per-day", "7", "--cost-total", "2.5"], "billing");
    done(&["budget", "show", "billing"], "7");
    done(&["budget", "list"], "2.5");
    assert_eq!(admin.get("/api/v1/agents/billing").ok()["budget"]["calls_per_day"], 7);
    done(&["stop", "--agent", "billing", "--reason", "an incident"], "are stopped");
    done(&["stop", "--agent", "billing"], "already");
    assert_eq!(admin.get("/api/v1/agents/billing").ok()["stopped"]["reason"], "an incident");
    done(&["resume", "--agent", "billing"], "are resumed");
    done(&["budget", "clear", "--agent", "billing"], "removed");
    assert_eq!(run(&["budget", "set", "--agent", "billing"]).0, Some(1));
    assert_eq!(run(&["stop"]).0, Some(2));
    assert_eq!(run(&["stop", "--agent", "a", "--all"]).0, Some(2));
}
