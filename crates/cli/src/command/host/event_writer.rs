//! Writes events to the host, one complete line at a time.

use tokio::io::{AsyncWrite, AsyncWriteExt};

use super::protocol::Outgoing;

pub(super) struct EventWriter<W> {
    writer: W,
    closed: bool,
}

impl<W: AsyncWrite + Unpin> EventWriter<W> {
    pub(super) fn new(writer: W) -> Self {
        Self { writer, closed: false }
    }

    /// Writes an event. If the host does not read any more, the event is lost, and [`EventWriter::is_closed`] is true.
    pub(super) async fn send(&mut self, event: &Outgoing) {
        if self.closed {
            return;
        }
        let Ok(mut line) = event.to_line() else {
            // INVARIANT: events consist of text, numbers and JSON values, which can be serialized.
            tracing::error!("could not serialize an event");
            return;
        };
        line.push('\n');
        let written = async {
            self.writer.write_all(line.as_bytes()).await?;
            self.writer.flush().await
        };
        if let Err(error) = written.await {
            tracing::warn!(%error, "the host does not read events any more");
            self.closed = true;
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }
}
