//! The state of a connection, and its deadlines.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::Instant;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Timeouts {
    /// From the accepted connection, or from the first byte of a later request, to the end of the request's head.
    pub(super) head: Duration,
    /// Between two requests.
    pub(super) idle: Duration,
}

/// The state of one connection, written by the connection and by its requests, which may run elsewhere.
#[derive(Debug)]
pub(super) struct Activity {
    accepted: Instant,
    timeouts: Timeouts,
    /// Whether the head of the first request has arrived.
    served: AtomicBool,
    /// With HTTP/2, bytes between requests are not the beginning of one.
    http2: AtomicBool,
    in_flight: AtomicUsize,
    /// When the last request ended, in milliseconds after the connection was accepted.
    idle_since: AtomicU64,
    /// When the first byte of the next request arrived, as `idle_since` and one more; 0 before that.
    head_since: AtomicU64,
}

/// The number of requests in flight of a connection that is being closed: new ones do not count.
const CLOSED: usize = usize::MAX / 2;

/// A request that has not ended; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct InFlight(Arc<Activity>);

impl Activity {
    pub(super) fn new(timeouts: Timeouts) -> Self {
        Self {
            accepted: Instant::now(),
            timeouts,
            served: AtomicBool::new(false),
            http2: AtomicBool::new(false),
            in_flight: AtomicUsize::new(0),
            idle_since: AtomicU64::new(0),
            head_since: AtomicU64::new(0),
        }
    }

    /// The head of a request has arrived.
    pub(super) fn begin(self: &Arc<Self>, http2: bool) -> InFlight {
        self.in_flight.fetch_add(1, Ordering::AcqRel);
        self.head_since.store(0, Ordering::Release);
        self.http2.store(http2, Ordering::Release);
        self.served.store(true, Ordering::Release);
        InFlight(Arc::clone(self))
    }

    pub(super) fn read(&self) {
        if self.in_flight.load(Ordering::Acquire) == 0 && !self.http2.load(Ordering::Acquire) {
            let now = self.milliseconds() + 1;
            // Only the first byte starts the clock: a client that sends one byte at a time wins nothing.
            let _ = self.head_since.compare_exchange(0, now, Ordering::AcqRel, Ordering::Acquire);
        }
    }

    /// Until when the connection may stay as it is; `None` while a request is in flight.
    pub(super) fn deadline(&self) -> Option<Instant> {
        if !self.served.load(Ordering::Acquire) {
            return Some(self.accepted + self.timeouts.head);
        }
        if self.in_flight.load(Ordering::Acquire) > 0 {
            return None;
        }
        let at = |milliseconds: u64| self.accepted + Duration::from_millis(milliseconds);
        match self.head_since.load(Ordering::Acquire) {
            0 => Some(at(self.idle_since.load(Ordering::Acquire)) + self.timeouts.idle),
            begun => Some(at(begun - 1) + self.timeouts.head),
        }
    }

    /// Closes a connection without requests in flight; returns whether it was. A later request is lost with it, an
    /// earlier one is not.
    pub(super) fn close_unused(&self) -> bool {
        self.in_flight.compare_exchange(0, CLOSED, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Whether nothing would be lost with the connection.
    pub(super) fn is_idle(&self) -> bool {
        self.served.load(Ordering::Acquire)
            && self.in_flight.load(Ordering::Acquire) == 0
            && self.head_since.load(Ordering::Acquire) == 0
    }

    /// Whether the next bytes are the rest of a head: of the first request, or of one that has begun to arrive.
    pub(super) fn awaits_head(&self) -> bool {
        self.in_flight.load(Ordering::Acquire) == 0
            && (!self.served.load(Ordering::Acquire) || self.head_since.load(Ordering::Acquire) != 0)
    }

    pub(super) fn is_http2(&self) -> bool {
        self.http2.load(Ordering::Acquire)
    }

    fn milliseconds(&self) -> u64 {
        u64::try_from(self.accepted.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.idle_since.store(self.0.milliseconds(), Ordering::Release);
        self.0.in_flight.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUTS: Timeouts = Timeouts { head: Duration::from_secs(15), idle: Duration::from_secs(75) };

    fn left(activity: &Activity) -> Option<u64> {
        activity.deadline().map(|deadline| (deadline - Instant::now()).as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_head_has_one_deadline_whatever_arrives_before_it() {
        let activity = Arc::new(Activity::new(TIMEOUTS));
        assert_eq!(left(&activity), Some(15));
        tokio::time::advance(Duration::from_secs(10)).await;
        activity.read();
        assert_eq!(left(&activity), Some(5));
    }

    #[tokio::test(start_paused = true)]
    async fn between_requests_a_connection_may_be_idle_and_a_begun_head_must_end() {
        let activity = Arc::new(Activity::new(TIMEOUTS));
        let request = activity.begin(false);
        assert_eq!(activity.deadline(), None);
        tokio::time::advance(Duration::from_secs(1000)).await;
        drop(request);
        assert_eq!(left(&activity), Some(75));
        assert!(!activity.awaits_head());
        tokio::time::advance(Duration::from_secs(70)).await;
        activity.read();
        assert!(activity.awaits_head());
        tokio::time::advance(Duration::from_secs(5)).await;
        activity.read();
        assert_eq!(left(&activity), Some(10));
    }

    #[test]
    fn a_connection_in_use_is_not_closed_for_another() {
        let activity = Arc::new(Activity::new(TIMEOUTS));
        let request = activity.begin(false);
        assert!(!activity.close_unused());
        drop(request);
        assert!(activity.close_unused() && !activity.close_unused());
    }

    #[tokio::test(start_paused = true)]
    async fn pings_of_http2_are_no_requests() {
        let activity = Arc::new(Activity::new(TIMEOUTS));
        drop(activity.begin(true));
        tokio::time::advance(Duration::from_secs(70)).await;
        activity.read();
        assert_eq!(left(&activity), Some(5));
    }
}
