//! Who is told that a guardian failed. By default the log: every failure is a warning, and that calls pass because of
//! one is an error, repeated once a minute for as long as it goes on.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use toolgate_model::guard::FailureClass;

use crate::time;

/// How often it is said that calls pass by failure.
const PERIOD: Duration = Duration::from_secs(60);

/// Is told of failures, and how long guardians take.
pub trait Alarm: Send + Sync {
    /// A guardian was consulted for so long, whatever it said.
    fn consulted(&self, _guardian: &str, _latency: Duration) {}
    /// A guardian failed; `open` where what it was asked about passes because of that.
    fn failed(&self, guardian: &str, class: FailureClass, open: bool);
}

/// Tells the log.
#[derive(Debug, Default)]
pub struct LogAlarm {
    /// When it was last said of each guardian.
    said: Mutex<HashMap<String, Instant>>,
}

impl Alarm for LogAlarm {
    fn failed(&self, guardian: &str, class: FailureClass, open: bool) {
        let failure = class.as_str();
        tracing::warn!(guardian, failure, open, "a guardian gave no verdict");
        if open && self.is_due(guardian) {
            tracing::error!(guardian, failure, "calls pass without the verdict of a guardian that is allowed to fail");
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
