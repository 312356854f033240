//! Whether the caller still waits for the response. A call runs in its own task and must learn when the connection is
//! closed.

use tokio_util::sync::{CancellationToken, DropGuard};

/// The task's side. The default is a caller that cannot disconnect.
#[derive(Debug, Clone, Default)]
pub struct Presence(Option<CancellationToken>);

/// The caller's side, dropped with the request.
pub struct Waiting(#[expect(dead_code, reason = "kept for its drop")] DropGuard);

impl Presence {
    pub fn new() -> (Waiting, Self) {
        let gone = CancellationToken::new();
        (Waiting(gone.clone().drop_guard()), Self(Some(gone)))
    }

    /// One that ends earlier: with this one, or when the other side is dropped.
    pub fn child(&self) -> (Waiting, Self) {
        let gone = self.0.as_ref().map_or_else(CancellationToken::new, CancellationToken::child_token);
        (Waiting(gone.clone().drop_guard()), Self(Some(gone)))
    }

    /// Whether the caller has disconnected.
    pub(crate) fn is_gone(&self) -> bool {
        self.0.as_ref().is_some_and(CancellationToken::is_cancelled)
    }

    /// Completes when the caller has disconnected.
    pub async fn gone(self) {
        match self.0 {
            Some(gone) => gone.cancelled_owned().await,
            None => std::future::pending().await,
        }
    }
}
