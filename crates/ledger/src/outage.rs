//! A ledger that is not available: logged when it begins and then now and then with a count, not for every call.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The minimum time between two log lines.
const PAUSE: Duration = Duration::from_secs(10);

static STATE: Mutex<State> = Mutex::new(State { logged: None, unlogged: 0 });

struct State {
    logged: Option<Instant>,
    unlogged: u64,
}

/// An operation found the ledger not available.
pub(crate) fn failed(reason: &str) {
    let Some(more) = STATE.lock().unwrap_or_else(PoisonError::into_inner).due(Instant::now()) else { return };
    tracing::error!(reason, unlogged = more, "the ledger is not available");
}

impl State {
    /// The number of errors that were not logged since the last line, if a line is due.
    fn due(&mut self, now: Instant) -> Option<u64> {
        if self.logged.is_some_and(|logged| now.saturating_duration_since(logged) < PAUSE) {
            self.unlogged += 1;
            return None;
        }
        self.logged = Some(now);
        Some(std::mem::take(&mut self.unlogged))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_stands_for_many() {
        let mut state = State { logged: None, unlogged: 0 };
        let begin = Instant::now();
        assert_eq!(state.due(begin), Some(0));
        assert!((1..10).all(|second| state.due(begin + Duration::from_secs(second)).is_none()));
        assert_eq!(state.due(begin + PAUSE), Some(9));
        assert_eq!(state.due(begin + PAUSE), None);
    }
}
