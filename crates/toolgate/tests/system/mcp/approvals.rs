//! Calls that wait for an approver.

use serde_json::{Value, json};

use toolgate_testkit::mcp_server::McpServer;

use super::mounted::mount;
use crate::approvals::office::{Office, person};
use crate::world::{World, on_both_engines, setup, text, until};

on_both_engines! {
    a_client_that_follows_tasks_gets_one_and_its_result,
    a_task_can_be_taken_back,
}

const TASKS: &str = "io.modelcontextprotocol/tasks";

/// A gate that holds no call for long.
fn impatient() -> World {
    World::of(&setup().reaching_loopback().configuration("[mcp]\nhold_seconds = 0\n"), None)
}

/// The first approval that waits.
fn first(office: &Office) -> String {
    until("a call that waits", || office.pending().into_iter().next())
}

fn transfer(amount: u64) -> Value {
    json!({"name": "bank_transfer", "arguments": {"amount": amount, "to": "ann"}})
}

#[test]
fn the_same_call_again_picks_up_the_one_that_waits_and_then_its_result() {
    let world = impatient();
    let office = Office::open(&world);
    let call = |amount| office.agent.mcp("tools/call", transfer(amount)).rpc();

    let waiting = until("the call waits", || {
        let waiting = call(12);
        waiting["_meta"]["toolgate/approval_ids"][0].is_string().then_some(waiting)
    });
    assert_eq!((&waiting["isError"], &waiting["_meta"]["toolgate/code"]), (&json!(true), &json!("APPROVAL_REQUIRED")));
    let approval = text(&waiting, "/_meta/toolgate~1approval_ids/0").to_owned();
    let again = call(12);
    assert_eq!(again["_meta"], waiting["_meta"], "the same call, asked for once");
    let other = call(13);
    assert_ne!(other["_meta"]["toolgate/invocation_id"], waiting["_meta"]["toolgate/invocation_id"]);

    office.clerk.decides(&approval, "approve", json!({})).ok();
    let result = until("the call is executed", || Some(call(12)).filter(|result| result.get("isError").is_none()));
    assert_eq!(result["structuredContent"], json!({"done": true}));
    assert_eq!(result["_meta"]["toolgate/invocation_id"], waiting["_meta"]["toolgate/invocation_id"]);
    assert_eq!(office.bank.count(), 1);
    // The result was fetched: the same call is a new one.
    let new = call(12);
    assert_ne!(new["_meta"]["toolgate/invocation_id"], waiting["_meta"]["toolgate/invocation_id"]);
    assert_eq!((&new["isError"], office.bank.count()), (&json!(true), 1));
}

#[test]
fn a_waiting_call_is_picked_up_after_a_restart() {
    let setup = setup().reaching_loopback().configuration("[mcp]\nhold_seconds = 0\n");
    let world = World::of(&setup, None);
    let office = Office::open(&world);
    let call = |office: &Office| office.agent.mcp("tools/call", transfer(12)).rpc();
    let waiting = until("the call waits", || {
        let waiting = call(&office);
        waiting["_meta"]["toolgate/approval_ids"][0].is_string().then_some(waiting)
    });
    world.stop();
    let world = World::of(&setup, None);
    let office = office.at(&world);
    assert_eq!(call(&office)["_meta"], waiting["_meta"]);
    let approval = text(&waiting, "/_meta/toolgate~1approval_ids/0").to_owned();
    office.clerk.decides(&approval, "deny", json!({"reason": "not today"})).ok();
    let result = until("the denial", || {
        Some(call(&office)).filter(|result| result["_meta"]["toolgate/code"] == "APPROVAL_DENIED")
    });
    assert!(text(&result, "/content/0/text").contains("not today"), "{result}");
    assert_eq!(office.bank.count(), 0);
}

/// Rules that ask before resources are read and prompts are fetched.
const ASKING: &str = r#"
@id("ask-reads") @remedy("ask")
forbid (principal, action == Action::"call:mounted.mcp.resources.read", resource);
@id("ask-prompts") @remedy("ask")
forbid (principal, action == Action::"call:mounted.mcp.prompts.get", resource);
"#;

