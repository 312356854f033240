//! The stream of messages that a server sends for one request. It is read on while something else is done for the server:
//! its response counts from the moment it is there.

use std::collections::VecDeque;
use std::pin::pin;

use toolgate_gate::ports::source::SourceFailure;

use super::http::too_large;
use super::message::Envelope;
use super::result::malformed;
use crate::adapter::failure;
use crate::client::OpenResponse;
use crate::events::Events;

/// How many messages a server may send on a stream before its response.
const MESSAGE_LIMIT: usize = 10_000;
/// How much of a stream is read.
const STREAM_LIMIT: usize = 8 * 1024 * 1024;

/// A stream that is read.
pub(crate) struct Incoming {
    stream: OpenResponse,
    events: Events,
    size: usize,
    count: usize,
    /// Messages that were read and not yet taken.
    ready: VecDeque<Vec<u8>>,
}

impl Incoming {
    pub(crate) fn of(stream: OpenResponse) -> Self {
        Self { stream, events: Events::default(), size: 0, count: 0, ready: VecDeque::new() }
    }

    /// The next message.
    pub(crate) async fn next(&mut self) -> Result<Vec<u8>, SourceFailure> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                return Ok(message);
            }
            self.read().await?;
        }
    }

    /// Does this, unless the response comes first: a server that does not wait for what it asks for gets nothing.
    pub(crate) async fn unless_responded<T>(
        &mut self,
        work: impl Future<Output = T>,
    ) -> Result<Option<T>, SourceFailure> {
        let (mut work, mut seen) = (pin!(work), 0);
        loop {
            let is_response = |message: &Vec<u8>| matches!(Envelope::of(message), Ok(Envelope::Response(_)));
            if self.ready.iter().skip(seen).any(is_response) {
                return Ok(None);
            }
            seen = self.ready.len();
            tokio::select! {
                biased;
                done = &mut work => return Ok(Some(done)),
                read = self.read() => read?,
            }
        }
    }

    /// Gives the connection back after the response.
    pub(crate) fn release(self) {
        self.stream.release();
    }

    /// Reads a piece. Nothing is lost if this is cancelled.
    async fn read(&mut self) -> Result<(), SourceFailure> {
        let status = self.stream.status();
        let Some(piece) = self.stream.chunk().await.map_err(|error| failure(&error))? else {
            return Err(malformed(status, "the server's stream ended without a response"));
        };
        self.size += piece.len();
        if self.size > STREAM_LIMIT {
            return Err(too_large(status));
        }
        // An event without a message only keeps the stream alive.
        let messages = self.events.push(&piece).map_err(|_| too_large(status))?;
        let before = self.ready.len();
        self.ready.extend(messages.into_iter().map(|event| event.data).filter(|message| !message.is_empty()));
        self.count += self.ready.len() - before;
        if self.count > MESSAGE_LIMIT {
            return Err(malformed(status, "the server sent too many messages before its response"));
        }
        Ok(())
    }
}
