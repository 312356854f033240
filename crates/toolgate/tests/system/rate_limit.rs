//! The limit on the requests of one client, of whatever kind: `server.rate_limit`.

use std::net::IpAddr;

use serde_json::json;
use toolgate_testkit::gate_process::GateSetup;

use crate::calls::shop::{Shop, read};
use crate::world::{Reply, World, ids, send_from, setup, unused_source};

/// So slow that no token comes back during a test.
const PER_SECONDS: &str = "86400";

fn limited(burst: u32) -> GateSetup {
    setup()
        .reaching_loopback()
        .configuration(&format!("[server.rate_limit]\nrequests = {burst}\nper_seconds = {PER_SECONDS}\n"))
}

#[test]
fn a_limited_key_leaves_no_record_and_holds_nobody_else_up() {
    let world = World::of(&limited(60), None);
    let shop = Shop::open(&world);
    shop.grant(json!({}));
    let other = world.agent("other", &["tools.invoke"]);
    let mut calls = 0;
    let refused = loop {
        let reply = shop.agent.invokes(read(json!({})));
        if reply.status() != 200 {
            break reply;
        }
        calls += 1;
    };
    assert_eq!(calls, 60, "the burst, exactly");
    let error = refused.refused(429, "REQUEST_RATE_LIMITED");
    assert_eq!((&error["scope"], error.get("stage")), (&json!("key"), None), "{error}");
    assert_eq!(refused.json().get("invocation_id"), None);
    let seconds: u64 = refused.answer.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=86_400).contains(&seconds), "{seconds}");
    assert_eq!(error["retry_after_seconds"], seconds);
    shop.agent.get("/api/v1/whoami").refused(429, "REQUEST_RATE_LIMITED");

    other.get("/api/v1/whoami").ok();
    assert_eq!(shop.upstream.count(), 60);
    let records = shop.admin.get("/api/v1/invocations?limit=1000").ok();
    assert_eq!(ids(&records["invocations"]).len(), 60, "what is refused here was never a call");
    let counted = shop.admin.get("/metrics").answer.text();
    assert!(counted.contains("toolgate_http_requests_limited_total{scope=\"key\"} 2"), "{counted}");
}

#[test]
fn what_has_no_key_counts_by_address_and_probes_never_do() {
    let world = World::of(&limited(2), None);
    let ask = |source: IpAddr, path: &str, headers: &[(&str, &str)]| -> Reply {
        send_from(source, world.gate.address(), "GET", path, headers)
    };
    let (here, elsewhere) = (unused_source(), unused_source());
    ask(here, "/.well-known/openwop", &[]).ok();
    ask(here, "/openapi.json", &[]).ok();
    let discovery = ask(here, "/.well-known/openwop", &[]).expect(429);
    assert_eq!((&discovery["error"], &discovery["details"]["scope"]), (&json!("rate_limited"), &json!("global")));
    let error = ask(here, "/api/v1/whoami", &[]).refused(429, "REQUEST_RATE_LIMITED");
    assert_eq!(error["scope"], "address");
    for path in ["/healthz", "/readyz", "/metrics"] {
        for _ in 0..5 {
            assert_eq!(ask(here, path, &[]).status(), 200, "{path}");
        }
    }
    ask(elsewhere, "/.well-known/openwop", &[]).ok();
    // Its first request on this gate, from an address without tokens.
    let key = format!("Bearer {}", world.gate.token());
    ask(here, "/api/v1/whoami", &[("Authorization", &key)]).ok();
    ask(here, "/v1/tools", &[("Authorization", &key)]).ok();
    let limited = ask(elsewhere, "/v1/tools", &[("Authorization", &key)]).expect(429);
    assert_eq!((&limited["error"], &limited["details"]["scope"]), (&json!("rate_limited"), &json!("key")));
}

#[test]
fn invented_keys_share_what_their_address_has() {
    let world = World::of(&limited(3), None);
    let source = unused_source();
    let statuses: Vec<u16> = (0..6)
        .map(|number| {
            let key = format!("invented-{number}");
            send_from(source, world.gate.address(), "GET", "/.well-known/openwop", &[("X-API-Key", &key)]).status()
        })
        .collect();
    assert_eq!(statuses, [200, 200, 200, 429, 429, 429]);
}
