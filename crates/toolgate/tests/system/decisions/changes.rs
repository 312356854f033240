//! What changes between a decision and the request is decided on again, or refused.

use serde_json::json;
use toolgate_testkit::upstream::{Reply as Answer, Upstream};

use super::office::{Payments, refund};
use crate::world::{World, on_both_engines, setup, until};

on_both_engines! {
    a_definition_that_is_replaced_during_the_wait_voids_the_yes,
    a_credential_that_is_pointed_elsewhere_during_the_wait_voids_the_yes,
    a_credential_whose_secret_alone_is_rotated_during_the_wait_is_what_was_approved,
    always_for_one_credential_covers_no_other,
    always_covers_neither_another_definition_nor_another_place,
    the_card_names_credential_method_and_host,
    a_rule_about_the_time_sees_the_time_after_the_wait,
    a_rule_about_results_sees_the_time_at_which_the_result_came,
    a_replay_is_what_the_policies_of_today_let_pass,
}

fn asking(world: &World) -> (Payments, String) {
    let payments = Payments::open(world);
    payments.registers("1", json!({"approval": "always"}));
    let credential = payments.credential("live key", json!({}));
    payments.grant(&credential, json!({}));
    (payments, credential)
}

fn a_definition_that_is_replaced_during_the_wait_voids_the_yes(world: &World) {
    let (payments, _) = asking(world);
    let waiting = payments.asks(refund(json!({})));
    let http = json!({"method": "DELETE", "path": "/everything"});
    payments.replaces("1", json!({"approval": "always", "http": http}));
    waiting.decided(&payments.ann, "approve", json!({})).refused(403, "APPROVAL_REQUIRED");
    assert_eq!(payments.service.count(), 0);
}

fn a_credential_that_is_pointed_elsewhere_during_the_wait_voids_the_yes(world: &World) {
    let (payments, credential) = asking(world);
    let elsewhere = Upstream::start(|_| Answer::json(200, json!({})));
    let waiting = payments.asks(refund(json!({})));
    let rotation = json!({"metadata": {"base_url": elsewhere.url()}, "material": {"token": "another long token"}});
    payments.admin.patch(&format!("/api/v1/credentials/{credential}/rotate"), &rotation).ok();
    waiting.decided(&payments.ann, "approve", json!({})).refused(403, "APPROVAL_REQUIRED");
    assert_eq!((payments.service.count(), elsewhere.count()), (0, 0));
}

fn a_credential_whose_secret_alone_is_rotated_during_the_wait_is_what_was_approved(world: &World) {
    let (payments, credential) = asking(world);
    let waiting = payments.asks(refund(json!({})));
    let rotation = json!({"material": {"token": "another long token"}});
    payments.admin.patch(&format!("/api/v1/credentials/{credential}/rotate"), &rotation).ok();
    waiting.decided(&payments.ann, "approve", json!({})).ok();
    assert_eq!(payments.service.received()[0].header("authorization"), Some("Bearer another long token"));
}

fn always_for_one_credential_covers_no_other(world: &World) {
    let (payments, _) = asking(world);
    let other = payments.credential("other key", json!({}));
    let grant = payments.grant(&other, json!({}));
    payments.asks(refund(json!({}))).decided(&payments.ann, "approve", json!({"scope": "always"})).ok();
    payments.refund(json!({"parameters": {"amount": 6}})).ok();
    let waiting = payments.asks(refund(json!({"grant_id": grant})));
    assert_eq!(waiting.approval["action"]["credential_label"], "other key");
    waiting.decided(&payments.ann, "deny", json!({})).refused(403, "APPROVAL_DENIED");
    assert_eq!(payments.service.count(), 2);
    let list = payments.ann.get("/api/v1/standing-approvals").ok();
    let rule = list["standing_approvals"][0]["rule"].as_str().unwrap().to_owned();
    assert!(rule.contains("with credential \"live key\""), "{rule}");
}

fn always_covers_neither_another_definition_nor_another_place(world: &World) {
    let (payments, credential) = asking(world);
    payments.asks(refund(json!({}))).decided(&payments.ann, "approve", json!({"scope": "always"})).ok();
    payments.refund(json!({})).ok();
    payments.replaces("1", json!({"approval": "always", "http": {"method": "POST", "path": "/refunds/now"}}));
    payments.asks(refund(json!({}))).decided(&payments.ann, "deny", json!({})).refused(403, "APPROVAL_DENIED");
    payments.replaces("1", json!({"approval": "always"}));
    payments.refund(json!({})).ok();
    let elsewhere = Upstream::start(|_| Answer::json(200, json!({})));
    let rotation = json!({"metadata": {"base_url": elsewhere.url()}, "material": {"token": "another long token"}});
    payments.admin.patch(&format!("/api/v1/credentials/{credential}/rotate"), &rotation).ok();
    payments.asks(refund(json!({}))).decided(&payments.ann, "deny", json!({})).refused(403, "APPROVAL_DENIED");
    assert_eq!((payments.service.count(), elsewhere.count()), (3, 0));
}

