//! What an agent can find out about tools (§2.3, §8.2): what it may use, and nothing else.

use serde_json::{Value, json};

use super::shop::{Shop, credential, payments};
use crate::world::{World, id, names, on_both_engines, until};

on_both_engines! {
    granted_tools_are_told_as_the_rfc_tells_them,
    delegated_tools_say_where_they_come_from,
    only_what_can_be_used_is_listed,
    another_agents_tools_need_leave,
    the_registry_is_seen_as_far_as_it_may_be_used,
    what_is_listed_can_be_called,
    what_a_tool_declares_is_told,
}

fn granted(shop: &Shop) -> Vec<Value> {
    shop.agent.get("/api/v1/tools/granted").ok()["tools"].as_array().unwrap().clone()
}

fn granted_tools_are_told_as_the_rfc_tells_them(world: &World) {
    let shop = Shop::open(world);
    let constraints = json!({"max_invocations_per_hour": 100, "allowed_parameters": {"currency": ["usd"]}});
    let grant = shop.grant(json!({"scopes": ["charges.read", "charges.create"], "constraints": constraints}));
    let answer = shop.agent.get("/api/v1/tools/granted?agent_id=billing").ok();
    assert_eq!(names(&answer), ["agent_id", "tools"]);
    assert_eq!(answer["agent_id"], "billing");
    assert_eq!(shop.agent.get("/api/v1/tools/granted").ok(), answer, "itself, where nobody is named");
    let tools = answer["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 2);
    let create = &tools[0];
    assert_eq!((&create["grant_id"], &create["service"]), (&grant["id"], &json!("payments")));
    assert_eq!((&create["tool"], &create["name"]), (&json!("charges.create"), &json!("payments.charges.create")));
    assert_eq!((&create["constraints"], &create["source"]), (&constraints, &json!("direct")));
    assert_eq!((&create["expires_at"], create.get("delegated_from")), (&grant["expires_at"], None));
    assert_eq!(create["description"], "Create a new charge");
    assert_eq!(create["parameters"]["required"], json!(["amount", "currency"]), "enough to call it");
    assert_eq!(tools[1]["tool"], "charges.read");
}

fn delegated_tools_say_where_they_come_from(world: &World) {
    let shop = Shop::open(world);
    let source =
        shop.grant_to("coordinator", json!({"delegatable": true, "constraints": {"max_invocations_per_hour": 50}}));
    let more = json!({"context": {"task_id": "task_01HXYZ"}, "constraints": {"amount_max": 10_000}});
    let grant = shop.admin.delegates(&source, "billing", more);
    let tools = granted(&shop);
    let [tool] = tools.as_slice() else { panic!("one tool: {tools:?}") };
    assert_eq!((&tool["source"], &tool["delegated_from"]), (&json!("delegated"), &json!("coordinator")));
    assert_eq!((&tool["grant_id"], &tool["context"]["task_id"]), (&grant["id"], &json!("task_01HXYZ")));
    let constraints = json!({"max_invocations_per_hour": 50, "allowed_parameters": {"amount_max": 10_000}});
    assert_eq!(tool["constraints"], constraints, "what holds in effect, from above too");
}

fn only_what_can_be_used_is_listed(world: &World) {
    let shop = Shop::open(world);
    let source = shop.grant_to("coordinator", json!({"delegatable": true}));
    let delegated = shop.admin.delegates(&source, "billing", json!({}));
    let direct = shop.grant(json!({"scopes": ["charges.create"]}));
    let brief = shop.grant(json!({"scopes": ["anything"], "expires_at": shop.admin.soon()}));
    let through =
        || granted(&shop).iter().map(|tool| tool["grant_id"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    until("the short one is over", || (!through().contains(&id(&brief))).then_some(()));
    assert_eq!(through(), [id(&delegated), id(&direct)]);
    shop.admin.ask("PATCH", &format!("/api/v1/grants/{}/suspend", id(&source)), None).ok();
    assert_eq!(through(), [id(&direct)]);
    shop.admin.ask("PATCH", &format!("/api/v1/grants/{}/resume", id(&source)), None).ok();
    assert_eq!(through(), [id(&delegated), id(&direct)]);
    shop.admin.delete(&format!("/api/v1/credentials/{}", shop.credential)).ok();
    assert_eq!(through(), Vec::<String>::new());
    assert_eq!(shop.agent.get("/api/v1/tools").ok()["services"], json!([]));
}

fn another_agents_tools_need_leave(world: &World) {
    let shop = Shop::open(world);
    shop.grant(json!({"scopes": ["charges.read"]}));
    let other = world.agent("other", &["tools.invoke", "tools.manage"]);
    let error = other.get("/api/v1/tools/granted?agent_id=billing").refused(403, "PERMISSION_DENIED");
    assert_eq!(error["required_permission"], "agents.act_as");
    let shown = shop.admin.get("/api/v1/tools/granted?agent_id=billing").ok();
    assert_eq!((&shown["agent_id"], &shown["tools"][0]["tool"]), (&json!("billing"), &json!("charges.read")));
    assert_eq!(shop.admin.get("/api/v1/tools/granted").ok()["tools"], json!([]), "for itself it holds nothing");
    assert_eq!(shop.admin.get("/api/v1/tools/granted?agent_id=nobody").ok()["tools"], json!([]));
    shop.agent.get("/api/v1/tools/granted?agent_id=").refused(400, "INVALID_FIELD");
}

fn the_registry_is_seen_as_far_as_it_may_be_used(world: &World) {
    let shop = Shop::open(world);
    let mut newer = payments("2025-06");
    newer["tools"].as_object_mut().unwrap().remove("refunds.create");
    shop.admin.post("/api/v1/services", &newer).created();
    let all = shop.admin.get("/api/v1/tools/payments").ok();
    let versions: Vec<(&Value, usize)> = all["services"]
        .as_array()
        .unwrap()
        .iter()
        .map(|service| (&service["version"], service["tools"].as_object().unwrap().len()))
        .collect();
    // `refunds.create` of the older version is also what the credential makes of its scope.
    assert_eq!(versions, [(&Value::Null, 1), (&json!("2024-01"), 4), (&json!("2025-06"), 3)]);
    let keeper = world.agent("keeper", &["tools.manage"]);
    let seen = keeper.get("/api/v1/tools/payments").ok()["services"].as_array().unwrap().len();
    assert_eq!(seen, 2, "what others' credentials define is not its to see");

    shop.agent.get("/api/v1/tools/payments").refused(404, "SERVICE_NOT_FOUND");
    assert_eq!(shop.agent.get("/api/v1/tools").ok()["services"], json!([]));
    shop.grant(json!({"scopes": ["charges.read"]}));
    let seen = shop.agent.get("/api/v1/tools/payments").ok();
    assert_eq!(seen["services"].as_array().unwrap().len(), 1);
    let service = &seen["services"][0];
    assert_eq!((&service["service"], &service["version"]), (&json!("payments"), &json!("2025-06")));
    assert_eq!(names(&service["tools"]), ["charges.read"], "the others are as good as none");
    let tool = &service["tools"]["charges.read"];
    let fields = [
        "approval",
        "cost_hint",
        "description",
        "egress",
        "estimated_cost_usd",
        "idempotent",
        "latency_hint",
        "parameters",
        "rate_limit",
        "replay_policy",
        "required_scopes",
        "returns",
        "safety_tier",
        "scope",
        "source",
        "title",
        "tool_id",
    ];
    assert_eq!(names(tool), fields);
    assert_eq!(tool["safety_tier"], "write", "what nobody declares is not guessed lower");
    assert_eq!((&tool["estimated_cost_usd"], &tool["idempotent"]), (&json!(0.001), &json!(true)));
    shop.agent.get("/api/v1/tools/unheard-of").refused(404, "SERVICE_NOT_FOUND");
}

fn what_is_listed_can_be_called(world: &World) {
    let shop = Shop::answering(world, |_| toolgate_testkit::upstream::Reply::json(200, json!({})));
    shop.grant(json!({}));
    let pinned = json!({"base_url": shop.upstream.url(), "service_version": "2024-01"});
    let other = credential(&shop.admin, "payments", pinned);
    shop.admin.grants(&other, "billing", json!({"scopes": ["refunds.create"]}));
    let parameters = json!({
        "payments.anything": {}, "payments.charges.create": {"amount": 1, "currency": "usd"},
        "payments.charges.read": {"charge_id": "ch_1"}, "payments.refunds.create": {"charge": "ch_1"},
    });
    let tools = granted(&shop);
    assert_eq!(tools.len(), 4);
    for tool in tools {
        let name = tool["name"].as_str().unwrap();
        let body = json!({"grant_id": tool["grant_id"], "tool": name, "parameters": parameters[name]});
        assert_eq!(shop.agent.invokes(body).ok()["tool_name"], name);
    }
}

fn what_a_tool_declares_is_told(world: &World) {
    let shop = Shop::open(world);
    let declared = json!({
        "title": "Read a charge", "safety_tier": "read", "approval": "never", "required_scopes": ["tools:charges"],
        "egress": "host-mediated", "replay_policy": "deterministic", "cost_hint": "low", "latency_hint": "medium",
        "rate_limit": {"requests": 30, "per_seconds": 60, "burst": 5},
    });
    let mut definition = payments("2024-01");
    definition["tools"]["charges.read"].as_object_mut().unwrap().extend(declared.as_object().unwrap().clone());
    shop.admin.ask("PUT", "/api/v1/services/payments", Some(&definition)).ok();
    shop.grant(json!({"scopes": ["charges.read"]}));
    let seen = shop.agent.get("/api/v1/tools/payments").ok();
    let tool = &seen["services"][0]["tools"]["charges.read"];
    for (name, value) in declared.as_object().unwrap() {
        assert_eq!(&tool[name], value, "{name}");
    }
    assert_eq!((&tool["source"], &tool["tool_id"]), (&json!("connector"), &json!("connector:payments.charges.read")));
    let granted = granted(&shop);
    assert_eq!((&granted[0]["safety_tier"], &granted[0]["version"]), (&json!("read"), &json!("2024-01")));
    assert_eq!((&granted[0]["approval"], &granted[0]["tool_id"]), (&json!("never"), &tool["tool_id"]));
}
