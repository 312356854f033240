//! Version 2026-07-28, in which each request stands alone.

use serde_json::{Value, json};

use super::{VERSION, meta, request};
use crate::calls::shop::Shop;
use crate::world::{Actor, World, id, merged, on_both_engines, text};

on_both_engines! {
    a_client_discovers_lists_and_calls,
    what_is_not_granted_is_not_listed_and_unknown,
    a_refusal_is_a_result_that_says_why_and_is_on_record,
    headers_and_body_must_agree,
    every_request_says_its_version_and_what_its_client_can_do,
    unknown_methods_and_notifications,
    a_tool_can_be_called_by_its_alias_over_http,
    pages_follow_each_other,
}

const READ: &str = "payments_charges__read";

fn a_client_discovers_lists_and_calls(world: &World) {
    let shop = Shop::open(world);
    shop.grant(json!({}));
    let found = shop.agent.mcp("server/discover", json!({})).rpc();
    assert_eq!(found["supportedVersions"][0], VERSION);
    assert_eq!(found["capabilities"]["tools"]["listChanged"], true);
    assert_eq!((&found["resultType"], &found["cacheScope"]), (&json!("complete"), &json!("private")));
    assert_eq!(found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "toolgate");

    let listed = shop.agent.mcp("tools/list", json!({})).rpc();
    assert_eq!((&listed["resultType"], &listed["cacheScope"]), (&json!("complete"), &json!("private")));
    assert!(listed["ttlMs"].is_u64() && listed.get("nextCursor").is_none());
    let names: Vec<&str> = listed["tools"].as_array().unwrap().iter().map(|tool| text(tool, "/name")).collect();
    assert_eq!(names, ["payments_anything", "payments_charges__create", READ]);
    let create = &listed["tools"][1];
    assert_eq!(create["inputSchema"]["required"], json!(["amount", "currency"]));
    assert_eq!(
        (&create["annotations"]["readOnlyHint"], &create["annotations"]["idempotentHint"]),
        (&json!(false), &json!(true))
    );
    assert_eq!(create.get("outputSchema"), None, "its results are not checked");

    let result = shop.agent.mcp_call(READ, json!({"charge_id": "ch_7"}));
    assert_eq!(result["resultType"], "complete");
    assert_eq!(result.get("isError"), None, "{result}");
    assert_eq!(result["structuredContent"]["id"], "ch_7");
    let shown: Value = serde_json::from_str(text(&result, "/content/0/text")).unwrap();
    assert_eq!(shown, result["structuredContent"]);
    let record = shop.record(text(&result, "/_meta/toolgate~1invocation_id"));
    assert_eq!((&record["status"], &record["tool"]), (&json!("success"), &json!("charges.read")));
}

fn what_is_not_granted_is_not_listed_and_unknown(world: &World) {
    let shop = Shop::open(world);
    let grant = shop.grant(json!({"scopes": ["charges.read"]}));
    assert_eq!(shop.agent.mcp_tools(), [READ]);
    let unknown = |name: &str| {
        let params = json!({"name": name, "arguments": {"charge_id": "ch_7"}});
        shop.agent.mcp("tools/call", params).rpc_error(400, -32602)
    };
    let nothing = unknown("nothing_at__all");
    for name in ["payments_charges__create", "payments_refunds__create", "http-fetch", "no.alias", "x", "a b"] {
        assert_eq!(unknown(name), nothing, "{name}");
    }
    shop.agent.mcp_call(READ, json!({"charge_id": "ch_7"}));
    shop.admin.ask("PATCH", &format!("/api/v1/grants/{}/suspend", id(&grant)), None).ok();
    assert_eq!(shop.agent.mcp_tools(), [""; 0]);
    assert_eq!(unknown(READ), nothing);
    let other = world.agent("other", &[]);
    assert_eq!(other.mcp_tools(), [""; 0], "whoever may not call tools sees none");
}

