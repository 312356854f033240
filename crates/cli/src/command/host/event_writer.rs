//! The way to the host: whole lines, one after the other, each handed over before the next is made.

use tokio::io::{AsyncWrite, AsyncWriteExt};

use super::protocol::Outgoing;

/// Where events are written to.
pub(super) struct EventWriter<W> {
    writer: W,
    closed: bool,
}

impl<W: AsyncWrite + Unpin> EventWriter<W> {
    pub(super) fn new(writer: W) -> Self {
        Self { writer, closed: false }
    }

    /// Writes an event. Where nobody reads any more it is lost, and [`EventWriter::is_closed`] says so from then on.
    pub(super) async fn send(&mut self, event: &Outgoing) {
        if self.closed {
            return;
        }
        let Ok(mut line) = event.to_line() else {
            // INVARIANT: events are made of texts, numbers and JSON values, which can all be written.
            tracing::error!("an event could not be written as JSON");
            return;
        };
        line.push('\n');
        let written = async {
            self.writer.write_all(line.as_bytes()).await?;
            self.writer.flush().await
        };
        if let Err(error) = written.await {
            tracing::warn!(%error, "the host does not take events any more");
            self.closed = true;
        }
    }

    /// Whether nobody reads any more.
    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }
}
