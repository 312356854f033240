//! Mounted servers as agents see them: tools with their results as they are, and resources.

use serde_json::{Value, json};
use toolgate_testkit::mcp_server::McpServer;

use crate::world::{Actor, World, id, merged, on_both_engines, text};

on_both_engines! {
    the_result_of_a_mounted_server_is_returned_as_it_is,
    resources_are_forwarded_under_grants,
    a_resource_is_read_by_its_own_uri_where_one_mount_can_have_it,
    prompts_have_aliases_like_tools,
}

/// Mounts a server, accepts all of it, and makes a credential for it; returns the credential.
pub(crate) fn mount(admin: &Actor, name: &str, server: &McpServer) -> String {
    mount_with(admin, name, server, json!({}))
}

/// The same, with these members of the credential.
pub(crate) fn mount_with(admin: &Actor, name: &str, server: &McpServer, more: Value) -> String {
    let vault = admin.vault();
    admin.post("/api/v1/mounts", &json!({"name": name, "url": server.url(), "vault_id": vault})).created();
    let review = admin.get(&format!("/api/v1/mounts/{name}/review")).ok();
    let tools = review["tools"].as_array().unwrap().iter();
    let tools: serde_json::Map<String, Value> =
        tools.map(|tool| (text(tool, "/upstream").to_owned(), tool["hash"].clone())).collect();
    let accepted = json!({"server": review["server"]["hash"], "tools": tools});
    admin.post(&format!("/api/v1/mounts/{name}/accept"), &accepted).ok();
    let body = json!({
        "service": name, "label": name, "auth_type": "bearer_token", "metadata": {},
        "scopes_available": ["echo", "fail", "whoami", "resources.read", "prompts.read"], "material": {"token": "sk_live_of_the_mount"},
    });
    let body = merged(body, more);
    id(&admin.post(&format!("/api/v1/vaults/{vault}/credentials"), &body).created())
}

fn the_result_of_a_mounted_server_is_returned_as_it_is(world: &World) {
    let (admin, agent) = (world.admin(), world.agent("agent", &["tools.invoke"]));
    let server = McpServer::start(true, false);
    let credential = mount(&admin, "mounted", &server);
    admin.grants(&credential, "agent", json!({"scopes": ["echo", "fail", "whoami", "resources.read"]}));
    let listed = agent.mcp("tools/list", json!({})).rpc();
    assert_eq!(agent.mcp_tools(), ["mounted_echo", "mounted_fail", "mounted_whoami"], "the others are no tools");
    assert_eq!(listed["tools"][0]["outputSchema"]["required"], json!(["text"]));
    let result = agent.mcp_call("mounted_echo", json!({"text": "hello"}));
    assert_eq!(result["structuredContent"], json!({"text": "hello"}));
    assert_eq!((&result["custom"], &result["resultType"]), (&json!([1, null]), &json!("complete")));
    let failed = agent.mcp_call("mounted_fail", json!({}));
    assert_eq!((&failed["isError"], text(&failed, "/content/0/text")), (&json!(true), "it went wrong"));
    assert_eq!(failed["_meta"]["toolgate/code"], "SERVICE_ERROR");
    let said = agent.mcp_call("mounted_whoami", json!({}));
    assert!(said["_meta"]["target"].is_string() && said["_meta"]["toolgate/invocation_id"].is_string(), "{said}");
}

fn resources_are_forwarded_under_grants(world: &World) {
    let (admin, agent) = (world.admin(), world.agent("agent", &["tools.invoke"]));
    let (first, second) = (McpServer::start(true, false), McpServer::start(true, true));
    for (service, server) in [("alpha", &first), ("beta", &second)] {
        let credential = mount(&admin, service, server);
        admin.grants(&credential, "agent", json!({"scopes": ["resources.read"]}));
    }
    let mut uris: Vec<String> = Vec::new();
    let mut cursor = json!(null);
    loop {
        let page = agent.mcp("resources/list", json!({"cursor": cursor})).rpc();
        assert_eq!((&page["cacheScope"], page["resources"].as_array().unwrap().len()), (&json!("private"), 1));
        uris.extend(page["resources"].as_array().unwrap().iter().map(|one| text(one, "/uri").to_owned()));
        match page.get("nextCursor") {
            Some(next) => cursor = next.clone(),
            None => break,
        }
    }
    let expected = [
        "toolgate:alpha:test://one",
        "toolgate:alpha:test://two",
        "toolgate:beta:test://one",
        "toolgate:beta:test://two",
    ];
    assert_eq!(uris, expected);
    for method in ["resources/list", "resources/templates/list", "prompts/list"] {
        for forged in ["", "../", "x", "x\n1", "\n1", "gamma"] {
            agent.mcp(method, json!({"cursor": forged})).rpc_error(400, -32602);
        }
    }
    let read = agent.mcp("resources/read", json!({"uri": "toolgate:beta:test://two"})).rpc();
    assert_eq!(read["contents"], json!([{"uri": "toolgate:beta:test://two", "text": "resource"}]));
    assert_eq!(second.received("resources/read")[0]["params"]["uri"], "test://two");
    let templates = agent.mcp("resources/templates/list", json!({})).rpc();
    assert_eq!(templates["resourceTemplates"][0]["uriTemplate"], "toolgate:alpha:test://{id}");

    let missing = agent.mcp("resources/read", json!({"uri": "toolgate:gamma:test://one"})).rpc_error(400, -32602);
    assert_eq!(missing["error"]["data"]["uri"], "toolgate:gamma:test://one");
    let other = world.agent("other", &["tools.invoke"]);
    assert_eq!(other.mcp("resources/list", json!({})).rpc()["resources"], json!([]));
    other.mcp("resources/read", json!({"uri": "toolgate:beta:test://two"})).rpc_error(400, -32602);
    let calls = admin.get("/api/v1/invocations?agent_id=agent&limit=100").ok();
    let tools: Vec<&str> = calls["invocations"].as_array().unwrap().iter().map(|call| text(call, "/tool")).collect();
    assert!(tools.contains(&"mcp.resources.read"), "all of it is logged: {tools:?}");
}

