//! Endings without an answer: time, a caller that leaves, nobody there, a gate that stops. Each is a no, with its own words.

use std::io::Write;
use std::net::TcpStream;

use serde_json::{Value, json};

use super::office::{Office, call};
use crate::world::{World, merged, on_both_engines, until};

on_both_engines! {
    also_behind_nginx:
    nobody_answering_in_time_is_a_no_in_the_words_of_the_protocol,
    under_load_too_every_call_ends_within_a_second_of_its_time,
    a_late_answer_is_told_that_the_time_is_over,
    a_caller_that_leaves_takes_its_call_back_at_once,
    attendance_that_is_required_and_not_there_is_a_no_at_once,
    whoever_follows_the_stream_is_there,
    the_time_of_a_session_holds_for_its_calls,
    a_call_may_say_how_long_it_waits_and_not_longer_than_its_tool_says,
    a_gate_that_stops_ends_what_waits_and_runs_none_of_it,
}

const TIMED_OUT: &str = "approval timed out (no host response)";

fn nobody_answering_in_time_is_a_no_in_the_words_of_the_protocol(world: &World) {
    let office = Office::open(world);
    let error =
        office.agent.post("/api/v1/tools/invoke", &call("transfer.brief", 1)).refused(403, "APPROVAL_TIMED_OUT");
    assert_eq!(error["message"], TIMED_OUT);
    let approval = error["approval_id"].as_str().unwrap();
    let ended = office.approval(approval);
    assert_eq!((&ended["status"], &ended["reason"]), (&json!("timed_out"), &json!(TIMED_OUT)));
    // It ended when it had to, to the second.
    let late = lateness(&ended);
    assert!((0..1000).contains(&late), "{late} ms late: {ended}");
    assert_eq!(office.events_of(approval), ["approval.requested", "approval.timed_out"]);
    assert_eq!(office.bank.count(), 0);
}

fn under_load_too_every_call_ends_within_a_second_of_its_time(world: &World) {
    let office = Office::open(world);
    // Given many calls that wait for a second, and somebody who keeps the gate busy meanwhile.
    let waiting: Vec<_> = (0..20)
        .map(|number| {
            let agent = office.agent.clone();
            std::thread::spawn(move || agent.post("/api/v1/tools/invoke", &call("transfer.brief", number)))
        })
        .collect();
    while waiting.iter().any(|thread| !thread.is_finished()) {
        office.agent.post("/api/v1/tools/invoke", &call("balance", 1)).ok();
    }
    // Then each has ended when it had to.
    for thread in waiting {
        let error = thread.join().unwrap().refused(403, "APPROVAL_TIMED_OUT");
        let late = lateness(&office.approval(error["approval_id"].as_str().unwrap()));
        assert!((0..1000).contains(&late), "{late} ms late");
    }
}

/// How long after its time an approval ended, in milliseconds.
fn lateness(ended: &Value) -> i64 {
    let time = |name: &str| toolgate_model::time::Timestamp::parse(ended[name].as_str().unwrap()).unwrap().as_millis();
    time("resolved_at") - time("expires_at")
}

fn a_late_answer_is_told_that_the_time_is_over(world: &World) {
    let office = Office::open(world);
    let error =
        office.agent.post("/api/v1/tools/invoke", &call("transfer.brief", 1)).refused(403, "APPROVAL_TIMED_OUT");
    let approval = error["approval_id"].as_str().unwrap();
    let late = office.clerk.decides(approval, "approve", json!({})).refused(410, "APPROVAL_ENDED");
    assert_eq!((&late["status"], &late["message"]), (&json!("timed_out"), &json!(TIMED_OUT)));
    assert_eq!(office.bank.count(), 0);
}

