//! Idempotency keys: the same request again is answered and not carried out again, another request is a conflict, and a
//! key whose call never left is free.

use serde_json::{Value, json};
use toolgate_testkit::upstream::Reply as Answer;

use super::shop::{Shop, credential, read};
use crate::world::{Reply, World, on_both_engines, text};

on_both_engines! {
    the_same_request_again_gets_the_stored_answer,
    the_same_request_is_the_same_however_it_is_written,
    another_request_under_the_same_key_is_a_conflict,
    a_key_belongs_to_its_agent,
    a_failure_of_the_service_is_answered_again_too,
    a_key_whose_call_is_under_way_is_not_run_twice,
    many_calls_with_one_key_reach_the_service_once,
    a_call_that_was_never_sent_frees_its_key,
    a_refused_call_claims_no_key,
    a_replay_uses_no_rate_up_and_needs_the_authority_all_the_same,
}

fn charge(shop: &Shop, key: &str, more: Value) -> Reply {
    let mut parameters = json!({"amount": 5, "currency": "usd"});
    parameters.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let body = json!({"tool": "payments.charges.create", "parameters": parameters, "idempotency_key": key});
    shop.agent.invokes(body)
}

fn the_same_request_again_gets_the_stored_answer(world: &World) {
    let shop = Shop::open(world);
    shop.grant(json!({}));
    let reply = charge(&shop, "k1", json!({}));
    let first = reply.ok();
    assert_eq!((first.get("replayed"), reply.answer.header("idempotent-replayed")), (None, None));
    for _ in 0..3 {
        let reply = charge(&shop, "k1", json!({}));
        let mut again = reply.ok();
        assert_eq!(again.as_object_mut().unwrap().remove("replayed"), Some(json!(true)));
        assert_eq!(reply.answer.header("idempotent-replayed"), Some("true"));
        assert_eq!(again, first, "the very same answer");
    }
    assert_eq!(charge(&shop, "k2", json!({})).ok()["result"]["id"], "ch_2");
    assert_eq!(charge(&shop, "k1", json!({})).ok()["result"]["id"], "ch_1");
    assert_eq!(shop.upstream.count(), 2);
    let record = shop.record(text(&first, "/invocation_id"));
    assert_eq!(record["idempotency_key"], "k1");
    let of_key = shop.agent.get("/api/v1/invocations?idempotency_key=k1").ok();
    assert_eq!(of_key["invocations"].as_array().unwrap().len(), 1, "a replay is no call");
    assert_eq!(shop.events_of(text(&first, "/invocation_id")).len(), 1);
}

fn the_same_request_is_the_same_however_it_is_written(world: &World) {
    let shop = Shop::open(world);
    shop.grant(json!({}));
    charge(&shop, "k1", json!({"customer": "c"})).ok();
    let key = format!("Bearer {}", shop.agent.key);
    let headers = [("Authorization", key.as_str()), ("Content-Type", "application/json")];
    let body = "{ \"idempotency_key\": \"k1\", \"parameters\": {\"customer\": \"\\u0063\", \"currency\": \"usd\",\
                \"amount\": 5.0}, \"tool_name\": \"charges.create\", \"agent_id\": \"billing\"}";
    let reply = crate::world::send(world.gate.address(), "POST", "/api/v1/tools/invoke", &headers, body.as_bytes());
    assert_eq!(reply.ok()["replayed"], true);
    assert_eq!(shop.upstream.count(), 1);
}

fn another_request_under_the_same_key_is_a_conflict(world: &World) {
    let shop = Shop::open(world);
    let grant = shop.grant(json!({}));
    let first = charge(&shop, "k1", json!({})).ok();
    let named = json!({
        "tool": "payments.charges.create", "parameters": {"amount": 5, "currency": "usd"}, "idempotency_key": "k1",
        "grant_id": grant["id"],
    });
    let elsewhere = json!({
        "tool": "payments.charges.create", "parameters": {"amount": 5, "currency": "usd"}, "idempotency_key": "k1",
        "context": {"task_id": "t1"},
    });
    let others = [
        charge(&shop, "k1", json!({"amount": 6})),
        charge(&shop, "k1", json!({"customer": "c"})),
        shop.read(json!({"idempotency_key": "k1"})),
        shop.agent.invokes(named),
        shop.agent.invokes(elsewhere),
    ];
    for reply in &others {
        let error = shop.denied(reply, 409, "IDEMPOTENCY_CONFLICT");
        assert_eq!(error["invocation_id"], first["invocation_id"], "the call that has the key");
        assert_eq!(error["stage"], "admit");
    }
    assert_eq!(shop.upstream.count(), 1);
    assert_eq!(charge(&shop, "k1", json!({})).ok()["replayed"], true, "the first one keeps it");
}

fn a_key_belongs_to_its_agent(world: &World) {
    let shop = Shop::open(world);
    shop.grant(json!({}));
    shop.grant_to("other", json!({}));
    let other = world.agent("other", &["tools.invoke"]);
    let body = read(json!({"idempotency_key": "shared"}));
    let mine = shop.agent.invokes(body.clone()).ok();
    let theirs = other.invokes(body.clone()).ok();
    assert_eq!(theirs.get("replayed"), None);
    assert_ne!(mine["invocation_id"], theirs["invocation_id"]);
    // Whoever acts for an agent sends again what the agent sent.
    let mut acted = body;
    acted["agent_id"] = json!("billing");
    let again = shop.admin.invokes(acted).ok();
    assert_eq!((&again["replayed"], &again["invocation_id"]), (&json!(true), &mine["invocation_id"]));
    assert_eq!(shop.upstream.count(), 2);
}

