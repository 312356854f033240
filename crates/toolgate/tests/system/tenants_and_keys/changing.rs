//! Changing agents: field by field, in effect at once, on record, and never upward for oneself.

use serde_json::{Value, json};

use crate::world::{Actor, World, merged, names, on_both_engines, stripe};

on_both_engines! {
    an_agent_shows_what_it_was_registered_with,
    an_agent_is_changed_field_by_field_and_the_log_tells_it,
    a_change_holds_from_the_next_request_on,
    what_an_allowlist_names_in_vain_is_told_and_recorded,
    nobody_gives_others_more_than_they_have_by_a_change,
    nobody_widens_or_locks_out_themselves,
    a_change_that_makes_no_sense_is_refused_by_the_name_of_its_field,
}

const AGENT: &str = "/api/v1/agents/billing";

fn last_event(admin: &Actor, kind: &str) -> Value {
    admin.events(&format!("&type={kind}")).pop().unwrap_or_else(|| panic!("no {kind}"))
}

fn an_agent_shows_what_it_was_registered_with(world: &World) {
    let admin = world.admin();
    let limits = json!({
        "*": {"requests": 10, "per_seconds": 60}, "stripe.charges.read": {"requests": 1, "per_seconds": 1, "burst": 5}
    });
    let body = json!({
        "id": "billing", "scopes": ["tools:*:read", "http:fetch"], "rate_limits": limits,
        "tool_allowlist": ["openwop:http.fetch"]
    });
    let made = admin.post("/api/v1/agents", &body).created();
    assert_eq!(made["unresolved_tools"], json!([]));
    let shown = admin.get(AGENT).ok();
    let fields = [
        "budget",
        "created_at",
        "detach_calls",
        "id",
        "kind",
        "labels",
        "name",
        "permissions",
        "progressive_discovery",
        "rate_limits",
        "revision",
        "scopes",
        "stopped",
        "tenant_id",
        "tool_allowlist",
    ];
    assert_eq!(names(&shown), fields);
    assert_eq!(merged(shown.clone(), json!({"unresolved_tools": []})), made);
    assert_eq!((&shown["scopes"], &shown["revision"]), (&json!(["http:fetch", "tools:*:read"]), &json!(1)));
    assert_eq!((&shown["rate_limits"], &shown["tool_allowlist"]), (&limits, &json!(["openwop:http.fetch"])));
    let plain = admin.post("/api/v1/agents", &json!({"id": "plain"})).created();
    assert_eq!((&plain["rate_limits"], &plain["tool_allowlist"]), (&json!({}), &Value::Null));
}

fn an_agent_is_changed_field_by_field_and_the_log_tells_it(world: &World) {
    let admin = world.admin();
    let before = admin.post("/api/v1/agents", &json!({"id": "billing", "name": "Billing"})).created();
    let mut expected = before;
    let limits = json!({"*": {"requests": 3, "per_seconds": 1}});
    for (number, change) in [
        json!({"name": "Other"}),
        json!({"scopes": ["tools:*"]}),
        json!({"permissions": ["tools.delegate", "tools.invoke"]}),
        json!({"rate_limits": limits}),
        json!({"tool_allowlist": []}),
        json!({"tool_allowlist": null, "name": null}),
    ]
    .into_iter()
    .enumerate()
    {
        let changed = admin.patch(AGENT, &change).ok();
        expected = merged(merged(expected, change.clone()), json!({"revision": number + 2}));
        assert_eq!(changed, expected);
        let data = &last_event(&admin, "agent.updated")["data"];
        assert_eq!((&data["agent_id"], &data["revision"]), (&json!("billing"), &json!(number + 2)));
        let told = data["changed"].as_array().unwrap().len();
        assert_eq!(told, change.as_object().unwrap().len(), "{data}");
        for name in ["scopes", "permissions"] {
            assert_eq!(data.get(name), change.get(name), "{data}");
        }
    }
    let again = admin.patch(AGENT, &json!({"scopes": ["tools:*"]})).ok();
    assert_eq!(again["revision"], expected["revision"], "the same again is no change");
    assert_eq!(admin.patch(AGENT, &json!({})).ok(), again);
    assert_eq!(admin.events("&type=agent.updated").len(), 6);
    admin.patch("/api/v1/agents/nobody", &json!({"name": "A"})).refused(404, "AGENT_NOT_FOUND");
    admin.delete(AGENT).ok();
    admin.patch(AGENT, &json!({"name": "A"})).refused(404, "AGENT_NOT_FOUND");
}

fn a_change_holds_from_the_next_request_on(world: &World) {
    let admin = world.admin();
    let keeper = world.agent("billing", &["tools.manage"]);
    keeper.get("/api/v1/vaults").ok();
    admin.patch(AGENT, &json!({"permissions": []})).ok();
    keeper.get("/api/v1/vaults").refused(403, "PERMISSION_DENIED");
    admin.patch(AGENT, &json!({"permissions": ["tools.manage"], "scopes": ["a:b"]})).ok();
    keeper.get("/api/v1/vaults").ok();
    assert_eq!(keeper.get("/api/v1/whoami").ok()["scopes"], json!(["a:b"]));
}