fn a_resource_is_read_by_its_own_uri_where_one_mount_can_have_it(world: &World) {
    let (admin, agent) = (world.admin(), world.agent("agent", &["tools.invoke"]));
    let (first, second) = (McpServer::start(true, false), McpServer::start(true, false));
    first.script().resources = vec!["test://static-text".to_owned()];
    second.script().resources = vec!["test://own".to_owned(), "test://two".to_owned()];
    let read = |uri: &str| agent.mcp("resources/read", json!({"uri": uri}));
    read("test://static-text").rpc_error(400, -32602);
    let credential = mount(&admin, "alpha", &first);
    admin.grants(&credential, "agent", json!({"scopes": ["resources.read"]}));
    // The one mount with resources is asked for whatever is read.
    let found = read("test://static-text").rpc();
    assert_eq!(found["contents"], json!([{"uri": "test://static-text", "text": "resource"}]), "as it was asked for");
    assert_eq!(read("test://anything").rpc()["contents"][0]["uri"], "test://anything");
    let missing = read("test://missing").rpc_error(400, -32602);
    assert_eq!(missing["error"]["data"], json!({"uri": "test://missing"}));
    // A mount that the agent has no grant for changes nothing.
    let credential = mount(&admin, "beta", &second);
    assert_eq!(read("test://anything").rpc()["contents"][0]["uri"], "test://anything");
    admin.grants(&credential, "agent", json!({"scopes": ["resources.read"]}));
    // Among several, the one that lists it.
    read("test://static-text").rpc();
    read("test://two").rpc();
    assert_eq!(second.received("resources/read").len(), 1);
    // Both have a template for it: nobody is guessed.
    let refused = read("test://anything").rpc_error(400, -32602);
    assert_eq!(refused["error"]["data"]["services"], json!(["alpha", "beta"]));
    assert!(text(&refused, "/error/message").contains("toolgate:SERVICE:URI"), "{refused}");
    // A server cannot take over a resource by listing it as well.
    second.script().resources.push("test://static-text".to_owned());
    read("test://static-text").rpc_error(400, -32602);
    let qualified = read("toolgate:alpha:test://static-text").rpc();
    assert_eq!(qualified["contents"][0]["uri"], "toolgate:alpha:test://static-text");
    assert_eq!(second.received("resources/read").len(), 1);
}

fn prompts_have_aliases_like_tools(world: &World) {
    let (admin, agent) = (world.admin(), world.agent("agent", &["tools.invoke"]));
    let server = McpServer::start(true, false);
    server.script().prompts = vec!["simple_prompt".to_owned(), "odd/name of it".to_owned()];
    let credential = mount(&admin, "test", &server);
    admin.grants(&credential, "agent", json!({"scopes": ["prompts.read"]}));
    let listed = agent.mcp("prompts/list", json!({})).rpc();
    let names: Vec<&str> = listed["prompts"].as_array().unwrap().iter().map(|one| text(one, "/name")).collect();
    let &[simple, odd] = names.as_slice() else { panic!("{listed}") };
    assert_eq!(simple, "test_simple_prompt");
    assert!(odd.starts_with("test_odd_name_of_it-") && odd.len() <= 64, "{odd}");
    let said = |name: &str| {
        let got = agent.mcp("prompts/get", json!({"name": name, "arguments": {"a": "b"}})).rpc();
        text(&got, "/messages/0/content/text").to_owned()
    };
    assert_eq!(said(simple), "\"simple_prompt\" {\"a\":\"b\"}");
    assert_eq!(said(odd), "\"odd/name of it\" {\"a\":\"b\"}");
    assert_eq!(said("test/odd/name of it"), said(odd), "as prompts were named before");
    let reference = json!({"type": "ref/prompt", "name": simple});
    let argument = json!({"name": "a", "value": "b"});
    let completed = agent.mcp("completion/complete", json!({"ref": reference, "argument": argument})).rpc();
    assert_eq!(completed["completion"]["values"][0], "simple_prompt");
    for unknown in ["gamma/greet", "gamma_greet", "greet", "test_odd_name_of_it-000000000000"] {
        agent.mcp("prompts/get", json!({"name": unknown})).rpc_error(400, -32602);
    }
    let other = world.agent("other", &["tools.invoke"]);
    assert_eq!(other.mcp("prompts/list", json!({})).rpc()["prompts"], json!([]));
    other.mcp("prompts/get", json!({"name": simple})).rpc_error(400, -32602);
}
