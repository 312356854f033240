//! The one place of this room that reads the time: for the deadline of an exchange and the age of a connection. Both
//! are measured by the machine's steady clock, not by the wall clock of the records.

use std::time::Duration;

use tokio::time::Instant;

/// The shortest time that an exchange is given.
const SHORTEST: Duration = Duration::from_secs(1);
/// The longest time that an exchange is given.
const LONGEST: Duration = Duration::from_secs(120);

/// When an exchange that begins now and asks for this much time must have ended: never more than two minutes off, and
/// never less than a second.
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
