//! Calls that are interrupted for the user of a client that opens pages.

use serde_json::{Value, json};
use toolgate_testkit::mcp_server::McpServer;

use super::mounted::mount;
use crate::approvals::office::{Office, person};
use crate::world::{Reply, World, merged, setup, text};

fn world() -> World {
    let configuration = "[server]\npublic_url = \"https://gate.example\"\n[mcp]\nhold_seconds = 20\n";
    World::of(&setup().reaching_loopback().configuration(configuration), None)
}

fn send(office: &Office, more: Value) -> Reply {
    let call = json!({"name": "bank_transfer", "arguments": {"amount": 12, "to": "ann"}});
    office.agent.mcp_with("tools/call", merged(call, more), json!({"elicitation": {"url": {}}}))
}

fn interrupted(office: &Office) -> (String, String) {
    let result = send(office, json!({})).rpc();
    assert_eq!(result["resultType"], "input_required", "{result}");
    let asked = &result["inputRequests"]["approval"];
    assert_eq!((&asked["method"], &asked["params"]["mode"]), (&json!("elicitation/create"), &json!("url")));
    let link = text(asked, "/params/url").strip_prefix("https://gate.example/approvals/open/").unwrap().to_owned();
    (link, text(&result, "/requestState").to_owned())
}

fn answer(action: &str) -> Value {
    json!({"inputResponses": {"approval": {"action": action}}})
}

#[test]
fn an_interrupted_call_goes_on_after_the_approval_and_once() {
    let world = world();
    let office = Office::open(&world);
    let (link, state) = interrupted(&office);
    // The link is for those who may decide: it is of no use to the agent that was given it.
    let redeem = format!("/api/v1/approvals/links/{link}/redeem");
    office.agent.ask("POST", &redeem, None).refused(403, "PERMISSION_DENIED");
    let approval = office.clerk.ask("POST", &redeem, None).ok();
    office.clerk.decides(text(&approval, "/id"), "approve", json!({})).ok();
    let more = || merged(answer("accept"), json!({"requestState": state}));
    let result = send(&office, more()).rpc();
    assert_eq!((&result["resultType"], &result["structuredContent"]), (&json!("complete"), &json!({"done": true})));
    assert_eq!(office.bank.count(), 1);
    send(&office, more()).rpc_error(400, -32602);
    assert_eq!(office.bank.count(), 1, "a state that was used is of no use");
}

#[test]
fn a_state_is_bound_to_its_caller_and_its_call_and_cannot_be_changed() {
    let world = world();
    let office = Office::open(&world);
    let (_, state) = interrupted(&office);
    let call = |name: &str, amount: u64, state: &str| {
        let params = json!({"name": name, "arguments": {"amount": amount, "to": "ann"}, "requestState": state});
        office.agent.mcp_with("tools/call", params, json!({"elicitation": {"url": {}}}))
    };
    call("bank_transfer", 13, &state).rpc_error(400, -32602);
    call("bank_balance", 12, &state).rpc_error(400, -32602);
    call("bank_transfer", 12, &state.replace('.', ":")).rpc_error(400, -32602);
    call("bank_transfer", 12, "").rpc_error(400, -32602);
    let other = world.agent("other", &["tools.invoke"]);
    let params = json!({"name": "bank_transfer", "arguments": {"amount": 12, "to": "ann"}, "requestState": state});
    other.mcp("tools/call", params).rpc_error(400, -32602);
    assert_eq!((office.pending().len(), office.bank.count()), (1, 0));
}

#[test]
fn a_user_who_declines_takes_the_call_back() {
    let world = world();
    let office = Office::open(&world);
    let (_, state) = interrupted(&office);
    let result = send(&office, merged(answer("decline"), json!({"requestState": state}))).rpc();
    assert_eq!(result["_meta"]["toolgate/code"], "CALL_CANCELLED", "{result}");
    assert_eq!((office.pending().len(), office.bank.count()), (0, 0));
}

#[test]
fn a_read_that_is_interrupted_for_an_approval_goes_on_with_its_state() {
    let world = world();
    let (admin, agent) = (world.admin(), world.agent("agent", &["tools.invoke"]));
    let clerk = person(&admin, "clerk", &["approvals.decide"], &[]);
    let server = McpServer::start(true, false);
    let credential = mount(&admin, "mounted", &server);
    admin.grants(&credential, "agent", json!({"scopes": ["resources.read"]}));
    let rule = "@id(\"ask\") @remedy(\"ask\")\n\
                forbid (principal, action == Action::\"call:mounted.mcp.resources.read\", resource);\n";
    admin.applies(&[("rules.cedar", rule)]).ok();
    let read = |uri: &str, more: Value| {
        agent.mcp_with("resources/read", merged(json!({"uri": uri}), more), json!({"elicitation": {"url": {}}}))
    };
    let (uri, other) = ("toolgate:mounted:test://one", "toolgate:mounted:test://two");
    let asked = read(uri, json!({})).rpc();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let url = text(&asked, "/inputRequests/approval/params/url");
    let link = url.strip_prefix("https://gate.example/approvals/open/").unwrap();
    let approval = clerk.ask("POST", &format!("/api/v1/approvals/links/{link}/redeem"), None).ok();
    clerk.decides(text(&approval, "/id"), "approve", json!({})).ok();
    let more = || merged(answer("accept"), json!({"requestState": asked["requestState"]}));
    read(other, more()).rpc_error(400, -32602);
    assert_eq!(read(uri, more()).rpc()["contents"][0]["uri"], uri);
    read(uri, more()).rpc_error(400, -32602);
    assert_eq!(server.received("resources/read").len(), 1);
}
