//! Stopping calls: whatever way they come, those that wait, those that are executed, and administration goes on.

use serde_json::{Value, json};
use toolgate_testkit::postgres::TestDatabase;

use super::office::{Payments, refund};
use crate::world::{World, block_on, on_both_engines, setup};

on_both_engines! {
    calls_of_a_stopped_agent_are_refused_whatever_way_they_come,
    a_stopped_tenant_and_a_stopped_gate_make_no_call_and_are_still_administered,
    a_call_that_waits_for_a_person_is_cancelled_as_stopped,
    a_detached_call_that_waits_is_cancelled,
    a_call_that_is_executed_is_cut_off_and_settled,
    a_caller_that_is_stopped_makes_no_call_for_another_agent,
    a_call_for_another_agent_is_cut_off_with_its_caller,
}

fn opened(world: &World, more: Value) -> Payments {
    let payments = Payments::open(world);
    payments.registers("1", more);
    payments.grant(&payments.credential("live key", json!({})), json!({}));
    payments
}

fn calls_of_a_stopped_agent_are_refused_whatever_way_they_come(world: &World) {
    let payments = opened(world, json!({}));
    let agent = &payments.agent;
    let over_mcp = agent.mcp_tools().into_iter().find(|name| name.contains("refund")).unwrap();
    let session = agent.post("/v1/tool-sessions", &json!({"toolId": "connector:payments.refund"})).created();
    let over_aos = || {
        let question = json!({"jsonrpc": "2.0", "id": 1, "method": "steps/toolCallRequest", "params": {
            "toolCallRequest": {"executionId": "e", "toolId": "payments.refund", "inputs": [{"name": "amount", "value": 5}]},
            "context": {"agent": {"id": agent.id}},
        }});
        agent.post("/v1/hooks/aos", &question).ok()["result"]["decision"].clone()
    };
    let external = || {
        let call = json!({"tool": "claude-code.Read", "category": "info", "arguments": {"path": "a"}});
        agent.post("/api/v1/approvals/ask", &call).ok()
    };
    assert_eq!(over_aos(), "allow");
    payments.admin.post("/api/v1/stop", &json!({"agent": "billing", "reason": "it pays twice"})).ok();
    let before = payments.service.count();

    let error = payments.refund(json!({})).refused(403, "STOPPED");
    assert!(error["message"].as_str().unwrap().contains("it pays twice"), "{error}");
    payments.refund(json!({"context": {"session_id": session["sessionId"]}})).refused(403, "STOPPED");
    let result = agent.mcp_call(&over_mcp, json!({"amount": 5}));
    assert_eq!(result["isError"], true, "{result}");
    assert!(result.to_string().contains("STOPPED"), "{result}");
    assert_eq!(over_aos(), "deny");
    let asked = external();
    assert_eq!(asked["decision"], "deny", "{asked}");
    assert!(asked["reason"].as_str().unwrap().contains("stopped"), "{asked}");
    agent
        .invokes(json!({"tool": "openwop:http.fetch", "parameters": {"url": "http://127.0.0.1:9/"}}))
        .refused(403, "STOPPED");
    assert_eq!(payments.service.count(), before);

    payments.admin.post("/api/v1/resume", &json!({"agent": "billing"})).ok();
    payments.refund(json!({})).ok();
    assert_eq!(over_aos(), "allow");
    assert_eq!(agent.mcp_call(&over_mcp, json!({"amount": 5})).get("isError").unwrap_or(&json!(false)), &json!(false));
}

fn a_stopped_tenant_and_a_stopped_gate_make_no_call_and_are_still_administered(world: &World) {
    let payments = opened(world, json!({}));
    let acme = world.tenant("acme");
    for what in [json!({"tenant": "default"}), json!({"all": true})] {
        let stopped = payments.admin.post("/api/v1/stop", &what).ok();
        assert_eq!(stopped["changed"], true, "{stopped}");
        payments.refund(json!({})).refused(403, "STOPPED");
        let is_all = what["all"] == true;
        assert_eq!(acme.get("/api/v1/tenants/acme").ok()["gate_stopped"].is_object(), is_all);
        // Administration goes on.
        let name = format!("newcomer-{is_all}");
        payments.admin.registers(&name, &["tools.invoke"]);
        payments.admin.delete(&format!("/api/v1/agents/{name}")).ok();
        payments.admin.get("/api/v1/audit/events").ok();
        payments.admin.post("/api/v1/resume", &what).ok();
        payments.refund(json!({})).ok();
    }
    payments.admin.post("/api/v1/stop", &json!({"tenant": "acme"})).ok();
    payments.refund(json!({})).ok();
    let events = |kind: &str| payments.admin.events(&format!("&type={kind}")).len();
    assert_eq!([events("tenant.stopped"), events("gate.stopped"), events("gate.resumed")], [2, 1, 1]);
}

fn a_call_that_waits_for_a_person_is_cancelled_as_stopped(world: &World) {
    let payments = opened(world, json!({"approval": "always"}));
    let waiting = payments.asks(refund(json!({})));
    let stopped = payments.admin.post("/api/v1/stop", &json!({"agent": "billing"})).ok();
    assert_eq!(stopped["cancelled_approvals"], 1, "{stopped}");
    waiting.answer().refused(403, "STOPPED");
    assert_eq!(payments.pending(), Vec::<Value>::new());
    assert_eq!(payments.service.count(), 0);
}

