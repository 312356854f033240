//! Agents whose clients search for tools.

use serde_json::{Value, json};

use crate::calls::shop::Shop;
use crate::world::{World, on_both_engines, text};

on_both_engines! {
    a_client_searches_looks_and_calls_and_the_record_names_the_real_tool,
}

fn a_client_searches_looks_and_calls_and_the_record_names_the_real_tool(world: &World) {
    let shop = Shop::open(world);
    shop.grant(json!({"scopes": ["charges.read", "charges.create"]}));
    shop.admin.patch("/api/v1/agents/billing", &json!({"progressive_discovery": true})).ok();
    assert_eq!(shop.agent.mcp_tools(), ["call_tool", "describe_tool", "search_tools"]);

    let search = |arguments: Value| {
        let found = shop.agent.mcp_call("search_tools", arguments);
        let names = found["structuredContent"]["tools"].as_array().unwrap().iter();
        names.map(|tool| text(tool, "/name").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(search(json!({"query": "retrieve a charge"})), ["payments_charges__read", "payments_charges__create"]);
    assert_eq!(search(json!({"query": "Create"})), ["payments_charges__create"]);
    assert_eq!(search(json!({"query": "refund"})), [""; 0], "what is not granted is not found");
    assert_eq!(search(json!({"limit": 1})), ["payments_charges__create"]);

    let described = shop.agent.mcp_call("describe_tool", json!({"name": "payments_charges__read"}));
    assert_eq!(described["structuredContent"]["inputSchema"]["required"], json!(["charge_id"]));
    let unknown = shop.agent.mcp_call("describe_tool", json!({"name": "payments_refunds__create"}));
    assert_eq!(unknown["isError"], true);

    let arguments = json!({"name": "payments_charges__read", "arguments": {"charge_id": "ch_7"}});
    let result = shop.agent.mcp_call("call_tool", arguments);
    assert_eq!(result["structuredContent"]["id"], "ch_7", "{result}");
    let record = shop.record(text(&result, "/_meta/toolgate~1invocation_id"));
    assert_eq!((&record["tool"], &record["service"]), (&json!("charges.read"), &json!("payments")));
    let refused = shop.agent.mcp_call("call_tool", json!({"name": "payments_refunds__create", "arguments": {}}));
    assert_eq!(refused["content"], unknown["content"], "what is not listed is unknown");
    assert_eq!(shop.agent.mcp_call("call_tool", json!({}))["isError"], true);
    for (tool, unknown) in [("call_tool", "grant_id"), ("describe_tool", "agent_id"), ("search_tools", "name")] {
        let mut arguments = json!({"name": "payments_charges__read"});
        arguments[unknown] = json!("x");
        let refused = shop.agent.mcp_call(tool, arguments);
        assert_eq!(refused["isError"], true, "{refused}");
        assert!(text(&refused, "/content/0/text").contains(&format!("no `{unknown}`")), "{refused}");
    }
    let direct = json!({"name": "payments_charges__read", "arguments": {"charge_id": "ch_7"}});
    shop.agent.mcp("tools/call", direct).rpc_error(400, -32602);
}
