//! Times of one kind of work, what is told of them, and whether a target is met.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Times, sorted.
pub struct Times(Vec<Duration>);

impl Times {
    pub fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self(times)
    }

    /// The time that this many of a hundred are below.
    pub fn percentile(&self, hundredths: usize) -> Duration {
        self.0[self.0.len() * hundredths / 100]
    }

    pub fn median(&self) -> Duration {
        self.percentile(50)
    }
}

/// Microseconds, as a number.
pub fn in_micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// Microseconds with a digit behind the point: verdicts are that short.
pub fn fine(time: Duration) -> String {
    format!("{:.1} us", in_micros(time))
}

/// A line that says whether a target is met.
pub fn at_most(what: &str, reached: f64, limit: f64) -> String {
    let verdict = if reached <= limit { "met" } else { "MISSED" };
    format!("  {verdict:<6}  {what}: {reached:.2}, at most {limit}")
}

/// The processor time of this thread so far.
pub fn of_this_thread() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
}
