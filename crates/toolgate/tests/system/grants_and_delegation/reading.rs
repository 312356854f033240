//! Reading grants: filters, paging, the tree below, the lineage above, and the SDK's bare list.

use serde_json::{Value, json};

use crate::world::{Actor, World, id, ids, on_both_engines, stripe, until};

on_both_engines! {
    filters_give_what_fits_and_nothing_else,
    pages_cover_the_list_once,
    the_tree_shows_everything_below_in_its_place,
    the_lineage_stands_above_a_grant_from_the_first,
    the_list_of_the_sdk_is_a_bare_array_with_ended_grants,
}

fn filters_give_what_fits_and_nothing_else(world: &World) {
    let admin = world.admin();
    let stripe_credential = admin.credential();
    let mut github = stripe();
    github["service"] = json!("github");
    let github = id(&admin.post(&format!("/api/v1/vaults/{}/credentials", admin.vault()), &github).created());
    let expired = admin.grants(&github, "three", json!({"expires_at": admin.soon()}));
    let active = admin.grants(&stripe_credential, "one", json!({"delegatable": true}));
    let below = admin.delegates(&active, "two", json!({}));
    let suspended = admin.grants(&stripe_credential, "two", json!({}));
    let revoked = admin.grants(&github, "one", json!({}));
    admin.ask("PATCH", &format!("/api/v1/grants/{}/suspend", id(&suspended)), None).ok();
    admin.delete(&format!("/api/v1/grants/{}", id(&revoked))).ok();
    until("the grant expires", || (admin.grant(&expired)["status"] == "expired").then_some(()));

    let stripe_credential = format!("credential_id={stripe_credential}");
    let github_credential = format!("credential_id={github}");
    let both = format!("credential_id={github}&agent_id=three&status=expired&source=direct&service=github");
    let source = format!("source_grant_id={}", id(&active));
    let cases: [(&str, &[&Value]); 19] = [
        ("", &[&active, &below, &suspended, &revoked, &expired]),
        ("agent_id=one", &[&active, &revoked]),
        ("agent_id=two", &[&below, &suspended]),
        ("agent_id=nobody", &[]),
        ("service=stripe", &[&active, &below, &suspended]),
        ("service=github", &[&revoked, &expired]),
        ("service=gitlab", &[]),
        (&stripe_credential, &[&active, &below, &suspended]),
        (&github_credential, &[&revoked, &expired]),
        ("credential_id=cred_01HXYZ", &[]),
        ("status=active", &[&active, &below]),
        ("status=suspended", &[&suspended]),
        ("status=revoked", &[&revoked]),
        ("status=expired", &[&expired]),
        ("source=direct", &[&active, &suspended, &revoked, &expired]),
        ("source=delegated", &[&below]),
        (&source, &[&below]),
        ("source_grant_id=grant_nothing", &[]),
        (&both, &[&expired]),
    ];
    for (query, expected) in cases {
        let mut expected: Vec<String> = expected.iter().copied().map(id).collect();
        expected.sort();
        let page = admin.get(&format!("/api/v1/grants?{query}")).ok();
        assert_eq!(ids(&page["grants"]), expected, "{query}");
        assert_eq!(page["next_cursor"], Value::Null);
    }
    for wrong in ["status=ended", "source=both", "service=a%20b", "agent_id=", "agent=one", "limit=0", "limit=1001"] {
        let error = admin.get(&format!("/api/v1/grants?{wrong}")).error();
        assert!(matches!(error["code"].as_str(), Some("INVALID_FIELD" | "UNKNOWN_FIELD")), "{wrong}: {error}");
    }
}

fn pages_cover_the_list_once(world: &World) {
    let admin = world.admin();
    let credential = admin.credential();
    let top = admin.grants(&credential, "one", json!({"delegatable": true}));
    let mut all = vec![id(&top)];
    for number in 0..9 {
        let grant = match number % 2 {
            0 => admin.grants(&credential, "one", json!({})),
            _ => admin.delegates(&top, "one", json!({})),
        };
        all.push(id(&grant));
    }
    all.sort();
    for limit in [1, 3, 5, 10, 11] {
        let found = walk(&admin, &format!("/api/v1/grants?limit={limit}"), limit);
        assert_eq!(found, all, "by {limit}");
    }
    let direct = walk(&admin, "/api/v1/grants?source=direct&limit=2", 2);
    assert_eq!(direct.len(), 6);
    let first = admin.get("/api/v1/grants?limit=4").ok();
    let last = first["next_cursor"].as_str().unwrap();
    assert_eq!(last, all[3], "a cursor is the last id of its page");
    admin.grants(&credential, "one", json!({}));
    let rest = admin.get(&format!("/api/v1/grants?cursor={last}")).ok();
    assert_eq!(rest["grants"].as_array().unwrap().len(), 7, "what is made meanwhile comes at the end");
}

