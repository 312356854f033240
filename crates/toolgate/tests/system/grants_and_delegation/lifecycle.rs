//! The lifecycle of §2.4 and §5.3: suspension, revocation, expiry, and what each does to everything below.

use serde_json::{Value, json};

use crate::world::{Actor, World, id, names, on_both_engines, until};

on_both_engines! {
    suspension_stops_everything_below_and_resuming_restores_exactly_the_rest,
    who_suspended_decides_who_may_resume,
    a_holder_with_vaults_of_its_own_cannot_resume_what_others_paused,
    revocation_takes_the_whole_subtree_and_says_how_much_and_since_when,
    holders_and_delegators_may_give_grants_back,
    an_expired_grant_is_over_for_good_and_announced_once,
    removing_an_agent_ends_what_it_holds_and_all_below,
}

const DELEGATOR: &[&str] = &["tools.invoke", "tools.delegate"];

/// Three grants below each other, the agents called one, two and three.
fn chain(admin: &Actor) -> [Value; 3] {
    let more = json!({"delegatable": true, "delegation_depth": null});
    let top = admin.grants(&admin.credential(), "one", more);
    let middle = admin.delegates(&top, "two", json!({}));
    let bottom = admin.delegates(&middle, "three", json!({}));
    [top, middle, bottom]
}

fn path(grant: &Value, what: &str) -> String {
    format!("/api/v1/grants/{}/{what}", id(grant))
}

/// The grant's own status, the one in effect, and the grant that decides it.
fn standing(admin: &Actor, grant: &Value) -> (Value, Value, Value) {
    let shown = admin.grant(grant);
    (shown["status"].clone(), shown["effective_status"].clone(), shown["effective_status_decided_by"].clone())
}

fn active() -> (Value, Value, Value) {
    (json!("active"), json!("active"), Value::Null)
}

fn suspension_stops_everything_below_and_resuming_restores_exactly_the_rest(world: &World) {
    let admin = world.admin();
    let [top, middle, bottom] = chain(&admin);
    let sibling = admin.delegates(&top, "four", json!({}));
    let over = admin.delegates(&top, "five", json!({}));
    admin.patch(&path(&bottom, "suspend"), &json!({"reason": "by itself"})).ok();
    admin.delete(&format!("/api/v1/grants/{}", id(&over))).ok();

    let paused = admin.patch(&path(&top, "suspend"), &json!({"reason": "an incident"})).ok();
    assert_eq!((&paused["status"], &paused["effective_status"]), (&json!("suspended"), &json!("suspended")));
    assert!(paused["suspended_at"].is_string());
    let by_top = (json!("active"), json!("suspended"), top["id"].clone());
    assert_eq!(standing(&admin, &middle), by_top);
    assert_eq!(standing(&admin, &sibling), by_top);
    assert_eq!(standing(&admin, &over).1, "revoked", "revocation weighs more");
    for grant in [&top, &middle] {
        let error = admin.tries_to_delegate(grant, "six", json!({})).refused(403, "GRANT_SUSPENDED");
        assert_eq!(error["grant_id"], grant["id"]);
    }
    admin.patch(&path(&top, "suspend"), &json!({})).refused(403, "GRANT_SUSPENDED");
    // A grant below may be paused on its own while the one above is.
    admin.ask("PATCH", &path(&sibling, "suspend"), None).ok();

    let resumed = admin.ask("PATCH", &path(&top, "resume"), None).ok();
    assert_eq!((&resumed["status"], &resumed["suspended_at"]), (&json!("active"), &Value::Null));
    assert_eq!(standing(&admin, &top), active());
    assert_eq!(standing(&admin, &middle), active());
    assert_eq!(standing(&admin, &bottom), (json!("suspended"), json!("suspended"), bottom["id"].clone()));
    assert_eq!(standing(&admin, &sibling).0, "suspended");
    assert_eq!(standing(&admin, &over).0, "revoked");
    admin.delegates(&middle, "six", json!({}));
    admin.ask("PATCH", &path(&top, "resume"), None).refused(409, "GRANT_NOT_SUSPENDED");
    admin.ask("PATCH", &path(&bottom, "resume"), None).ok();
    assert_eq!(standing(&admin, &bottom), active());
}

