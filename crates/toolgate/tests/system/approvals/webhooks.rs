//! The webhook of approvals: what happens is told to an address of the operator's, signed, in order, again and again until
//! it arrives, over crashes and by one of several gates; and never the arguments.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use toolgate_testkit::gate_process::GateSetup;
use toolgate_testkit::postgres::TestDatabase;
use toolgate_testkit::upstream::{Received, Reply, Upstream};

use super::office::Office;
use crate::webhook::hmac;
use crate::world::{World, block_on, setup, text, until};

/// What its messages are signed with.
pub const SECRET: &str = "a secret of the webhook, long enough";
/// Where people are told to go.
pub const PUBLIC_URL: &str = "https://gate.example.com/base";

/// An amount that is in no id and no time.
const AMOUNT: u64 = 987_654_321_012;

/// A gate that tells this address of its approvals.
pub fn telling(setup: GateSetup, hook: &Upstream) -> GateSetup {
    setup
        .environment("TOOLGATE_APPROVALS_WEBHOOK_URL", format!("{}/hook?team=1", hook.url()))
        .environment("TOOLGATE_APPROVALS_WEBHOOK_SECRET", SECRET)
        .environment("TOOLGATE_PUBLIC_URL", format!("{PUBLIC_URL}/"))
}

/// Gates on either engine that tell this address.
pub fn worlds(hook: &Upstream) -> [World; 2] {
    let database = block_on(TestDatabase::create());
    let postgres = telling(setup().reaching_loopback().database(database.url()), hook);
    [World::of(&telling(setup().reaching_loopback(), hook), None), World::of(&postgres, Some(database))]
}

/// Somebody who takes what is told.
pub fn listener() -> Upstream {
    Upstream::start(|_| Reply::json(200, json!({})))
}

fn kinds(received: &[Received]) -> Vec<String> {
    received.iter().map(|request| text(&request.json(), "/type").to_owned()).collect()
}

fn ids(received: &[Received]) -> Vec<String> {
    received.iter().map(|request| request.header("webhook-id").unwrap().to_owned()).collect()
}

#[track_caller]
fn assert_signed(request: &Received) {
    let part = |name: &str| request.header(name).unwrap().as_bytes();
    let signed = [part("webhook-id"), b".", part("webhook-timestamp"), b".", &request.body].concat();
    let expected = format!("v1,{}", STANDARD.encode(hmac(SECRET.as_bytes(), &signed)));
    assert_eq!(request.header("webhook-signature"), Some(expected.as_str()));
}

#[test]
fn what_happens_is_told_in_order_signed_and_without_arguments() {
    let hook = listener();
    for world in worlds(&hook) {
        let before = hook.count();
        let office = Office::open(&world);
        let waiting = office.asks("transfer", AMOUNT);
        hook.wait_for(before + 1);
        office.clerk.decides(&waiting.approval, "approve", json!({"reason": "a private word"})).ok();
        waiting.answer().ok();
        hook.wait_for(before + 2);

        let received = hook.received().split_off(before);
        assert_eq!(kinds(&received), ["approval.requested", "approval.granted"]);
        assert_eq!(BTreeSet::from_iter(ids(&received)).len(), 2);
        for request in &received {
            assert_eq!((request.method.as_str(), request.target.as_str()), ("POST", "/hook?team=1"));
            assert_eq!(request.header("content-type"), Some("application/json"));
            assert_signed(request);
            for unwanted in
                [&AMOUNT.to_string(), "\"ann\"", "a private word", "digest", SECRET, office.clerk.key.as_str()]
            {
                assert!(!request.text().contains(unwanted), "{unwanted}: {}", request.text());
            }
            let told = request.json();
            assert_eq!((&told["tenant_id"], &told["approval"]["tool"]), (&json!("default"), &json!("bank.transfer")));
            assert_eq!(told["approval"]["agent_id"], "teller");
        }
        let [asked, answered] = [&received[0], &received[1]].map(Received::json);
        assert!(text(&asked, "/link").starts_with(&format!("{PUBLIC_URL}/approvals/open/")), "{asked}");
        assert!(answered.get("link").is_none() && answered["data"]["principal"] == "clerk", "{answered}");
        let events = office.admin.events("");
        for told in [&asked, &answered] {
            let sequence = usize::try_from(told["sequence"].as_u64().unwrap()).unwrap();
            assert_eq!(events[sequence]["type"], told["type"]);
        }
    }
}

#[test]
fn the_description_is_told_where_the_operator_wants_it() {
    let hook = listener();
    let setup = telling(setup().reaching_loopback(), &hook);
    let world = World::of(&setup.environment("TOOLGATE_APPROVALS_WEBHOOK_DETAILS", "description"), None);
    let office = Office::open(&world);
    let waiting = office.asks("transfer", 7);
    hook.wait_for(1);
    let description = &office.approval(&waiting.approval)["description"];
    assert_eq!(&hook.received()[0].json()["approval"]["description"], description);
}