fn what_an_allowlist_names_in_vain_is_told_and_recorded(world: &World) {
    let admin = world.admin();
    let tool = json!({"charges.read": {"description": "Reads", "http": {"method": "GET", "path": "/charges"}}});
    let definition = json!({"service": "pay.eu", "version": "1", "base_url": "http://127.0.0.1:9", "tools": tool});
    admin.post("/api/v1/services", &definition).created();
    let described =
        json!({"service": "mail", "metadata": {"base_url": "http://127.0.0.1:9"}, "scopes_available": ["send"]});
    let vault = admin.vault();
    let described = merged(stripe(), described);
    admin.post(&format!("/api/v1/vaults/{vault}/credentials"), &described).created();

    let there = ["connector:pay~eu.charges.read", "connector:mail.send", "openwop:http.fetch"];
    let missing = [
        "connector:mail.receive",
        "connector:pay.eu.charges.read",
        "connector:pay~eu.charges.write",
        "mcp:pay~eu.charges.read",
        "openwop:http.get",
    ];
    let all: Vec<&str> = there.into_iter().chain(missing).collect();
    let made = admin.post("/api/v1/agents", &json!({"id": "ab", "tool_allowlist": all})).created();
    assert_eq!(made["unresolved_tools"], json!(missing));
    let recorded = admin.events("&type=agent.toolReturned");
    let tools: Vec<&Value> = recorded.iter().map(|event| &event["data"]["toolName"]).collect();
    assert_eq!(json!(tools), json!(missing));
    for event in &recorded {
        assert_eq!(names(&event["data"]), ["agentId", "callId", "status", "toolName"]);
        assert_eq!((&event["data"]["agentId"], &event["data"]["status"]), (&json!("agent:ab"), &json!("forbidden")));
        let call = event["data"]["callId"].as_str().unwrap().strip_prefix("forbidden:").unwrap();
        assert!(call.len() == 64 && call.bytes().all(|digit| digit.is_ascii_hexdigit()), "{call}");
    }

    let path = "/api/v1/agents/ab";
    let changed = admin.patch(path, &json!({"tool_allowlist": there})).ok();
    assert_eq!(changed["unresolved_tools"], json!([]));
    let changed = admin.patch(path, &json!({"tool_allowlist": [there[0], missing[0]]})).ok();
    assert_eq!(changed["unresolved_tools"], json!([missing[0]]));
    let recorded = admin.events("&type=agent.toolReturned");
    assert_eq!(recorded.len(), missing.len() + 1);
    assert_eq!(recorded[0]["data"], recorded[missing.len()]["data"], "the same reference has the same id");
    assert!(admin.get(path).ok().get("unresolved_tools").is_none(), "it is told when it is given");
}

fn nobody_gives_others_more_than_they_have_by_a_change(world: &World) {
    let manager = world.agent("manager", &["agents.manage", "tools.invoke"]);
    let boss = world.agent("boss", &["agents.manage", "tools.manage"]);
    manager.registers("billing", &["tools.invoke"]);
    for stolen in ["tools.manage", "tenants.manage", "agents.act_as", "audit.read", "tools.delegate"] {
        let error = manager.patch(AGENT, &json!({"permissions": ["tools.invoke", stolen]}));
        assert_eq!(error.refused(403, "PERMISSION_DENIED")["required_permission"], stolen);
    }
    for above in ["boss", "admin"] {
        for change in [json!({"permissions": []}), json!({"name": "Mine"}), json!({"tool_allowlist": []}), json!({})] {
            manager.patch(&format!("/api/v1/agents/{above}"), &change).refused(403, "PERMISSION_DENIED");
        }
    }
    manager.patch(AGENT, &json!({"permissions": ["agents.manage"]})).ok();
    // Scopes open tools: nobody hands out more of them than they hold, but an administrator of the tenant.
    world.admin().patch("/api/v1/agents/manager", &json!({"scopes": ["mail:*"]})).ok();
    for beyond in [json!(["tools:*"]), json!(["mail:send", "workspace:exec"]), json!(["*"])] {
        manager.patch(AGENT, &json!({"scopes": beyond})).refused(403, "PERMISSION_DENIED");
        manager.post("/api/v1/agents", &json!({"id": "puppet", "scopes": beyond})).refused(403, "PERMISSION_DENIED");
    }
    manager.patch(AGENT, &json!({"scopes": ["mail:send"]})).ok();
    world.admin().patch(AGENT, &json!({"scopes": ["mail:send", "files:read"]})).ok();
    let error = manager.ask("POST", &format!("{AGENT}/keys"), None).refused(403, "PERMISSION_DENIED");
    assert_eq!(error["required_scope"], "files:read", "whoever has its key holds its scopes");
    manager.patch(AGENT, &json!({"scopes": ["mail:read", "files:read"]})).ok();
    boss.patch(AGENT, &json!({"permissions": ["tools.manage"]})).ok();
    manager.patch(AGENT, &json!({"permissions": []})).refused(403, "PERMISSION_DENIED");
    let plain = world.agent("plain", &["tools.invoke"]);
    plain.patch("/api/v1/agents/plain", &json!({"name": "Me"})).refused(403, "PERMISSION_DENIED");
    plain.patch(AGENT, &json!({"name": "It"})).refused(403, "PERMISSION_DENIED");
    let elsewhere = world.tenant("elsewhere");
    elsewhere.patch(AGENT, &json!({"name": "It"})).refused(404, "AGENT_NOT_FOUND");
}