fn who_suspended_decides_who_may_resume(world: &World) {
    let admin = world.admin();
    let one = world.agent("one", DELEGATOR);
    let two = world.agent("two", DELEGATOR);
    let [top, middle, bottom] = chain(&admin);
    // A holder does not pause its own grant, a delegator does pause what is below.
    one.ask("PATCH", &path(&top, "suspend"), None).refused(403, "PERMISSION_DENIED");
    two.ask("PATCH", &path(&middle, "suspend"), None).refused(403, "PERMISSION_DENIED");
    two.ask("PATCH", &path(&top, "suspend"), None).refused(404, "GRANT_NOT_FOUND");
    one.ask("PATCH", &path(&bottom, "suspend"), None).ok();
    two.ask("PATCH", &path(&bottom, "resume"), None).refused(403, "PERMISSION_DENIED");
    one.ask("PATCH", &path(&bottom, "resume"), None).ok();
    admin.ask("PATCH", &path(&middle, "suspend"), None).ok();
    one.ask("PATCH", &path(&middle, "resume"), None).refused(403, "PERMISSION_DENIED");
    two.ask("PATCH", &path(&middle, "resume"), None).refused(403, "PERMISSION_DENIED");
    admin.ask("PATCH", &path(&middle, "resume"), None).ok();
    // A manager's pause takes the place of a delegator's, who cannot end it then.
    one.ask("PATCH", &path(&bottom, "suspend"), None).ok();
    admin.ask("PATCH", &path(&bottom, "suspend"), None).ok();
    one.ask("PATCH", &path(&bottom, "resume"), None).refused(403, "PERMISSION_DENIED");
    one.ask("PATCH", &path(&bottom, "suspend"), None).refused(403, "GRANT_SUSPENDED");
    admin.ask("PATCH", &path(&bottom, "resume"), None).ok();
    let plain = world.agent("three", &["tools.invoke"]);
    let held = admin.grants(&admin.credential(), "three", json!({"delegatable": true}));
    let below = admin.delegates(&held, "four", json!({}));
    plain.ask("PATCH", &path(&below, "suspend"), None).refused(403, "PERMISSION_DENIED");
}

fn a_holder_with_vaults_of_its_own_cannot_resume_what_others_paused(world: &World) {
    let admin = world.admin();
    let one = world.agent("one", &["tools.invoke", "tools.delegate", "tools.manage"]);
    let [top, middle, _] = chain(&admin);
    for grant in [&top, &middle] {
        admin.ask("PATCH", &path(grant, "suspend"), None).ok();
        one.ask("PATCH", &path(grant, "resume"), None).refused(403, "PERMISSION_DENIED");
        assert_eq!(admin.grant(grant)["status"], "suspended");
    }
    // What is in its own vault it manages.
    let own = one.grants(&one.credential(), "one", json!({}));
    one.ask("PATCH", &path(&own, "suspend"), None).ok();
    one.ask("PATCH", &path(&own, "resume"), None).ok();
}

fn revocation_takes_the_whole_subtree_and_says_how_much_and_since_when(world: &World) {
    let admin = world.admin();
    let [top, middle, bottom] = chain(&admin);
    let sibling = admin.delegates(&top, "four", json!({}));
    let before = admin.grant(&top)["revision"].as_u64().unwrap();
    let answer = admin.ask("DELETE", &format!("/api/v1/grants/{}", id(&middle)), Some(&json!({"reason": "done"}))).ok();
    let fields = ["cascade_count", "grant_id", "revision", "revoked_at", "revoked_count", "status"];
    assert_eq!(names(&answer), fields);
    assert_eq!((&answer["status"], &answer["grant_id"]), (&json!("revoked"), &middle["id"]));
    assert_eq!((&answer["revoked_count"], &answer["cascade_count"]), (&json!(2), &json!(1)));
    let revision = answer["revision"].as_u64().unwrap();
    assert!(revision > before);
    for grant in [&middle, &bottom] {
        let shown = admin.grant(grant);
        assert_eq!((&shown["status"], &shown["revoked_at"]), (&json!("revoked"), &answer["revoked_at"]));
        assert!(shown["revision"].as_u64().unwrap() >= revision, "what is read now includes the revocation");
    }
    for grant in [&top, &sibling] {
        assert_eq!(standing(&admin, grant), active());
    }
    for grant in [&middle, &bottom] {
        admin.ask("PATCH", &path(grant, "suspend"), None).refused(403, "GRANT_REVOKED");
        admin.ask("PATCH", &path(grant, "resume"), None).refused(403, "GRANT_REVOKED");
        let error = admin.tries_to_delegate(grant, "late", json!({})).refused(403, "GRANT_REVOKED");
        assert_eq!(error["grant_id"], grant["id"]);
    }
    let again = admin.delete(&format!("/api/v1/grants/{}", id(&middle))).ok();
    assert_eq!((&again["revoked_count"], &again["cascade_count"]), (&json!(0), &json!(0)), "nothing is left to end");
    assert_eq!(again["revoked_at"], answer["revoked_at"], "and the time stays");
    // A paused grant ends with the rest.
    admin.ask("PATCH", &path(&sibling, "suspend"), None).ok();
    let rest = admin.delete(&format!("/api/v1/grants/{}", id(&top))).ok();
    assert_eq!((&rest["revoked_count"], &rest["cascade_count"]), (&json!(2), &json!(1)));
    assert_eq!(standing(&admin, &sibling).0, "revoked");
}

