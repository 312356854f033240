//! What a call rests on must stand at the moment of the call: the grant, everything above it, the credential, the context.

use std::time::Duration;

use serde_json::{Value, json};

use super::shop::{Shop, credential, read};
use crate::world::{World, id, on_both_engines, until};

on_both_engines! {
    a_revocation_is_seen_by_the_very_next_call,
    suspension_anywhere_above_stops_the_call_and_resuming_lets_it_pass,
    an_expired_grant_or_source_calls_nothing,
    an_ended_credential_calls_nothing,
    a_rotated_credential_is_used_by_the_next_call,
    a_grant_with_a_context_is_used_only_within_it,
    a_scope_that_was_never_granted_is_refused_with_what_was,
}

fn path(grant: &Value, what: &str) -> String {
    format!("/api/v1/grants/{}{what}", id(grant))
}

fn a_revocation_is_seen_by_the_very_next_call(world: &World) {
    let shop = Shop::open(world);
    for round in 0..5 {
        let source = shop.grant_to("coordinator", json!({"delegatable": true, "delegation_depth": null}));
        let middle = shop.admin.delegates(&source, "worker", json!({}));
        let grant = shop.admin.delegates(&middle, "billing", json!({}));
        let call = || shop.read(json!({"grant_id": grant["id"]}));
        call().ok();
        let ended = [&source, &middle, &grant][round % 3];
        shop.admin.delete(&path(ended, "")).ok();
        let error = shop.denied(&call(), 403, "GRANT_REVOKED");
        assert_eq!(error["grant_id"], grant["id"]);
        assert_eq!(error["stage"], "authorize");
        let without_name = shop.denied(&shop.read(json!({})), 403, "GRANT_REVOKED");
        assert_eq!(without_name["grant_id"], grant["id"], "the newest that could do it once");
    }
    assert_eq!(shop.upstream.count(), 5);
}

fn suspension_anywhere_above_stops_the_call_and_resuming_lets_it_pass(world: &World) {
    let shop = Shop::open(world);
    let source = shop.grant_to("coordinator", json!({"delegatable": true}));
    let grant = shop.admin.delegates(&source, "billing", json!({}));
    shop.read(json!({})).ok();
    for paused in [&source, &grant] {
        shop.admin.patch(&path(paused, "/suspend"), &json!({"reason": "an incident"})).ok();
        for more in [json!({}), json!({"grant_id": grant["id"]})] {
            let error = shop.denied(&shop.read(more), 403, "GRANT_SUSPENDED");
            assert_eq!(error["grant_id"], grant["id"]);
            assert!(error["message"].as_str().unwrap().contains(&id(paused)), "{error}");
        }
        shop.admin.ask("PATCH", &path(paused, "/resume"), None).ok();
        shop.read(json!({})).ok();
    }
    assert_eq!(shop.upstream.count(), 3);
}

fn an_expired_grant_or_source_calls_nothing(world: &World) {
    let shop = Shop::open(world);
    let end = shop.admin.soon();
    let direct = shop.grant(json!({"scopes": ["charges.create"], "expires_at": end}));
    let source = shop.grant_to("coordinator", json!({"delegatable": true, "expires_at": end}));
    let delegated = shop.admin.delegates(&source, "billing", json!({"expires_at": end}));
    shop.read(json!({})).ok();
    let over = |grant: &Value| shop.admin.grant(grant)["effective_status"] == "expired";
    until("they expire", || (over(&direct) && over(&source)).then_some(()));
    let calls = shop.upstream.count();
    let create = json!({"tool": "payments.charges.create", "parameters": {"amount": 1, "currency": "usd"}});
    let mut named = create.clone();
    named["grant_id"] = direct["id"].clone();
    for body in [create, named] {
        let error = shop.denied(&shop.agent.invokes(body), 403, "GRANT_EXPIRED");
        assert_eq!(error["grant_id"], direct["id"]);
    }
    let error = shop.denied(&shop.read(json!({"grant_id": delegated["id"]})), 403, "GRANT_EXPIRED");
    assert_eq!(error["grant_id"], delegated["id"]);
    assert_eq!(shop.upstream.count(), calls);
}