fn a_failure_of_the_service_is_answered_again_too(world: &World) {
    let shop = Shop::answering(world, |_| Answer::json(402, json!({"error": "card declined"})));
    shop.grant(json!({}));
    let first = shop.failed(&charge(&shop, "k1", json!({})), 502, "SERVICE_ERROR");
    let again = charge(&shop, "k1", json!({})).expect(502);
    assert_eq!(again["replayed"], true);
    for name in ["invocation_id", "status", "error", "result", "timestamp"] {
        assert_eq!(again[name], first[name], "{name}");
    }
    assert_eq!(shop.upstream.count(), 1);
}

fn a_key_whose_call_is_under_way_is_not_run_twice(world: &World) {
    let shop = Shop::open(world);
    shop.grant(json!({}));
    shop.upstream.hold();
    std::thread::scope(|scope| {
        let first = scope.spawn(|| charge(&shop, "k1", json!({})).ok());
        shop.upstream.wait_for(1);
        let reply = charge(&shop, "k1", json!({}));
        let error = shop.denied(&reply, 409, "IDEMPOTENCY_IN_PROGRESS");
        assert_eq!(error["retry_after_seconds"], 1);
        assert_eq!(reply.answer.header("retry-after"), Some("1"));
        let running = shop.record(text(&error, "/invocation_id"));
        assert_eq!((&running["status"], &running["duration_ms"]), (&json!("running"), &Value::Null));
        shop.denied(&charge(&shop, "k1", json!({"amount": 9})), 409, "IDEMPOTENCY_CONFLICT");
        shop.upstream.release();
        let first = first.join().unwrap();
        assert_eq!(first["invocation_id"], running["id"]);
        assert_eq!(charge(&shop, "k1", json!({})).ok()["result"], first["result"]);
    });
    assert_eq!(shop.upstream.count(), 1);
}

fn many_calls_with_one_key_reach_the_service_once(world: &World) {
    let shop = Shop::open(world);
    shop.grant(json!({}));
    let replies: Vec<Reply> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..64).map(|_| scope.spawn(|| charge(&shop, "k1", json!({})))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let carried_out = |reply: &&Reply| reply.status() == 200 && reply.json().get("replayed").is_none();
    assert_eq!(replies.iter().filter(carried_out).count(), 1);
    for reply in replies.iter().filter(|reply| reply.status() != 200) {
        reply.refused(409, "IDEMPOTENCY_IN_PROGRESS");
    }
    assert_eq!(shop.upstream.count(), 1);
}

fn a_call_that_was_never_sent_frees_its_key(world: &World) {
    let shop = Shop::open(world);
    // A port that was free a moment ago, and where nobody listens.
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nobody = credential(&shop.admin, "payments", json!({"base_url": format!("http://{gone}")}));
    let unreachable = shop.admin.grants(&nobody, "billing", json!({}));
    let body = read(json!({"idempotency_key": "k1", "grant_id": unreachable["id"]}));
    let one = shop.failed(&shop.agent.invokes(body.clone()), 502, "PROXY_ERROR");
    let two = shop.failed(&shop.agent.invokes(body), 502, "PROXY_ERROR");
    assert_ne!(one["invocation_id"], two["invocation_id"], "tried again");
    assert_eq!(two.get("replayed"), None);
    // Free for anything else, too.
    shop.grant(json!({}));
    charge(&shop, "k1", json!({})).ok();
}

fn a_refused_call_claims_no_key(world: &World) {
    let shop = Shop::open(world);
    let constraints = json!({"max_invocations_per_hour": 1, "allowed_parameters": {"amount": {"max": 5}}});
    shop.grant(json!({"scopes": ["charges.create"], "constraints": constraints}));
    shop.denied(&charge(&shop, "k1", json!({"amount": 6})), 403, "GRANT_PARAMETER_DENIED");
    assert_eq!(charge(&shop, "k1", json!({})).ok().get("replayed"), None);
    shop.denied(&charge(&shop, "k2", json!({})), 429, "GRANT_RATE_LIMITED");
    shop.grant(json!({}));
    assert_eq!(charge(&shop, "k2", json!({"amount": 9})).ok().get("replayed"), None, "k2 was never taken");
}

fn a_replay_uses_no_rate_up_and_needs_the_authority_all_the_same(world: &World) {
    let shop = Shop::open(world);
    let grant = shop.grant(json!({"constraints": {"max_invocations_per_hour": 1}}));
    charge(&shop, "k1", json!({})).ok();
    assert_eq!(charge(&shop, "k1", json!({})).ok()["replayed"], true, "although the rate is used up");
    shop.admin.delete(&format!("/api/v1/grants/{}", text(&grant, "/id"))).ok();
    shop.denied(&charge(&shop, "k1", json!({})), 403, "GRANT_REVOKED");
}
