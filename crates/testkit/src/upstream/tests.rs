//! Tests of the fixture itself, so that a test that fails has found a fault of the gate.

use std::io::{Read, Write};

use flate2::read::GzDecoder;
use serde_json::{Value, json};

use super::*;
use crate::http::{self, Answer};

const KEY: [(&str, &str); 1] = [("Authorization", "Bearer key")];

fn get(upstream: &Upstream, path: &str) -> Answer {
    http::send(upstream.address(), "GET", path, &[], b"").unwrap()
}

/// Reads this many bytes of the response and disconnects.
fn peek(upstream: &Upstream, length: usize) -> String {
    let mut stream = TcpStream::connect(upstream.address()).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: upstream\r\n\r\n").unwrap();
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn requests_are_remembered_as_they_came() {
    let upstream = Upstream::start(|request| Reply::text(202, &request.text()).header("X-Path", request.path()));
    let answer = http::send(upstream.address(), "PUT", "/a%2Fb?c=d", &[("X-Name", "value")], b"body").unwrap();
    assert_eq!((answer.status, answer.text().as_str(), answer.header("x-path")), (202, "body", Some("/a%2Fb")));
    let received = upstream.received();
    assert_eq!((received[0].method.as_str(), received[0].target.as_str()), ("PUT", "/a%2Fb?c=d"));
    assert_eq!((received[0].header("x-name"), received[0].body.as_slice()), (Some("value"), &b"body"[..]));
    assert_eq!((upstream.count(), upstream.connections()), (1, 1));
}

#[test]
fn one_connection_carries_many_requests() {
    let upstream = Upstream::start(|request| Reply::text(200, &format!("<{}>", request.path())).in_chunks_of(1));
    let requests = b"GET /a HTTP/1.1\r\n\r\nHEAD /b HTTP/1.1\r\n\r\nGET /c HTTP/1.1\r\nConnection: close\r\n\r\n";
    let text = String::from_utf8(http::send_raw(upstream.address(), requests).unwrap()).unwrap();
    assert_eq!(text.matches("HTTP/1.1 200").count(), 3);
    assert_eq!(text.matches("0\r\n\r\n").count(), 2, "no body for HEAD: {text}");
    assert_eq!((upstream.count(), upstream.connections()), (3, 1));
}

#[test]
fn held_requests_are_all_answered_when_released() {
    let upstream = Upstream::start(|_| Reply::text(200, "done"));
    upstream.hold();
    thread::scope(|scope| {
        let calls: Vec<_> = (0..100).map(|_| scope.spawn(|| get(&upstream, "/"))).collect();
        upstream.wait_for(100);
        assert!(calls.iter().all(|call| !call.is_finished()));
        upstream.release();
        assert!(calls.into_iter().all(|call| call.join().unwrap().text() == "done"));
    });
}

#[test]
fn a_dropped_upstream_ends_whatever_it_is_doing() {
    for reply in [Reply::endless(), Reply::drip(TIMEOUT), Reply::drip_head(TIMEOUT), Reply::silence()] {
        let upstream = Upstream::start(move |_| reply.clone());
        let mut client = TcpStream::connect(upstream.address()).unwrap();
        client.set_read_timeout(Some(TIMEOUT)).unwrap();
        client.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        upstream.wait_for(1);
        drop(upstream);
        // The end may be a reset; only that it comes matters.
        let end = client.read_to_end(&mut Vec::new());
        assert!(end.is_ok() || end.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionReset));
    }
    let upstream = Upstream::start(|_| Reply::Close);
    upstream.hold();
    let mut client = TcpStream::connect(upstream.address()).unwrap();
    client.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    upstream.wait_for(1);
    drop(upstream);
    assert_eq!(client.read_to_end(&mut Vec::new()).unwrap(), 0);
}

#[test]
fn what_goes_on_forever_ends_with_the_client() {
    let millisecond = Duration::from_millis(1);
    for reply in [Reply::endless(), Reply::drip(millisecond), Reply::drip_head(millisecond)] {
        let upstream = Upstream::start(move |_| reply.clone());
        assert!(peek(&upstream, 200).starts_with("HTTP/1.1 200 OK\r\n"));
        upstream.wait_for_ended_connections(1);
    }
}

