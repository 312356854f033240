//! How commands that go on until they are told to stop are told.

use std::pin::Pin;

use tokio::signal::unix::{SignalKind, signal};

use super::Failure;

/// Ready at the first signal that asks the program to end.
pub type Stop = Pin<Box<dyn Future<Output = ()>>>;

/// Listens from now on: SIGINT, SIGTERM and SIGHUP no longer end the program by themselves.
pub fn stop_signals() -> Result<Stop, Failure> {
    let listen = |kind| signal(kind).map_err(|error| Failure::io("signals cannot be listened to", error));
    let mut interrupt = listen(SignalKind::interrupt())?;
    let mut terminate = listen(SignalKind::terminate())?;
    let mut hangup = listen(SignalKind::hangup())?;
    Ok(Box::pin(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }))
}
