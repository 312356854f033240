//! The catalog through the eyes of different principals.

use serde_json::{Value, json};
use toolgate_model::descriptor::ToolDescriptor;
use toolgate_model::schema::Schema;

use crate::calls::shop::Shop;
use crate::world::{Actor, World, id, on_both_engines, setup};

on_both_engines! {
    what_a_principal_may_invoke_is_listed_by_id_and_found_by_it,
    what_is_unknown_and_what_is_not_for_the_caller_are_answered_alike,
    scopes_allowlist_and_grants_decide_what_is_seen,
}

const CHARGES: &str = "connector:payments.charges.read";

fn listed(actor: &Actor, query: &str) -> Vec<String> {
    let body = actor.get(&format!("/v1/tools{query}")).ok();
    let tools = if body.is_array() { body } else { body["tools"].clone() };
    tools.as_array().unwrap().iter().map(|tool| tool["toolId"].as_str().unwrap().to_owned()).collect()
}

fn change(shop: &Shop, change: Value) {
    shop.admin.patch("/api/v1/agents/billing", &change).ok();
}

fn what_a_principal_may_invoke_is_listed_by_id_and_found_by_it(world: &World) {
    let shop = Shop::open(world);
    shop.grant(json!({}));
    change(&shop, json!({"scopes": ["http:*"]}));
    let tools = shop.agent.get("/v1/tools").ok();
    let expected = ["connector:payments.anything", "connector:payments.charges.create", CHARGES, "openwop:http.fetch"];
    assert_eq!(listed(&shop.agent, ""), expected);
    let (full, compact) = (ToolDescriptor::schema(), ToolDescriptor::compact_schema());
    let (full, compact) = (Schema::compile(&full).unwrap(), Schema::compile(&compact).unwrap());
    for tool in tools.as_array().unwrap() {
        full.check(tool).unwrap();
        let path = format!("/v1/tools/{}", tool["toolId"].as_str().unwrap().replace(':', "%3A"));
        assert_eq!(shop.agent.get(&path).ok(), *tool);
        compact.check(&shop.agent.get(&format!("{path}?view=compact")).ok()).unwrap();
    }
    let charge = &tools[1];
    assert_eq!((&charge["safetyTier"], &charge["replayPolicy"]), (&json!("write"), &json!("idempotent")));
    assert_eq!(charge["auth"], json!({"credentialRef": true}));
    assert_eq!(charge["inputSchema"]["required"], json!(["amount", "currency"]));

    let body = shop.agent.get("/v1/tools?view=compact").ok();
    assert_eq!(listed(&shop.agent, "?view=compact"), expected);
    body["tools"].as_array().unwrap().iter().for_each(|tool| compact.check(tool).unwrap());
    assert_eq!(listed(&shop.agent, "?source=node-pack"), ["openwop:http.fetch"]);
    assert_eq!(listed(&shop.agent, "?source=connector&view=compact"), expected[..3]);
    assert_eq!(listed(&shop.agent, "?source=mcp"), [""; 0]);
    for query in ["source=mail", "view=full", "limit=1", "source=", "Source=mcp"] {
        shop.agent.get(&format!("/v1/tools?{query}")).flat(400, "validation_error");
    }
    shop.agent.get(&format!("/v1/tools/{CHARGES}?source=connector")).flat(400, "validation_error");
    assert_eq!(shop.upstream.count(), 0, "looking calls nothing");
}

fn what_is_unknown_and_what_is_not_for_the_caller_are_answered_alike(world: &World) {
    let shop = Shop::open(world);
    shop.grant(json!({"scopes": ["charges.read"]}));
    let other = world.agent("other", &["tools.invoke"]);
    assert_eq!(listed(&shop.agent, ""), [CHARGES]);
    assert_eq!(listed(&other, ""), [""; 0], "a second principal sees another set");
    assert_eq!(listed(&shop.admin, ""), [""; 0], "to manage a tool is not to be able to invoke it");
    let ask = |actor: &Actor, tool: &str| {
        let reply = actor.get(&format!("/v1/tools/{tool}"));
        reply.flat(404, "not_found");
        assert_eq!(reply.answer.header("www-authenticate"), None);
        reply.answer.body
    };
    let unknown = ask(&other, "connector%3Anothing.at.all");
    for tool in [CHARGES, "connector:payments.refunds.create", "openwop:http.fetch", "openwop:other", "mcp:a.b", "%ff"]
    {
        assert_eq!(ask(&other, tool), unknown, "{tool}");
    }
    assert_eq!(ask(&shop.agent, "connector:payments.refunds.create"), unknown, "another scope of the same service");
    let elsewhere = world.tenant("elsewhere").registers("billing", &["tools.invoke"]);
    assert_eq!(ask(&elsewhere, CHARGES), unknown);
}

fn scopes_allowlist_and_grants_decide_what_is_seen(world: &World) {
    let shop = Shop::open(world);
    let definition = json!({
        "service": "shell", "version": "1", "source": "host-extension",
        "tools": {
            "run": {"scope": "charges.read", "safety_tier": "exec", "required_scopes": ["shell:run"], "approval": "always"}
        }
    });
    shop.admin.post("/api/v1/services", &definition).created();
    let credential = crate::calls::shop::credential(&shop.admin, "shell", json!({}));
    shop.admin.grants(&credential, "billing", json!({}));
    let grant = shop.grant(json!({"scopes": ["charges.read"]}));
    assert_eq!(listed(&shop.agent, ""), [CHARGES]);
    change(&shop, json!({"scopes": ["shell:run"]}));
    assert_eq!(listed(&shop.agent, ""), [CHARGES, "x-host-shell:run"]);
    assert_eq!(listed(&shop.agent, "?source=host-extension"), ["x-host-shell:run"]);
    let shell = shop.agent.get("/v1/tools/x-host-shell%3Arun").ok();
    assert_eq!((&shell["safetyTier"], &shell["approval"]), (&json!("exec"), &json!("always")));

    change(&shop, json!({"tool_allowlist": ["x-host-shell:run"]}));
    assert_eq!(listed(&shop.agent, ""), ["x-host-shell:run"]);
    shop.agent.get(&format!("/v1/tools/{CHARGES}")).flat(404, "not_found");
    change(&shop, json!({"tool_allowlist": null}));
    assert_eq!(listed(&shop.agent, ""), [CHARGES, "x-host-shell:run"]);

    shop.admin.ask("PATCH", &format!("/api/v1/grants/{}/suspend", id(&grant)), None).ok();
    assert_eq!(listed(&shop.agent, ""), ["x-host-shell:run"]);
    change(&shop, json!({"permissions": ["tools.delegate"]}));
    assert_eq!(listed(&shop.agent, ""), [""; 0], "whoever may not invoke tools has none");
}

#[test]
fn the_list_is_an_object_where_the_operator_says_so() {
    let world = World::of(&setup().configuration("[openwop]\ntool_list = \"object\"\n"), None);
    assert_eq!(world.admin().get("/v1/tools").ok(), json!({"tools": []}));
    assert_eq!(world.admin().get("/v1/tools?view=compact").ok(), json!({"tools": []}));
}
