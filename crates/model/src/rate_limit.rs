//! Rate limits: a number of requests in a period, some of them at once. A limit is a token bucket whose whole state is
//! one integer, so that it fits in a row, and one transaction reads, decides and writes.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::time::Timestamp;

#[cfg(test)]
mod tests;

/// The maximum number of requests in a period, and of tokens in a bucket.
const MAX_REQUESTS: u64 = 1_000_000;
/// The longest period, in seconds: a month.
const MAX_PERIOD: u64 = 31 * 86_400;
/// The longest time to fill an empty bucket, in seconds: a year.
const MAX_FILLING: u64 = 366 * 86_400;
/// The number of parts of a millisecond in a state.
///
/// INVARIANT: more than [`MAX_REQUESTS`], so that a part numbered in units of 1/`requests` always fits.
const PARTS: i64 = 1 << 20;

/// A bucket of `burst` tokens that fills at `requests` tokens per period. A request takes one token.
///
/// INVARIANT: in any span of time no more than `burst + span * requests / per` requests pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Wire", into = "Wire")]
pub struct RateLimit {
    requests: u32,
    per_seconds: u32,
    burst: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RateLimitError {
    #[error("requests must be from 1 to {MAX_REQUESTS}; to allow none, revoke the grant or remove the tool")]
    Requests,
    #[error("per_seconds must be from 1 to {MAX_PERIOD}")]
    Period,
    #[error("burst must be from 1 to {MAX_REQUESTS}")]
    Burst,
    #[error("refilling the burst would take more than a year; reduce burst or increase the rate")]
    Filling,
}

/// The state of a bucket between two requests: the time at which it will be full again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BucketState(i64);

/// The bucket is empty; a token is available after this time if nobody else takes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Error)]
#[error("rate limit exceeded; try again in {} seconds", self.seconds())]
pub struct Wait(Duration);

impl RateLimit {
    /// `requests` in `per_seconds` seconds, `burst` of them at once; by default all of them.
    pub fn new(requests: u64, per_seconds: u64, burst: Option<u64>) -> Result<Self, RateLimitError> {
        let burst = within(burst.unwrap_or(requests), MAX_REQUESTS).ok_or(RateLimitError::Burst);
        let requests = within(requests, MAX_REQUESTS).ok_or(RateLimitError::Requests)?;
        let per_seconds = within(per_seconds, MAX_PERIOD).ok_or(RateLimitError::Period)?;
        let burst = burst?;
        if u64::from(burst) * u64::from(per_seconds) > MAX_FILLING * u64::from(requests) {
            return Err(RateLimitError::Filling);
        }
        Ok(Self { requests, per_seconds, burst })
    }

    /// The number of tokens that refill in a period.
    pub fn requests(self) -> u32 {
        self.requests
    }

    pub fn per(self) -> Duration {
        Duration::from_secs(self.per_seconds.into())
    }

    /// The number of tokens in a full bucket.
    pub fn burst(self) -> u32 {
        self.burst
    }

    /// Takes one token. A bucket without a state is full. A refusal does not change the state.
    ///
    /// If the clock runs backwards, taken tokens stay taken and none are added: the state is the time at which the
    /// bucket is full, which only moves forward.
    pub fn take(self, state: Option<BucketState>, now: Timestamp) -> Result<BucketState, Wait> {
        // Time is counted in ticks of 1/requests of a millisecond. A token then takes a whole number of ticks to
        // refill, and nothing is ever rounded.
        let requests = i128::from(self.requests);
        let token = i128::from(self.per_seconds) * 1000;
        let now = i128::from(now.as_millis()) * requests;
        let full_at = state.map_or(now, |state| state.ticks(requests)).max(now) + token;
        let excess = full_at - now - token * i128::from(self.burst);
        if excess > 0 {
            return Err(Wait::of_millis((excess + requests - 1).div_euclid(requests)));
        }
        // In the year 2248 the states run out; from then on everything is refused.
        BucketState::from_ticks(full_at, requests).ok_or(Wait(Duration::MAX))
    }

