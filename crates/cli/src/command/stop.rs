//! Signals that end commands which run until they are stopped.

use std::pin::Pin;

use tokio::signal::unix::{SignalKind, signal};

use super::Failure;

/// Completes at the first SIGINT, SIGTERM or SIGHUP.
pub type Stop = Pin<Box<dyn Future<Output = ()>>>;

/// Installs the handlers: from now on these signals do not end the process by themselves.
pub fn stop_signals() -> Result<Stop, Failure> {
    let listen = |kind| signal(kind).map_err(|error| Failure::io("could not install signal handlers", error));
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
