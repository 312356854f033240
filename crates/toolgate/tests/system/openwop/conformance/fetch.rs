//! The scenarios about the guarded fetch. What the suite fetches from the public network is fetched from loopback, which
//! the operator of this host allows.

use serde_json::{Value, json};

use super::{Checks, Host};

const METADATA: &str = "http://169.254.169.254/latest/meta-data/";

pub(super) fn client_shape(host: &Host, checks: &Checks) {
    let block = &host.discovery()["httpClient"];
    checks.same(&block["supported"], &json!(true), "advertised");
    checks.same(&block["ssrfGuard"], &json!(true), "never without");
    checks.holds(block["maxResponseBodyBytes"].as_u64().is_some_and(|bytes| bytes > 0), "a limit");
    checks.holds(block["requestTimeoutMs"].as_u64().is_some_and(|time| time > 0), "another");
    checks.holds(block["methods"].is_array(), "methods");
    checks.same(&block["safeFetch"], &json!({"supported": true}), "and offered");
}

pub(super) fn behaviour(host: &Host, checks: &Checks) {
    let public = format!("{}/v1/balance", host.shop.upstream.url());
    let before = host.shop.upstream.connections();
    for (body, blocked) in [
        (json!({"url": METADATA}), "ssrf"),
        (json!({"url": "http://127.0.0.2/"}), "ssrf"),
        (json!({"url": "http://[::1]/"}), "ssrf"),
        (json!({"url": "file:///etc/passwd"}), "ssrf"),
        (json!({"url": public, "simulateRebindTo": "169.254.169.254"}), "ssrf"),
        (json!({"url": public, "simulateRebindTo": "fd00::1"}), "ssrf"),
        (json!({"url": public, "init": {"headers": {"Connection": "upgrade"}}}), "upgrade"),
        (json!({"url": public, "init": {"headers": {"Connection": "Upgrade", "Upgrade": "websocket"}}}), "upgrade"),
    ] {
        let answer = host.seam("http/safe-fetch", &body);
        checks.same((&answer["outcome"], &answer["blocked"]), (&json!("blocked"), &json!(blocked)), &body.to_string());
        checks.same(answer.get("status"), None, "nothing came back");
        pair(checks, &answer["toolCalled"], &answer["toolReturned"], false);
    }
    checks.same(host.shop.upstream.connections(), before, "nothing was connected to");
    let wrong = host.seam("http/safe-fetch", &json!({"url": public, "init": {"method": "TRACE"}}));
    checks.same(&wrong["outcome"], &json!("error"), "what is wrong in itself was not blocked");
    checks.same(wrong.get("blocked"), None, "and is not said to be");

    let answer = host.seam("http/safe-fetch", &json!({"url": public, "init": {"headers": {"X-A": "1"}}}));
    checks.same((&answer["outcome"], &answer["status"]), (&json!("fetched"), &json!(401)), "whatever it says");
    pair(checks, &answer["toolCalled"], &answer["toolReturned"], true);
    checks.same(host.shop.upstream.connections(), before + 1, "fetched");
}

pub(super) fn live_audit(host: &Host, checks: &Checks) {
    let public = format!("{}/v1/balance", host.shop.upstream.url());
    for (url, outcome) in [(METADATA, "blocked"), (public.as_str(), "fetched")] {
        let answer = host.seam("http/safe-fetch-run", &json!({"url": url}));
        checks.same(&answer["outcome"], &json!(outcome), url);
        let events = host.events(answer["runId"].as_str().unwrap());
        let [called, returned] = events.as_slice() else { panic!("a pair: {events:?}") };
        checks.same(&called["type"], &json!("agent.toolCalled"), "first");
        checks.same(&returned["type"], &json!("agent.toolReturned"), "then");
        checks.same(&returned["causationId"], &called["eventId"], "by cause");
        pair(checks, &called["payload"], &returned["payload"], outcome == "fetched");
    }
}

fn pair(checks: &Checks, called: &Value, returned: &Value, sent: bool) {
    checks.same((&called["transport"], &called["toolName"]), (&json!("http"), &json!("http.fetch")), "how, and what");
    checks.same(&called["callId"], &returned["callId"], "a pair");
    checks.same(&returned["status"], &json!(if sent { "ok" } else { "error" }), "how it went");
    checks.same(returned.get("durationMs").is_some(), sent, "only what was sent took time");
    checks.same(returned.get("error").is_some(), !sent, "and what was not says why");
    for payload in [called, returned] {
        checks.holds(!payload.to_string().contains("://"), "content-free");
    }
}