fn holders_and_delegators_may_give_grants_back(world: &World) {
    let admin = world.admin();
    let one = world.agent("one", DELEGATOR);
    let three = world.agent("three", &[]);
    let [top, middle, bottom] = chain(&admin);
    three.delete(&format!("/api/v1/grants/{}", id(&middle))).refused(404, "GRANT_NOT_FOUND");
    assert_eq!(three.delete(&format!("/api/v1/grants/{}", id(&bottom))).ok()["revoked_count"], 1);
    assert_eq!(one.delete(&format!("/api/v1/grants/{}", id(&middle))).ok()["revoked_count"], 1);
    assert_eq!(admin.grant(&top)["status"], "active");
    let plain = world.agent("two", &["tools.invoke"]);
    let held = admin.grants(&admin.credential(), "two", json!({"delegatable": true}));
    let below = admin.delegates(&held, "four", json!({}));
    let error = plain.delete(&format!("/api/v1/grants/{}", id(&below))).refused(403, "PERMISSION_DENIED");
    assert_eq!(error["required_permission"], "tools.delegate");
    assert_eq!(plain.delete(&format!("/api/v1/grants/{}", id(&held))).ok()["revoked_count"], 2);
}

fn an_expired_grant_is_over_for_good_and_announced_once(world: &World) {
    let admin = world.admin();
    let credential = admin.credential();
    let end = admin.soon();
    let more =
        json!({"delegatable": true, "expires_at": end, "context": {"intent_id": "intent_7", "task_id": "task_7"}});
    let grant = admin.grants(&credential, "one", more);
    let below = admin.delegates(&grant, "two", json!({}));
    until("the grant expires", || (admin.grant(&grant)["status"] == "expired").then_some(()));
    assert_eq!(standing(&admin, &below).1, "expired", "nobody outlives its source");
    admin.tries_to_delegate(&grant, "three", json!({})).refused(403, "GRANT_EXPIRED");
    admin.ask("PATCH", &path(&grant, "suspend"), None).refused(403, "GRANT_EXPIRED");
    admin.ask("PATCH", &path(&grant, "resume"), None).refused(403, "GRANT_EXPIRED");
    let events = until("its expiry is announced", || {
        let events = admin.events("&type=grant.expired");
        (events.len() >= 2).then_some(events)
    });
    assert_eq!(events.len(), 2, "{events:?}");
    let about = events.iter().find(|event| event["data"]["grant_id"] == grant["id"]).unwrap();
    assert_eq!(about["data"], json!({"grant_id": grant["id"]}));
    assert_eq!((&about["actor"], &about["agent_id"]), (&json!("core.system"), &json!("one")));
    assert_eq!((&about["intent_id"], &about["task_id"]), (&json!("intent_7"), &json!("task_7")));
    let revoked = admin.delete(&format!("/api/v1/grants/{}", id(&grant))).ok();
    assert_eq!((&revoked["status"], &revoked["revoked_count"]), (&json!("expired"), &json!(0)), "expiry is terminal");
    assert_eq!(admin.events("&type=grant.expired").len(), 2, "once each");
}

fn removing_an_agent_ends_what_it_holds_and_all_below(world: &World) {
    let admin = world.admin();
    let two = world.agent("two", DELEGATOR);
    let [top, middle, bottom] = chain(&admin);
    let other = admin.grants(&admin.credential(), "two", json!({}));
    let removed = admin.delete("/api/v1/agents/two").ok();
    assert_eq!((&removed["revoked_keys"], &removed["revoked_grants"]), (&json!(1), &json!(3)));
    for grant in [&middle, &bottom, &other] {
        assert_eq!(standing(&admin, grant).0, "revoked");
    }
    assert_eq!(standing(&admin, &top), active());
    two.get("/api/v1/whoami").refused(401, "KEY_REVOKED");
    admin.tries_to_delegate(&top, "two", json!({})).refused(404, "AGENT_NOT_FOUND");
}
