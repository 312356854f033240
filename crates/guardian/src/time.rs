//! The only place in this crate that reads the time: for deadlines, latencies and the circuit breaker. All use the
//! monotonic clock of the machine, not the wall clock of the records.

use tokio::time::Instant;

pub(crate) fn now() -> Instant {
    Instant::now()
}