#[test]
fn raw_bytes_are_written_as_they_are() {
    let upstream = Upstream::start(|request| match request.path() {
        "/open" => Reply::raw_open("two\r\n"),
        "/close" => Reply::Close,
        _ => Reply::raw("three"),
    });
    let send = |bytes: &[u8]| http::send_raw(upstream.address(), bytes).unwrap();
    assert_eq!(send(b"GET /open HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n"), b"two\r\nthree");
    assert_eq!(send(b"GET /close HTTP/1.1\r\n\r\n"), b"");
}

#[test]
fn what_is_no_request_is_remembered_and_refused() {
    let upstream = Upstream::start(|_| panic!("there is nothing to answer"));
    let answer = http::parse(&http::send_raw(upstream.address(), b"\x16\x03\x01\x00").unwrap()).unwrap();
    assert_eq!((answer.status, upstream.received()[0].is_malformed()), (400, true));
}

#[test]
fn compressed_bodies_expand_to_what_was_asked() {
    let upstream = Upstream::start(|request| match request.path() {
        "/bomb" => Reply::gzip_bomb(4),
        _ => Reply::text(200, "small").gzip().in_chunks_of(3),
    });
    let mut text = String::new();
    GzDecoder::new(get(&upstream, "/").body.as_slice()).read_to_string(&mut text).unwrap();
    assert_eq!(text, "small");
    let bomb = get(&upstream, "/bomb");
    assert_eq!((bomb.header("content-encoding"), bomb.body.len() < 1 << 16), (Some("gzip"), true));
    assert_eq!(io::copy(&mut GzDecoder::new(bomb.body.as_slice()), &mut io::sink()).unwrap(), 4 << 20);
}

#[test]
fn a_redirect_and_an_empty_answer_are_well_formed() {
    let upstream = Upstream::start(|request| match request.path() {
        "/away" => Reply::redirect("http://127.0.0.1/"),
        _ => Reply::bytes(204, ""),
    });
    let away = get(&upstream, "/away");
    assert_eq!((away.status, away.header("location")), (302, Some("http://127.0.0.1/")));
    assert_eq!(get(&upstream, "/").header("content-length"), None);
}

#[test]
fn the_payments_service_charges_lists_and_refunds() {
    let upstream = Upstream::payments();
    let call = |method: &str, path: &str, body: Option<Value>| {
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        let answer = http::send(upstream.address(), method, path, &KEY, body.as_bytes()).unwrap();
        (answer.status, answer.json())
    };
    let first = json!({"id": "ch_1", "amount": 500, "currency": "eur", "status": "succeeded"});
    assert_eq!(call("POST", "/v1/charges", Some(json!({"amount": 500, "currency": "eur"}))), (201, first.clone()));
    assert_eq!(call("POST", "/v1/charges", Some(json!({"amount": 7, "currency": "eur"}))).1["id"], "ch_2");
    assert_eq!(call("GET", "/v1/charges/ch_1", None), (200, first));
    assert_eq!(call("GET", "/v1/charges/ch_other", None).0, 200);
    let (_, list) = call("GET", "/v1/charges?limit=1", None);
    assert_eq!(
        (&list["data"][0]["id"], &list["data"][1], &list["has_more"]),
        (&json!("ch_2"), &json!(null), &json!(true))
    );
    let refund = json!({"id": "re_1", "charge": "ch_1", "amount": 5, "status": "succeeded"});
    assert_eq!(call("POST", "/v1/refunds", Some(json!({"charge": "ch_1", "amount": 5}))), (201, refund));
    assert_eq!(call("GET", "/v1/balance", None).1["available"][0]["amount"], 507);
    assert_eq!(call("POST", "/v1/charges", Some(json!({"amount": "500"}))).0, 400);
    assert_eq!(call("DELETE", "/v1/charges/ch_1", None).0, 404);
    let stranger = get(&upstream, "/v1/balance");
    assert_eq!((stranger.status, &stranger.json()["error"]["code"]), (401, &json!("authentication_required")));
}
