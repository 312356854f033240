//! The only place in this crate that reads the time: for the deadline of an exchange and the age of a connection. Both
//! use the monotonic clock, not the wall clock of the records.

use std::time::Duration;

use tokio::time::Instant;

/// The shortest time that an exchange is given.
const SHORTEST: Duration = Duration::from_secs(1);
/// The maximum duration of an exchange.
const LONGEST: Duration = Duration::from_secs(120);

/// The deadline of an exchange that begins now and requests this much time: at most two minutes, and at least a second.
pub fn deadline_after(asked: Duration) -> Instant {
    now() + asked.clamp(SHORTEST, LONGEST)
}

pub(crate) fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_deadline_is_between_one_second_and_two_minutes_off() {
        let seconds = |asked| (deadline_after(Duration::from_secs(asked)) - now()).as_secs();
        assert_eq!([0, 1, 30, 120, 121, u64::MAX].map(seconds), [1, 1, 30, 120, 120, 120]);
    }
}
