//! Accepting connections where the system may have none to give: waits instead of spinning, and says so once.

use std::io;
use std::time::Duration;

/// The first pause after a connection could not be accepted; each further one is twice as long.
const SHORTEST: Duration = Duration::from_millis(10);
const LONGEST: Duration = Duration::from_secs(1);

/// The failures in a row.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: u64,
}

impl Backoff {
    /// A connection was accepted.
    pub(super) fn accepted(&mut self) {
        if self.failures > 0 {
            tracing::info!(failures = self.failures, "connections are accepted again");
            self.failures = 0;
        }
    }

    /// A connection could not be accepted; returns how long to wait before the next attempt. A failure of the one
    /// connection, which its client has given up, is none of the listener.
    pub(super) fn failed(&mut self, error: &io::Error) -> Option<Duration> {
        use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
        if matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted) {
            return None;
        }
        if self.failures == 0 {
            tracing::warn!(
                %error,
                "connections cannot be accepted; if it is for want of file descriptors, raise LimitNOFILE (or ulimit -n) or \
                 lower server.max_connections"
            );
        }
        let doubled = u32::try_from(self.failures.min(16)).unwrap_or(16);
        self.failures += 1;
        Some(SHORTEST.saturating_mul(1 << doubled).min(LONGEST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_second_and_begin_anew_after_a_success() {
        let mut backoff = Backoff::default();
        let full = io::Error::from_raw_os_error(24);
        let pauses: Vec<u128> = (0..9).map(|_| backoff.failed(&full).unwrap().as_millis()).collect();
        assert_eq!(pauses, [10, 20, 40, 80, 160, 320, 640, 1000, 1000]);
        backoff.accepted();
        assert_eq!(backoff.failed(&full).unwrap().as_millis(), 10);
        assert_eq!(backoff.failed(&io::Error::from(io::ErrorKind::ConnectionAborted)), None);
    }
}
