//! Whether the caller of a call still waits for the response. The call runs in a task of its own and must be able to
//! learn that the connection is closed.

use tokio::sync::watch;

/// The task's side. The default is that of a caller who cannot leave.
#[derive(Debug, Clone, Default)]
pub struct Presence(Option<watch::Receiver<()>>);

/// The caller's side: dropped with the request.
pub struct Waiting(#[expect(dead_code, reason = "kept for its drop")] watch::Sender<()>);

impl Presence {
    /// Both sides.
    pub fn new() -> (Waiting, Self) {
        let (waiting, presence) = watch::channel(());
        (Waiting(waiting), Self(Some(presence)))
    }

    /// Whether the caller is gone.
    pub(crate) fn is_gone(&self) -> bool {
        self.0.as_ref().is_some_and(|presence| presence.has_changed().is_err())
    }

    /// Ends when the caller is gone.
    pub(crate) async fn gone(mut self) {
        match &mut self.0 {
            // Nothing is ever sent: it ends when the other side is dropped.
            Some(presence) => while presence.changed().await.is_ok() {},
            None => std::future::pending().await,
        }
    }
}