fn a_detached_call_that_waits_is_cancelled(world: &World) {
    let payments = opened(world, json!({"approval": "always"}));
    let body = refund(json!({"idempotency_key": "detached-1"}));
    let headers = [("Prefer", "respond-async")];
    let accepted = payments.agent.ask_with("POST", "/api/v1/tools/invoke", &headers, Some(&body)).expect(202);
    crate::world::until("the call waits", || payments.pending().into_iter().next());
    let stopped = payments.admin.post("/api/v1/stop", &json!({"agent": "billing"})).ok();
    assert_eq!(stopped["cancelled_calls"], 1, "{stopped}");
    let result = format!("/api/v1/invocations/{}/result?wait_seconds=30", accepted["invocation_id"].as_str().unwrap());
    let refused = payments.agent.get(&result);
    assert!([403, 409].contains(&refused.status()), "{:?}", refused.json());
    payments.admin.post("/api/v1/resume", &json!({"agent": "billing"})).ok();
    assert_eq!(payments.service.count(), 0);
}

fn a_call_that_is_executed_is_cut_off_and_settled(world: &World) {
    let payments = opened(world, json!({"estimated_cost_usd": 1}));
    payments.admin.patch("/api/v1/agents/billing", &json!({"budget": {"cost_total_usd": 5}})).ok();
    payments.service.hold();
    std::thread::scope(|scope| {
        let call = scope.spawn(|| payments.refund(json!({})));
        payments.service.wait_for(1);
        let stopped = payments.admin.post("/api/v1/stop", &json!({"agent": "billing"})).ok();
        assert_eq!(stopped["in_flight"], 1, "{stopped}");
        let reply = call.join().unwrap();
        assert_eq!(reply.json()["error"]["code"], "STOPPED", "{:?}", reply.json());
    });
    payments.service.release();
    // The service may have executed it, so it is charged.
    let budget = payments.admin.get("/api/v1/budgets?agent_id=billing").ok()["budgets"][0].clone();
    assert_eq!((&budget["used_calls"], &budget["used_cost_usd"]), (&json!(1), &json!(1.0)), "{budget}");
}

fn a_caller_that_is_stopped_makes_no_call_for_another_agent(world: &World) {
    let payments = opened(world, json!({}));
    let host = json!({"id": "host", "kind": "service", "permissions": ["tools.invoke", "agents.act_as"]});
    let host = payments.admin.registers_as(&host);
    let call = refund(json!({"agent_id": "billing"}));
    host.invokes(call.clone()).ok();
    payments.admin.post("/api/v1/stop", &json!({"agent": "host"})).ok();
    host.invokes(call).refused(403, "STOPPED");
    payments.refund(json!({})).ok();
}

fn a_call_for_another_agent_is_cut_off_with_its_caller(world: &World) {
    let payments = opened(world, json!({}));
    let host = json!({"id": "host", "kind": "service", "permissions": ["tools.invoke", "agents.act_as"]});
    let host = payments.admin.registers_as(&host);
    payments.service.hold();
    std::thread::scope(|scope| {
        let call = scope.spawn(|| host.invokes(refund(json!({"agent_id": "billing"}))));
        payments.service.wait_for(1);
        let stopped = payments.admin.post("/api/v1/stop", &json!({"agent": "host"})).ok();
        assert_eq!(stopped["in_flight"], 1, "{stopped}");
        let reply = call.join().unwrap();
        assert_eq!(reply.json()["error"]["code"], "STOPPED", "{:?}", reply.json());
    });
    payments.service.release();
}

#[test]
fn a_stop_at_one_gate_holds_at_the_other_at_once_and_cuts_off_its_calls() {
    let database = block_on(TestDatabase::migrated());
    let setup = setup().reaching_loopback().database(database.url());
    let (one, other) = (World::of(&setup, Some(database)), World::of(&setup, None));
    let payments = opened(&one, json!({}));
    let there = other.actor(&payments.agent.id, &payments.agent.key);
    // Both gates know the agent, its grant and that it is not stopped.
    payments.refund(json!({})).ok();
    there.invokes(refund(json!({}))).ok();
    payments.service.hold();
    std::thread::scope(|scope| {
        let call = scope.spawn(|| there.invokes(refund(json!({}))));
        payments.service.wait_for(3);
        let stopped = payments.admin.post("/api/v1/stop", &json!({"agent": "billing"})).ok();
        assert_eq!(stopped["in_flight"], 1, "{stopped}");
        // The next call at the other gate is refused, without any time in between.
        there.invokes(refund(json!({}))).refused(403, "STOPPED");
        // And the call that it was executing is cut off.
        let reply = call.join().unwrap();
        assert_eq!(reply.json()["error"]["code"], "STOPPED", "{:?}", reply.json());
    });
    payments.service.release();
    assert_eq!(payments.service.count(), 3);
    payments.admin.post("/api/v1/resume", &json!({"agent": "billing"})).ok();
    there.invokes(refund(json!({}))).ok();
    payments.refund(json!({})).ok();
}
