//! Writes messages to the client, one complete line at a time. Nothing else is written to standard output.

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Messages that wait for the client to read. A full queue holds up the responses of the gate.
const QUEUE: usize = 64;

#[derive(Clone)]
pub(super) struct Output(mpsc::Sender<String>);

impl Output {
    /// The writer ends when all outputs are dropped, or when the client does not read any more.
    pub(super) fn new(mut writer: impl AsyncWrite + Unpin + Send + 'static) -> (Self, JoinHandle<()>) {
        let (sender, mut lines) = mpsc::channel::<String>(QUEUE);
        let writing = tokio::spawn(async move {
            while let Some(mut line) = lines.recv().await {
                line.push('\n');
                let written = async {
                    writer.write_all(line.as_bytes()).await?;
                    writer.flush().await
                };
                if written.await.is_err() {
                    return;
                }
            }
        });
        (Self(sender), writing)
    }

    /// Writes a message without its line end. It is lost if the client does not read any more.
    pub(super) async fn send(&self, line: String) {
        let _ = self.0.send(line).await;
    }

    /// Completes when the client does not read any more.
    pub(super) async fn closed(&self) {
        self.0.closed().await;
    }
}
