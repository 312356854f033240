//! Asked to end, the gate finishes what is in flight, takes nothing new, and leaves nothing undone.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::json;
use toolgate_testkit::gate_process::{ADMIN_TOKEN, GateProcess, GateSetup, signal};
use toolgate_testkit::http;

fn setup() -> GateSetup {
    GateSetup::new(env!("CARGO_BIN_EXE_toolgate"))
}

/// A request whose body is still to come.
fn begin(gate: &GateProcess, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(gate.address()).unwrap();
    let head = format!(
        "POST /api/v1/vaults HTTP/1.1\r\nHost: gate\r\nAuthorization: Bearer {ADMIN_TOKEN}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\nExpect: 100-continue\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    // The gate asks for the body when it has begun to answer: from then on the request is in flight.
    let mut interim = [0_u8; 25];
    stream.read_exact(&mut interim).unwrap();
    assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream
}

/// Waits until the gate takes no connection any more.
fn wait_until_closed(gate: &GateProcess) {
    while TcpStream::connect(gate.address()).is_ok() {
        std::thread::yield_now();
    }
}

#[test]
fn a_request_under_way_is_answered_before_the_end() {
    for name in ["TERM", "INT"] {
        let setup = setup();
        let gate = setup.start();
        let body = json!({"name": "made while ending"}).to_string();
        let mut streams: Vec<TcpStream> = (0..8).map(|_| begin(&gate, &body)).collect();
        signal(name, gate.id());
        wait_until_closed(&gate);
        for stream in &mut streams {
            stream.write_all(body.as_bytes()).unwrap();
        }
        for mut stream in streams {
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).unwrap();
            assert_eq!(http::parse(&answer).unwrap().status, 201);
        }
        let ended = gate.wait();
        assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);

        let gate = setup.start();
        let (_, vaults) = gate.request("GET", "/api/v1/vaults", None);
        assert_eq!(vaults["vaults"].as_array().unwrap().len(), 8);
    }
}

#[test]
fn an_idle_connection_does_not_hold_the_end_up() {
    let gate = setup().start();
    let mut idle = TcpStream::connect(gate.address()).unwrap();
    idle.write_all(b"GET /healthz HTTP/1.1\r\nHost: gate\r\n\r\n").unwrap();
    let mut first = [0_u8; 12];
    idle.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    assert_eq!(gate.stop().status.code(), Some(0));
}

#[test]
fn a_request_that_never_ends_is_given_up_after_the_configured_time() {
    let gate = setup().configuration("[server]\ndrain_seconds = 0\n").start();
    let _stuck = begin(&gate, "{\"name\": \"never sent\"}");
    let ended = gate.stop();
    assert_eq!(ended.status.code(), Some(0));
    assert!(ended.stderr.contains("did not finish in time"), "{}", ended.stderr);
}

#[test]
fn what_was_used_and_done_last_is_written_down() {
    let setup = setup();
    let gate = setup.start();
    gate.request("POST", "/api/v1/agents", Some(&json!({"id": "last"})));
    let (_, made) = gate.request("POST", "/api/v1/agents/last/keys", None);
    let key = made["key"].as_str().unwrap();
    assert_eq!(gate.request_as(key, "GET", "/api/v1/whoami", None).0, 200);
    gate.stop();
    let gate = setup.start();
    let (_, keys) = gate.request("GET", "/api/v1/agents/last/keys", None);
    assert!(keys["keys"][0]["last_used_at"].is_string(), "{keys}");
}
