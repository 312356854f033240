//! A clock that moves only when the test says so.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use toolgate_gate::ports::clock::Clock;
use toolgate_model::time::Timestamp;

/// Stands at 2026-02-08T10:00:00Z until it is moved. Clones show the same time.
#[derive(Debug, Clone)]
pub struct TestClock {
    time: Arc<AtomicI64>,
    stepped: Arc<AtomicBool>,
}

/// 2026-02-08T10:00:00Z in milliseconds since 1970.
const START: i64 = 1_770_544_800_000;

impl TestClock {
    /// A clock at the start.
    pub fn new() -> Self {
        Self { time: Arc::new(AtomicI64::new(START)), stepped: Arc::default() }
    }

    /// Moves it, and all its clones, forward.
    pub fn advance(&self, duration: Duration) {
        let millis = i64::try_from(duration.as_millis()).expect("a test stays within the centuries");
        self.time.fetch_add(millis, Ordering::SeqCst);
    }

    /// Sets it, and all its clones, to a time, which may be an earlier one.
    pub fn set(&self, time: Timestamp) {
        self.time.store(time.as_millis(), Ordering::SeqCst);
    }

    /// Marks it, and all its clones, as set to a wrong time.
    pub fn set_stepped(&self, stepped: bool) {
        self.stepped.store(stepped, Ordering::SeqCst);
    }
}

impl Default for TestClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.time.load(Ordering::SeqCst)).expect("a test stays within the centuries")
    }

    fn is_steady(&self) -> bool {
        !self.stepped.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_starts_at_the_documented_time_and_clones_move_together() {
        let clock = TestClock::new();
        assert_eq!(clock.now(), Timestamp::parse("2026-02-08T10:00:00Z").unwrap());
        let clone = clock.clone();
        clock.advance(Duration::from_millis(1_500));
        assert_eq!(clone.now(), Timestamp::parse("2026-02-08T10:00:01.500Z").unwrap());
        clone.set(Timestamp::EPOCH);
        assert_eq!(clock.now(), Timestamp::EPOCH);
    }
}