#[test]
fn what_was_not_taken_is_sent_again_before_anything_later() {
    let arrived = AtomicUsize::new(0);
    let hook = Upstream::start(move |_| match arrived.fetch_add(1, Ordering::SeqCst) {
        0 => Reply::json(500, json!({})),
        1 => Reply::redirect("http://127.0.0.1:9/elsewhere"),
        _ => Reply::json(200, json!({})),
    });
    let world = World::of(&telling(setup().reaching_loopback(), &hook), None);
    let office = Office::open(&world);
    let waiting = office.asks("transfer", 1);
    office.clerk.decides(&waiting.approval, "deny", json!({})).ok();
    hook.wait_for(4);
    let received = hook.received();
    let expected = ["approval.requested", "approval.requested", "approval.requested", "approval.rejected"];
    assert_eq!(kinds(&received), expected);
    assert_eq!(BTreeSet::from_iter(ids(&received[..3])).len(), 1, "the same message has the same id");
    assert!(received.iter().take(3).all(|request| request.body == received[0].body));
    received.iter().for_each(assert_signed);
}

#[test]
fn nothing_is_lost_when_the_gate_is_killed() {
    let status = Arc::new(AtomicU16::new(503));
    let now = Arc::clone(&status);
    let hook = Upstream::start(move |_| Reply::json(now.load(Ordering::SeqCst), json!({})));
    let setup = telling(setup().reaching_loopback(), &hook);
    let world = World::of(&setup, None);
    let office = Office::open(&world);
    let first = office.asks("transfer", 1);
    hook.wait_for(1);
    let second = office.asks("transfer", 2);
    world.gate.kill();
    status.store(200, Ordering::SeqCst);
    let untaken = hook.count();
    let _again = World::of(&setup, None);
    hook.wait_for(untaken + 4);

    let taken = hook.received().split_off(untaken);
    let about: Vec<Value> = taken.iter().map(|request| request.json()["approval"]["id"].clone()).collect();
    let asked = ["approval.requested", "approval.requested", "approval.orphaned", "approval.orphaned"];
    assert_eq!(kinds(&taken), asked);
    assert_eq!(about[..2], [json!(first.approval), json!(second.approval)]);
    assert_eq!(ids(&taken)[0], ids(&hook.received())[0], "it is known to be the same message");
    drop((first, second));
}

#[test]
fn of_several_gates_one_tells_each_event() {
    let hook = listener();
    let database = block_on(TestDatabase::create());
    let setup = telling(setup().reaching_loopback().database(database.url()), &hook);
    let (one, other) = (World::of(&setup, None), World::of(&setup, None));
    let office = Office::open(&one);
    let elsewhere = other.actor("clerk", &office.clerk.key);
    for amount in 0..5 {
        let waiting = office.asks("transfer", amount);
        elsewhere.decides(&waiting.approval, "deny", json!({})).ok();
    }
    hook.wait_for(10);
    // One more round: whatever were told twice would have been told by then.
    let waiting = office.asks("transfer", 5);
    elsewhere.decides(&waiting.approval, "deny", json!({})).ok();
    hook.wait_for(12);
    let received = hook.received();
    assert_eq!((received.len(), BTreeSet::from_iter(ids(&received)).len()), (12, 12));
    let places: Vec<u64> = received.iter().map(|request| request.json()["sequence"].as_u64().unwrap()).collect();
    assert!(places.is_sorted(), "{places:?}");
}

#[test]
fn what_happened_before_there_was_a_webhook_is_not_told() {
    let hook = listener();
    let plain = setup().reaching_loopback();
    let world = World::of(&plain, None);
    let office = Office::open(&world);
    let waiting = office.asks("transfer", 1);
    office.clerk.decides(&waiting.approval, "deny", json!({})).ok();
    world.stop();
    let world = World::of(&telling(plain, &hook), None);
    let office = office.at(&world);
    let waiting = office.asks("transfer", 2);
    hook.wait_for(1);
    assert_eq!(hook.received()[0].json()["approval"]["id"], json!(waiting.approval));
}

#[test]
fn a_private_address_is_told_nothing_unless_the_operator_allows_it() {
    let hook = listener();
    let mut world = World::of(&telling(setup(), &hook), None);
    let office = Office::open(&world);
    let waiting = office.asks("transfer", 1);
    let said = until("the gate says so", || {
        office.approval(&waiting.approval);
        Some(world.gate.stderr()).filter(|said| said.contains("a webhook delivery failed"))
    });
    assert!(said.contains("egress.allow") && !said.contains("team=1"), "{said}");
    assert_eq!(hook.connections(), 0);
}

#[test]
fn an_address_that_never_answers_holds_up_neither_calls_nor_the_end() {
    let hook = listener();
    hook.hold();
    let world = World::of(&telling(setup().reaching_loopback(), &hook), None);
    let office = Office::open(&world);
    let waiting = office.asks("transfer", 1);
    hook.wait_for(1);
    office.clerk.decides(&waiting.approval, "approve", json!({})).ok();
    waiting.answer().ok();
    let ended = world.gate.stop();
    assert!(ended.status.success(), "{}", ended.stderr);
    assert!(!ended.stderr.contains(SECRET) && !ended.stdout.contains(SECRET));
    hook.release();
}