#[test]
fn resources_and_prompts_wait_for_an_approver_without_their_connection() {
    let world = impatient();
    let (admin, agent) = (world.admin(), world.agent("agent", &["tools.invoke"]));
    let clerk = person(&admin, "clerk", &["approvals.decide"], &[]);
    let server = McpServer::start(true, false);
    server.script().prompts = vec!["greet".to_owned()];
    let credential = mount(&admin, "mounted", &server);
    admin.grants(&credential, "agent", json!({"scopes": ["resources.read", "prompts.read"]}));
    admin.applies(&[("rules.cedar", ASKING)]).ok();
    let resource = json!({"uri": "toolgate:mounted:test://one"});
    let prompt = json!({"name": "mounted_greet", "arguments": {"who": "Ann"}});
    for (method, params) in [("resources/read", resource), ("prompts/get", prompt)] {
        let ask = || agent.mcp(method, params.clone()).json();
        let waiting = until("it waits", || {
            let waiting = ask();
            waiting["error"]["data"]["approval_ids"][0].is_string().then_some(waiting)
        });
        let data = &waiting["error"]["data"];
        assert_eq!(
            (&data["code"], &data["invocation_id"].is_string()),
            (&json!("APPROVAL_REQUIRED"), &true),
            "{waiting}"
        );
        assert_eq!(&ask()["error"]["data"], data, "the same request, asked for once");
        assert!(server.received(method).is_empty());
        clerk.decides(text(data, "/approval_ids/0"), "approve", json!({})).ok();
        let result =
            until("it is executed", || Some(ask()).filter(|body| body["result"].is_object()))["result"].clone();
        match method {
            "resources/read" => {
                assert_eq!(result["contents"][0]["uri"], "toolgate:mounted:test://one", "{result}");
                assert_eq!(result["cacheScope"], "private");
            }
            _ => assert!(text(&result, "/messages/0/content/text").contains("Ann"), "{result}"),
        }
        assert_eq!(server.received(method).len(), 1);
    }
    let clerk_sees = clerk.get("/api/v1/approvals?limit=100").ok();
    let tools: Vec<&Value> = clerk_sees["approvals"].as_array().unwrap().iter().map(|one| &one["tool"]).collect();
    assert_eq!(tools.len(), 2, "{tools:?}");
}

#[test]
fn a_result_that_its_caller_could_not_get_is_kept_for_the_same_call() {
    let world = World::sqlite();
    let office = Office::open(&world);
    office.bank.hold();
    let told = std::thread::scope(|scope| {
        let held = scope.spawn(|| office.agent.mcp("tools/call", transfer(12)).rpc());
        office.clerk.decides(&first(&office), "approve", json!({})).ok();
        office.bank.wait_for(1);
        let keys = office.admin.get("/api/v1/agents/teller/keys").ok();
        assert!(office.admin.delete(&format!("/api/v1/keys/{}", text(&keys, "/keys/0/id"))).status() < 300);
        office.bank.release();
        held.join().unwrap()
    });
    assert_eq!((&told["isError"], &told["_meta"]["toolgate/code"]), (&json!(true), &json!("KEY_REVOKED")), "{told}");
    assert!(!told.to_string().contains("done"), "nothing is told once the key has ended: {told}");
    let key = office.admin.post("/api/v1/agents/teller/keys", &json!({})).created();
    let again = world.actor("teller", text(&key, "/key")).mcp("tools/call", transfer(12)).rpc();
    assert_eq!(again["structuredContent"], json!({"done": true}), "{again}");
    assert_eq!(again["_meta"]["toolgate/invocation_id"], told["_meta"]["toolgate/invocation_id"]);
    assert_eq!((office.bank.count(), office.pending().len()), (1, 0), "it was executed once");
}

#[test]
fn a_client_that_searches_for_tools_is_asked_about_the_real_one() {
    let world = impatient();
    let office = Office::open(&world);
    office.admin.patch("/api/v1/agents/teller", &json!({"progressive_discovery": true})).ok();
    let call = || office.agent.mcp_call("call_tool", transfer(12));
    let waiting = until("the call waits", || {
        let waiting = call();
        waiting["_meta"]["toolgate/approval_ids"][0].is_string().then_some(waiting)
    });
    let approval = office.approval(text(&waiting, "/_meta/toolgate~1approval_ids/0"));
    assert_eq!((&approval["tool"], &approval["arguments"]), (&json!("bank.transfer"), &transfer(12)["arguments"]));
    assert!(!approval.to_string().contains("call_tool"), "{approval}");
    office.clerk.decides(text(&approval, "/id"), "approve", json!({})).ok();
    until("the call is executed", || Some(call()).filter(|result| result.get("isError").is_none()));
    assert_eq!(office.bank.count(), 1);
}

#[test]
fn a_call_is_held_until_it_is_decided() {
    let world = World::sqlite();
    let office = Office::open(&world);
    std::thread::scope(|scope| {
        let held = scope.spawn(|| office.agent.mcp("tools/call", transfer(12)).rpc());
        let approval = first(&office);
        office.clerk.decides(&approval, "approve", json!({})).ok();
        assert_eq!(held.join().unwrap()["structuredContent"], json!({"done": true}));
    });
}

