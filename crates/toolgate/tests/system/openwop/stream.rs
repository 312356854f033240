//! Streams of events: nothing lost, nothing twice, and an end when there must be one.

use serde_json::{Value, json};

use super::follower::Follower;
use super::{assert_events, events_of};
use crate::calls::shop::Shop;
use crate::world::{World, id, on_both_engines};

on_both_engines! {
    a_stream_that_is_taken_up_again_loses_nothing_and_repeats_nothing,
    a_run_can_be_followed_by_whoever_made_it,
    a_stream_ends_with_its_key_and_shows_nothing_from_after_that,
}

/// What every event of the log looks like, in order.
fn log(shop: &Shop) -> Vec<Value> {
    events_of(&shop.admin.get("/v1/events?limit=1000").ok())
}

fn a_stream_that_is_taken_up_again_loses_nothing_and_repeats_nothing(world: &World) {
    let shop = Shop::open(world);
    shop.grant(json!({}));
    let before = log(&shop).len();
    let mut seen = Vec::new();
    // Some events are there already, some come while the stream is open, some while it is not.
    let mut follower = Follower::open(world, &shop.admin, "/v1/events", None);
    seen.extend(follower.take(before));
    for _ in 0..3 {
        shop.read(json!({})).ok();
    }
    seen.extend(follower.take(4));
    drop(follower);
    shop.read(json!({})).ok();
    let last = seen.last().unwrap().0.clone();
    // The address still names the place at which it was first opened; the header counts.
    let mut follower = Follower::open(world, &shop.admin, "/v1/events?after=0", Some(&last));
    shop.read(json!({})).ok();
    seen.extend(follower.take(6));
    let events: Vec<Value> = seen.iter().map(|(_, event)| event.clone()).collect();
    assert_events(&events);
    assert_eq!(events, log(&shop));
    assert!(seen.iter().all(|(id, event)| id.parse().ok() == event["sequence"].as_u64()));
    let mut from_three = Follower::open(world, &shop.admin, "/v1/events?after=2&type=grant.created", None);
    assert_eq!(from_three.next().unwrap().1["type"], "grant.created");
    shop.admin.ask_with("GET", "/v1/events", &[("Last-Event-ID", "x")], None).flat(400, "validation_error");
}

fn a_run_can_be_followed_by_whoever_made_it(world: &World) {
    let shop = Shop::open(world);
    shop.grant(json!({}));
    let call = || drop(shop.read(json!({"context": {"run_id": "run-1"}})).ok());
    call();
    let mut follower = Follower::open(world, &shop.agent, "/v1/runs/run-1/events", None);
    let mut seen = follower.take(2);
    call();
    seen.extend(follower.take(1));
    let mut again = Follower::open(world, &shop.agent, "/v1/runs/run-1/events", Some(&seen[2].0));
    shop.read(json!({})).ok();
    call();
    seen.extend(again.take(3));
    let events: Vec<Value> = seen.into_iter().map(|(_, event)| event).collect();
    assert_eq!(events, events_of(&shop.agent.get("/v1/runs/run-1/events").ok()));
}

fn a_stream_ends_with_its_key_and_shows_nothing_from_after_that(world: &World) {
    let shop = Shop::open(world);
    shop.admin.post("/api/v1/agents", &json!({"id": "siem", "permissions": ["audit.read"]})).created();
    let made = shop.admin.ask("POST", "/api/v1/agents/siem/keys", None).created();
    let siem = world.actor("siem", made["key"].as_str().unwrap());
    let known = log(&shop).len();
    let mut follower = Follower::open(world, &siem, "/v1/events", None);
    follower.take(known);
    shop.admin.delete(&format!("/api/v1/keys/{}", id(&made))).ok();
    shop.admin.vault();
    let mut after = Vec::new();
    while let Some((_, event)) = follower.next() {
        after.push(event["type"].as_str().unwrap().to_owned());
    }
    assert_eq!(after, [""; 0], "neither the end of the key nor what came then");
}

#[test]
fn a_stream_does_not_hold_the_end_of_the_program_up() {
    let world = World::sqlite();
    let admin = world.admin();
    let mut follower = Follower::open(&world, &admin, "/v1/events", None);
    follower.next().unwrap();
    let (ended, _) = world.stop();
    assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
    assert!(!ended.stderr.contains("did not finish in time"), "{}", ended.stderr);
    while follower.next().is_some() {}
}
