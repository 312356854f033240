//! A caller that guesses the secret of a credential: what it can read of its own calls tells it nothing, and refused calls
//! are counted.

use serde_json::{Value, json};
use toolgate_testkit::upstream::Reply as Answer;

use super::shop::{Shop, TOKEN, read};
use crate::world::{World, id, ids, on_both_engines, text};

on_both_engines! {
    what_a_caller_reads_of_its_calls_does_not_tell_whether_a_guess_was_right,
    the_user_name_of_a_credential_hides_nothing_and_of_its_password_only_the_occurrence_is_hidden,
}

const WRONG: &str = "sk_live_of_the_shop_4243";

fn what_a_caller_reads_of_its_calls_does_not_tell_whether_a_guess_was_right(world: &World) {
    let shop = Shop::open(world);
    shop.grant(json!({"constraints": {"amount_max": 10}}));
    let guess = |amount: u64, guess: &str| {
        let parameters = json!({"amount": amount, "currency": "usd", "metadata": {"note": guess, guess: 1}});
        let reply = shop.call("payments.charges.create", parameters);
        assert_eq!(reply.status() == 200, amount <= 10);
        text(&reply.json(), "/invocation_id").to_owned()
    };
    let calls =
        [guess(11, TOKEN), guess(11, WRONG), guess(11, WRONG), guess(1, TOKEN), guess(1, WRONG), guess(1, WRONG)];
    // Who may read the log sees which of them had the secret in it, and the hash of what is left.
    let whole: Vec<Value> = calls.iter().map(|call| shop.record(call)).collect();
    assert!(whole[0]["parameters"].to_string().contains("[redacted]"), "{}", whole[0]);
    assert_eq!(whole[1]["parameters"]["metadata"]["note"], WRONG);
    assert_eq!(whole[1]["arguments_hash"], whole[2]["arguments_hash"]);
    // Who made them sees neither, one by one, in lists and in the events of the run.
    let mut hashes = Vec::new();
    for (position, call) in calls.iter().enumerate() {
        let record = shop.agent.get(&format!("/api/v1/invocations/{call}")).ok();
        let amount = if position < 3 { 11 } else { 1 };
        assert_eq!(record["parameters"], json!({"amount": amount, "currency": "usd", "metadata": "[withheld]"}));
        let events = shop.agent.get(&format!("/v1/runs/{call}/events")).ok()["events"].clone();
        let called = events.as_array().unwrap().iter().find(|event| event["type"] == "agent.toolCalled").unwrap();
        assert_eq!(called["payload"]["argsHash"], record["arguments_hash"]);
        assert_eq!(called["payload"].get("inputs"), None);
        hashes.push(text(&record, "/arguments_hash").to_owned());
        hashes.extend(record["request_fingerprint"].as_str().map(str::to_owned));
    }
    let listed = shop.agent.get("/api/v1/invocations").ok()["invocations"].clone();
    assert_eq!(ids(&listed).len(), calls.len());
    for record in listed.as_array().unwrap() {
        assert_eq!(record["parameters"]["metadata"], "[withheld]");
        assert!(hashes.contains(&text(record, "/arguments_hash").to_owned()));
    }
    let told: Vec<&str> = whole.iter().flat_map(|record| record["arguments_hash"].as_str()).collect();
    assert!(hashes.iter().all(|hash| hash.len() == 64 && !told.contains(&hash.as_str())));
    let count = hashes.len();
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), count, "no two calls can be compared");
}

fn the_user_name_of_a_credential_hides_nothing_and_of_its_password_only_the_occurrence_is_hidden(world: &World) {
    let shop = Shop::answering(world, |_| Answer::json(200, json!({})));
    let body = json!({
        "service": "payments", "label": "login", "auth_type": "basic_auth", "scopes_available": ["anything"],
        "metadata": {"base_url": shop.upstream.url()},
        "material": {"username": "reports", "password": "tr0ub4dor-and-3"},
    });
    let path = format!("/api/v1/vaults/{}/credentials", shop.admin.vault());
    let credential = id(&shop.admin.post(&path, &body).created());
    shop.admin.grants(&credential, "billing", json!({"scopes": ["anything"]}));
    let sent = json!({"text": "send all reports to mallory", "more": "the key tr0ub4dor%2Dand-3 opens it"});
    let answer = shop.send(sent).ok();
    let record = shop.record(text(&answer, "/invocation_id"));
    let kept = json!({"text": "send all reports to mallory", "more": "the key [redacted] opens it"});
    assert_eq!(record["parameters"], kept);
}

#[test]
fn too_many_refused_calls_close_the_caller_and_nobody_else() {
    let world = World::of(&crate::world::setup().reaching_loopback(), None);
    let shop = Shop::open(&world);
    shop.grant(json!({}));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let closed = || shop.call("unheard.of", json!({})).error()["code"] == "TOO_MANY_ATTEMPTS";
            scope.spawn(move || (0..3_000).any(|_| closed()));
        }
    });
    let error = shop.read(json!({})).refused(429, "TOO_MANY_ATTEMPTS");
    assert!(error["retry_after_seconds"].as_i64().unwrap() > 0, "{error}");
    let other = shop.admin.registers("other", &["tools.invoke"]);
    shop.grant_to("other", json!({}));
    other.invokes(read(json!({}))).ok();
}
