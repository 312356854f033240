//! Mounted servers that interrupt a call to ask the client for input, and hostile ones on both sides.

use serde_json::{Value, json};
use toolgate_model::service::definition_hash;
use toolgate_testkit::mcp_server::{Conduct, McpServer, tools};

use super::mounted::mount;
use crate::approvals::office::person;
use crate::world::{Actor, Reply, World, id, merged, on_both_engines, setup, text, until};

on_both_engines! {
    what_a_server_asks_for_reaches_the_client_and_its_responses_the_server_once,
    a_state_is_of_use_only_to_its_caller_for_its_call_at_its_server,
}

const SECRET: &str = "sk_live_of_the_mount";

/// A server that interrupts every call, and an agent that may call it.
struct Interrupting {
    server: McpServer,
    admin: Actor,
    agent: Actor,
    credential: String,
    grant: Value,
}

fn form(message: &str) -> Value {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    json!({"who": {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}})
}

fn answer(name: &str) -> Value {
    json!({"who": {"action": "accept", "content": {"name": name}}})
}

fn forms() -> Value {
    json!({"elicitation": {}})
}

impl Interrupting {
    fn open(world: &World, requests: Value) -> Self {
        let (admin, agent) = (world.admin(), world.agent("agent", &["tools.invoke"]));
        let server = McpServer::start(true, false);
        let credential = mount(&admin, "mounted", &server);
        let grant = admin.grants(&credential, "agent", json!({"scopes": ["echo", "whoami", "resources.read"]}));
        server.script().conduct = Conduct::Interrupting(requests);
        Self { server, admin, agent, credential, grant }
    }

    fn call(&self, more: Value) -> Reply {
        call(&self.agent, "mounted_echo", "hello", more)
    }

    /// The state of a call that was interrupted.
    fn interrupted(&self) -> String {
        let result = self.call(json!({})).rpc();
        assert_eq!(result["resultType"], "input_required", "{result}");
        text(&result, "/requestState").to_owned()
    }

    fn calls(&self) -> usize {
        self.server.received("tools/call").len()
    }
}

fn call(agent: &Actor, tool: &str, said: &str, more: Value) -> Reply {
    let params = merged(json!({"name": tool, "arguments": {"text": said}}), more);
    agent.mcp_with("tools/call", params, forms())
}

