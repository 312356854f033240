//! Tools that a credential defines by its metadata (`base_url`, `endpoints`), the way of the protocol's reference: they
//! can be called without a registry entry and show up like any other.

use serde_json::{Value, json};
use toolgate_testkit::upstream::{Reply, Upstream};

use super::shop::{TOKEN, payments};
use crate::world::{Actor, World, id, on_both_engines};

on_both_engines! {
    endpoints_of_a_credential_can_be_called,
    a_scope_without_an_endpoint_is_posted_to_its_name,
    they_show_up_among_the_tools_without_a_schema_and_with_the_cautious_tier,
    a_registered_tool_of_the_same_name_comes_first,
    metadata_that_cannot_be_meant_is_refused_when_it_is_stored,
}

fn upstream() -> Upstream {
    Upstream::start(|request| {
        Reply::json(200, json!({"method": request.method, "target": request.target, "body": request.text()}))
    })
}

fn crm(admin: &Actor, metadata: Value) -> String {
    let body = json!({
        "service": "crm", "label": "crm", "auth_type": "api_key", "metadata": metadata,
        "scopes_available": ["contacts.search", "contacts.read", "contacts.add", "notes.add"],
        "material": {"api_key": TOKEN},
    });
    id(&admin.post(&format!("/api/v1/vaults/{}/credentials", admin.vault()), &body).created())
}

fn endpoints(upstream: &Upstream) -> Value {
    json!({
        "base_url": format!("{}/api", upstream.url()),
        "endpoints": {
            "contacts.search": {"path": "/v1/search", "method": "GET", "headers": {"X-Custom": "value"}},
            "contacts.read": {"path": "/v1/contacts/{id}", "method": "GET", "param_mapping": "path"},
            "contacts.add": {"path": "/v1/contacts", "method": "POST", "param_mapping": "body"},
        },
        "auth": {"location": "header", "header_name": "X-API-Key"},
    })
}

fn agent(world: &World, credential: &str) -> (Actor, Value) {
    let agent = world.agent("seller", &["tools.invoke"]);
    let scopes = json!({"scopes": ["contacts.search", "contacts.read", "contacts.add", "notes.add"]});
    let grant = world.admin().grants(credential, "seller", scopes);
    (agent, grant)
}

fn endpoints_of_a_credential_can_be_called(world: &World) {
    let upstream = upstream();
    let (agent, grant) = agent(world, &crm(&world.admin(), endpoints(&upstream)));
    let call = |tool: &str, parameters: Value| {
        let answer = agent.invokes(json!({"tool_name": tool, "agent_id": "seller", "parameters": parameters})).ok();
        assert_eq!(answer["grant_id"], grant["id"]);
        answer["result"].clone()
    };
    let found = call("crm.contacts.search", json!({"q": "a b&c", "limit": 2}));
    assert_eq!((&found["method"], &found["target"]), (&json!("GET"), &json!("/api/v1/search?limit=2&q=a+b%26c")));
    let read = call("crm.contacts.read", json!({"id": "c1"}));
    assert_eq!(read["target"], "/api/v1/contacts/c1");
    let added = call("contacts.add", json!({"name": "Ada"}));
    assert_eq!((&added["method"], &added["body"]), (&json!("POST"), &json!("{\"name\":\"Ada\"}")));
    let received = upstream.received();
    assert!(received.iter().all(|request| request.header("x-api-key") == Some(TOKEN)));
    assert_eq!(received[0].header("x-custom"), Some("value"));
}

fn a_scope_without_an_endpoint_is_posted_to_its_name(world: &World) {
    let upstream = upstream();
    let (agent, _) = agent(world, &crm(&world.admin(), endpoints(&upstream)));
    let answer = agent.invokes(json!({"tool": "crm.notes.add", "parameters": {"text": "hello"}})).ok();
    assert_eq!(answer["result"], json!({"method": "POST", "target": "/api/notes.add", "body": "{\"text\":\"hello\"}"}));
    let record = world.admin().get("/api/v1/invocations").ok()["invocations"][0].clone();
    assert_eq!((&record["service"], &record["tool"]), (&json!("crm"), &json!("notes.add")));
    assert_eq!((&record["version"], &record["cost"]["estimated_cost_usd"]), (&Value::Null, &Value::Null));
}

