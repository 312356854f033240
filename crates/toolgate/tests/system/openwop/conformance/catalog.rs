//! The scenarios of RFC 0078 about descriptors and their projection to one principal.

use serde_json::{Value, json};
use toolgate_model::descriptor::ToolDescriptor;
use toolgate_model::schema::Schema;

use super::{Checks, Host};
use crate::world::merged;

pub(super) fn descriptor_shape(_: &Host, checks: &Checks) {
    let schema = Schema::compile(&ToolDescriptor::schema()).unwrap();
    let least = json!({"toolId": "mcp:fs.read", "source": "mcp", "safetyTier": "read"});
    checks.holds(schema.check(&least).is_ok(), "three members are enough");
    let exec = json!({"safetyTier": "exec"});
    checks.holds(schema.check(&merged(least.clone(), exec.clone())).is_err(), "exec is for host extensions");
    let host = merged(exec, json!({"toolId": "x-host-acme:run", "source": "host-extension"}));
    checks.holds(schema.check(&merged(least.clone(), host)).is_ok(), "as here");
    for more in [
        json!({"secret": "x"}),
        json!({"source": "mail"}),
        json!({"safetyTier": "safe"}),
        json!({"egress": "all"}),
        json!({"approval": "sometimes"}),
        json!({"replayPolicy": "none"}),
        json!({"costHint": "free"}),
        json!({"auth": {"scopes": ["a", "a"]}}),
        json!({"auth": {"token": "x"}}),
    ] {
        checks.holds(schema.check(&merged(least.clone(), more.clone())).is_err(), &format!("closed: {more}"));
    }
    for missing in ["toolId", "source", "safetyTier"] {
        let mut without = least.clone();
        without.as_object_mut().unwrap().remove(missing);
        checks.holds(schema.check(&without).is_err(), missing);
    }
}

pub(super) fn projection(host: &Host, checks: &Checks) {
    checks.same(&host.discovery()["toolCatalog"]["supported"], &json!(true), "advertised");
    checks.envelope(&host.stranger("GET", "/v1/tools"), &[401]);
    let tools = host.suite.get("/v1/tools").ok();
    let schema = Schema::compile(&ToolDescriptor::schema()).unwrap();
    let listed = tools.as_array().expect("a bare array");
    checks.same(listed.len(), 4, "three of the service, and the fetch");
    for tool in listed {
        checks.holds(schema.check(tool).is_ok(), &format!("{tool}"));
        checks.without_secrets(tool);
        let id = tool["toolId"].as_str().unwrap();
        checks.same(&host.suite.get(&format!("/v1/tools/{}", id.replace(':', "%3A"))).ok(), tool, "found by its id");
    }
    let ids: Vec<&str> = listed.iter().map(|tool| tool["toolId"].as_str().unwrap()).collect();
    checks.holds(ids.is_sorted(), "in order");
    checks.same(&host.suite.get("/v1/tools").ok(), &tools, "twice the same");

    let unknown = host.suite.get("/v1/tools/connector%3Anothing.here");
    checks.envelope(&unknown, &[404]);
    let foreign = host.suite.get(&format!("/v1/tools/{}", host.of_another.replace(':', "%3A")));
    checks.envelope(&foreign, &[404]);
    checks.same(&foreign.answer.body, &unknown.answer.body, "what is not for this principal is not there");
    checks.same(foreign.answer.header("www-authenticate"), None, "and no challenge says otherwise");
    let seen = host.shop.agent.get(&format!("/v1/tools/{}", host.of_another)).status();
    checks.same(seen, 200, "whoever may use it sees it");
}

pub(super) fn compact_projection(host: &Host, checks: &Checks) {
    checks.same(&host.discovery()["toolCatalog"]["compactView"], &json!(true), "advertised");
    let body = host.suite.get("/v1/tools?view=compact").ok();
    let compact = body["tools"].as_array().expect("an object with tools");
    let ids = |tools: &[Value]| -> Vec<Value> { tools.iter().map(|tool| tool["toolId"].clone()).collect() };
    let whole = host.suite.get("/v1/tools").ok();
    checks.same(ids(compact), ids(whole.as_array().unwrap()), "the same tools");
    for tool in compact {
        let known = ["toolId", "source", "safetyTier", "title", "description", "inputSchema"];
        checks.holds(tool.as_object().unwrap().keys().all(|name| known.contains(&name.as_str())), "only these");
        let schema = &tool["inputSchema"];
        checks.holds(schema["type"] == "object" && schema["properties"].is_object(), &format!("{tool}"));
        checks.holds(plain(schema), &format!("every provider understands it: {tool}"));
        let path = format!("/v1/tools/{}?view=compact", tool["toolId"].as_str().unwrap());
        checks.same(&host.suite.get(&path).ok(), tool, "found by its id");
    }
}

/// Whether a schema does without what not every provider understands.
fn plain(schema: &Value) -> bool {
    let hard = ["$ref", "oneOf", "allOf", "anyOf", "not", "patternProperties", "dependentSchemas"];
    match schema {
        Value::Object(members) => members.iter().all(|(name, value)| !hard.contains(&name.as_str()) && plain(value)),
        Value::Array(elements) => elements.iter().all(plain),
        _ => true,
    }
}