fn nobody_widens_or_locks_out_themselves(world: &World) {
    let admin = world.admin();
    let manager = world.agent("manager", &["agents.manage", "tools.invoke"]);
    let path = "/api/v1/agents/manager";
    let limits = json!({"*": {"requests": 5, "per_seconds": 60}});
    let allowed = ["openwop:http.fetch", "connector:a.b"];
    admin.patch(path, &json!({"scopes": ["mail:*"], "rate_limits": limits, "tool_allowlist": allowed})).ok();
    let before = manager.get(path).ok();
    for wider in [
        json!({"permissions": ["agents.manage", "tools.invoke", "tools.manage"]}),
        json!({"permissions": ["tools.invoke"]}),
        json!({"scopes": ["mail:send", "files:read"]}),
        json!({"scopes": ["*"]}),
        json!({"rate_limits": {}}),
        json!({"rate_limits": {"*": {"requests": 4, "per_seconds": 60}}}),
        json!({"tool_allowlist": null}),
        json!({"tool_allowlist": ["openwop:http.fetch", "connector:a.c"]}),
        json!({"name": "Me", "scopes": ["mail"]}),
    ] {
        manager.patch(path, &wider).refused(403, "PERMISSION_DENIED");
    }
    assert_eq!(manager.get(path).ok(), before);
    let narrower = json!({
        "name": "Me", "permissions": ["agents.manage"], "scopes": ["mail:send"], "rate_limits": limits,
        "tool_allowlist": ["connector:a.b"]
    });
    let after = manager.patch(path, &narrower).ok();
    assert_eq!((&after["scopes"], &after["permissions"]), (&json!(["mail:send"]), &json!(["agents.manage"])));
    manager.patch(path, &json!({"scopes": ["mail:*"]})).refused(403, "PERMISSION_DENIED");
    admin.patch("/api/v1/agents/admin", &json!({"permissions": []})).refused(403, "PERMISSION_DENIED");
}

fn a_change_that_makes_no_sense_is_refused_by_the_name_of_its_field(world: &World) {
    let admin = world.admin();
    admin.post("/api/v1/agents", &json!({"id": "billing"})).created();
    let before = admin.get(AGENT).ok();
    let many: Vec<String> = (0..1025).map(|number| format!("connector:a.b{number}")).collect();
    for (change, place) in [
        (json!({"name": ""}), "name"),
        (json!({"scopes": null}), "scopes"),
        (json!({"scopes": ["a b"]}), "scopes[0]"),
        (json!({"scopes": ["a", "mail*"]}), "scopes[1]"),
        (json!({"permissions": null}), "permissions"),
        (json!({"permissions": ["tools.fly"]}), "permissions[0]"),
        (json!({"rate_limits": null}), "rate_limits"),
        (json!({"rate_limits": {"charges": {"requests": 1, "per_seconds": 1}}}), "rate_limits"),
        (json!({"rate_limits": {"*": {"requests": 0, "per_seconds": 1}}}), "rate_limits.*"),
        (json!({"rate_limits": {"*": [1, 1]}}), "rate_limits.*"),
        (json!({"tool_allowlist": "openwop:http.fetch"}), "tool_allowlist"),
        (json!({"tool_allowlist": ["http.fetch"]}), "tool_allowlist[0]"),
        (json!({"tool_allowlist": many}), "tool_allowlist"),
    ] {
        let error = admin.patch(AGENT, &change).refused(400, "INVALID_FIELD");
        assert_eq!(error["path"], place, "{change}: {error}");
    }
    let unknown = json!({"rate_limits": {"*": {"requests": 1, "per_seconds": 1, "brust": 1}}});
    assert_eq!(admin.patch(AGENT, &unknown).refused(400, "UNKNOWN_FIELD")["path"], "brust");
    admin.patch(AGENT, &json!({"id": "other"})).refused(400, "UNKNOWN_FIELD");
    assert_eq!(admin.get(AGENT).ok(), before);
}
