//! The stream: every change once, in order, and resumed without a gap or a repeat.

use serde_json::json;

use super::office::Office;
use crate::openwop::follower::Follower;
use crate::world::{World, on_both_engines, text, until};

on_both_engines! {
    also_behind_nginx:
    a_stream_that_breaks_off_anywhere_is_resumed_without_gap_or_repeat,
    without_a_place_the_stream_begins_now_and_start_is_the_beginning,
    a_stream_that_breaks_off_before_its_first_event_knows_where_it_began,
    an_agent_sees_what_happens_to_its_own_calls_only,
    a_place_that_is_none_is_refused,
    a_principal_has_so_many_streams_and_each_is_woken,
}

const PATH: &str = "/api/v1/approvals/stream";

fn a_stream_that_breaks_off_anywhere_is_resumed_without_gap_or_repeat(world: &World) {
    let office = Office::open(world);
    for round in 0..6 {
        let waiting = office.asks("transfer", round);
        let decision = if round % 2 == 0 { "approve" } else { "deny" };
        office.clerk.decides(&waiting.approval, decision, json!({})).ok();
        waiting.answer();
    }
    let whole = Follower::open(world, &office.clerk, &format!("{PATH}?after=start"), None).take(12);
    let kinds: Vec<_> = whole.iter().map(|(_, event)| text(event, "/type").to_owned()).collect();
    assert_eq!(kinds[..4], ["approval.requested", "approval.granted", "approval.requested", "approval.rejected"]);
    assert!(whole.iter().all(|(_, event)| event["approval"]["id"] == event["data"]["approval_id"]));
    for (position, (id, _)) in whole.iter().enumerate().take(11) {
        let rest = Follower::open(world, &office.clerk, PATH, Some(id)).take(12 - position - 1);
        assert_eq!(rest[..], whole[position + 1..], "after {id}");
    }
}

fn without_a_place_the_stream_begins_now_and_start_is_the_beginning(world: &World) {
    let office = Office::open(world);
    let before = office.asks("transfer", 1);
    office.clerk.decides(&before.approval, "deny", json!({})).ok();
    before.answer();
    let mut live = Follower::open(world, &office.clerk, PATH, None);
    let waiting = office.asks("transfer", 2);
    let (_, event) = live.next().unwrap();
    assert_eq!((&event["type"], &event["approval"]["id"]), (&json!("approval.requested"), &json!(waiting.approval)));
    office.clerk.decides(&waiting.approval, "deny", json!({})).ok();
    assert_eq!(live.next().unwrap().1["type"], "approval.rejected");
    waiting.answer();
}

fn a_stream_that_breaks_off_before_its_first_event_knows_where_it_began(world: &World) {
    let office = Office::open(world);
    let mut follower = Follower::open(world, &office.clerk, PATH, None);
    let waiting = office.asks("transfer", 1);
    office.clerk.decides(&waiting.approval, "deny", json!({})).ok();
    waiting.answer();
    // What the greeting says, taken as if the stream had broken off behind it.
    let begun = follower.greeting();
    let missed = follower.take(2);
    assert_eq!(Follower::open(world, &office.clerk, PATH, Some(&begun)).take(2), missed);
}

fn an_agent_sees_what_happens_to_its_own_calls_only(world: &World) {
    let office = Office::open(world);
    let peer = office.admin.registers("peer", &["tools.invoke"]);
    let waiting = office.asks("transfer", 1);
    office.clerk.decides(&waiting.approval, "deny", json!({})).ok();
    waiting.answer();
    let own = Follower::open(world, &office.agent, &format!("{PATH}?after=start"), None).take(2);
    assert_eq!(own[0].1["approval"]["agent_id"], "teller");
    // The peer sees its own and nothing before it.
    let mut follower = Follower::open(world, &peer, &format!("{PATH}?after=start"), None);
    let ask = json!({"tool": "x.y", "category": "exec", "arguments": {}});
    let caller = peer.clone();
    let thread = std::thread::spawn(move || caller.post("/api/v1/approvals/ask", &ask));
    let (_, event) = follower.next().unwrap();
    assert_eq!(event["approval"]["agent_id"], "peer");
    office.clerk.decides(text(&event, "/approval/id"), "deny", json!({})).ok();
    thread.join().unwrap().ok();
}

fn a_place_that_is_none_is_refused(world: &World) {
    let admin = world.admin();
    admin.get(&format!("{PATH}?after=yesterday")).refused(400, "INVALID_CURSOR");
    admin.ask_with("GET", PATH, &[("Last-Event-ID", "-1")], None).refused(400, "INVALID_CURSOR");
    admin.get(&format!("{PATH}?behind=1")).refused(400, "UNKNOWN_FIELD");
}

fn a_principal_has_so_many_streams_and_each_is_woken(world: &World) {
    let office = Office::open(world);
    let mut followers: Vec<_> = (0..64).map(|_| Follower::open(world, &office.clerk, PATH, None)).collect();
    let refused = office.clerk.get(PATH).refused(429, "TOO_MANY_STREAMS");
    assert_eq!(refused["limit"], 64);
    let mut own = Follower::open(world, &office.agent, PATH, None);
    let waiting = office.asks("transfer", 1);
    for follower in followers.iter_mut().chain([&mut own]) {
        assert_eq!(follower.next().unwrap().1["approval"]["id"], json!(waiting.approval));
    }
    office.clerk.decides(&waiting.approval, "deny", json!({})).ok();
    waiting.answer();
    followers.pop();
    // Its place is free once the gate has noticed that it is gone.
    let asked = || office.clerk.get("/api/v1/approvals/stream?after=none").status();
    until("the place is free again", || (asked() == 400).then_some(()));
}
