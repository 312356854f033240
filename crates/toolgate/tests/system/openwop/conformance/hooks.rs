//! The six scenarios of RFC 0064.

use serde_json::{Value, json};
use toolgate_testkit::trail::shown;

use super::{Checks, Host};
use crate::world::merged;

/// Calls a tool of the conformance endpoint; returns its pair.
fn invoke(host: &Host, checks: &Checks, principal: &str, tool: &str, more: Value) -> (Value, Value) {
    let body = merged(json!({"principal": principal, "toolName": tool}), more);
    let answer = host.seam("toolhooks/invoke", &body);
    let (called, returned) = (answer["toolCalled"].clone(), answer["toolReturned"].clone());
    for member in ["agentId", "toolName", "callId"] {
        checks.holds(called[member].is_string(), member);
        checks.same(&called[member], &returned[member], "a pair");
    }
    checks.same(&called["principal"], &json!(principal), "under whose authority");
    checks.same(&called["transport"], &json!("native"), "nothing leaves the gate");
    // The response of the endpoint is what the log says, and no second account of it.
    let logged = host.shop.admin.events(&format!("&run_id={}", called["callId"].as_str().unwrap()));
    let logged: Vec<Value> = logged.iter().map(shown).collect();
    let payload = |kind: &str| logged.iter().find(|event| event["type"] == kind).map(|event| event["payload"].clone());
    checks.same(payload("agent.toolCalled"), Some(called.clone()), "as it is logged");
    checks.same(payload("agent.toolReturned"), Some(returned.clone()), "as it is logged");
    (called, returned)
}

pub(super) fn shape(host: &Host, checks: &Checks) {
    let block = &host.discovery()["toolHooks"];
    for flag in ["supported", "prePostEvents", "perToolAuthorization", "perToolRateLimit"] {
        checks.same(&block[flag], &json!(true), flag);
    }
}

pub(super) fn content_free(host: &Host, checks: &Checks) {
    let args = json!({"args": {"q": "a question that nobody else may read"}});
    let (called, returned) = invoke(host, checks, "core.system", "web.search", args);
    let hash = called["argsHash"].as_str().unwrap();
    let is_hexadecimal = |letter: char| letter.is_ascii_digit() || ('a'..='f').contains(&letter);
    checks.holds(hash.len() == 64 && hash.chars().all(is_hexadecimal), hash);
    checks.same(&returned["status"], &json!("ok"), "it was made");
    checks.holds(returned["durationMs"].is_u64(), "and took its time");
    checks.same(&called["agentId"], &json!("core.system"), "for no agent");
    for payload in [&called, &returned] {
        checks.holds(payload.get("inputs").is_none() && payload.get("outcome").is_none(), "content-free");
        checks.holds(!payload.to_string().contains("nobody else"), "content-free");
    }
}

pub(super) fn authorization_fails_closed(host: &Host, checks: &Checks) {
    let scopes = json!({"requiredScopes": ["db:write"]});
    for principal in ["conformance-unprivileged", "suite"] {
        let (_, returned) = invoke(host, checks, principal, "db.delete", scopes.clone());
        checks.same(&returned["status"], &json!("forbidden"), "not held");
        checks.same(returned.get("durationMs"), None, "never started");
        checks.same(returned.get("error"), None, "the status says it");
    }
    let unevaluable = json!({"requiredScopes": ["http:fetch", "no scope at all"]});
    let (_, returned) = invoke(host, checks, "suite", "db.delete", unevaluable);
    checks.same(&returned["status"], &json!("forbidden"), "what cannot be evaluated is a no");
    let (_, returned) = invoke(host, checks, "suite", "db.delete", json!({"requiredScopes": ["http:fetch"]}));
    checks.same(&returned["status"], &json!("ok"), "and whoever holds them may");
}

pub(super) fn rate_limit(host: &Host, checks: &Checks) {
    let exhausted = json!({"simulateRateLimitExhausted": true});
    for _ in 0..2 {
        let (_, returned) = invoke(host, checks, "core.system", "web.search", exhausted.clone());
        checks.same(&returned["status"], &json!("rate_limited"), "the bucket is empty");
        checks.same(returned.get("durationMs"), None, "never started");
    }
    for (principal, tool) in [("core.system", "web.read"), ("suite", "web.search"), ("core.system", "web.search")] {
        let (_, returned) = invoke(host, checks, principal, tool, json!({}));
        checks.same(&returned["status"], &json!("ok"), "everything else goes on");
    }
}

pub(super) fn secret_redaction(host: &Host, checks: &Checks) {
    let canary = "sk-canary-rfc0064-2f9c1d7e55aa";
    let hashes: Vec<Value> = [canary, "sk-canary-rfc0064-another-one"]
        .into_iter()
        .map(|secret| {
            let args = json!({"args": {"q": "x", "apiKey": secret}});
            let body = merged(json!({"principal": "core.system", "toolName": "web.search"}), args);
            let answer = host.seam("toolhooks/invoke", &body);
            checks.holds(!answer.to_string().contains(secret), "it occurs nowhere");
            answer["toolCalled"]["argsHash"].clone()
        })
        .collect();
    checks.same(&hashes[0], &hashes[1], "it is not in what is hashed");
    let log = json!(host.shop.admin.events("")).to_string();
    checks.holds(!log.contains("sk-canary"), "nor anywhere in the log");
}

pub(super) fn failure_honesty(host: &Host, checks: &Checks) {
    let (_, returned) = invoke(host, checks, "core.system", "web.search", json!({"simulateToolError": true}));
    checks.holds(returned["error"]["code"].as_str().is_some_and(|code| !code.is_empty()), "a code");
    checks.holds(returned["error"]["message"].is_string(), "a sentence");
    checks.same(returned.get("outcome"), None, "no outcome beside an error");
    checks.same(&returned["status"], &json!("error"), "and so is the status");
    checks.holds(returned["durationMs"].is_u64(), "it ran");
}
