//! What takes longer than nginx waits for the next byte (60 seconds by default): streams must survive that. The suites of
//! approvals and of the SDK run behind nginx where they stand, see `on_both_engines`.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::approvals::office::{Office, call};
use crate::world::{Actor, World, until};

/// Heartbeats come every 15 seconds: after so many nginx would have cut a silent stream.
const HEARTBEATS: usize = 5;

#[test]
fn every_form_of_stream_outlives_the_read_timeout_of_nginx() {
    let world = World::behind_nginx();
    let office = Office::open(&world);
    let approvals = open(&world, &office.clerk, "GET /api/v1/approvals/stream", "text/event-stream", None);
    let events = open(&world, &office.admin, "GET /v1/events?after=1000000", "text/event-stream", None);
    let transfer = call("transfer", 10);
    let followed = open(&world, &office.agent, "POST /api/v1/tools/invoke", "application/x-ndjson", Some(&transfer));
    let readers = [(approvals, "\n:"), (events, "\n:"), (followed, "\"waiting\"")].map(|(mut stream, heartbeat)| {
        std::thread::spawn(move || {
            let text = read_until(&mut stream, |text| text.matches(heartbeat).count() >= HEARTBEATS);
            (stream, text)
        })
    });
    let [_, _, (mut followed, begun)] = readers.map(|reader| reader.join().unwrap());
    // And the call that waited for so long is made once somebody approves it.
    assert!(begun.contains("\"asked\""), "{begun}");
    let approval = until("the approval", || office.pending().into_iter().next());
    office.clerk.decides(&approval, "approve", json!({})).ok();
    let rest = read_until(&mut followed, |text| text.contains("\"answered\""));
    assert!(rest.contains("\"status\":200"), "{rest}");
    assert_eq!(office.bank.count(), 1);
}

fn open(world: &World, actor: &Actor, request: &str, accept: &str, body: Option<&Value>) -> TcpStream {
    let body = body.map(Value::to_string).unwrap_or_default();
    let mut stream = TcpStream::connect(world.address()).unwrap();
    let request = format!(
        "{request} HTTP/1.1\r\nHost: gate\r\nAuthorization: Bearer {}\r\nAccept: {accept}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        actor.key,
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let head = read_until(&mut stream, |text| text.contains("\r\n\r\n"));
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    stream
}

/// Reads until the text is as wanted; panics where the stream ends before that.
fn read_until(stream: &mut TcpStream, wanted: impl Fn(&str) -> bool) -> String {
    let mut text = String::new();
    let mut bytes = [0; 4096];
    while !wanted(&text) {
        let read = stream.read(&mut bytes).unwrap();
        assert!(read > 0, "the stream was cut: {text}");
        text.push_str(&String::from_utf8_lossy(&bytes[..read]));
    }
    text
}
