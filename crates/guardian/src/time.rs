//! The one place of this room that reads the time: for the deadline of a question, how long an answer took and how long
//! a guardian is left alone. All are measured by the machine's steady clock, not by the wall clock of the records.

use tokio::time::Instant;

pub(crate) fn now() -> Instant {
    Instant::now()
}
