//! Discovery, keys, errors, and who may do what.

use serde_json::{Value, json};

use super::{Checks, Host};
use crate::world::{names, send_from, unused_source};

pub(super) fn document(host: &Host, checks: &Checks) {
    let reply = host.stranger("GET", "/.well-known/openwop");
    checks.same(reply.status(), 200, "without a key");
    checks.same(reply.answer.header("content-type"), Some("application/json"), "JSON");
    checks.holds(reply.answer.header("cache-control").is_some(), "cacheable");
    let document = reply.json();
    let version: Vec<&str> = document["protocolVersion"].as_str().unwrap().split('.').collect();
    checks.holds(version.len() == 2 && version.iter().all(|part| part.parse::<u32>().is_ok()), "major and minor");
    let envelopes = document["supportedEnvelopes"].as_array().unwrap();
    checks.holds(envelopes.iter().all(Value::is_string), "texts");
    let versions = document["schemaVersions"].as_object().unwrap();
    checks.holds(versions.values().all(Value::is_u64), "whole numbers");
    let limits = document["limits"].as_object().unwrap();
    for required in ["clarificationRounds", "schemaRounds", "envelopesPerTurn"] {
        checks.holds(limits[required].is_u64(), required);
    }
    let optional =
        ["maxNodeExecutions", "maxRunDurationMs", "maxLoopIterations", "maxBudgetTokens", "maxRequestBodyBytes"];
    for (name, value) in limits {
        checks.holds(value.is_u64(), name);
        let known = optional.contains(&name.as_str()) || name.ends_with("Rounds") || name == "envelopesPerTurn";
        checks.holds(known, &format!("{name} is a limit of the protocol"));
    }
    for wrapper in ["capabilities", "host"] {
        checks.same(document.get(wrapper), None, "blocks stand at the root");
    }
    let tag = reply.answer.header("etag").unwrap();
    let headers = [("If-None-Match", tag)];
    let again = send_from(unused_source(), host.world.gate.address(), "GET", "/.well-known/openwop", &headers);
    checks.same(again.status(), 304, "the tag is confirmed");

    let described = host.stranger("GET", "/v1/openapi.json").ok();
    checks.holds(described["openapi"].as_str().unwrap().starts_with("3.1"), "OpenAPI");
}

pub(super) fn keys(host: &Host, checks: &Checks) {
    let from_anywhere =
        |headers: &[(&str, &str)]| send_from(unused_source(), host.world.gate.address(), "POST", "/v1/runs", headers);
    for headers in [&[][..], &[("Authorization", "Bearer wrong")], &[("Authorization", "Basic YTpi")]] {
        let reply = from_anywhere(headers);
        let body = checks.envelope(&reply, &[401]);
        checks.same(&body["error"], "unauthenticated", "never forbidden");
    }
    let forbidden = host.shop.agent.get("/v1/events?agent=suite");
    checks.envelope(&forbidden, &[403]);
}

pub(super) fn errors(host: &Host, checks: &Checks) {
    checks.envelope(&host.suite.post("/v1/runs", &json!({})), &[400]);
    checks.envelope(&host.suite.get("/v1/runs/no-such-run"), &[403, 404]);
    checks.envelope(&host.suite.get("/v1/no-such-route"), &[404]);
    checks.envelope(&host.suite.post("/v1/tools", &json!({})), &[405]);
}

pub(super) fn roles_shape(host: &Host, checks: &Checks) {
    let block = &host.discovery()["authorization"];
    checks.same(&block["supported"], &json!(true), "advertised");
    checks.same(&block["failClosed"], &json!(true), "the only value there is");
    for role in block["roles"].as_array().into_iter().flatten() {
        checks.same(names(role), ["role", "scopes"], "closed");
    }
}

pub(super) fn authorization_fails_closed(host: &Host, checks: &Checks) {
    let decide = |principal: &str, action: &str| {
        let body = json!({"principal": principal, "action": action, "resource": "run:1"});
        host.seam("authorization/decide", &body)
    };
    let denied = json!({"allowed": false});
    checks.same(&decide("conformance-unseeded-principal", "runs:cancel"), &denied, "who is not there may nothing");
    checks.same(&decide("suite", "runs:cancel"), &denied, "nor whoever does not hold it");
    checks.same(&decide("suite", "not a scope"), &denied, "nor what cannot be evaluated");
    checks.same(decide("suite", "http:fetch"), json!({"allowed": true}), "and whoever holds it may");
}
