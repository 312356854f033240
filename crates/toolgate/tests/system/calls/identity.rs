//! Who calls for whom, with which permission, and that another's grants are as good as none.

use serde_json::{Value, json};

use super::shop::{Shop, read};
use crate::world::{Actor, Reply, World, id, on_both_engines, text};

on_both_engines! {
    nobody_calls_for_another_without_leave_and_is_recorded_as_itself,
    who_may_act_for_an_agent_calls_with_its_grants_and_is_recorded_as_the_actor,
    calling_needs_its_permission_besides_the_grant,
    anothers_grant_looks_like_none,
    another_tenant_sees_and_uses_nothing,
    a_key_that_ended_calls_nothing,
}

/// A grant id that was never given out.
const UNKNOWN: &str = "grant_01K9ZZZZZZ0000000000000000";

fn nobody_calls_for_another_without_leave_and_is_recorded_as_itself(world: &World) {
    let shop = Shop::open(world);
    shop.grant(json!({}));
    let thief = world.agent("thief", &["tools.invoke", "tools.delegate", "tools.manage"]);
    let header = [("X-Agent-ID", "billing")];
    let tries: [Reply; 3] = [
        thief.invokes(read(json!({"agent_id": "billing"}))),
        thief.invokes(read(json!({"context": {"agent_id": "billing"}}))),
        thief.ask_with("POST", "/api/v1/tools/invoke", &header, Some(&read(json!({})))),
    ];
    for reply in &tries {
        let error = shop.denied(reply, 403, "PERMISSION_DENIED");
        assert_eq!((&error["required_permission"], &error["stage"]), (&json!("agents.act_as"), &json!("identify")));
        let record = shop.record(text(&reply.json(), "/invocation_id"));
        assert_eq!((&record["agent_id"], &record["actor"]), (&json!("thief"), &json!("thief")));
        assert_eq!((&record["grant_id"], &record["service"]), (&Value::Null, &Value::Null));
        assert_eq!(record["tool"], "payments.charges.read", "what it wrote");
    }
    assert_eq!(shop.agent.get("/api/v1/invocations").ok()["invocations"], json!([]), "none is in another's history");
    assert_eq!(shop.upstream.count(), 0);
}

fn who_may_act_for_an_agent_calls_with_its_grants_and_is_recorded_as_the_actor(world: &World) {
    let shop = Shop::open(world);
    let grant = shop.grant(json!({}));
    let runner = world.agent("runner", &["tools.invoke", "agents.act_as"]);
    let header = [("X-Agent-ID", "billing")];
    let answers = [
        runner.invokes(read(json!({"agent_id": "billing"}))),
        runner.invokes(read(json!({"context": {"agent_id": "billing"}}))),
        runner.ask_with("POST", "/api/v1/tools/invoke", &header, Some(&read(json!({"agent_id": "billing"})))),
    ];
    for reply in &answers {
        let answer = reply.ok();
        assert_eq!(answer["grant_id"], grant["id"]);
        let record = shop.record(text(&answer, "/invocation_id"));
        assert_eq!((&record["agent_id"], &record["actor"]), (&json!("billing"), &json!("runner")));
        let event = &shop.events_of(text(&answer, "/invocation_id"))[0];
        assert_eq!((&event["agent_id"], &event["actor"]), (&json!("billing"), &json!("runner")));
    }
    // For itself it holds nothing.
    shop.denied(&runner.invokes(read(json!({}))), 404, "TOOL_NOT_FOUND");
}

fn calling_needs_its_permission_besides_the_grant(world: &World) {
    let shop = Shop::open(world);
    let idle = world.agent("idle", &["tools.delegate"]);
    let grant = shop.grant_to("idle", json!({}));
    for more in [json!({}), json!({"grant_id": grant["id"]})] {
        let error = shop.denied(&idle.invokes(read(more)), 403, "PERMISSION_DENIED");
        assert_eq!(error["required_permission"], "tools.invoke");
    }
    // To act for an agent is no permission to call.
    let watcher = world.agent("watcher", &["agents.act_as"]);
    let error = shop.denied(&watcher.invokes(read(json!({"agent_id": "billing"}))), 403, "PERMISSION_DENIED");
    assert_eq!(error["required_permission"], "tools.invoke");
    assert_eq!(shop.upstream.count(), 0);
}