fn a_refusal_is_a_result_that_says_why_and_is_on_record(world: &World) {
    let shop = Shop::open(world);
    shop.grant(json!({"constraints": {"amount_max": 500}}));
    let call = |arguments: Value| shop.agent.mcp_call("payments_charges__create", arguments);
    let refused = call(json!({"amount": 501, "currency": "usd"}));
    assert_eq!(
        (&refused["isError"], &refused["_meta"]["toolgate/code"]),
        (&json!(true), &json!("GRANT_PARAMETER_DENIED"))
    );
    assert!(text(&refused, "/content/0/text").contains("amount"), "{refused}");
    let invocation = text(&refused, "/_meta/toolgate~1invocation_id");
    assert!(text(&refused, "/content/0/text").ends_with(&format!("({invocation})")), "the model reads the text alone");
    assert_eq!(shop.record(invocation)["status"], "denied");
    let invalid = call(json!({"amount": "many", "currency": "usd"}));
    assert_eq!(invalid["_meta"]["toolgate/code"], "PARAMETERS_INVALID");
    let failed = shop.agent.mcp_call(READ, json!({"charge_id": "missing"}));
    if failed["isError"] == true {
        assert_eq!(failed["_meta"]["toolgate/code"], "SERVICE_ERROR", "{failed}");
    }
    assert_eq!(call(json!({"amount": 500, "currency": "usd"})).get("isError"), None);
}

/// Sends a request to list tools with these headers.
fn list_with(agent: &Actor, headers: &[(&str, &str)]) -> crate::world::Reply {
    agent.ask_with("POST", "/mcp", headers, Some(&request("tools/list", json!({"_meta": meta(json!({}))}))))
}

fn headers_and_body_must_agree(world: &World) {
    let shop = Shop::open(world);
    shop.grant(json!({}));
    let agent = &shop.agent;
    let version = ("MCP-Protocol-Version", VERSION);
    for headers in [
        &[][..],
        &[version],
        &[("Mcp-Method", "tools/list")],
        &[version, ("Mcp-Method", "tools/call")],
        &[version, ("Mcp-Method", "TOOLS/LIST")],
        &[("MCP-Protocol-Version", "2025-11-25"), ("Mcp-Method", "tools/list")],
        &[version, version, ("Mcp-Method", "tools/list")],
        &[version, ("Mcp-Method", "tools/list"), ("Mcp-Method", "tools/list")],
    ] {
        let body = list_with(agent, headers).rpc_error(400, -32020);
        assert_eq!(body["id"], 1, "{headers:?}");
    }
    list_with(agent, &[version, ("mcp-method", "  tools/list ")]).rpc();

    let call = |name: Option<&str>| {
        let params = json!({"name": READ, "arguments": {"charge_id": "ch_7"}, "_meta": meta(json!({}))});
        let mut headers = vec![version, ("Mcp-Method", "tools/call")];
        headers.extend(name.map(|name| ("Mcp-Name", name)));
        agent.ask_with("POST", "/mcp", &headers, Some(&request("tools/call", params)))
    };
    let before = shop.upstream.count();
    for name in [None, Some("payments_charges__create"), Some("=?base64?bm90aGluZw==?="), Some("=?base64?!?=")] {
        call(name).rpc_error(400, -32020);
    }
    assert_eq!(shop.upstream.count(), before);
    call(Some(READ)).rpc();
    call(Some("=?base64?cGF5bWVudHNfY2hhcmdlc19fcmVhZA==?=")).rpc();
}

fn every_request_says_its_version_and_what_its_client_can_do(world: &World) {
    let agent = world.agent("agent", &["tools.invoke"]);
    let send = |version: &str, params: Value| {
        let headers = [("MCP-Protocol-Version", version), ("Mcp-Method", "server/discover")];
        agent.ask_with("POST", "/mcp", &headers, Some(&request("server/discover", params)))
    };
    let (version, capabilities) =
        ("io.modelcontextprotocol/protocolVersion", "io.modelcontextprotocol/clientCapabilities");
    for params in [
        json!({}),
        json!({"_meta": {}}),
        json!({"_meta": {version: VERSION}}),
        json!({"_meta": {capabilities: {}}}),
        json!({"_meta": {version: VERSION, capabilities: []}}),
        json!({"_meta": {version: 7, capabilities: {}}}),
        json!({"_meta": 7}),
        json!([]),
    ] {
        send(VERSION, params).rpc_error(400, -32602);
    }
    send(VERSION, json!({"_meta": {version: VERSION, capabilities: {}}})).rpc();
    let body = send("2027-01-01", json!({"_meta": {version: "2027-01-01", capabilities: {}}})).rpc_error(400, -32022);
    assert_eq!(body["error"]["data"]["requested"], "2027-01-01");
    assert_eq!(body["error"]["data"]["supported"][0], VERSION);
}

