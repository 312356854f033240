//! How fast the output of a process is read that nobody waits for. A process that prints more is slowed down by its own
//! pipe, instead of keeping the gate busy.

use std::time::Duration;

use tokio::time::{Interval, MissedTickBehavior, interval};

/// How many bytes are read in a second.
const RATE: usize = 256 * 1024;
/// What a line costs besides its bytes.
const LINE: usize = 64;

/// What may still be read in this second.
pub(super) struct Throttle {
    left: usize,
    timer: Interval,
}

impl Throttle {
    pub(super) fn new() -> Self {
        let mut timer = interval(Duration::from_secs(1));
        timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { left: RATE, timer }
    }

    /// Notes a line that was read, and waits for the next second if that was too much for this one.
    pub(super) async fn spend(&mut self, bytes: usize) {
        self.left = self.left.saturating_sub(bytes + LINE);
        if self.left == 0 {
            self.timer.tick().await;
            self.left = RATE;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::now;

    #[tokio::test(start_paused = true)]
    async fn what_nobody_waits_for_is_read_only_so_fast() {
        let (mut throttle, started) = (Throttle::new(), now());
        for _ in 0..1_000 {
            throttle.spend(4 * 1024).await;
        }
        // Four megabytes, at a quarter of one each second; the first second is free.
        let took = (now() - started).as_secs();
        assert!((14..=17).contains(&took), "{took}");
        let started = now();
        for _ in 0..RATE {
            throttle.spend(0).await;
        }
        assert!((now() - started).as_secs() >= 60, "empty lines cost too");
    }
}