fn what_a_server_asks_for_reaches_the_client_and_its_responses_the_server_once(world: &World) {
    let mounted = Interrupting::open(world, form(&format!("Who has {SECRET}?")));
    let asked = mounted.call(json!({})).rpc();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    assert_eq!(asked["inputRequests"], form("Who has [REDACTED]?"));
    let state = text(&asked, "/requestState").to_owned();
    assert!(!asked.to_string().contains(SECRET) && !state.contains("state of"), "{asked}");
    let sent = mounted.server.received("tools/call");
    let declared = &sent[0]["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    assert_eq!(declared, &json!({"elicitation": {"form": {}}}), "what the client of this call declared");
    // Recorded as a call that has no result yet.
    let first = text(&asked, "/_meta/toolgate~1invocation_id").to_owned();
    let record = mounted.admin.get(&format!("/api/v1/invocations/{first}")).ok();
    assert_eq!((&record["status"], &record["error"]["code"]), (&json!("error"), &json!("INPUT_REQUIRED")), "{record}");

    let responses = merged(answer("Ann"), json!({"unasked": {"action": "accept", "content": {}}}));
    let more = json!({"inputResponses": responses, "requestState": state});
    let result = mounted.call(more.clone()).rpc();
    assert_eq!(result["resultType"], "complete", "{result}");
    assert_eq!(result["structuredContent"]["text"], answer("Ann").to_string(), "and nothing that nobody asked for");
    let sent = mounted.server.received("tools/call");
    assert_eq!((sent.len(), &sent[1]["params"]["requestState"]), (2, &json!(format!("state of {SECRET}"))));
    let second = text(&result, "/_meta/toolgate~1invocation_id").to_owned();
    let record = mounted.admin.get(&format!("/api/v1/invocations/{second}")).ok();
    assert_eq!((&record["status"], first == second), (&json!("success"), false), "a call of its own: {record}");

    mounted.call(more).rpc_error(400, -32602);
    let other = json!({"inputResponses": answer("Eve"), "requestState": state});
    mounted.call(other).rpc_error(400, -32602);
    assert_eq!(mounted.calls(), 2, "a state that was used is of no use");
}

fn a_state_is_of_use_only_to_its_caller_for_its_call_at_its_server(world: &World) {
    let mounted = Interrupting::open(world, form("Who?"));
    let state = mounted.interrupted();
    let with = |state: &str| json!({"inputResponses": answer("Ann"), "requestState": state});
    let other = world.agent("other", &["tools.invoke"]);
    mounted.admin.grants(&mounted.credential, "other", json!({"scopes": ["echo", "whoami", "resources.read"]}));
    call(&other, "mounted_echo", "hello", with(&state)).rpc_error(400, -32602);
    call(&mounted.agent, "mounted_echo", "other", with(&state)).rpc_error(400, -32602);
    call(&mounted.agent, "mounted_whoami", "hello", with(&state)).rpc_error(400, -32602);
    let read = merged(json!({"uri": "toolgate:mounted:test://one"}), with(&state));
    mounted.agent.mcp_with("resources/read", read, forms()).rpc_error(400, -32602);
    let mut forged = state.clone();
    forged.replace_range(20..21, if state.as_bytes()[20] == b'A' { "B" } else { "A" });
    let tampered = [format!("{state}-TAMPERED"), forged, "input.AAAA".to_owned(), String::new(), "x".repeat(100_000)];
    for state in &tampered {
        mounted.call(with(state)).rpc_error(400, -32602);
    }
    mounted.call(json!({"inputResponses": {"who": 12345}, "requestState": state})).rpc_error(400, -32602);
    assert_eq!(mounted.calls(), 1, "none of them was sent");
    // Another credential is another account at the server.
    let elsewhere = mount_credential(&mounted.admin);
    mounted.admin.delete(&format!("/api/v1/grants/{}", id(&mounted.grant))).ok();
    mounted.admin.grants(&elsewhere, "agent", json!({"scopes": ["echo"]}));
    mounted.call(with(&state)).rpc_error(400, -32602);
    assert_eq!(mounted.calls(), 1, "nor sent with another credential");
}

fn mount_credential(admin: &Actor) -> String {
    let body = json!({
        "service": "mounted", "label": "another", "auth_type": "bearer_token", "metadata": {},
        "scopes_available": ["echo"], "material": {"token": "sk_live_of_another"},
    });
    id(&admin.post(&format!("/api/v1/vaults/{}/credentials", admin.vault()), &body).created())
}

#[test]
fn input_without_a_state_is_sent_with_the_call_and_the_server_decides() {
    let world = World::sqlite();
    let mounted = Interrupting::open(&world, form("Who?"));
    let asked = mounted.call(json!({"inputResponses": answer("Ann")})).rpc();
    assert_eq!(asked["resultType"], "input_required", "its own state is missing");
    assert_eq!(mounted.server.received("tools/call")[0]["params"]["inputResponses"], answer("Ann"));
    mounted.call(json!({"inputResponses": {"who": 12345}})).rpc_error(400, -32602);
    assert_eq!(mounted.call(json!({"inputResponses": null})).rpc()["resultType"], "input_required");
    // Nothing of it reaches a tool that is not one of a mounted server, nor a list.
    let listed = mounted.agent.mcp_with("tools/list", json!({"inputResponses": answer("Ann")}), forms()).rpc();
    assert_eq!(listed["resultType"], "complete");
}

#[test]
fn a_resource_is_read_after_an_interruption() {
    let world = World::sqlite();
    let mounted = Interrupting::open(&world, form("Who?"));
    let read = |more| {
        let params = merged(json!({"uri": "toolgate:mounted:test://one"}), more);
        mounted.agent.mcp_with("resources/read", params, forms())
    };
    let asked = read(json!({})).rpc();
    assert_eq!((&asked["resultType"], &asked["inputRequests"]), (&json!("input_required"), &form("Who?")), "{asked}");
    assert_eq!(asked.get("ttlMs"), None, "what is asked is not kept: {asked}");
    let more = json!({"inputResponses": answer("Ann"), "requestState": asked["requestState"]});
    let found = read(more.clone()).rpc();
    assert_eq!(found["contents"][0]["text"], "resource", "{found}");
    read(more).rpc_error(400, -32602);
}

#[test]
fn a_client_that_cannot_be_asked_gets_an_error_and_not_the_request() {
    let world = World::sqlite();
    let mounted = Interrupting::open(&world, form("What is your secret plan?"));
    let params = json!({"name": "mounted_echo", "arguments": {"text": "hello"}});
    for declared in [json!({}), json!({"sampling": {}}), json!({"elicitation": {"url": {}}})] {
        let error = mounted.agent.mcp_with("tools/call", params.clone(), declared).rpc_error(400, -32021);
        assert_eq!(error["error"]["data"]["requiredCapabilities"], json!({"elicitation": {"form": {}}}), "{error}");
        assert!(!error.to_string().contains("secret plan"), "{error}");
    }
    let body = json!({"tool": "mounted.echo", "parameters": {"text": "hello"}});
    let failed = mounted.agent.post("/api/v1/tools/invoke", &body).expect(502);
    assert_eq!(failed["error"]["code"], "INPUT_REQUIRED", "{failed}");
    assert!(!failed.to_string().contains("secret plan"), "{failed}");
    let session = mounted.agent.opens_session();
    let failed = mounted.agent.legacy(&session, &super::request("tools/call", params)).rpc();
    assert_eq!((&failed["isError"], &failed["_meta"]["toolgate/code"]), (&json!(true), &json!("INPUT_REQUIRED")));
    let sent = mounted.server.received("tools/call");
    let declared = |message: &Value| message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"].clone();
    assert_eq!((sent.len(), declared(&sent[3]), declared(&sent[4])), (5, json!({}), json!({})));
}

#[test]
fn hostile_requests_for_input_are_not_passed_on() {
    let world = World::sqlite();
    let mounted = Interrupting::open(&world, json!({}));
    let all = json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}});
    let page = |url: &str| json!({"who": {"method": "elicitation/create", "params": {"mode": "url", "message": "m", "url": url}}});
    let many: serde_json::Map<String, Value> =
        (0..1_000).map(|number| (format!("key{number}"), json!({"method": "roots/list", "params": {}}))).collect();
    let password = json!({"properties": {"password": {"type": "string"}}});
    for requests in [
        page("javascript:alert(1)"),
        page("file:///etc/passwd"),
        page("https://bank.example@evil.example/"),
        form(&"x".repeat(300_000)),
        json!(many),
        json!({"who": {"method": "elicitation/create", "params": {"message": "m", "requestedSchema": password}}}),
        json!({"who": {"method": "tools/call", "params": {}}}),
        json!({"who": 7}),
    ] {
        mounted.server.script().conduct = Conduct::Interrupting(requests);
        let params = json!({"name": "mounted_echo", "arguments": {"text": "hello"}});
        let failed = mounted.agent.mcp_with("tools/call", params, all.clone()).rpc();
        assert_eq!(failed["_meta"]["toolgate/code"], "PROXY_ERROR", "{failed}");
        assert_eq!((&failed["isError"], failed.get("inputRequests")), (&json!(true), None), "{failed}");
        assert!(failed.to_string().len() < 1_000, "{failed}");
    }
    mounted.server.script().conduct = Conduct::Interrupting(page("https://pages.example/consent"));
    let params = json!({"name": "mounted_echo", "arguments": {"text": "hello"}});
    let asked = mounted.agent.mcp_with("tools/call", params, all).rpc();
    assert_eq!(asked["inputRequests"], page("https://pages.example/consent"));
}

