//! The clock: the only source of time in Toolgate.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use toolgate_model::time::Timestamp;

pub trait Clock: Send + Sync {
    fn now(&self) -> Timestamp;

    /// Whether the time can be trusted for irreversible changes. Checks at use rely on [`Clock::now`] in any case.
    fn is_steady(&self) -> bool {
        true
    }

    /// Nanoseconds since a fixed moment, for measuring durations. Setting the system clock does not change it.
    fn monotonic_nanos(&self) -> u64 {
        u64::try_from(self.now().as_millis()).unwrap_or(0).saturating_mul(1_000_000)
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the clock")]
    fn now(&self) -> Timestamp {
        let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        // A system clock before 1970 or after 9999 reads as 1970: everything is then expired or not yet valid, which
        // fails closed.
        i64::try_from(since_epoch.as_millis())
            .ok()
            .and_then(|millis| Timestamp::from_millis(millis).ok())
            .unwrap_or(Timestamp::EPOCH)
    }

    fn monotonic_nanos(&self) -> u64 {
        static START: OnceLock<Instant> = OnceLock::new();
        let elapsed = START.get_or_init(Instant::now).elapsed();
        elapsed.as_secs().saturating_mul(1_000_000_000).saturating_add(u64::from(elapsed.subsec_nanos()))
    }
}

/// Sleeps, where another process must act first and cannot signal when it has.
pub async fn pause(duration: Duration) {
    tokio::time::sleep(duration).await;
}
