//! Reports failures of guardians. By default to the log: every failure is a warning, and failing open is an error,
//! repeated once a minute while it lasts.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use toolgate_model::guard::FailureClass;

use crate::time;

/// How often failing open is logged.
const PERIOD: Duration = Duration::from_secs(60);

/// Receives failures and latencies of guardians.
pub trait Alarm: Send + Sync {
    /// A guardian was consulted for this long, whatever it decided.
    fn consulted(&self, _guardian: &str, _latency: Duration) {}
    /// A guardian failed; `open` if the call passes because of that.
    fn failed(&self, guardian: &str, class: FailureClass, open: bool);
}

#[derive(Debug, Default)]
pub struct LogAlarm {
    /// The time of the last error for each guardian.
    said: Mutex<HashMap<String, Instant>>,
}

impl Alarm for LogAlarm {
    fn failed(&self, guardian: &str, class: FailureClass, open: bool) {
        let failure = class.as_str();
        tracing::warn!(guardian, failure, open, "a guardian gave no decision");
        if open && self.is_due(guardian) {
            tracing::error!(guardian, failure, "a guardian fails open: calls pass without its decision");
        }
    }
}

impl LogAlarm {
    fn is_due(&self, guardian: &str) -> bool {
        let now = time::now();
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.get(guardian).is_some_and(|last| now.duration_since(*last) < PERIOD) {
            return false;
        }
        said.insert(guardian.to_owned(), now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_error_is_repeated_once_a_minute_for_each_guardian() {
        let alarm = LogAlarm::default();
        assert!(alarm.is_due("a") && alarm.is_due("b"));
        assert!(!alarm.is_due("a"));
        tokio::time::advance(PERIOD - Duration::from_millis(1)).await;
        assert!(!alarm.is_due("a"));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(alarm.is_due("a") && !alarm.is_due("a"));
    }
}
