//! Why an agent can or cannot call a tool: the answer is the one that a call gets, and asking leaves no trace.

use serde_json::{Value, json};

use super::shop::{Shop, payments};
use crate::world::{Actor, World, id, names, on_both_engines};

on_both_engines! {
    the_explanation_says_what_a_call_would_get,
    parameters_are_looked_at_where_they_are_given,
    the_agents_own_scopes_are_a_step_of_their_own,
    what_is_not_there_for_the_agent_is_told_only_to_who_manages_tools,
    asking_about_another_needs_leave,
    asking_reserves_and_writes_nothing,
    a_question_that_makes_no_sense_is_refused,
}

fn why(actor: &Actor, query: &str) -> Value {
    actor.get(&format!("/api/v1/tools/why?{query}")).ok()
}

/// The codes of the steps that were refused.
fn codes(explanation: &Value) -> Vec<&str> {
    explanation["steps"].as_array().unwrap().iter().filter_map(|step| step["code"].as_str()).collect()
}

fn stages(explanation: &Value) -> Vec<&str> {
    explanation["steps"].as_array().unwrap().iter().map(|step| step["stage"].as_str().unwrap()).collect()
}

fn the_explanation_says_what_a_call_would_get(world: &World) {
    let shop = Shop::open(world);
    let grant = shop.grant(json!({"scopes": ["charges.read"], "constraints": {"max_invocations_per_hour": 7}}));
    let told = why(&shop.agent, "tool=payments.charges.read");
    assert_eq!(names(&told), ["agent_id", "allowed", "steps", "tool"]);
    assert_eq!((&told["allowed"], &told["agent_id"]), (&json!(true), &json!("billing")));
    assert_eq!(told["tool"], "payments.charges.read");
    assert_eq!(stages(&told), ["identify", "resolve", "authorize", "constrain", "admit"]);
    let note = &told["steps"][4];
    assert_eq!(note["passed"], Value::Null);
    assert!(note["subject"].as_str().unwrap().contains("7 calls"), "{note}");

    let told = why(&shop.agent, "tool=payments.charges.create");
    assert_eq!((&told["allowed"], codes(&told)), (&json!(false), vec!["GRANT_SCOPE_INSUFFICIENT"]));
    let refused = &told["steps"][2];
    assert_eq!((&refused["passed"], &refused["details"]["grant_id"]), (&json!(false), &grant["id"]));
    let reply = shop.call("payments.charges.create", json!({"amount": 1, "currency": "usd"}));
    assert_eq!(reply.refused(403, "GRANT_SCOPE_INSUFFICIENT")["message"], refused["reason"]);

    shop.admin.ask("PATCH", &format!("/api/v1/grants/{}/suspend", id(&grant)), None).ok();
    let told = why(&shop.agent, "tool=payments.charges.read");
    assert_eq!((&told["allowed"], codes(&told)), (&json!(false), vec!["GRANT_SUSPENDED"]));
}

fn parameters_are_looked_at_where_they_are_given(world: &World) {
    let shop = Shop::open(world);
    shop.grant(
        json!({"scopes": ["charges.create"], "constraints": {"amount_max": 500}, "context": {"task_id": "t-1"}}),
    );
    let asked = |parameters: &str| {
        why(&shop.agent, &format!("tool=payments.charges.create&task_id=t-1&parameters={parameters}"))
    };
    assert_eq!(asked("%7B%22amount%22:500,%22currency%22:%22usd%22%7D")["allowed"], true);
    let beyond = asked("%7B%22amount%22:501,%22currency%22:%22usd%22%7D");
    assert_eq!((&beyond["allowed"], codes(&beyond)), (&json!(false), vec!["GRANT_PARAMETER_DENIED"]));
    assert_eq!(codes(&asked("%7B%7D")), ["PARAMETERS_INVALID"]);
    let elsewhere = why(&shop.agent, "tool=payments.charges.create&task_id=t-2");
    assert_eq!(codes(&elsewhere), ["GRANT_CONTEXT_MISMATCH"]);
}

