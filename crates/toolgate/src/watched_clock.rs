//! Watches the system clock: a clock that was wrong for a moment must not cause permanent expiries.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use toolgate_gate::ports::clock::{Clock, SystemClock};
use toolgate_model::time::Timestamp;

/// How far the clock may be from the expected time, in milliseconds.
const TOLERANCE: i64 = 10_000;
/// How long it must stay at a new time before that is trusted.
const SETTLES: Duration = Duration::from_secs(600);

/// The system clock, compared with one that cannot be set.
#[derive(Debug, Default)]
pub struct WatchedClock(Mutex<Watch>);

impl Clock for WatchedClock {
    fn now(&self) -> Timestamp {
        SystemClock.now()
    }

    fn monotonic_nanos(&self) -> u64 {
        SystemClock.monotonic_nanos()
    }

    fn is_steady(&self) -> bool {
        // Also counts the time that a machine sleeps.
        let since_boot = clock_gettime(ClockId::Boottime);
        let seconds = u64::try_from(since_boot.tv_sec).unwrap_or(0);
        let nanoseconds = u32::try_from(since_boot.tv_nsec).unwrap_or(0);
        let since_boot = Duration::new(seconds, nanoseconds);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).observe(self.now(), since_boot)
    }
}

/// The state of the clock: the boot time by it, in milliseconds.
#[derive(Debug, Default)]
struct Watch {
    trusted: Option<i64>,
    /// The new offset, and since when it holds.
    stepped: Option<(i64, Duration)>,
}

impl Watch {
    /// Whether the present time can be trusted.
    fn observe(&mut self, now: Timestamp, since_boot: Duration) -> bool {
        let uptime = i64::try_from(since_boot.as_millis()).unwrap_or(i64::MAX);
        let start = now.as_millis().saturating_sub(uptime);
        let is_near = |other: i64| start.abs_diff(other) <= TOLERANCE.unsigned_abs();
        if self.trusted.is_none_or(is_near) {
            if self.stepped.take().is_some() {
                tracing::info!("the clock is back at the expected time");
            }
            // It may be slewed: small changes add up.
            self.trusted = Some(start);
            return true;
        }
        match self.stepped {
            Some((stepped, since)) if is_near(stepped) => {
                if since_boot.saturating_sub(since) < SETTLES {
                    return false;
                }
                tracing::warn!(%now, "the clock has stayed at its new time, which is trusted from now on");
                (self.trusted, self.stepped) = (Some(start), None);
                true
            }
            _ => {
                let by_seconds = start.saturating_sub(self.trusted.unwrap_or(start)) / 1000;
                tracing::error!(%now, by_seconds, "the clock was changed: nothing expires permanently until its new \
                    time is trusted");
                self.stepped = Some((start, since_boot));
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 24 * 60 * 60;

    /// The results at these times: seconds since boot, and the offset of the clock in seconds.
    fn observed(times: &[(u64, i64)]) -> Vec<bool> {
        let mut watch = Watch::default();
        let observe = |(uptime, off): &(u64, i64)| {
            let seconds = 1_770_544_800 + i64::try_from(*uptime).unwrap() + off;
            watch.observe(Timestamp::from_millis(seconds * 1000).unwrap(), Duration::from_secs(*uptime))
        };
        times.iter().map(observe).collect()
    }

    #[test]
    fn a_jump_that_is_taken_back_is_over_with_that() {
        assert_eq!(observed(&[(0, 0), (1, 40 * DAY), (3, 40 * DAY), (4, 0), (5, 0)]), [true, false, false, true, true]);
    }

    #[test]
    fn a_new_time_is_taken_for_the_right_one_once_it_has_held() {
        let times = [(0, 0), (1, -DAY), (300, -DAY), (600, -DAY), (601, -DAY), (602, -DAY), (603, 0)];
        assert_eq!(observed(&times), [true, false, false, false, true, true, false]);
    }

    #[test]
    fn a_clock_that_goes_on_jumping_is_never_right() {
        let times: Vec<(u64, i64)> = (1..20).map(|step| (step * 500, i64::try_from(step).unwrap() * DAY)).collect();
        assert!(!observed(&times)[1..].iter().any(|steady| *steady));
    }

    #[test]
    fn slow_corrections_and_a_sleeping_machine_are_no_jumps() {
        let times: Vec<(u64, i64)> = (0..100).map(|step| (step * 3600, i64::try_from(step).unwrap() * 5)).collect();
        assert!(observed(&times).iter().all(|steady| *steady));
        assert!(WatchedClock::default().is_steady());
    }
}
