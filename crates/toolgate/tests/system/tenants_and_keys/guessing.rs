//! Guessing keys is slowed down by source address, without locking out those whose keys are known.

use crate::world::{Reply, World, on_both_engines, send_from, unused_source};

on_both_engines! {
    many_wrong_keys_close_an_address_but_not_a_known_key,
}

fn many_wrong_keys_close_an_address_but_not_a_known_key(world: &World) {
    let (attacker, elsewhere) = (unused_source(), unused_source());
    let agent = world.agent("one", &[]);
    let whoami = |source, key: &str| -> Reply {
        let authorization = format!("Bearer {key}");
        send_from(source, world.gate.address(), "GET", "/api/v1/whoami", &[("Authorization", &authorization)])
    };
    for _ in 0..60 {
        let none = send_from(attacker, world.gate.address(), "GET", "/api/v1/whoami", &[]);
        none.refused(401, "UNAUTHENTICATED");
    }
    let mut tries = 0;
    let closed = loop {
        let reply = whoami(attacker, &format!("a-guess-{tries}"));
        if reply.status() != 401 {
            break reply;
        }
        reply.refused(401, "UNAUTHENTICATED");
        tries += 1;
        assert!(tries < 100, "the address stays open");
    };
    assert!(tries >= 20, "after {tries} wrong keys it is too early");
    let error = closed.refused(429, "TOO_MANY_ATTEMPTS");
    let seconds: u64 = closed.answer.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&seconds));
    assert_eq!(error["retry_after_seconds"], seconds);

    // Known to be good: the administrator has used this key a moment ago.
    whoami(attacker, world.gate.token()).ok();
    // Not known yet: whether it is good is not told to this address.
    whoami(attacker, &agent.key).refused(429, "TOO_MANY_ATTEMPTS");
    whoami(elsewhere, "a-guess").refused(401, "UNAUTHENTICATED");
    whoami(elsewhere, &agent.key).ok();
    whoami(attacker, &agent.key).ok();
    let counted = send_from(attacker, world.gate.address(), "GET", "/metrics", &[]).answer.text();
    assert!(counted.contains("toolgate_refused_keys_total{code=\"TOO_MANY_ATTEMPTS\"} 2"), "{counted}");
}