fn the_card_names_credential_method_and_host(world: &World) {
    let (payments, credential) = asking(world);
    let waiting = payments.asks(refund(json!({})));
    let action = &waiting.approval["action"];
    let host = payments.service.url().trim_start_matches("http://").to_owned();
    assert_eq!(action["credential_id"], credential);
    assert_eq!(action["credential_label"], "live key");
    assert_eq!((&action["method"], &action["host"]), (&json!("POST"), &json!(host)));
    waiting.decided(&payments.ann, "approve", json!({})).ok();
}

fn a_rule_about_the_time_sees_the_time_after_the_wait(world: &World) {
    let (payments, _) = asking(world);
    let end = payments.admin.soon();
    let written = end.to_string();
    let written = written.get(..23).unwrap();
    payments.applies(&format!(
        "@id(\"over\")\nforbid (principal, action in Action::\"call\", resource)\n\
         when {{ context.time.now > datetime(\"{written}Z\") }};"
    ));
    let waiting = payments.asks(refund(json!({})));
    until("the time is over", || (payments.admin.time() > end).then_some(()));
    waiting.decided(&payments.ann, "approve", json!({})).refused(403, "POLICY_DENIED");
    assert_eq!(payments.service.count(), 0);
}

fn a_rule_about_results_sees_the_time_at_which_the_result_came(world: &World) {
    let payments = Payments::open(world);
    payments.registers("1", json!({}));
    payments.grant(&payments.credential("live key", json!({})), json!({}));
    let end = payments.admin.soon();
    let written = end.to_string();
    let written = written.get(..23).unwrap();
    payments.applies(&format!(
        "@id(\"over\")\nforbid (principal, action in Action::\"result\", resource)\n\
         when {{ context.time.now > datetime(\"{written}Z\") }};"
    ));
    payments.service.hold();
    let caller = payments.agent.clone();
    let calling = std::thread::spawn(move || caller.invokes(refund(json!({}))));
    payments.service.wait_for(1);
    until("the time is over", || (payments.admin.time() > end).then_some(()));
    payments.service.release();
    let withheld = calling.join().unwrap().json();
    assert_eq!(withheld["error"]["code"], "POLICY_DENIED", "{withheld}");
    assert!(!withheld.to_string().contains("/v1/refunds"), "{withheld}");
}

fn a_replay_is_what_the_policies_of_today_let_pass(world: &World) {
    let payments = Payments::open(world);
    payments.registers("1", json!({}));
    payments.grant(&payments.credential("live key", json!({})), json!({}));
    let body = || json!({"idempotency_key": "key-1"});
    assert_eq!(payments.refund(body()).ok()["result"]["card"], "4111");
    payments.applies(
        "@id(\"no-cards\")\n@remedy(\"redact\")\n@fields(\"result.card\")\n\
         forbid (principal, action in Action::\"result\", resource);",
    );
    let replayed = payments.refund(body()).ok();
    assert_eq!(replayed["replayed"], true);
    assert_ne!(replayed["result"]["card"], "4111", "{replayed}");
    payments.applies("@id(\"no-results\")\nforbid (principal, action in Action::\"result\", resource);");
    let withheld = payments.refund(body());
    let withheld = withheld.json();
    assert!(!withheld.to_string().contains("/v1/refunds"), "{withheld}");
    assert_eq!(withheld["error"]["code"], "POLICY_DENIED", "{withheld}");
    assert_eq!(payments.service.count(), 1);
}

#[test]
fn the_first_definition_of_a_service_is_seen_by_the_next_call_of_another_replica() {
    let database = crate::world::block_on(toolgate_testkit::postgres::TestDatabase::create());
    let setup = setup().reaching_loopback().database(database.url());
    let (here, there) = (World::of(&setup, None), World::of(&setup, Some(database)));
    let payments = Payments::open(&here);
    payments.grant(&payments.credential("live key", json!({})), json!({}));
    let agent = there.actor("billing", &payments.agent.key);
    for round in 0..4 {
        // The other replica has just seen that only the credential defines the tool.
        agent.invokes(refund(json!({}))).ok();
        payments.registers("1", json!({"parameters": {"amount": {"type": "integer", "maximum": 4}}}));
        agent.invokes(refund(json!({}))).refused(400, "PARAMETERS_INVALID");
        payments.admin.delete("/api/v1/services/payments").ok();
        assert_eq!(payments.service.count(), round + 1);
    }
}
