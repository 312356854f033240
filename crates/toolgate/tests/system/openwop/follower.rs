//! Somebody who follows a stream of events.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use crate::world::{Actor, World};

/// An open stream.
pub struct Follower {
    stream: BufReader<TcpStream>,
    text: String,
}

impl Follower {
    /// Opens a stream at this path, behind the event of this id.
    pub fn open(world: &World, actor: &Actor, path: &str, after: Option<&str>) -> Self {
        let mut stream = TcpStream::connect(world.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let seen = after.map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: gate\r\nAuthorization: Bearer {}\r\nAccept: text/event-stream\r\n{seen}\r\n",
            actor.key
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut follower = Self { stream: BufReader::new(stream), text: String::new() };
        let head = follower.head();
        assert!(head.starts_with("http/1.1 200 ") && head.contains("content-type: text/event-stream\r\n"), "{head}");
        follower
    }

    /// The next event with its id; `None` where the stream ends.
    pub fn next(&mut self) -> Option<(String, Value)> {
        loop {
            while let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
                if let (Some(id), Some(kind), Some(data)) = (field("id"), field("event"), field("data")) {
                    let event: Value = serde_json::from_str(data).unwrap();
                    assert_eq!(event["type"], kind);
                    return Some((id.to_owned(), event));
                }
                assert!(block.starts_with(':') || block.starts_with("retry:"), "{block}");
            }
            let chunk = self.chunk()?;
            self.text.push_str(&chunk);
        }
    }

    /// The place that the stream begins behind, as its first block says.
    pub fn greeting(&mut self) -> String {
        while !self.text.contains("\n\n") {
            let chunk = self.chunk().expect("a greeting");
            self.text.push_str(&chunk);
        }
        let place = self.text.lines().find_map(|line| line.strip_prefix("id: ")).expect("a place");
        place.to_owned()
    }

    /// The next so many events.
    pub fn take(&mut self, count: usize) -> Vec<(String, Value)> {
        (0..count).map(|_| self.next().expect("another event")).collect()
    }

    fn head(&mut self) -> String {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(self.stream.read_line(&mut head).unwrap() > 0, "the head broke off: {head}");
        }
        head.to_lowercase()
    }

    /// The next piece of the body; `None` at its end.
    fn chunk(&mut self) -> Option<String> {
        let mut length = String::new();
        self.stream.read_line(&mut length).unwrap();
        let length = usize::from_str_radix(length.trim(), 16).unwrap_or_else(|_| panic!("no chunk: {length:?}"));
        let mut chunk = vec![0; length + 2];
        self.stream.read_exact(&mut chunk).unwrap();
        chunk.truncate(length);
        (length > 0).then(|| String::from_utf8(chunk).unwrap())
    }
}