#[test]
fn a_thousand_interrupted_calls_hold_nothing_and_each_can_go_on() {
    let world = World::sqlite();
    let mounted = Interrupting::open(&world, form("Who?"));
    let states: Vec<String> = (0..1_000).map(|_| mounted.interrupted()).collect();
    let distinct: std::collections::BTreeSet<&String> = states.iter().collect();
    assert_eq!(distinct.len(), states.len());
    for state in [&states[0], &states[999], &states[500]] {
        let more = json!({"inputResponses": answer("Ann"), "requestState": state});
        assert_eq!(mounted.call(more).rpc()["resultType"], "complete");
    }
}

/// Rules on what servers ask for and what clients send.
pub(super) const RULES: &str = r#"
@id("no-codes")
@reason("nobody asks for launch codes")
forbid (principal, action == Action::"hook:mcp_inbound", resource) when { context.text like "*launch codes*" };

@id("no-eve")
@reason("Eve is nobody's business")
forbid (principal, action == Action::"hook:mcp_outbound", resource) when { context.text like "*Eve*" };
"#;

#[test]
fn policies_decide_on_what_a_server_asks_for_and_on_what_the_client_sends() {
    let world = World::sqlite();
    let mounted = Interrupting::open(&world, form("What are the launch codes?"));
    mounted.admin.applies(&[("rules.cedar", RULES)]).ok();
    let denied = mounted.call(json!({})).rpc();
    assert_eq!(denied["_meta"]["toolgate/code"], "POLICY_DENIED", "{denied}");
    assert!(!denied.to_string().contains("codes?"), "{denied}");

    mounted.server.script().conduct = Conduct::Interrupting(form("Who?"));
    let state = mounted.interrupted();
    let with = |name: &str| mounted.call(json!({"inputResponses": answer(name), "requestState": state})).rpc();
    assert_eq!(with("Eve")["_meta"]["toolgate/code"], "POLICY_DENIED");
    assert_eq!(mounted.calls(), 2, "nothing was sent");
    assert_eq!(with("Ann")["resultType"], "complete", "and the state was not used");
}

