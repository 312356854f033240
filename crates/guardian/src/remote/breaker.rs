//! The circuit breaker of a guardian: after several failures in a row it is not asked for a while, then by a single
//! probe, and by all again once the probe got a response.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::time::now;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerSettings {
    /// Consecutive failures that open the circuit.
    pub failures: u32,
    /// How long the circuit stays open.
    pub rest: Duration,
}

impl Default for BreakerSettings {
    fn default() -> Self {
        Self { failures: 5, rest: Duration::from_secs(10) }
    }
}

#[derive(Debug)]
pub(super) struct Breaker {
    settings: BreakerSettings,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    failures: u32,
    /// INVARIANT: set exactly while there were too many failures and no response since.
    rests_until: Option<Instant>,
    /// Whether the probe is in flight.
    probing: bool,
}

/// The right to send one request. Dropping it without an outcome changes nothing.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    breaker: &'a Breaker,
    probes: bool,
}

impl Breaker {
    pub(super) fn new(settings: BreakerSettings) -> Self {
        Self { settings, state: Mutex::default() }
    }

    /// The right to send a request; `None` while the circuit is open.
    pub(super) fn turn(&self) -> Option<Turn<'_>> {
        let mut state = self.state();
        let Some(rests_until) = state.rests_until else { return Some(Turn { breaker: self, probes: false }) };
        if state.probing || now() < rests_until {
            return None;
        }
        state.probing = true;
        Some(Turn { breaker: self, probes: true })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn<'_> {
    /// The guardian responded, with any decision.
    pub(super) fn responded(self) {
        let mut state = self.breaker.state();
        state.failures = 0;
        state.rests_until = None;
    }

    /// The guardian did not respond.
    pub(super) fn failed(self) {
        let BreakerSettings { failures, rest } = self.breaker.settings;
        let mut state = self.breaker.state();
        state.failures = state.failures.saturating_add(1);
        // A request from before the circuit opened must not extend the pause.
        if state.failures >= failures && (self.probes || state.rests_until.is_none()) {
            state.rests_until = now().checked_add(rest);
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if self.probes {
            self.breaker.state().probing = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REST: Duration = Duration::from_secs(10);

    fn open_breaker() -> Breaker {
        let breaker = Breaker::new(BreakerSettings { failures: 3, rest: REST });
        for _ in 0..3 {
            breaker.turn().unwrap().failed();
        }
        breaker
    }

    #[tokio::test(start_paused = true)]
    async fn only_failures_in_a_row_open_it() {
        let breaker = Breaker::new(BreakerSettings { failures: 3, rest: REST });
        for _ in 0..5 {
            breaker.turn().unwrap().failed();
            breaker.turn().unwrap().failed();
            breaker.turn().unwrap().responded();
        }
        assert!(breaker.turn().is_some());
        assert!(open_breaker().turn().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn after_the_rest_one_question_finds_out() {
        let breaker = open_breaker();
        tokio::time::advance(REST - Duration::from_millis(1)).await;
        assert!(breaker.turn().is_none());
        tokio::time::advance(Duration::from_millis(1)).await;
        let probe = breaker.turn().unwrap();
        assert!(breaker.turn().is_none(), "one at a time");
        probe.failed();
        assert!(breaker.turn().is_none(), "it rests again");
        tokio::time::advance(REST).await;
        breaker.turn().unwrap().responded();
        assert!(breaker.turn().is_some() && breaker.turn().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_probe_that_was_cancelled_leaves_the_next_one_to_find_out() {
        let breaker = open_breaker();
        tokio::time::advance(REST).await;
        drop(breaker.turn().unwrap());
        assert!(breaker.turn().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_of_an_older_question_does_not_prolong_the_rest() {
        let breaker = Breaker::new(BreakerSettings { failures: 1, rest: REST });
        let (first, second) = (breaker.turn().unwrap(), breaker.turn().unwrap());
        first.failed();
        tokio::time::advance(REST).await;
        second.failed();
        assert!(breaker.turn().is_some());
    }
}