fn a_caller_that_leaves_takes_its_call_back_at_once(world: &World) {
    let office = Office::open(world);
    let body = call("transfer", 1).to_string();
    let mut stream = TcpStream::connect(world.address()).unwrap();
    let request = format!(
        "POST /api/v1/tools/invoke HTTP/1.1\r\nHost: gate\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        office.agent.key,
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let approval = until("a call that waits", || office.pending().into_iter().next());
    // When it hangs up.
    drop(stream);
    // Then nobody can answer any more, and the refusal is written down although nobody hears it.
    let ended = until("the end", || Some(office.approval(&approval)).filter(|now| now["status"] != "pending"));
    assert_eq!(ended["status"], "cancelled");
    let late = office.clerk.decides(&approval, "approve", json!({})).refused(410, "APPROVAL_ENDED");
    assert_eq!(late["status"], "cancelled");
    let path = format!("/api/v1/invocations/{}", ended["invocation_id"].as_str().unwrap());
    let record = until("the record", || Some(office.admin.get(&path)).filter(|reply| reply.status() == 200)).ok();
    assert_eq!(record["error"]["code"], "APPROVAL_CANCELLED");
    assert_eq!(office.events_of(&approval), ["approval.requested", "approval.cancelled"]);
    assert_eq!(office.bank.count(), 0);
}

fn attendance_that_is_required_and_not_there_is_a_no_at_once(world: &World) {
    let office = Office::open(world);
    let error =
        office.agent.post("/api/v1/tools/invoke", &call("transfer.attended", 1)).refused(403, "APPROVAL_REQUIRED");
    assert_eq!(error["attendance"], "required");
    let list = office.clerk.get("/api/v1/approvals").ok();
    assert_eq!(list["approvals"], json!([]), "nobody was asked");
}

fn whoever_follows_the_stream_is_there(world: &World) {
    let office = Office::open(world);
    // An agent that follows is nobody who could answer.
    let _follower = crate::openwop::follower::Follower::open(world, &office.agent, "/api/v1/approvals/stream", None);
    office.agent.post("/api/v1/tools/invoke", &call("transfer.attended", 1)).refused(403, "APPROVAL_REQUIRED");
    let _clerk = crate::openwop::follower::Follower::open(world, &office.clerk, "/api/v1/approvals/stream", None);
    let waiting = office.asks("transfer.attended", 1);
    office.clerk.decides(&waiting.approval, "approve", json!({})).ok();
    waiting.answer().ok();
}

fn the_time_of_a_session_holds_for_its_calls(world: &World) {
    let office = Office::open(world);
    let set = office.agent.ask("PUT", "/api/v1/approval-sessions/s-1", Some(&json!({"ttl_seconds": 1}))).ok();
    assert_eq!((&set["ttl_seconds"], &set["mode"]), (&json!(1), &json!("default")));
    let body = merged(call("balance", 1), json!({"approval_session": {"name": "s-1"}}));
    let error = office.agent.post("/api/v1/tools/invoke", &body).refused(403, "APPROVAL_TIMED_OUT");
    assert_eq!(error["message"], TIMED_OUT);
    // Without the session nothing asks before this tool.
    office.agent.post("/api/v1/tools/invoke", &call("balance", 1)).ok();
}

fn a_call_may_say_how_long_it_waits_and_not_longer_than_its_tool_says(world: &World) {
    let office = Office::open(world);
    for (tool, seconds) in [("transfer", 1), ("transfer.brief", 3600)] {
        let body = merged(call(tool, 1), json!({"approval_ttl_seconds": seconds}));
        office.agent.post("/api/v1/tools/invoke", &body).refused(403, "APPROVAL_TIMED_OUT");
    }
    let asked = json!({"tool": "x.y", "category": "exec", "arguments": {}, "ttl_seconds": 1});
    assert_eq!(office.agent.post("/api/v1/approvals/ask", &asked).ok()["reason"], TIMED_OUT);
    for wrong in [json!(0), json!(604_801), json!("long")] {
        let body = merged(call("transfer", 1), json!({"approval_ttl_seconds": wrong}));
        office.agent.post("/api/v1/tools/invoke", &body).refused(400, "INVALID_FIELD");
    }
}

fn a_gate_that_stops_ends_what_waits_and_runs_none_of_it(world: &World) {
    let office = Office::open(world);
    let waiting = office.asks("transfer", 1);
    world.gate.terminate();
    let error: Value = waiting.answer().refused(403, "APPROVAL_CANCELLED");
    assert_eq!(error["message"], "the gate stopped while this approval was pending");
    assert_eq!(office.bank.count(), 0);
}
