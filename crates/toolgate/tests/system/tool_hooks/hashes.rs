//! `argsHash`: that of the canonical arguments, in which every secret looks the same.

use serde_json::{Value, json};
use toolgate_model::merkle::sha256;
use toolgate_testkit::trail;

use super::office::{Office, TOKEN, invocation};
use crate::world::{Reply, World, on_both_engines, text};

on_both_engines! {
    calls_that_differ_only_in_a_secret_have_one_hash,
    calls_that_differ_elsewhere_have_not,
    the_hash_is_that_of_known_canonical_bytes,
    refused_calls_are_hashed_alike,
}

/// The hash that the log has of this call, at its beginning and at its end.
fn hash_of(office: &Office, reply: &Reply) -> String {
    let call = invocation(reply);
    let events = office.admin.events(&format!("&run_id={call}"));
    let called = events.iter().find(|event| event["type"] == "agent.toolCalled").unwrap();
    let ended = events.iter().find(|event| event["data"].get("returned").is_some()).unwrap();
    let hash = text(called, "/data/argsHash");
    assert_eq!(ended["data"]["arguments_hash"], hash);
    let shown: Vec<Value> = events.iter().map(trail::shown).collect();
    let record = office.admin.get(&format!("/api/v1/invocations/{call}")).ok();
    for told in [json!(shown), json!(events), record] {
        assert!(!told.to_string().contains(TOKEN), "{told}");
    }
    hash.to_owned()
}

fn hash(office: &Office, parameters: Value) -> String {
    let reply = office.call("open", json!({"parameters": parameters}));
    reply.ok();
    hash_of(office, &reply)
}

fn calls_that_differ_only_in_a_secret_have_one_hash(world: &World) {
    let office = Office::open(world);
    let at = |name: &str, value: &str| hash(&office, json!({"n": 1, "to": {name: value}}));
    // Under a name that is a secret's.
    assert_eq!(at("password", "a"), at("password", "something else"));
    assert_eq!(at("apiKey", "k1"), at("apiKey", "k2"));
    // Of a shape that issuers give to secrets.
    let shaped =
        ["sk_live_4eC39HqLyjWDarjtT1zdp7dc", "ghp_abcdefghijklmnopqrstuvwxyz0123456789", "AKIAIOSFODNN7EXAMPLE"];
    let hashes = shaped.map(|secret| at("note", &format!("use {secret} please")));
    assert!(hashes.iter().all(|hash| *hash == hashes[0]), "{hashes:?}");
    // The very credential that the call goes out with, as it is and encoded.
    let encoded = TOKEN.replace(' ', "%20");
    let own = [TOKEN, &encoded].map(|text| at("note", text));
    assert!(own.iter().all(|hash| *hash == hashes[0]), "{own:?}");
    // Only the credential is hidden, not what stands around it.
    let told = at("note", &format!("the token is {TOKEN}"));
    assert_eq!(told, at("note", &format!("the token is {encoded}")));
    assert_ne!(told, hashes[0]);
}

fn calls_that_differ_elsewhere_have_not(world: &World) {
    let office = Office::open(world);
    let parameters = |n: u64, to: &str, password: &str| json!({"n": n, "to": to, "password": password});
    let first = hash(&office, parameters(1, "ada", "x"));
    assert_eq!(first, hash(&office, parameters(1, "ada", "y")));
    for other in [
        parameters(2, "ada", "x"),
        parameters(1, "Ada", "x"),
        parameters(1, "ada ", "x"),
        json!({"n": 1, "to": "ada"}),
        json!({"n": 1, "to": "ada", "passwords": "x", "password": "x"}),
        json!({"n": 1, "to": TOKEN, "password": "x"}),
    ] {
        assert_ne!(first, hash(&office, other.clone()), "{other}");
    }
}

fn the_hash_is_that_of_known_canonical_bytes(world: &World) {
    let office = Office::open(world);
    let known: [(Value, &str); 5] = [
        (json!({}), "{}"),
        (json!({"b": 2.50, "a": 1e3}), r#"{"a":1000,"b":2.5}"#),
        (json!({"n": [1e-7, 333_333_333.333_333_3, 1e30, 0.002]}), r#"{"n":[1e-7,333333333.3333333,1e+30,0.002]}"#),
        // By UTF-16: the letter from outside of the first plane comes before the one from its end.
        (
            json!({"\u{fb33}": 1, "\u{1f600}": 2, "\u{20ac}": "\u{f}\n\"\\"}),
            "{\"\u{20ac}\":\"\\u000f\\n\\\"\\\\\",\"\u{1f600}\":2,\"\u{fb33}\":1}",
        ),
        (json!({"password": "x", "n": null}), r#"{"n":null,"password":"[redacted]"}"#),
    ];
    for (parameters, canonical) in known {
        assert_eq!(hash(&office, parameters.clone()), sha256(canonical.as_bytes()).to_hex(), "{parameters}");
    }
}

fn refused_calls_are_hashed_alike(world: &World) {
    let office = Office::open(world);
    let refused = |parameters: Value| {
        let reply = office.call("scoped", json!({"parameters": parameters}));
        reply.refused(403, "FORBIDDEN");
        hash_of(&office, &reply)
    };
    let one = refused(json!({"n": 1, "password": "x", "note": "sk_live_4eC39HqLyjWDarjtT1zdp7dc"}));
    assert_eq!(one, refused(json!({"n": 1, "password": "y", "note": "sk_live_0000000000000000000000000"})));
    assert_eq!(one, hash(&office, json!({"n": 1, "password": "z", "note": "AKIAIOSFODNN7EXAMPLE"})));
    assert_ne!(one, refused(json!({"n": 2, "password": "x", "note": "sk_live_4eC39HqLyjWDarjtT1zdp7dc"})));
    // The credential that the call would have gone out with.
    assert_eq!(one, refused(json!({"n": 1, "password": "x", "note": TOKEN})));
}
