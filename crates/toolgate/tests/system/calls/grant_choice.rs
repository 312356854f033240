//! Which grant a call goes through when it names none: among those that would admit it, bound to the task before unbound,
//! fewest scopes, soonest expiry, oldest. The answer says which.

use std::time::Duration;

use serde_json::{Value, json};

use super::shop::Shop;
use crate::world::{World, id, on_both_engines};

on_both_engines! {
    bound_to_the_task_comes_before_unbound,
    fewest_scopes_come_before_soonest_expiry,
    of_equal_grants_the_oldest_is_taken,
    a_grant_without_room_is_passed_over,
    a_grant_whose_rules_deny_the_call_is_passed_over,
    a_grant_that_ended_or_pauses_is_passed_over,
    a_named_grant_is_the_only_one_that_is_used,
    a_delegated_grant_is_weighed_by_what_it_can_do_in_effect,
}

fn used(shop: &Shop, more: Value) -> String {
    let answer = shop.read(more).ok();
    answer["grant_id"].as_str().unwrap().to_owned()
}

fn bound_to_the_task_comes_before_unbound(world: &World) {
    let shop = Shop::open(world);
    // The bound one is worse in every other respect.
    let unbound = shop.grant(json!({"scopes": ["charges.read"]}));
    let bound = shop.grant(json!({"context": {"task_id": "t1"}, "expires_at": null, "allow_indefinite": true}));
    shop.grant(json!({"context": {"intent_id": "i1"}}));
    assert_eq!(used(&shop, json!({})), id(&unbound));
    assert_eq!(used(&shop, json!({"context": {"task_id": "t2"}})), id(&unbound));
    assert_eq!(used(&shop, json!({"context": {"task_id": "t1"}})), id(&bound));
    assert_eq!(used(&shop, json!({"context": {"intent_id": "i1"}})), id(&unbound), "a task is more than an intent");
}

fn fewest_scopes_come_before_soonest_expiry(world: &World) {
    let shop = Shop::open(world);
    let now = shop.admin.time();
    let days = |count: u64| now.plus(Duration::from_secs(count * 86_400));
    let wide_and_soon = shop.grant(json!({"expires_at": days(1)}));
    assert_eq!(used(&shop, json!({})), id(&wide_and_soon));
    let endless = json!({"scopes": ["charges.read"], "expires_at": null, "allow_indefinite": true});
    let endless = shop.grant(endless);
    assert_eq!(used(&shop, json!({})), id(&endless), "fewest scopes");
    let late = shop.grant(json!({"scopes": ["charges.read"], "expires_at": days(9)}));
    assert_eq!(used(&shop, json!({})), id(&late), "any end before none");
    let soon = shop.grant(json!({"scopes": ["charges.read"], "expires_at": days(3)}));
    shop.grant(json!({"scopes": ["charges.read"], "expires_at": days(5)}));
    assert_eq!(used(&shop, json!({})), id(&soon), "soonest end");
}

fn of_equal_grants_the_oldest_is_taken(world: &World) {
    let shop = Shop::open(world);
    let end = shop.admin.time().plus(Duration::from_secs(86_400));
    let grants: Vec<Value> = (0..4).map(|_| shop.grant(json!({"expires_at": end}))).collect();
    for _ in 0..3 {
        assert_eq!(used(&shop, json!({})), id(&grants[0]));
    }
}

fn a_grant_without_room_is_passed_over(world: &World) {
    let shop = Shop::open(world);
    let once = shop.grant(json!({"scopes": ["charges.read"], "constraints": {"max_invocations_per_hour": 1}}));
    let twice = shop.grant(json!({"constraints": {"max_invocations_per_hour": 2}}));
    let through: Vec<String> = (0..3).map(|_| used(&shop, json!({}))).collect();
    assert_eq!(through, [id(&once), id(&twice), id(&twice)]);
    let error = shop.denied(&shop.read(json!({})), 429, "GRANT_RATE_LIMITED");
    assert_eq!(error["grant_id"], once["id"], "the refusal is that of the grant that would be used first");
    assert_eq!(shop.upstream.count(), 3);
}

fn a_grant_whose_rules_deny_the_call_is_passed_over(world: &World) {
    let shop = Shop::open(world);
    let only = |charge: &str| json!({"scopes": ["charges.read"], "constraints": {"allowed_parameters": {"charge_id": [charge]}}});
    let first = shop.grant(only("ch_1"));
    let seventh = shop.grant(only("ch_7"));
    let elsewhere = json!({"scopes": ["charges.read"], "constraints": {"ip_allowlist": ["10.0.0.0/8"]}});
    shop.grant(elsewhere);
    assert_eq!(used(&shop, json!({})), id(&seventh));
    assert_eq!(used(&shop, json!({"parameters": {"charge_id": "ch_1"}})), id(&first));
    let reply = shop.read(json!({"parameters": {"charge_id": "ch_2"}}));
    shop.denied(&reply, 403, "GRANT_PARAMETER_DENIED");
    let cheap = json!({"scopes": ["charges.read"], "constraints": {"max_cost_per_invocation": 0.0001}});
    shop.grant(cheap);
    assert_eq!(used(&shop, json!({})), id(&seventh));
}

fn a_grant_that_ended_or_pauses_is_passed_over(world: &World) {
    let shop = Shop::open(world);
    let narrow: Vec<Value> = (0..2).map(|_| shop.grant(json!({"scopes": ["charges.read"]}))).collect();
    let wide = shop.grant(json!({}));
    assert_eq!(used(&shop, json!({})), id(&narrow[0]));
    shop.admin.patch(&format!("/api/v1/grants/{}/suspend", id(&narrow[0])), &json!({"reason": "x"})).ok();
    assert_eq!(used(&shop, json!({})), id(&narrow[1]));
    shop.admin.delete(&format!("/api/v1/grants/{}", id(&narrow[1]))).ok();
    assert_eq!(used(&shop, json!({})), id(&wide));
    shop.admin.ask("PATCH", &format!("/api/v1/grants/{}/resume", id(&narrow[0])), None).ok();
    assert_eq!(used(&shop, json!({})), id(&narrow[0]), "a grant that is back is seen by the next call");
}

fn a_named_grant_is_the_only_one_that_is_used(world: &World) {
    let shop = Shop::open(world);
    let narrow = shop.grant(json!({"scopes": ["charges.read"]}));
    let wide = shop.grant(json!({"constraints": {"max_invocations_per_hour": 1}}));
    assert_eq!(used(&shop, json!({"grant_id": wide["id"]})), id(&wide));
    let error = shop.denied(&shop.read(json!({"grant_id": wide["id"]})), 429, "GRANT_RATE_LIMITED");
    assert_eq!(error["grant_id"], wide["id"]);
    assert_eq!(used(&shop, json!({})), id(&narrow));
}

fn a_delegated_grant_is_weighed_by_what_it_can_do_in_effect(world: &World) {
    let shop = Shop::open(world);
    let source = shop.grant_to("coordinator", json!({"delegatable": true, "context": {"task_id": "t1"}}));
    let delegated = shop.admin.delegates(&source, "billing", json!({"scopes": ["charges.read", "charges.create"]}));
    let direct = shop.grant(json!({"scopes": ["charges.read"]}));
    assert_eq!(used(&shop, json!({})), id(&direct), "the delegated one is bound to a task");
    assert_eq!(used(&shop, json!({"context": {"task_id": "t1"}})), id(&delegated));
}