/// What a caller is told when it names this grant, without what differs in every answer.
fn told(actor: &Actor, grant: &str, tool: &str) -> (u16, String) {
    let reply = actor.invokes(json!({"grant_id": grant, "tool": tool, "parameters": {"charge_id": "ch_1"}}));
    let body = reply.json();
    let answer = reply.answer.text().replace(text(&body, "/invocation_id"), "INVOCATION");
    (reply.status(), answer.replace(grant, "GRANT"))
}

fn anothers_grant_looks_like_none(world: &World) {
    let shop = Shop::open(world);
    let theirs = shop.grant(json!({"delegatable": true}));
    let ended = shop.grant(json!({}));
    shop.admin.delete(&format!("/api/v1/grants/{}", id(&ended))).ok();
    let delegated = shop.admin.delegates(&theirs, "worker", json!({}));
    let stranger = world.agent("stranger", &["tools.invoke"]);
    let none = told(&stranger, UNKNOWN, "payments.charges.read");
    assert_eq!(none.0, 404);
    assert!(none.1.contains("GRANT_NOT_FOUND"), "{}", none.1);
    for hidden in [id(&theirs), id(&ended), id(&delegated)] {
        for tool in ["payments.charges.read", "charges.read", "payments", "nothing"] {
            assert_eq!(told(&stranger, &hidden, tool), told(&stranger, UNKNOWN, tool));
        }
        assert_eq!(told(&stranger, &hidden, "payments.charges.read"), none);
    }
    // Not even whoever passed it on uses what it passed on.
    assert_eq!(told(&shop.agent, &id(&delegated), "payments.charges.read").0, 404);
    // A tool of a service that it holds nothing of, and one that nobody ever heard of.
    let ask = |tool: &str| stranger.invokes(json!({"tool": tool})).refused(404, "TOOL_NOT_FOUND");
    let (hidden, unknown) = (ask("payments.charges.read"), ask("unheard-of.charges.read"));
    let message = |error: &Value| text(error, "/message").replace("unheard-of", "payments");
    assert_eq!(message(&hidden), message(&unknown));
    // A word that is no id names no grant either.
    stranger.invokes(read(json!({"grant_id": "grant_1"}))).refused(404, "GRANT_NOT_FOUND");
    assert_eq!(shop.upstream.count(), 0);
}

fn another_tenant_sees_and_uses_nothing(world: &World) {
    let shop = Shop::open(world);
    let grant = shop.grant(json!({}));
    let called = shop.read(json!({})).ok();
    let acme = world.tenant("acme");
    let namesake = acme.registers("billing", &["tools.invoke"]);
    for actor in [&namesake, &acme] {
        actor.invokes(read(json!({"grant_id": grant["id"]}))).refused(404, "GRANT_NOT_FOUND");
        actor.invokes(read(json!({}))).refused(404, "TOOL_NOT_FOUND");
        assert_eq!(actor.get("/api/v1/tools").ok()["services"], json!([]));
        let path = format!("/api/v1/invocations/{}", text(&called, "/invocation_id"));
        actor.get(&path).refused(404, "INVOCATION_NOT_FOUND");
    }
    assert_eq!(shop.upstream.count(), 1);
}

fn a_key_that_ended_calls_nothing(world: &World) {
    let shop = Shop::open(world);
    shop.grant(json!({}));
    shop.read(json!({})).ok();
    let keys = shop.admin.get("/api/v1/agents/billing/keys").ok();
    shop.admin.delete(&format!("/api/v1/keys/{}", text(&keys, "/keys/0/id"))).ok();
    shop.read(json!({})).refused(401, "KEY_REVOKED");
    assert_eq!(shop.upstream.count(), 1);
}