    /// Returns a token that was taken at `taken_at`, because its request counts elsewhere: all of it at once, less and
    /// less while it refills by itself, and nothing after the time in which one token refills.
    ///
    /// INVARIANT: whatever is taken and returned, the bucket is never fuller than if nothing had been taken for such
    /// requests.
    pub fn give_back(self, state: BucketState, taken_at: Timestamp, now: Timestamp) -> BucketState {
        let requests = i128::from(self.requests);
        let token = i128::from(self.per_seconds) * 1000;
        let elapsed = i128::from(now.as_millis()) - i128::from(taken_at.as_millis());
        let rest = (token - elapsed * requests).clamp(0, token);
        BucketState::from_ticks(state.ticks(requests) - rest, requests).unwrap_or(state)
    }

    /// The limit of a bucket that two limits share: the slower of the two rates with the smaller of the two bursts.
    ///
    /// Each of the two limits alone would allow everything that it allows. The reverse does not hold: a slow rate with
    /// a large burst and a fast one with a small burst give the slow rate with the small burst.
    pub fn stricter(self, other: Self) -> Self {
        let (own, others) = (
            u64::from(self.requests) * u64::from(other.per_seconds),
            u64::from(other.requests) * u64::from(self.per_seconds),
        );
        // Of two spellings of one rate the one with the shorter period, so that the order does not matter.
        let slower = if (own, self.per_seconds) <= (others, other.per_seconds) { self } else { other };
        Self { burst: self.burst.min(other.burst), ..slower }
    }
}

impl BucketState {
    /// The stored value.
    pub fn from_i64(stored: i64) -> Self {
        Self(stored)
    }

    /// The value to store. Taking a token always increases it.
    pub fn as_i64(self) -> i64 {
        self.0
    }

    /// The upper bits count milliseconds; the lower ones count parts of 1/`requests`. A state thus stays the same time,
    /// to the millisecond, when the limit is changed.
    fn ticks(self, requests: i128) -> i128 {
        let millis = i128::from(self.0.div_euclid(PARTS));
        let part = i128::from(self.0.rem_euclid(PARTS));
        millis * requests + part.min(requests)
    }

    fn from_ticks(ticks: i128, requests: i128) -> Option<Self> {
        let millis = ticks.div_euclid(requests);
        let stored = millis * i128::from(PARTS) + ticks.rem_euclid(requests);
        i64::try_from(stored).ok().map(Self)
    }
}

impl Wait {
    /// In whole milliseconds.
    pub fn duration(self) -> Duration {
        self.0
    }

    /// In whole seconds, for `Retry-After`: after that time a token is available.
    pub fn seconds(self) -> u64 {
        self.0.as_secs().saturating_add(u64::from(self.0.subsec_nanos() > 0))
    }

    fn of_millis(millis: i128) -> Self {
        Self(u64::try_from(millis).map_or(Duration::MAX, Duration::from_millis))
    }
}

/// A limit as JSON: `{requests: 100, per_seconds: 60, burst: 20}`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    requests: u64,
    per_seconds: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    burst: Option<u64>,
}

impl TryFrom<Wire> for RateLimit {
    type Error = RateLimitError;

    fn try_from(wire: Wire) -> Result<Self, RateLimitError> {
        Self::new(wire.requests, wire.per_seconds, wire.burst)
    }
}

impl From<RateLimit> for Wire {
    fn from(limit: RateLimit) -> Self {
        let burst = (limit.burst != limit.requests).then_some(limit.burst.into());
        Self { requests: limit.requests.into(), per_seconds: limit.per_seconds.into(), burst }
    }
}

fn within(number: u64, most: u64) -> Option<u32> {
    u32::try_from(number).ok().filter(|_| (1..=most).contains(&number))
}