fn they_show_up_among_the_tools_without_a_schema_and_with_the_cautious_tier(world: &World) {
    let upstream = upstream();
    let (agent, grant) = agent(world, &crm(&world.admin(), endpoints(&upstream)));
    for viewer in [&agent, &world.admin()] {
        let services = viewer.get("/api/v1/tools/crm").ok()["services"].clone();
        assert_eq!((&services[0]["implicit"], &services[0]["version"]), (&json!(true), &Value::Null));
        let tools = services[0]["tools"].as_object().unwrap();
        let names: Vec<&String> = tools.keys().collect();
        assert_eq!(names, ["contacts.add", "contacts.read", "contacts.search", "notes.add"]);
        for (name, tool) in tools {
            assert_eq!((&tool["parameters"], &tool["scope"]), (&Value::Null, &json!(name)));
            assert_eq!((&tool["safety_tier"], &tool["idempotent"]), (&json!("write"), &json!(false)));
        }
        assert_eq!(viewer.get("/api/v1/tools").ok()["services"], services);
    }
    let granted = agent.get("/api/v1/tools/granted").ok()["tools"].clone();
    assert_eq!(granted.as_array().unwrap().len(), 4);
    assert_eq!((&granted[0]["name"], &granted[0]["grant_id"]), (&json!("crm.contacts.add"), &grant["id"]));
    world.agent("stranger", &["tools.invoke"]).get("/api/v1/tools/crm").refused(404, "SERVICE_NOT_FOUND");
}

fn a_registered_tool_of_the_same_name_comes_first(world: &World) {
    let upstream = upstream();
    let admin = world.admin();
    let (agent, _) = agent(world, &crm(&admin, endpoints(&upstream)));
    let mut registered = payments("1");
    registered["service"] = json!("crm");
    registered["tools"] = json!({"contacts.read": {
        "parameters": {"id": {"type": "string", "required": true, "pattern": "^c[0-9]+$"}},
        "http": {"method": "GET", "path": "/v9/contacts/{id}"}
    }});
    admin.post("/api/v1/services", &registered).created();
    let read = |id: &str| agent.invokes(json!({"tool": "crm.contacts.read", "parameters": {"id": id}}));
    assert_eq!(read("c1").ok()["result"]["target"], "/api/v9/contacts/c1", "the credential says where");
    read("x1").refused(400, "PARAMETERS_INVALID");
    // What the registry does not have is still there.
    agent.invokes(json!({"tool": "crm.notes.add", "parameters": {}})).ok();
    let services = agent.get("/api/v1/tools/crm").ok()["services"].clone();
    let shown: Vec<(&Value, usize)> = services
        .as_array()
        .unwrap()
        .iter()
        .map(|service| (&service["implicit"], service["tools"].as_object().unwrap().len()))
        .collect();
    assert_eq!(shown, [(&json!(true), 3), (&json!(false), 1)]);
}

fn metadata_that_cannot_be_meant_is_refused_when_it_is_stored(world: &World) {
    let admin = world.admin();
    let path = format!("/api/v1/vaults/{}/credentials", admin.vault());
    for (metadata, place) in [
        (json!({"base_url": "ftp://a.example"}), "metadata.base_url"),
        (json!({"base_url": "https://user:pw@a.example"}), "metadata.base_url"),
        (json!({"adapter": "carrier-pigeon"}), "metadata.adapter"),
        (json!({"endpoints": {"a": {"path": "/../x"}}}), "metadata.endpoints.a.path"),
        (json!({"endpoints": {"a": {"methods": "GET"}}}), "metadata.endpoints.a.methods"),
        (json!({"auth": {"header_name": "Host"}}), "metadata.auth.header_name"),
        (json!({"timeout_ms": "soon"}), "metadata.timeout_ms"),
    ] {
        let body = json!({"service": "crm", "label": "l", "metadata": metadata, "material": {"api_key": "k"}});
        let error = admin.post(&path, &body).refused(400, "INVALID_FIELD");
        assert_eq!(error["path"], place);
    }
}