fn an_ended_credential_calls_nothing(world: &World) {
    let shop = Shop::open(world);
    let end = shop.admin.soon();
    let metadata = json!({"base_url": shop.upstream.url()});
    let brief = credential(&shop.admin, "payments", metadata.clone());
    let rotation = json!({"material": {"token": "t0ken-for-a-moment"}, "expires_at": end});
    shop.admin.patch(&format!("/api/v1/credentials/{brief}/rotate"), &rotation).ok();
    let on_brief = shop.admin.grants(&brief, "billing", json!({}));
    let revoked = credential(&shop.admin, "payments", metadata);
    let on_revoked = shop.admin.grants(&revoked, "billing", json!({}));

    shop.read(json!({"grant_id": on_revoked["id"]})).ok();
    shop.admin.delete(&format!("/api/v1/credentials/{revoked}")).ok();
    let error = shop.denied(&shop.read(json!({"grant_id": on_revoked["id"]})), 403, "CREDENTIAL_REVOKED");
    assert_eq!(error["grant_id"], on_revoked["id"]);

    let status = |id: &str| shop.admin.get(&format!("/api/v1/credentials/{id}")).ok()["status"].clone();
    until("the credential expires", || (status(&brief) == "expired").then_some(()));
    let calls = shop.upstream.count();
    for more in [json!({}), json!({"grant_id": on_brief["id"]})] {
        let error = shop.denied(&shop.read(more), 403, "CREDENTIAL_EXPIRED");
        assert_eq!(error["grant_id"], on_brief["id"]);
    }
    // Provisioned again, it works again.
    let later = shop.admin.time().plus(Duration::from_secs(3600));
    let rotation = json!({"material": {"token": "t0ken-for-an-hour"}, "expires_at": later});
    shop.admin.patch(&format!("/api/v1/credentials/{brief}/rotate"), &rotation).ok();
    shop.read(json!({})).ok();
    assert_eq!(shop.upstream.count(), calls + 1);
    assert_eq!(shop.upstream.received().last().unwrap().bearer(), Some("t0ken-for-an-hour"));
}

fn a_rotated_credential_is_used_by_the_next_call(world: &World) {
    let shop = Shop::open(world);
    shop.grant(json!({}));
    for round in 0..4 {
        let token = format!("t0ken-of-round-{round}");
        let rotation = json!({"material": {"token": token}});
        shop.admin.patch(&format!("/api/v1/credentials/{}/rotate", shop.credential), &rotation).ok();
        shop.read(json!({})).ok();
        assert_eq!(shop.upstream.received().last().unwrap().bearer(), Some(token.as_str()));
    }
}

fn a_grant_with_a_context_is_used_only_within_it(world: &World) {
    let shop = Shop::open(world);
    let bound = shop.grant(json!({"context": {"intent_id": "i1", "plan_id": "p1", "task_id": "t1"}}));
    let whole = json!({"intent_id": "i1", "plan_id": "p1", "task_id": "t1"});
    assert_eq!(shop.read(json!({"context": whole})).ok()["grant_id"], bound["id"]);
    for (part, context) in [
        ("intent_id", json!({})),
        ("intent_id", json!({"intent_id": "i2", "plan_id": "p1", "task_id": "t1"})),
        ("plan_id", json!({"intent_id": "i1", "task_id": "t1"})),
        ("task_id", json!({"intent_id": "i1", "plan_id": "p1", "task_id": "T1"})),
    ] {
        for more in [json!({"context": context}), json!({"context": context, "grant_id": bound["id"]})] {
            let error = shop.denied(&shop.read(more), 403, "GRANT_CONTEXT_MISMATCH");
            assert_eq!((&error["path"], &error["grant_id"]), (&json!(format!("context.{part}")), &bound["id"]));
        }
    }
    assert_eq!(shop.upstream.count(), 1);
    // A delegation is bound by what is above it too.
    let source = shop.grant_to("coordinator", json!({"delegatable": true, "context": {"intent_id": "i9"}}));
    let below = shop.admin.delegates(&source, "billing", json!({"context": {"intent_id": "i9", "task_id": "t9"}}));
    let call = |context: Value| shop.agent.invokes(read(json!({"grant_id": below["id"], "context": context})));
    shop.denied(&call(json!({"task_id": "t9"})), 403, "GRANT_CONTEXT_MISMATCH");
    call(json!({"intent_id": "i9", "task_id": "t9"})).ok();
}

fn a_scope_that_was_never_granted_is_refused_with_what_was(world: &World) {
    let shop = Shop::open(world);
    let grant = shop.grant(json!({"scopes": ["charges.read", "charges.create"]}));
    let refund = json!({"tool": "payments.refunds.create", "parameters": {"charge": "ch_1"}});
    let mut named = refund.clone();
    named["grant_id"] = grant["id"].clone();
    for body in [refund, named] {
        let error = shop.denied(&shop.agent.invokes(body), 403, "GRANT_SCOPE_INSUFFICIENT");
        assert_eq!(error["grant_id"], grant["id"]);
        assert_eq!(error["requested_scope"], "refunds.create");
        assert_eq!(error["available_scopes"], json!(["charges.create", "charges.read"]));
        let expected = format!("grant {} does not include scope 'refunds.create'", id(&grant));
        assert_eq!(error["message"], expected);
    }
    // What is above may have lost nothing; what is below never has more than was passed on.
    let source = shop.grant_to("coordinator", json!({"delegatable": true}));
    let below = shop.admin.delegates(&source, "billing", json!({"scopes": ["charges.read"]}));
    let create = json!({
        "grant_id": below["id"], "tool": "payments.charges.create", "parameters": {"amount": 1, "currency": "usd"},
    });
    let error = shop.denied(&shop.agent.invokes(create), 403, "GRANT_SCOPE_INSUFFICIENT");
    assert_eq!(error["available_scopes"], json!(["charges.read"]));
    assert_eq!(shop.upstream.count(), 0);
}
