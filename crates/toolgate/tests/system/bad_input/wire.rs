//! Requests that are no HTTP, contradict themselves, never end or try to smuggle a second one: refused or closed, each
//! alone, and never answered 5xx.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use toolgate_testkit::http::{self, Answer};

use crate::world::{World, on_both_engines, send};

on_both_engines! {
    garbage_is_refused_or_closed,
    headers_have_limits,
    contradictory_lengths_smuggle_nothing,
    a_request_that_breaks_off_changes_nothing,
}

/// How this side ends a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// It has nothing more to say, and says so.
    Closed,
    /// It leaves that to the gate.
    Open,
}

/// Sends bytes and answers all that comes back.
fn exchange(gate: SocketAddr, bytes: &[u8], end: End) -> Vec<u8> {
    let mut stream = TcpStream::connect(gate).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    // The gate may have closed its side before it has read everything.
    let _ = stream.write_all(bytes);
    if end == End::Closed {
        let _ = stream.shutdown(Shutdown::Write);
    }
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer
}

/// The one answer, if there is any; its status must not blame the gate.
fn answer_to(gate: SocketAddr, bytes: &[u8], end: End) -> Option<Answer> {
    let raw = exchange(gate, bytes, end);
    let shown = String::from_utf8_lossy(bytes.get(..200).unwrap_or(bytes)).into_owned();
    let text = String::from_utf8_lossy(&raw).into_owned();
    assert!(text.matches("HTTP/1.1 ").count() <= 1, "{shown:?} was answered more than once: {text}");
    if raw.is_empty() || bytes.starts_with(b"PRI * HTTP/2.0") {
        return None;
    }
    let answer = http::parse(&raw).unwrap_or_else(|error| panic!("{shown:?}: {error}: {text}"));
    assert!(answer.status < 500, "{shown:?}: {text}");
    Some(answer)
}

/// The beginning of a request that would make a vault.
fn head(token: &str) -> String {
    format!("POST /api/v1/vaults HTTP/1.1\r\nHost: a\r\nX-API-Key: {token}\r\nContent-Type: application/json\r\n")
}

fn assert_alive(world: &World) {
    world.admin().get("/api/v1/whoami").ok();
    assert_eq!(send(world.gate.address(), "GET", "/readyz", &[], b"").ok()["status"], "ready");
}

fn garbage_is_refused_or_closed(world: &World) {
    let long_line = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(100_000));
    let garbage: [&[u8]; 18] = [
        b"",
        b"\r\n\r\n",
        b"\0\0\0\0\0\0\0\0\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"GET\r\n\r\n",
        b"GET /\r\n\r\n",
        b"GET / HTTP/0.9\r\n\r\n",
        b"GET / HTTP/1.2\r\nHost: a\r\n\r\n",
        b"GET / HTTP/9.9\r\nHost: a\r\n\r\n",
        b"GET /a b c HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /\x00 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        b"GE\x00T / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nBad Header: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: a\x00b\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nnot frames at all",
        long_line.as_bytes(),
    ];
    for bytes in garbage {
        if let Some(answer) = answer_to(world.gate.address(), bytes, End::Closed) {
            assert!(answer.status >= 400, "{:?}: {}", String::from_utf8_lossy(bytes), answer.status);
        }
    }
    let line_of = |target: &str| format!("GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    for target in ["http://evil.example/api/v1/whoami", "*", "http://", "/api/v1/whoami#fragment", "\\api\\v1"] {
        let answer = answer_to(world.gate.address(), line_of(target).as_bytes(), End::Open);
        assert!(answer.is_none_or(|answer| answer.status >= 400), "{target}");
    }
    assert_alive(world);
}

fn headers_have_limits(world: &World) {
    let token = world.gate.token();
    let with = |headers: &str| {
        let head = format!("GET /api/v1/whoami HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX-API-Key: {token}\r\n");
        answer_to(world.gate.address(), format!("{head}{headers}\r\n").as_bytes(), End::Open)
    };
    assert_eq!(with("").map(|answer| answer.status), Some(200));
    let many: String = (0..200).map(|number| format!("X-{number}: a\r\n")).collect();
    assert_eq!(with(&many).map(|answer| answer.status), Some(431));
    let huge = format!("X-Huge: {}\r\n", "a".repeat(1_000_000));
    assert!(with(&huge).is_none_or(|answer| answer.status == 431));
    let long_key = "k".repeat(60_000);
    let reply = send(world.gate.address(), "GET", "/api/v1/whoami", &[("X-API-Key", &long_key)], b"");
    reply.refused(401, "UNAUTHENTICATED");
    assert!(reply.answer.body.len() < 1000, "and it is not repeated");
    for value in ["k\u{e9}y", "\u{1F511}"] {
        send(world.gate.address(), "GET", "/api/v1/whoami", &[("X-API-Key", value)], b"").refused(400, "INVALID_FIELD");
    }
    assert_alive(world);
}

fn contradictory_lengths_smuggle_nothing(world: &World) {
    let token = world.gate.token();
    let before = world.admin().events("").len();
    let inner = format!("{}Content-Length: 16\r\n\r\n{{\"name\": \"evil\"}}", head(token));
    let lengths = [
        "Content-Length: 4\r\nContent-Length: 5\r\n",
        "Content-Length: 4, 5\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: +4\r\n",
        "Content-Length: 4x\r\n",
        "Content-Length: 99999999999999999999\r\n",
        "Content-Length: 0x10\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: gzip, chunked, gzip\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: identity\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "Transfer-Encoding : chunked\r\n",
        "Transfer-Encoding:\x0bchunked\r\n",
        "Content-Length: 4\r\n X-Folded: 1\r\n",
    ];
    let chunks = ["ffffffffffffffffff\r\n", "-1\r\n", "5;a=b\r\nabcdefgh\r\n0\r\n\r\n", "zz\r\n", "1\nab0\n\n"];
    let ambiguous =
        lengths.map(|length| format!("POST /api/v1/whoami HTTP/1.1\r\nHost: a\r\n{length}\r\n0\r\n\r\n{inner}"));
    let broken = chunks.map(|chunks| format!("{}Transfer-Encoding: chunked\r\n\r\n{chunks}", head(token)));
    for request in ambiguous.iter().chain(&broken) {
        let answer = answer_to(world.gate.address(), request.as_bytes(), End::Open);
        assert!(answer.is_some_and(|answer| matches!(answer.status, 400 | 405)), "{request:?}");
    }
    assert_eq!(world.admin().events("").len(), before, "no vault was made by any of it");
    assert_alive(world);
}

fn a_request_that_breaks_off_changes_nothing(world: &World) {
    let token = world.gate.token();
    let before = world.admin().events("").len();
    let body = "{\"name\": \"never whole\"}";
    let request = format!("{}Content-Length: {}\r\n\r\n{body}", head(token), body.len());
    let in_chunks = format!("{}Transfer-Encoding: chunked\r\n\r\n5\r\n{{\"na", head(token));
    let cuts = [10, 40, request.len() - body.len() - 2, request.len() - body.len(), request.len() - 1];
    for part in cuts.map(|cut| request.get(..cut).unwrap()).into_iter().chain([in_chunks.as_str()]) {
        let answer = answer_to(world.gate.address(), part.as_bytes(), End::Closed);
        assert!(answer.is_none_or(|answer| matches!(answer.status, 400 | 408)), "{part:?}");
    }
    assert_eq!(world.admin().events("").len(), before);
    assert_alive(world);
}
