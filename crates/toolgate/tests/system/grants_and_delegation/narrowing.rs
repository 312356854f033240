//! Rule 2 of §5.1: delegated constraints are equal or closer, for every kind of constraint, and what is in effect is the
//! intersection along the lineage.

use serde_json::{Value, json};

use crate::world::{World, on_both_engines};

on_both_engines! {
    every_kind_of_constraint_only_narrows,
    what_is_in_effect_is_the_intersection_along_the_lineage,
}

/// A source's constraints, what a delegation states, and either what is in effect or the path of what is too wide.
type Case = (Value, Value, Result<Value, &'static str>);

fn every_kind_of_constraint_only_narrows(world: &World) {
    let admin = world.admin();
    let credential = admin.credential();
    for (source, stated, outcome) in cases() {
        let more = json!({"delegatable": true, "constraints": source});
        let grant = admin.grants(&credential, "coordinator", more);
        let reply = admin.tries_to_delegate(&grant, "worker", json!({"constraints": stated}));
        match outcome {
            Ok(effective) => assert_eq!(reply.created()["effective"]["constraints"], effective, "{stated} in {source}"),
            Err(path) => {
                let error = reply.refused(403, "GRANT_CONSTRAINT_EXCEEDED");
                assert_eq!((&error["path"], &error["grant_id"]), (&json!(path), &grant["id"]), "{stated} in {source}");
            }
        }
    }
}

fn what_is_in_effect_is_the_intersection_along_the_lineage(world: &World) {
    let admin = world.admin();
    let top = json!({
        "delegatable": true, "delegation_depth": null, "scopes": ["charges.read", "charges.create", "refunds.create"],
        "constraints": {"max_invocations_per_hour": 100, "allowed_parameters": {"currency": ["usd", "eur", "gbp"]}}
    });
    let top = admin.grants(&admin.credential(), "one", top);
    let more = json!({
        "scopes": ["charges.read", "charges.create"],
        "constraints": {"amount_max": 500, "denied_parameters": {"test": [true]}, "ip_allowlist": ["10.0.0.0/8"]}
    });
    let middle = admin.delegates(&top, "two", more);
    let more = json!({
        "scopes": ["charges.read"],
        "constraints": {"max_invocations_per_hour": 10, "allowed_parameters": {"currency": ["usd", "eur"], "amount": [5, 500]}}
    });
    let bottom = admin.delegates(&middle, "three", more);
    assert_eq!(bottom["effective"]["scopes"], json!(["charges.read"]));
    let effective = json!({
        "max_invocations_per_hour": 10,
        "allowed_parameters": {"amount": {"max": 500, "values": [5, 500]}, "currency": ["eur", "usd"]},
        "denied_parameters": {"test": [true]},
        "ip_allowlist": ["10.0.0.0/8"]
    });
    assert_eq!(bottom["effective"]["constraints"], effective);
    let wider = json!({"constraints": {"allowed_parameters": {"amount_max": 501}}});
    let reply = admin.tries_to_delegate(&bottom, "four", wider);
    reply.refused(403, "GRANT_CONSTRAINT_EXCEEDED");
    let inherited = json!({"constraints": {"allowed_parameters": {"currency": ["gbp"]}}});
    admin.tries_to_delegate(&bottom, "four", inherited).refused(403, "GRANT_CONSTRAINT_EXCEEDED");
}

fn cases() -> Vec<Case> {
    let rate = |count: u64| json!({"max_invocations_per_hour": count});
    let cost = |dollars: f64| json!({"max_cost_per_invocation": dollars});
    let allowed = |rules: Value| json!({"allowed_parameters": rules});
    let denied = |rules: Value| json!({"denied_parameters": rules});
    let networks = |list: Value| json!({"ip_allowlist": list});
    let hosts = |list: Value| json!({"allowed_hosts": list});
    const RATE: &str = "constraints.max_invocations_per_hour";
    const COST: &str = "constraints.max_cost_per_invocation";
    const CURRENCY: &str = "constraints.allowed_parameters.currency";
    const AMOUNT: &str = "constraints.allowed_parameters.amount";
    const CUSTOMER: &str = "constraints.allowed_parameters.customer";
    const DENIED: &str = "constraints.denied_parameters.metadata.test_mode";
    const NETWORKS: &str = "constraints.ip_allowlist";
    const HOSTS: &str = "constraints.allowed_hosts";
    vec![
        (json!({}), rate(5), Ok(rate(5))),
        (rate(100), json!({}), Ok(rate(100))),
        (rate(100), json!({"max_invocations_per_hour": null}), Ok(rate(100))),
        (rate(100), rate(100), Ok(rate(100))),
        (rate(100), rate(0), Ok(rate(0))),
        (rate(100), rate(101), Err(RATE)),
        (cost(0.5), cost(0.5), Ok(cost(0.5))),
        (cost(0.5), cost(0.499_999), Ok(cost(0.499_999))),
        (cost(0.5), cost(0.500_001), Err(COST)),
        (
            allowed(json!({"currency": ["usd", "eur"]})),
            allowed(json!({"currency": ["usd"]})),
            Ok(allowed(json!({"currency": ["usd"]}))),
        ),
        (allowed(json!({"currency": ["usd", "eur"]})), json!({}), Ok(allowed(json!({"currency": ["eur", "usd"]})))),
        (allowed(json!({"currency": ["usd"]})), allowed(json!({"currency": ["usd", "gbp"]})), Err(CURRENCY)),
        (allowed(json!({"currency": ["usd"]})), allowed(json!({"currency": [["usd", "gbp"]]})), Err(CURRENCY)),
        (json!({"amount_max": 500}), json!({"amount_max": 499.5}), Ok(allowed(json!({"amount_max": 499.5})))),
        (json!({"amount_max": 500}), json!({"amount_max": 500.5}), Err(AMOUNT)),
        (
            json!({"amount_max": 9_007_199_254_740_992_u64}),
            json!({"amount_max": 9_007_199_254_740_993_u64}),
            Err(AMOUNT),
        ),
        (json!({"amount_min": 10}), json!({"amount_min": 9}), Err(AMOUNT)),
        (
            json!({"amount_max": 500}),
            json!({"amount_min": 10}),
            Ok(allowed(json!({"amount_max": 500, "amount_min": 10}))),
        ),
        (json!({"amount_max": 500}), allowed(json!({"amount": [500, 501]})), Err(AMOUNT)),
        (json!({"amount_max": 500}), allowed(json!({"amount": ["500"]})), Err(AMOUNT)),
        (
            allowed(json!({"customer": {"pattern": "cus_.*"}})),
            allowed(json!({"customer": {"patterns": ["cus_.*", ".*_eu"]}})),
            Ok(allowed(json!({"customer": {"patterns": [".*_eu", "cus_.*"]}}))),
        ),
        (
            allowed(json!({"customer": {"pattern": "cus_.*"}})),
            allowed(json!({"customer": {"pattern": ".*"}})),
            Err(CUSTOMER),
        ),
        (allowed(json!({"customer": {"pattern": "cus_.*"}})), allowed(json!({"customer": ["acct_1"]})), Err(CUSTOMER)),
        (
            allowed(json!({"customer": {"required": true}})),
            allowed(json!({"customer": ["cus_1"]})),
            Ok(allowed(json!({"customer": {"values": ["cus_1"], "required": true}}))),
        ),
        (denied(json!({"metadata.test_mode": [true]})), json!({}), Ok(denied(json!({"metadata.test_mode": [true]})))),
        (
            denied(json!({"metadata.test_mode": [true]})),
            denied(json!({"metadata.test_mode": {"any": true}})),
            Ok(denied(json!({"metadata.test_mode": {"any": true, "values": [true]}}))),
        ),
        (denied(json!({"metadata.test_mode": [true]})), denied(json!({"metadata.test_mode": [false]})), Err(DENIED)),
        (
            denied(json!({"metadata.test_mode": [true]})),
            denied(json!({"other": ["x"]})),
            Ok(denied(json!({"metadata.test_mode": [true], "other": ["x"]}))),
        ),
        (
            networks(json!(["10.0.0.0/8"])),
            networks(json!(["10.1.0.0/16", "10.2.3.4"])),
            Ok(networks(json!(["10.1.0.0/16", "10.2.3.4/32"]))),
        ),
        (networks(json!(["10.0.0.0/8"])), networks(json!([])), Ok(networks(json!([])))),
        (networks(json!(["10.0.0.0/8"])), networks(json!(["10.0.0.0/7"])), Err(NETWORKS)),
        (networks(json!(["10.0.0.0/8"])), networks(json!(["0.0.0.0/0"])), Err(NETWORKS)),
        (networks(json!(["10.0.0.0/8"])), networks(json!(["::/0"])), Err(NETWORKS)),
        (
            networks(json!(["10.0.0.0/8"])),
            networks(json!(["::ffff:10.1.0.0/112"])),
            Ok(networks(json!(["10.1.0.0/16"]))),
        ),
        (hosts(json!(["example.com"])), hosts(json!(["API.Example.com"])), Ok(hosts(json!(["api.example.com"])))),
        (hosts(json!(["example.com"])), hosts(json!(["notexample.com"])), Err(HOSTS)),
        (hosts(json!(["example.com"])), hosts(json!(["com"])), Err(HOSTS)),
        (hosts(json!(["192.0.2.1"])), hosts(json!(["192.0.2.2"])), Err(HOSTS)),
    ]
}