fn the_agents_own_scopes_are_a_step_of_their_own(world: &World) {
    let shop = Shop::open(world);
    let mut definition = payments("2024-01");
    definition["tools"]["charges.read"]["required_scopes"] = json!(["tools:charges:read"]);
    shop.admin.ask("PUT", "/api/v1/services/payments", Some(&definition)).ok();
    shop.grant(json!({"scopes": ["charges.read"]}));
    let told = why(&shop.agent, "tool=payments.charges.read");
    assert_eq!((&told["allowed"], codes(&told)), (&json!(false), vec!["FORBIDDEN"]));
    assert_eq!(told["steps"][2]["details"]["requiredScopes"], json!(["tools:charges:read"]));
    shop.admin.patch("/api/v1/agents/billing", &json!({"scopes": ["tools:charges:*"]})).ok();
    assert_eq!(why(&shop.agent, "tool=payments.charges.read")["allowed"], true);
}

fn what_is_not_there_for_the_agent_is_told_only_to_who_manages_tools(world: &World) {
    let shop = Shop::open(world);
    let known = why(&shop.agent, "tool=payments.charges.read");
    assert_eq!((&known["allowed"], codes(&known)), (&json!(false), vec!["TOOL_NOT_FOUND"]));
    let unknown = why(&shop.agent, "tool=payments.charges.melt");
    assert_eq!(stages(&known), stages(&unknown), "to the agent both are the same");
    let manager = why(&shop.admin, "tool=payments.charges.read&agent_id=billing");
    let last = manager["steps"].as_array().unwrap().last().unwrap();
    assert!(last["passed"].is_null() && last["subject"].as_str().unwrap().contains("give the agent a grant"), "{last}");
    assert_eq!(codes(&why(&shop.admin, "tool=payments.charges.read&agent_id=nobody")), ["AGENT_NOT_FOUND"]);
}

fn asking_about_another_needs_leave(world: &World) {
    let shop = Shop::open(world);
    shop.grant(json!({}));
    let other = world.agent("other", &["tools.invoke", "tools.manage"]);
    let path = "/api/v1/tools/why?tool=payments.charges.read&agent_id=billing";
    assert_eq!(other.get(path).refused(403, "PERMISSION_DENIED")["required_permission"], "agents.act_as");
    let told = shop.admin.get(path).ok();
    assert_eq!((&told["allowed"], &told["agent_id"]), (&json!(true), &json!("billing")));
    let idle = world.agent("idle", &[]);
    assert_eq!(codes(&why(&idle, "tool=payments.charges.read")), ["PERMISSION_DENIED"]);
}

fn asking_reserves_and_writes_nothing(world: &World) {
    let shop = Shop::open(world);
    shop.grant(json!({"constraints": {"max_invocations_per_hour": 1}}));
    let before = shop.admin.events("").len();
    for _ in 0..3 {
        assert_eq!(why(&shop.agent, "tool=payments.charges.read")["allowed"], true);
        assert_eq!(why(&shop.agent, "tool=payments.refunds.create")["allowed"], false);
    }
    assert_eq!(shop.admin.events("").len(), before);
    assert_eq!(shop.agent.get("/api/v1/invocations").ok()["invocations"], json!([]));
    assert_eq!(shop.upstream.count(), 0);
    shop.call("payments.charges.read", json!({"charge_id": "ch_7"}));
    assert_eq!(shop.upstream.count(), 1, "the one call of this hour was still there");
}

fn a_question_that_makes_no_sense_is_refused(world: &World) {
    let admin = world.admin();
    for (query, code, path) in [
        ("", "INVALID_FIELD", "tool"),
        ("?tool=", "INVALID_FIELD", "tool"),
        ("?tool=a%20b", "INVALID_FIELD", "tool"),
        ("?tool=a&parameters=%5B1%5D", "INVALID_FIELD", "parameters"),
        ("?tool=a&parameters=sk_live_4242", "INVALID_FIELD", "parameters"),
        ("?tool=a&agent_id=a%20b", "INVALID_FIELD", "agent_id"),
        ("?tool=a&grant_id=g", "UNKNOWN_FIELD", "grant_id"),
    ] {
        let reply = admin.get(&format!("/api/v1/tools/why{query}"));
        assert_eq!(reply.refused(400, code)["path"], path, "{query}");
        assert!(!reply.answer.text().contains("sk_live_4242"), "{}", reply.answer.text());
    }
}
