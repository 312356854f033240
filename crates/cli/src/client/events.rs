//! Streams of server-sent events.

use std::marker::PhantomData;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde::de::DeserializeOwned;

use super::{Client, ClientError};

/// The largest event that is held in memory.
const MAX_BLOCK: usize = 16 * 1024 * 1024;
/// How long a stream may be without data. The gate sends a keep-alive every few seconds.
pub(super) const MAX_SILENCE: Duration = Duration::from_secs(90);

/// A server-sent event with JSON data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServerEvent {
    id: Option<String>,
    pub(super) data: String,
}

pub struct Events<'a, T> {
    client: &'a Client,
    body: Incoming,
    blocks: Blocks,
    item: PhantomData<T>,
}

impl<'a, T> Events<'a, T> {
    pub(super) fn new(client: &'a Client, body: Incoming) -> Self {
        Self { client, body, blocks: Blocks::default(), item: PhantomData }
    }

    /// The position in the stream, which the gate sends at the start and with every event.
    pub fn position(&self) -> Option<&str> {
        self.blocks.place.as_deref()
    }
}

impl<T: DeserializeOwned> Events<'_, T> {
    /// The next event. The end of the stream is an error, as these streams have none.
    pub async fn next(&mut self) -> Result<T, ClientError> {
        loop {
            let broken = |reason: &str| self.client.broken_off(reason);
            if let Some(event) = self.blocks.next() {
                return serde_json::from_str(&event.data)
                    .map_err(|_| broken("it contains an event that cannot be parsed"));
            }
            let frame = tokio::time::timeout(MAX_SILENCE, self.body.frame()).await;
            let frame =
                frame.map_err(|_| broken("no data arrived in time"))?.ok_or_else(|| broken("the stream ended"))?;
            let frame = frame.map_err(|error| broken(&error.to_string()))?;
            if let Some(data) = frame.data_ref()
                && !self.blocks.add(data)
            {
                return Err(broken("an event is too long"));
            }
        }
    }
}

/// Assembles events from bytes.
#[derive(Default)]
pub(super) struct Blocks {
    line: Vec<u8>,
    /// The last id that was received, with an event or without one.
    place: Option<String>,
    id: Option<String>,
    data: Option<String>,
    ready: std::collections::VecDeque<ServerEvent>,
}

impl Blocks {
    /// Adds received bytes. Returns false if an incomplete event exceeds the limit.
    pub(super) fn add(&mut self, bytes: &[u8]) -> bool {
        for byte in bytes {
            if *byte == b'\n' {
                let line = std::mem::take(&mut self.line);
                let line = String::from_utf8_lossy(&line);
                self.take_line(line.strip_suffix('\r').unwrap_or(&line));
            } else {
                self.line.push(*byte);
            }
        }
        self.line.len() + self.data.as_ref().map_or(0, String::len) <= MAX_BLOCK
    }

    pub(super) fn next(&mut self) -> Option<ServerEvent> {
        self.ready.pop_front()
    }

    fn take_line(&mut self, line: &str) {
        if line.is_empty() {
            let id = self.id.take();
            if let Some(data) = self.data.take() {
                self.ready.push_back(ServerEvent { id, data });
            }
            return;
        }
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "id" => {
                self.place = Some(value.to_owned());
                self.id = Some(value.to_owned());
            }
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            },
            // Comments, and the name of the event, which its data repeats.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(id: Option<&str>, data: &str) -> ServerEvent {
        ServerEvent { id: id.map(str::to_owned), data: data.to_owned() }
    }

    #[test]
    fn events_are_whole_however_the_bytes_are_cut() {
        let text = ": keep-alive\n\nid: 7\nevent: approval.requested\ndata: {\"a\":\ndata: 1}\n\nid: 8\r\ndata:x\r\n\r\ndata: end";
        for size in [1, 2, 3, 7, text.len()] {
            let mut blocks = Blocks::default();
            let mut found = Vec::new();
            for piece in text.as_bytes().chunks(size) {
                assert!(blocks.add(piece));
                found.extend(std::iter::from_fn(|| blocks.next()));
            }
            assert_eq!(found, [event(Some("7"), "{\"a\":\n1}"), event(Some("8"), "x")], "{size}");
        }
    }

    #[test]
    fn an_event_without_an_end_is_not_kept_for_ever() {
        let mut blocks = Blocks::default();
        let piece = vec![b'x'; MAX_BLOCK / 2];
        assert!(blocks.add(&piece));
        assert!(blocks.add(&piece));
        assert!(!blocks.add(b"x"));
    }
}