#[test]
fn a_client_that_wants_to_hear_of_progress_gets_a_stream() {
    let world = World::sqlite();
    let office = Office::open(&world);
    std::thread::scope(|scope| {
        let held = scope.spawn(|| {
            let mut params = transfer(12);
            params["_meta"] = super::meta(json!({}));
            params["_meta"]["progressToken"] = json!("p1");
            let headers = [
                ("MCP-Protocol-Version", super::VERSION),
                ("Mcp-Method", "tools/call"),
                ("Mcp-Name", "bank_transfer"),
                ("Accept", "application/json, text/event-stream"),
            ];
            office.agent.ask_with("POST", "/mcp", &headers, Some(&super::request("tools/call", params)))
        });
        let approval = first(&office);
        office.clerk.decides(&approval, "approve", json!({})).ok();
        let reply = held.join().unwrap();
        assert_eq!(reply.answer.header("content-type"), Some("text/event-stream"));
        let text = reply.answer.text();
        let messages: Vec<Value> =
            text.lines().filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok()).collect();
        assert_eq!(messages[0]["method"], "notifications/progress");
        assert_eq!(messages[0]["params"]["progressToken"], "p1");
        let last = messages.last().unwrap();
        assert_eq!((&last["id"], &last["result"]["structuredContent"]), (&json!(1), &json!({"done": true})));
    });
}

fn a_client_that_follows_tasks_gets_one_and_its_result(world: &World) {
    let office = Office::open(world);
    let can = || json!({"extensions": {TASKS: {}}});
    let made = office.agent.mcp_with("tools/call", transfer(12), can()).rpc();
    assert_eq!((&made["resultType"], &made["status"]), (&json!("task"), &json!("working")));
    assert!(made["ttlMs"].is_u64() && made["createdAt"].is_string() && made.get("requestState").is_none());
    let get = || office.agent.mcp_with("tasks/get", json!({"taskId": made["taskId"]}), can()).rpc();
    assert_eq!(get()["status"], "working");
    office.clerk.decides(&first(&office), "approve", json!({})).ok();
    let done = until("the task ends", || Some(get()).filter(|task| task["status"] != "working"));
    assert_eq!((&done["status"], &done["resultType"]), (&json!("completed"), &json!("complete")));
    assert_eq!(done["result"]["structuredContent"], json!({"done": true}));
    assert_eq!(get()["result"], done["result"], "as often as it is asked for");
    let stranger = world.agent("stranger", &["tools.invoke"]);
    stranger.mcp_with("tasks/get", json!({"taskId": made["taskId"]}), can()).rpc_error(400, -32602);
    office.agent.mcp_with("tasks/get", json!({"taskId": "inv_nothing"}), can()).rpc_error(400, -32602);
    // What needs nobody is no task.
    let plain = json!({"name": "bank_balance", "arguments": {"amount": 1, "to": "ann"}});
    assert_eq!(office.agent.mcp_with("tools/call", plain, can()).rpc()["resultType"], "complete");
}

#[test]
fn tasks_that_were_fetched_or_refused_at_once_leave_room_for_others() {
    let limits = "[approvals]\nopen_per_agent = 1\n[calls]\ndetached_per_agent = 2\n";
    let world = World::of(&setup().reaching_loopback().configuration(limits), None);
    let office = Office::open(&world);
    let can = || json!({"extensions": {TASKS: {}}});
    let call = |amount: u64| office.agent.mcp_with("tools/call", transfer(amount), can()).rpc();
    for amount in [11, 12, 13] {
        let made = call(amount);
        assert_eq!(made["resultType"], "task", "{made}");
        for _ in 0..3 {
            let refused = call(100 + amount);
            assert_eq!((&refused["resultType"], &refused["isError"]), (&json!("complete"), &json!(true)), "{refused}");
            assert_eq!(refused["_meta"]["toolgate/code"], "TOO_MANY_APPROVALS", "{refused}");
        }
        office.clerk.decides(&first(&office), "approve", json!({})).ok();
        let get = || office.agent.mcp_with("tasks/get", json!({"taskId": made["taskId"]}), can()).rpc();
        let done = until("the task ends", || Some(get()).filter(|task| task["status"] != "working"));
        assert_eq!(done["status"], "completed", "{done}");
        assert_eq!(get()["result"], done["result"], "it is kept while nothing needs its place");
    }
}

fn a_task_can_be_taken_back(world: &World) {
    let office = Office::open(world);
    let can = || json!({"extensions": {TASKS: {}}});
    let made = office.agent.mcp_with("tools/call", transfer(12), can()).rpc();
    first(&office);
    let named = || json!({"taskId": made["taskId"]});
    let cancelled = office.agent.mcp_with("tasks/cancel", named(), can()).rpc();
    assert_eq!((&cancelled["resultType"], cancelled.get("status")), (&json!("complete"), None));
    let done = until("the task ends", || {
        Some(office.agent.mcp_with("tasks/get", named(), can()).rpc()).filter(|task| task["status"] != "working")
    });
    assert_eq!(done["status"], "cancelled");
    office.agent.mcp_with("tasks/cancel", named(), can()).rpc();
    assert_eq!(office.bank.count(), 0);
}