fn unknown_methods_and_notifications(world: &World) {
    let agent = world.agent("agent", &["tools.invoke"]);
    for method in ["initialize", "ping", "logging/setLevel", "resources/subscribe", "unknown/method", "tools/LIST"] {
        let body = agent.mcp(method, json!({})).rpc_error(404, -32601);
        assert_eq!(body["id"], 1);
    }
    let notification = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    let reply = agent.ask_with("POST", "/mcp", &[("MCP-Protocol-Version", VERSION)], Some(&notification));
    assert_eq!((reply.status(), reply.answer.body.len()), (202, 0));
    for method in ["GET", "DELETE"] {
        let reply = agent.ask_with(method, "/mcp", &[("MCP-Protocol-Version", VERSION)], None);
        assert_eq!((reply.status(), reply.answer.header("allow")), (405, Some("POST")));
    }
    let params = json!({"taskId": "inv_1"});
    let body = agent.mcp("tasks/get", params).rpc_error(400, -32021);
    let required = &body["error"]["data"]["requiredCapabilities"];
    assert_eq!(*required, json!({"extensions": {"io.modelcontextprotocol/tasks": {}}}));
}

fn a_tool_can_be_called_by_its_alias_over_http(world: &World) {
    let shop = Shop::open(world);
    shop.grant(json!({"scopes": ["charges.read"]}));
    let called = shop.call(READ, json!({"charge_id": "ch_7"})).ok();
    assert_eq!(called["tool_name"], "payments.charges.read");
    shop.denied(&shop.call("payments_charges__create", json!({})), 403, "GRANT_SCOPE_INSUFFICIENT");
    // A name that could be read in two ways ends with a hash.
    let tools = json!({"list_all": {"scope": "charges.read", "http": {"method": "GET", "path": "/v1/charges/ch_7"}}});
    let definition = json!({"service": "odd_service", "version": "1", "tools": tools});
    shop.admin.post("/api/v1/services", &definition).created();
    let credential =
        crate::calls::shop::credential(&shop.admin, "odd_service", json!({"base_url": shop.upstream.url()}));
    shop.admin.grants(&credential, "billing", json!({}));
    let listed = shop.agent.mcp_tools();
    let alias = listed.iter().find(|name| name.starts_with("odd_service_list_all___")).unwrap();
    assert_eq!(shop.agent.mcp_call(alias, json!({})).get("isError"), None);
    assert_eq!(shop.call(alias, json!({})).ok()["tool_name"], "odd_service.list_all");
}

fn pages_follow_each_other(world: &World) {
    let shop = Shop::open(world);
    let tools: serde_json::Map<String, Value> = (0..1500)
        .map(|number| (format!("tool-{number:04}"), json!({"scope": "charges.read", "description": "One of many."})))
        .collect();
    shop.admin.post("/api/v1/services", &json!({"service": "many", "version": "1", "tools": tools})).created();
    let credential = crate::calls::shop::credential(&shop.admin, "many", json!({}));
    shop.admin.grants(&credential, "billing", json!({}));
    let first = shop.agent.mcp("tools/list", json!({})).rpc();
    assert_eq!(first["tools"].as_array().unwrap().len(), 1000);
    let cursor = first["nextCursor"].clone();
    let second = shop.agent.mcp("tools/list", json!({"cursor": cursor})).rpc();
    assert_eq!(second["tools"].as_array().unwrap().len(), 500);
    assert_eq!((second.get("nextCursor"), &second["tools"][0]["name"]), (None, &json!("many_tool-1000")));
    for forged in ["no such", "", "../", "x", "many_tool-0999x"] {
        shop.agent.mcp("tools/list", json!({"cursor": forged})).rpc_error(400, -32602);
    }
    shop.agent.mcp("tools/list", merged(json!({"cursor": 7}), json!({}))).rpc_error(400, -32602);
}
