//! Cancellable file work on blocking threads: it returns what it has when its time limit is reached, and stops soon
//! after the caller no longer waits.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::error::WorkspaceError;

/// A stop request for running work.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    requested: Arc<AtomicBool>,
}

impl Stop {
    /// Whether the work should return what it has.
    pub fn is_requested(&self) -> bool {
        self.requested.load(Ordering::Relaxed)
    }

    pub fn request(&self) {
        self.requested.store(true, Ordering::Relaxed);
    }
}

/// Runs `work` on a blocking thread and requests it to stop after `limit`.
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
