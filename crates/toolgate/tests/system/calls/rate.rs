//! `max_invocations_per_hour`: exact, however many call at once, and not forgotten by a restart.

use serde_json::{Value, json};

use super::shop::{Shop, read};
use crate::world::{World, on_both_engines};

on_both_engines! {
    the_limit_is_exact_and_the_refusal_says_when_to_come_back,
    a_limit_of_nothing_admits_nothing,
    the_limits_of_the_whole_lineage_count,
    concurrent_calls_do_not_overshoot,
    what_was_refused_uses_nothing_up,
    what_failed_at_the_service_was_a_call,
}

fn limited(shop: &Shop, limit: u64) -> Value {
    shop.grant(json!({"constraints": {"max_invocations_per_hour": limit}}))
}

fn the_limit_is_exact_and_the_refusal_says_when_to_come_back(world: &World) {
    let shop = Shop::open(world);
    let grant = limited(&shop, 3);
    for _ in 0..3 {
        shop.read(json!({})).ok();
    }
    for _ in 0..2 {
        let reply = shop.read(json!({}));
        let error = shop.denied(&reply, 429, "GRANT_RATE_LIMITED");
        assert_eq!((&error["grant_id"], &error["max_invocations_per_hour"]), (&grant["id"], &json!(3)));
        assert_eq!(error["stage"], "admit");
        let seconds = error["retry_after_seconds"].as_u64().unwrap();
        assert!((3000..=3600).contains(&seconds), "{error}");
        assert_eq!(reply.answer.header("retry-after"), Some(seconds.to_string().as_str()));
    }
    assert_eq!(shop.upstream.count(), 3);
}

fn a_limit_of_nothing_admits_nothing(world: &World) {
    let shop = Shop::open(world);
    limited(&shop, 0);
    let reply = shop.read(json!({}));
    let error = shop.denied(&reply, 429, "GRANT_RATE_LIMITED");
    assert_eq!(error.get("retry_after_seconds"), None, "there is no time to come back at");
    assert_eq!(reply.answer.header("retry-after"), None);
    assert_eq!(shop.upstream.count(), 0);
}

fn the_limits_of_the_whole_lineage_count(world: &World) {
    let shop = Shop::open(world);
    let limit = |count: u64| json!({"max_invocations_per_hour": count});
    let source = shop.grant_to("coordinator", json!({"delegatable": true, "constraints": limit(3)}));
    let delegated: Vec<(Value, _)> = ["one", "two"]
        .map(|agent| (shop.admin.delegates(&source, agent, json!({"constraints": limit(2)})), agent))
        .map(|(grant, agent)| (grant, world.agent(agent, &["tools.invoke"])))
        .into();
    let call = |number: usize| delegated[number].1.invokes(read(json!({})));
    call(0).ok();
    call(0).ok();
    let error = shop.denied(&call(0), 429, "GRANT_RATE_LIMITED");
    assert_eq!(error["grant_id"], delegated[0].0["id"], "its own limit");
    call(1).ok();
    let error = shop.denied(&call(1), 429, "GRANT_RATE_LIMITED");
    assert_eq!(error["grant_id"], source["id"], "the limit above, which both share");
    assert_eq!(shop.upstream.count(), 3);
}

fn concurrent_calls_do_not_overshoot(world: &World) {
    let shop = Shop::open(world);
    limited(&shop, 2);
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..40).map(|_| scope.spawn(|| shop.read(json!({})).status())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 2, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 429).count(), 38, "{statuses:?}");
    assert_eq!(shop.upstream.count(), 2);
}

fn what_was_refused_uses_nothing_up(world: &World) {
    let shop = Shop::open(world);
    let rules = json!({"max_invocations_per_hour": 1, "allowed_parameters": {"charge_id": ["ch_7"]}});
    shop.grant(json!({"constraints": rules}));
    shop.denied(&shop.read(json!({"parameters": {}})), 400, "PARAMETERS_INVALID");
    shop.denied(&shop.read(json!({"parameters": {"charge_id": "ch_1"}})), 403, "GRANT_PARAMETER_DENIED");
    shop.denied(&shop.call("payments.refunds.create", json!({"charge": "c"})), 403, "GRANT_SCOPE_INSUFFICIENT");
    shop.read(json!({})).ok();
    shop.denied(&shop.read(json!({})), 429, "GRANT_RATE_LIMITED");
}

fn what_failed_at_the_service_was_a_call(world: &World) {
    let shop = Shop::answering(world, |_| toolgate_testkit::upstream::Reply::text(500, "no"));
    limited(&shop, 1);
    shop.read(json!({})).expect(502);
    shop.denied(&shop.read(json!({})), 429, "GRANT_RATE_LIMITED");
}

#[test]
fn a_restart_forgets_no_call() {
    let setup = crate::world::setup().reaching_loopback();
    let world = World::of(&setup, None);
    let shop = Shop::open(&world);
    limited(&shop, 2);
    shop.read(json!({})).ok();
    let key = shop.agent.key.clone();
    world.stop();
    let world = World::of(&setup, None);
    let agent = world.actor("billing", &key);
    agent.invokes(read(json!({}))).ok();
    agent.invokes(read(json!({}))).refused(429, "GRANT_RATE_LIMITED");
}
