//! Where a call may go through several grants, each action that it may come to is decided on by itself.

use serde_json::json;

use super::office::{Payments, refund};
use crate::world::{World, on_both_engines};

on_both_engines! {
    a_second_grant_on_a_version_that_needs_approval_asks,
    a_second_grant_on_a_version_that_a_policy_forbids_is_refused,
    a_second_grant_on_another_credential_asks_for_itself,
    a_second_grant_on_the_same_credential_needs_no_second_yes,
}

const NO_MONEY_OUT: &str = r#"
@id("no-money-out")
forbid (principal, action, resource in Label::"money-out");
"#;

/// Version 1 asks nobody and has room for one call; version 2 is as `more` says.
fn two_versions(world: &World, more: serde_json::Value) -> Payments {
    let payments = Payments::open(world);
    payments.registers("1", json!({}));
    payments.registers("2", more);
    let one = payments.credential("one", json!({"service_version": "1"}));
    let two = payments.credential("two", json!({"service_version": "2"}));
    payments.grant(&one, json!({"constraints": {"max_invocations_per_hour": 1}}));
    payments.grant(&two, json!({}));
    payments
}

fn a_second_grant_on_a_version_that_needs_approval_asks(world: &World) {
    let payments = two_versions(world, json!({"approval": "always"}));
    payments.refund(json!({})).ok();
    let waiting = payments.asks(refund(json!({})));
    assert_eq!(payments.service.count(), 1, "nothing is sent before the yes");
    assert_eq!(waiting.approval["action"]["credential_label"], "two");
    waiting.decided(&payments.ann, "deny", json!({})).refused(403, "APPROVAL_DENIED");
    assert_eq!(payments.service.count(), 1);
    let approved = payments.asks(refund(json!({}))).decided(&payments.ann, "approve", json!({}));
    assert_eq!(approved.ok()["result"]["path"], "/v2/refunds");
}

fn a_second_grant_on_a_version_that_a_policy_forbids_is_refused(world: &World) {
    let payments = two_versions(world, json!({"labels": ["money-out"]}));
    payments.applies(NO_MONEY_OUT);
    assert_eq!(payments.refund(json!({})).ok()["result"]["path"], "/v1/refunds");
    payments.refund(json!({})).refused(403, "POLICY_DENIED");
    assert_eq!(payments.service.count(), 1);
}

fn a_second_grant_on_another_credential_asks_for_itself(world: &World) {
    let payments = Payments::open(world);
    payments.registers("1", json!({"approval": "always"}));
    let (test, live) = (payments.credential("test key", json!({})), payments.credential("live key", json!({})));
    payments.grant(&test, json!({"constraints": {"max_invocations_per_hour": 1}}));
    payments.grant(&live, json!({}));
    let first = payments.asks(refund(json!({})));
    assert_eq!(first.approval["action"]["credential_label"], "test key");
    first.decided(&payments.ann, "approve", json!({})).ok();
    // The test key has no room any more, and the yes to it is no yes to the live key.
    let second = payments.asks(refund(json!({})));
    assert_eq!(second.approval["action"]["credential_label"], "live key");
    assert_eq!(payments.service.count(), 1);
    second.decided(&payments.ann, "deny", json!({})).refused(403, "APPROVAL_DENIED");
    assert_eq!(payments.service.count(), 1);
}

fn a_second_grant_on_the_same_credential_needs_no_second_yes(world: &World) {
    let payments = Payments::open(world);
    payments.registers("1", json!({"approval": "always"}));
    let credential = payments.credential("only", json!({}));
    payments.grant(&credential, json!({"constraints": {"max_invocations_per_hour": 1}}));
    payments.grant(&credential, json!({}));
    for _ in 0..2 {
        payments.asks(refund(json!({}))).decided(&payments.ann, "approve", json!({})).ok();
    }
    assert_eq!(payments.service.count(), 2);
}
