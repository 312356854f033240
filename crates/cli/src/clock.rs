//! The time of this machine, and pauses between two requests. Commands have no clock port: only their arguments and what
//! they show depend on the time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use toolgate_model::time::Timestamp;

#[expect(clippy::disallowed_methods, reason = "the one place of the command line that reads the clock")]
pub fn now() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let millis = i64::try_from(since_epoch.as_millis()).ok();
    millis.and_then(|millis| Timestamp::from_millis(millis).ok()).unwrap_or(Timestamp::EPOCH)
}

/// Waits before a request is repeated.
pub async fn pause(duration: Duration) {
    tokio::time::sleep(duration).await;
}
