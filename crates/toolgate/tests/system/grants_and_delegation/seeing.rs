//! Who sees which grant, and who may speak for whom. What a caller may not see looks exactly like what does not exist.

use serde_json::{Value, json};

use crate::world::{Actor, World, id, ids, on_both_engines};

on_both_engines! {
    an_agent_sees_its_grants_and_those_below_and_others_look_like_none,
    nobody_speaks_for_another_without_leave,
    a_keeper_of_vaults_reaches_what_is_in_them_and_no_further,
}

/// A grant id that was never given out.
const UNKNOWN: &str = "grant_01K9ZZZZZZ0000000000000000";

fn an_agent_sees_its_grants_and_those_below_and_others_look_like_none(world: &World) {
    let admin = world.admin();
    let one = world.agent("one", &["tools.invoke", "tools.delegate"]);
    let two = world.agent("two", &["tools.invoke", "tools.delegate"]);
    let more = json!({"delegatable": true, "delegation_depth": null});
    let credential = admin.credential();
    let top = admin.grants(&credential, "one", more.clone());
    let middle = one.delegates(&top, "two", json!({}));
    let bottom = two.delegates(&middle, "three", json!({}));
    let foreign = admin.grants(&credential, "four", more);

    for grant in [&top, &middle, &bottom] {
        assert_eq!(one.grant(grant)["id"], grant["id"]);
        one.get(&format!("/api/v1/grants/{}/tree", id(grant))).ok();
    }
    assert_eq!(ids(&one.get("/api/v1/grants").ok()["grants"]), [id(&top)], "its list is what it holds");
    assert_eq!(ids(&two.get("/api/v1/grants?agent_id=two").ok()["grants"]), [id(&middle)]);
    two.get("/api/v1/grants?agent_id=one").refused(403, "PERMISSION_DENIED");

    for hidden in [id(&top), id(&foreign)] {
        for (method, what, body) in [
            ("GET", "", None),
            ("GET", "/tree", None),
            ("POST", "/delegate", Some(json!({"target_agent_id": "two", "scopes": ["charges.read"]}))),
            ("PATCH", "/suspend", Some(json!({"reason": "because"}))),
            ("PATCH", "/resume", None),
            ("DELETE", "", None),
        ] {
            assert_looks_like_none(&two, method, &hidden, what, body.as_ref());
        }
    }
    assert_eq!(admin.grant(&foreign)["status"], "active");
    assert_eq!(admin.grant(&top)["status"], "active");
}

/// The answer about a grant that is there is that about one that is not, but for the id itself.
fn assert_looks_like_none(actor: &Actor, method: &str, grant: &str, what: &str, body: Option<&Value>) {
    let ask = |grant: &str| actor.ask(method, &format!("/api/v1/grants/{grant}{what}"), body);
    let (hidden, none) = (ask(grant), ask(UNKNOWN));
    none.refused(404, "GRANT_NOT_FOUND");
    assert_eq!(hidden.status(), none.status());
    assert_eq!(hidden.answer.text().replace(grant, UNKNOWN), none.answer.text(), "{}", hidden.asked);
}

fn nobody_speaks_for_another_without_leave(world: &World) {
    let admin = world.admin();
    let one = world.agent("one", &["tools.invoke", "tools.delegate", "tools.manage"]);
    world.agent("two", &[]);
    let whoami = |actor: &Actor, agent: &str| actor.ask_with("GET", "/api/v1/whoami", &[("X-Agent-ID", agent)], None);
    assert_eq!(whoami(&one, "one").ok()["id"], "one");
    for other in ["two", "admin", "nobody"] {
        let error = whoami(&one, other).refused(403, "PERMISSION_DENIED");
        assert_eq!(error["required_permission"], "agents.act_as");
        whoami(&admin, other).ok();
    }
    for odd in ["", "a b", "../admin", "one,two"] {
        whoami(&one, odd).refused(400, "INVALID_FIELD");
    }
    let twice = [("X-Agent-ID", "one"), ("X-Agent-ID", "two")];
    one.ask_with("GET", "/api/v1/whoami", &twice, None).refused(400, "INVALID_FIELD");

    one.post("/api/v1/vaults", &json!({"name": "v", "owner_id": "two"})).refused(403, "PERMISSION_DENIED");
    let credential = one.credential();
    let body = json!({"credential_id": credential, "agent_id": "two", "granted_by": "two", "scopes": ["charges.read"]});
    let error = one.post("/api/v1/grants", &body).refused(403, "PERMISSION_DENIED");
    assert_eq!(error["required_permission"], "agents.act_as");
    let own = json!({"credential_id": credential, "agent_id": "two", "granted_by": "one", "scopes": ["charges.read"]});
    assert_eq!(one.post("/api/v1/grants", &own).created()["granted_by"], "one");
    assert_eq!(admin.post("/api/v1/grants", &body).created()["granted_by"], "two");
}

fn a_keeper_of_vaults_reaches_what_is_in_them_and_no_further(world: &World) {
    let admin = world.admin();
    let keeper = world.agent("keeper", &["tools.manage"]);
    let own_credential = keeper.credential();
    let foreign_credential = admin.credential();
    let own = keeper.grants(&own_credential, "agent", json!({"delegatable": true}));
    let foreign = admin.grants(&foreign_credential, "agent", json!({}));

    assert_eq!(keeper.grant(&own)["id"], own["id"]);
    keeper.get(&format!("/api/v1/grants/{}", id(&foreign))).refused(404, "GRANT_NOT_FOUND");
    assert_eq!(ids(&keeper.get("/api/v1/grants?agent_id=agent").ok()["grants"]), [id(&own)]);
    assert_eq!(ids(&keeper.get("/api/v1/grants").ok()["grants"]), [id(&own)], "its list is what it keeps");
    assert_eq!(ids(&keeper.get("/api/v1/agents/agent/grants").ok()), [id(&own)]);
    let vaults = keeper.get("/api/v1/vaults").ok();
    assert_eq!(vaults["vaults"].as_array().unwrap().len(), 1);

    let vault = admin.get(&format!("/api/v1/credentials/{foreign_credential}")).ok()["vault_id"].clone();
    keeper.get(&format!("/api/v1/vaults/{}", vault.as_str().unwrap())).refused(404, "VAULT_NOT_FOUND");
    keeper.delete(&format!("/api/v1/vaults/{}", vault.as_str().unwrap())).refused(404, "VAULT_NOT_FOUND");
    let path = format!("/api/v1/credentials/{foreign_credential}");
    keeper.get(&path).refused(404, "CREDENTIAL_NOT_FOUND");
    keeper.delete(&path).refused(404, "CREDENTIAL_NOT_FOUND");
    let rotation = json!({"material": {"api_key": "mine"}});
    keeper.patch(&format!("{path}/rotate"), &rotation).refused(404, "CREDENTIAL_NOT_FOUND");
    keeper.ask("POST", &format!("{path}/verify"), None).refused(404, "CREDENTIAL_NOT_FOUND");
    let body = json!({"credential_id": foreign_credential, "agent_id": "keeper", "scopes": ["charges.read"]});
    keeper.post("/api/v1/grants", &body).refused(404, "CREDENTIAL_NOT_FOUND");

    keeper.ask("PATCH", &format!("/api/v1/grants/{}/suspend", id(&own)), None).ok();
    keeper.ask("PATCH", &format!("/api/v1/grants/{}/resume", id(&own)), None).ok();
    keeper.delete(&format!("/api/v1/grants/{}", id(&own))).ok();
    assert_eq!(admin.grant(&foreign)["status"], "active");
}
