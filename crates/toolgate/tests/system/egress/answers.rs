//! Answers without end, measure or truth: each ends in time, with a result that says what it is.

use std::time::Duration;

use serde_json::json;
use toolgate_testkit::upstream::{Reply, Upstream};

use crate::tool_user::{ToolUser, bearer, bearer_with, failure};
use crate::world::{World, on_both_engines};

const LIMIT: usize = 1024 * 1024;

on_both_engines! {
    an_endless_answer_is_cut_off_and_said_to_be,
    an_answer_that_comes_too_slowly_ends_with_its_time,
}

fn an_endless_answer_is_cut_off_and_said_to_be(world: &World) {
    let upstream = Upstream::start(|_| Reply::endless());
    let user = ToolUser::of(world, bearer(&upstream));
    let reply = user.calls("any", json!({}));
    let answer = reply.ok();
    assert_eq!((answer["status"].as_str(), &answer["truncated"]), (Some("success"), &json!(true)));
    let raw = answer["result"]["raw"].as_str().unwrap();
    assert!((LIMIT - 16..=LIMIT).contains(&raw.len()), "{}", raw.len());
    assert_eq!(user.record(&reply)["status"], "success");
    upstream.wait_for_ended_connections(1);
}

fn an_answer_that_comes_too_slowly_ends_with_its_time(world: &World) {
    let interval = Duration::from_millis(20);
    let replies = [
        Reply::drip(interval),
        Reply::drip_head(interval),
        Reply::silence(),
        Reply::raw_open("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"),
    ];
    for reply in replies {
        let upstream = Upstream::start(move |_| reply.clone());
        let user = ToolUser::of(world, bearer_with(&upstream, json!({"timeout_ms": 1000})));
        let reply = user.calls("any", json!({}));
        let error = failure(&reply, 504, "PROXY_ERROR");
        assert_eq!(error["timed_out"], true);
        let duration = reply.json()["duration_ms"].as_u64().unwrap();
        assert!((1000..20_000).contains(&duration), "{duration}");
        assert_eq!(user.record(&reply)["status"], "error");
        upstream.wait_for_ended_connections(1);
    }
}

#[test]
fn a_small_answer_that_expands_without_end_is_cut_off_in_little_memory() {
    let world = World::sqlite();
    let bomb = Reply::gzip_bomb(512);
    let upstream = Upstream::start(move |_| bomb.clone());
    let user = ToolUser::of(&world, bearer(&upstream));
    for _ in 0..4 {
        assert_eq!(user.calls("any", json!({})).ok()["truncated"], true);
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", world.gate.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kibibytes: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(kibibytes < 200 * 1024, "{kibibytes} KiB at the peak");
}

#[test]
fn an_answer_that_lies_about_its_end_poisons_no_later_call() {
    let world = World::sqlite();
    let smuggled = "HTTP/1.1 200 OK\r\nContent-Length: 17\r\n\r\n{\"smuggled\":true}";
    let lies = [
        ("too short", format!("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{{}}{smuggled}")),
        (
            "two answers",
            format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n{smuggled}"),
        ),
        (
            "an interim answer",
            format!("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{{}}{smuggled}"),
        ),
        ("no content", format!("HTTP/1.1 204 No Content\r\n\r\n{smuggled}")),
    ];
    for (lie, text) in lies {
        let upstream = Upstream::start(move |request| match request.json()["honest"].as_bool() {
            Some(true) => Reply::json(200, json!({"honest": true})),
            _ => Reply::raw_open(text.clone()),
        });
        let user = ToolUser::of(&world, bearer(&upstream));
        for _ in 0..5 {
            let told = user.calls("any", json!({"honest": false}));
            assert!(!told.answer.text().contains("smuggled"), "{lie}: {}", told.answer.text());
            let honest = user.calls("any", json!({"honest": true})).ok();
            assert_eq!(honest["result"], json!({"honest": true}), "{lie}");
        }
    }
}

#[test]
fn an_answer_that_is_none_is_an_error_of_the_way_there() {
    let world = World::sqlite();
    let answers = [
        Reply::Close,
        Reply::raw("garbage"),
        Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"cut\": "),
        Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}x"),
        Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"),
        Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}"),
        Reply::raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
        Reply::raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n{}\r\n0\r\n\r\n"),
        Reply::raw("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n"),
        Reply::raw(format!("HTTP/1.1 200 OK\r\nX-Long: {}\r\n\r\n", "x".repeat(2 << 20))),
        Reply::json(200, json!({})).header("Content-Encoding", "br"),
        Reply::json(200, json!({})).header("Content-Encoding", "gzip"),
    ];
    for reply in answers {
        let shown = format!("{reply:?}").chars().take(200).collect::<String>();
        let upstream = Upstream::start(move |_| reply.clone());
        let user = ToolUser::of(&world, bearer_with(&upstream, json!({"timeout_ms": 5000})));
        let answer = user.calls("any", json!({}));
        assert_eq!(answer.status(), 502, "{shown}: {}", answer.answer.text());
        let error = failure(&answer, 502, "PROXY_ERROR");
        assert!(error["message"].as_str().unwrap().starts_with("the service's response"), "{shown}: {error}");
        // Once: nobody knows what the service has done.
        assert_eq!(upstream.count(), 1, "{shown}");
    }
}