fn walk(actor: &Actor, path: &str, limit: usize) -> Vec<String> {
    let mut found = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = actor.get(&format!("{path}{cursor}")).ok();
        let on_page = ids(&page["grants"]);
        assert!(on_page.len() <= limit);
        found.extend(on_page);
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return found,
        }
    }
}

fn the_tree_shows_everything_below_in_its_place(world: &World) {
    let admin = world.admin();
    let more = json!({"delegatable": true, "delegation_depth": null});
    let root = admin.grants(&admin.credential(), "root", more);
    let left = admin.delegates(&root, "left", json!({}));
    let right = admin.delegates(&root, "right", json!({}));
    let leaves = ["a", "b", "c"].map(|agent| admin.delegates(&left, agent, json!({})));
    admin.delete(&format!("/api/v1/grants/{}", id(&leaves[1]))).ok();
    let answer = admin.get(&format!("/api/v1/grants/{}/tree", id(&root))).ok();
    assert_eq!((&answer["count"], &answer["truncated"]), (&json!(5), &json!(false)));
    let tree = &answer["tree"];
    assert_eq!((&tree["id"], &tree["lineage"]), (&root["id"], &json!([])));
    assert_eq!(agents_below(tree), json!({"left": {"a": {}, "b": {}, "c": {}}, "right": {}}));
    let branch = tree["delegations"].as_array().unwrap().iter().find(|grant| grant["id"] == left["id"]).unwrap();
    let revoked = branch["delegations"].as_array().unwrap().iter().find(|grant| grant["agent_id"] == "b").unwrap();
    assert_eq!(revoked["status"], "revoked", "ended grants stay in the tree");
    let part = admin.get(&format!("/api/v1/grants/{}/tree", id(&left))).ok();
    assert_eq!((&part["count"], &part["tree"]["lineage"][0]["grant_id"]), (&json!(3), &root["id"]));
    let none = admin.get(&format!("/api/v1/grants/{}/tree", id(&right))).ok();
    assert_eq!((&none["count"], &none["tree"]["delegations"]), (&json!(0), &json!([])));
}

fn agents_below(grant: &Value) -> Value {
    let below = grant["delegations"].as_array().unwrap();
    below.iter().map(|grant| (grant["agent_id"].as_str().unwrap().to_owned(), agents_below(grant))).collect()
}

fn the_lineage_stands_above_a_grant_from_the_first(world: &World) {
    let admin = world.admin();
    let more = json!({"delegatable": true, "delegation_depth": null, "granted_by": "owner"});
    let top = admin.grants(&admin.credential(), "one", more);
    let middle = admin.delegates(&top, "two", json!({}));
    let bottom = admin.delegates(&middle, "three", json!({}));
    admin.ask("PATCH", &format!("/api/v1/grants/{}/suspend", id(&middle)), None).ok();
    let expected = json!([
        {"grant_id": top["id"], "agent_id": "one", "granted_by": "owner", "status": "active"},
        {"grant_id": middle["id"], "agent_id": "two", "granted_by": "one", "status": "suspended"},
    ]);
    let shown = admin.grant(&bottom);
    assert_eq!(shown["lineage"], expected);
    assert_eq!(shown["effective_status_decided_by"], middle["id"]);
    let listed = admin.get("/api/v1/grants?agent_id=three").ok();
    assert_eq!(listed["grants"][0]["lineage"], expected, "lists show the same");
    assert_eq!(listed["grants"][0]["effective_status"], "suspended");
}

fn the_list_of_the_sdk_is_a_bare_array_with_ended_grants(world: &World) {
    let admin = world.admin();
    let one = world.agent("one", &["tools.invoke"]);
    let credential = admin.credential();
    let mut grants: Vec<String> = (0..3).map(|_| id(&admin.grants(&credential, "one", json!({})))).collect();
    grants.sort();
    admin.grants(&credential, "two", json!({}));
    admin.delete(&format!("/api/v1/grants/{}", grants[1])).ok();
    for actor in [&admin, &one] {
        let listed = actor.get("/api/v1/agents/one/grants").ok();
        assert_eq!(ids(&listed), grants);
        assert_eq!(listed[1]["status"], "revoked");
    }
    assert_eq!(admin.get("/api/v1/agents/nobody/grants").ok(), json!([]));
    one.get("/api/v1/agents/two/grants").refused(403, "PERMISSION_DENIED");
    one.get("/api/v1/agents/nobody/grants").refused(403, "PERMISSION_DENIED");
}