#[test]
fn authority_that_ended_meanwhile_is_not_restored_by_a_state() {
    let world = World::sqlite();
    let mounted = Interrupting::open(&world, form("Who?"));
    let state = mounted.interrupted();
    mounted.admin.delete(&format!("/api/v1/grants/{}", id(&mounted.grant))).ok();
    mounted.call(json!({"inputResponses": answer("Ann"), "requestState": state})).rpc_error(400, -32602);
    assert_eq!(mounted.calls(), 1);
}

#[test]
fn input_approves_nothing_and_approvers_see_it() {
    let configuration = "[mcp]\nhold_seconds = 0\n";
    let world = World::of(&setup().reaching_loopback().configuration(configuration), None);
    let (admin, agent) = (world.admin(), world.agent("agent", &["tools.invoke"]));
    let clerk = person(&admin, "clerk", &["approvals.decide"], &[]);
    let server = McpServer::start(true, false);
    let mapping = json!({"method": "tools/call", "name": "echo", "definition_hash": definition_hash(&tools()[0])});
    let service = json!({
        "service": "mounted", "version": "1", "source": "mcp", "base_url": server.url(),
        "tools": {"echo": {
            "scope": "echo", "approval": "always", "mcp": mapping,
            "parameters": {"text": {"type": "string"}}
        }}
    });
    admin.post("/api/v1/services", &service).created();
    admin.grants(&mount_credential(&admin), "agent", json!({"scopes": ["echo"]}));
    server.script().conduct = Conduct::Interrupting(form("Who?"));
    let pending = || crate::world::ids(&clerk.get("/api/v1/approvals?status=pending").ok()["approvals"]);
    let approved = |more: &Value| {
        call(&agent, "mounted_echo", "hello", more.clone()).rpc();
        let approval = until("a call that waits", || pending().into_iter().next());
        let shown = clerk.get(&format!("/api/v1/approvals/{approval}")).ok();
        clerk.decides(&approval, "approve", json!({})).ok();
        let result = until("the call is executed", || {
            let result = call(&agent, "mounted_echo", "hello", more.clone()).rpc();
            (result["_meta"]["toolgate/code"] != "APPROVAL_REQUIRED").then_some(result)
        });
        (shown["arguments"].clone(), result)
    };
    let (shown, asked) = approved(&json!({}));
    assert_eq!((&shown, &asked["resultType"]), (&json!({"text": "hello"}), &json!("input_required")), "{asked}");
    let more = json!({"inputResponses": answer("Ann"), "requestState": asked["requestState"]});
    let (shown, result) = approved(&more);
    assert_eq!(shown["io.modelcontextprotocol/inputResponses"], answer("Ann"), "what is sent is shown: {shown}");
    assert_eq!(result["resultType"], "complete", "{result}");
    assert_eq!(server.received("tools/call").len(), 2);
}
