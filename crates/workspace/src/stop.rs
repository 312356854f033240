//! Work on files off the async threads, that can be told to stop: when its time is over it gives what it has, and when
//! nobody waits for it any more it ends soon.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::error::WorkspaceError;

/// Tells running work to stop.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    requested: Arc<AtomicBool>,
}

impl Stop {
    /// Whether the work should stop with what it has.
    pub fn is_requested(&self) -> bool {
        self.requested.load(Ordering::Relaxed)
    }

    /// Tells it.
    pub fn request(&self) {
        self.requested.store(true, Ordering::Relaxed);
    }
}

/// Runs `work` where it may block, and tells it to stop after `limit`.
pub async fn run<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce(&Stop) -> Result<T, WorkspaceError> + Send + 'static,
) -> Result<T, WorkspaceError> {
    let stop = Stop::default();
    let _stop_on_drop = StopOnDrop(stop.clone());
    let theirs = stop.clone();
    let mut task = tokio::task::spawn_blocking(move || work(&theirs));
    let joined = match tokio::time::timeout(limit, &mut task).await {
        Ok(joined) => joined,
        Err(_elapsed) => {
            stop.request();
            task.await
        }
    };
    joined.unwrap_or(Err(WorkspaceError::System { doing: "the tool", kind: io::ErrorKind::Other }))
}

struct StopOnDrop(Stop);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.request();
    }
}
