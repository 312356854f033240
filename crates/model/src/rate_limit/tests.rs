//! Limits against a bucket that counts its tokens as exact fractions.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn limit(requests: u64, per_seconds: u64, burst: u64) -> RateLimit {
    RateLimit::new(requests, per_seconds, Some(burst)).unwrap()
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis).unwrap()
}

/// Which of these moments a bucket lets through.
fn passed(limit: RateLimit, moments: &[i64]) -> Vec<bool> {
    let mut state = None;
    let take = |&moment: &i64| match limit.take(state, at(moment)) {
        Ok(next) => {
            state = Some(next);
            true
        }
        Err(_) => false,
    };
    moments.iter().map(take).collect()
}

/// A bucket that counts its tokens, as exact fractions: in units of which a token has as many as the period
/// milliseconds, and of which `requests` come in every millisecond.
struct Counted {
    limit: RateLimit,
    level: i128,
    last: i64,
}

impl Counted {
    fn full(limit: RateLimit, now: i64) -> Self {
        let mut bucket = Self { limit, level: 0, last: now };
        bucket.level = bucket.token() * i128::from(limit.burst());
        bucket
    }

    fn token(&self) -> i128 {
        i128::try_from(self.limit.per().as_millis()).unwrap()
    }

    fn has_token(&mut self, now: i64) -> bool {
        if now > self.last {
            let room = self.token() * i128::from(self.limit.burst());
            self.level = room.min(self.level + i128::from(now - self.last) * i128::from(self.limit.requests()));
            self.last = now;
        }
        self.level >= self.token()
    }

    fn take(&mut self, now: i64) -> bool {
        let has = self.has_token(now);
        if has {
            self.level -= self.token();
        }
        has
    }
}

#[test]
fn a_full_bucket_gives_its_burst_and_then_one_token_at_a_time() {
    let limit = limit(2, 1, 3);
    let moments = [0, 0, 0, 0, 499, 500, 500, 1000, 60_000, 60_000, 60_000, 60_000];
    let passes = [true, true, true, false, false, true, false, true, true, true, true, false];
    assert_eq!(passed(limit, &moments), passes);
}

#[test]
fn a_token_that_is_given_back_at_once_was_never_taken_and_one_that_came_back_is_not_given_twice() {
    let limit = limit(1, 10, 2);
    let one = limit.take(None, at(0)).unwrap();
    let two = limit.take(Some(one), at(0)).unwrap();
    assert_eq!(limit.give_back(two, at(0), at(0)), one);
    assert_eq!(limit.give_back(two, at(0), at(10_000)), two);
    let half = limit.give_back(two, at(0), at(5_000));
    assert!(one < half && half < two);
}

#[test]
fn a_rate_that_does_not_divide_the_second_loses_nothing() {
    let limit = limit(3, 1, 3);
    let moments: Vec<i64> = (0..1000).flat_map(|second| [second * 1000; 4]).collect();
    let passes = passed(limit, &moments);
    assert!(passes.chunks(4).all(|second| second == [true, true, true, false]));
}

#[test]
fn the_burst_is_the_whole_period_where_it_is_not_given() {
    let limit = RateLimit::new(100, 60, None).unwrap();
    assert_eq!((limit.requests(), limit.per(), limit.burst()), (100, Duration::from_secs(60), 100));
}

#[test]
fn a_refusal_says_how_long_to_wait() {
    let limit = limit(1, 10, 1);
    let state = limit.take(None, at(5_000)).unwrap();
    let wait = limit.take(Some(state), at(5_001)).unwrap_err();
    assert_eq!(wait.duration(), Duration::from_millis(9_999));
    assert_eq!(wait.seconds(), 10);
    assert_eq!(wait.to_string(), "rate limit exceeded; try again in 10 seconds");
    assert!(limit.take(Some(state), at(15_000)).is_ok());
}

#[test]
fn a_clock_that_runs_back_adds_no_token() {
    let limit = limit(1, 1, 2);
    let moments = [10_000, 10_000, 3_000, 9_999, 10_000, 10_999, 11_000, 4_000, 11_000];
    assert_eq!(passed(limit, &moments), [true, true, false, false, false, false, true, false, false]);
}

#[test]
fn times_that_a_state_cannot_hold_are_refused_and_nothing_overflows() {
    let limits = [limit(1, 1, 1), limit(999_999, 1, MAX_REQUESTS), limit(1, MAX_PERIOD, 11)];
    let states = [None, Some(i64::MIN), Some(-1), Some(0), Some(i64::MAX)];
    for limit in limits {
        for now in [Timestamp::EPOCH.minus(Duration::MAX), Timestamp::EPOCH.plus(Duration::MAX)] {
            for state in states {
                let wait = limit.take(state.map(BucketState::from_i64), now).unwrap_err();
                assert!(wait.seconds() > 0, "{limit:?} {state:?} {now}");
            }
        }
        let far = limit.take(Some(BucketState::from_i64(i64::MAX)), Timestamp::EPOCH).unwrap_err();
        assert!(far.seconds() > 200 * 365 * 86_400);
    }
}

#[test]
fn a_state_means_the_same_time_under_a_changed_limit() {
    let (fast, slow) = (limit(1_000, 1, 1_000), limit(7, 60, 1));
    let mut state = None;
    for _ in 0..1_000 {
        state = Some(fast.take(state, at(1_000_000)).unwrap());
    }
    let wait = slow.take(state, at(1_000_000)).unwrap_err();
    assert_eq!(wait.duration(), Duration::from_secs(1));
    let state = slow.take(state, at(1_001_000)).unwrap();
    assert!(fast.take(Some(state), at(1_010_000)).is_ok());
}

#[test]
fn numbers_that_are_no_limit_are_refused() {
    let refused = |requests, per_seconds, burst| RateLimit::new(requests, per_seconds, burst).unwrap_err();
    assert_eq!(refused(0, 1, None), RateLimitError::Requests);
    assert_eq!(refused(u64::MAX, 1, Some(1)), RateLimitError::Requests);
    assert_eq!(refused(1, 0, None), RateLimitError::Period);
    assert_eq!(refused(1, u64::MAX, None), RateLimitError::Period);
    assert_eq!(refused(1, 1, Some(0)), RateLimitError::Burst);
    assert_eq!(refused(1, 1, Some(MAX_REQUESTS + 1)), RateLimitError::Burst);
    assert_eq!(refused(1, MAX_PERIOD, Some(12)), RateLimitError::Filling);
}

#[test]
fn json_has_one_form_and_no_other_members() {
    for text in [json!({"requests": 5, "per_seconds": 60}), json!({"requests": 5, "per_seconds": 60, "burst": 2})] {
        let read: RateLimit = serde_json::from_value(text.clone()).unwrap();
        assert_eq!(serde_json::to_value(read).unwrap(), text);
    }
    let refused = [
        json!({"requests": 5}),
        json!({"requests": 5, "per_seconds": 60, "per_minute": 1}),
        json!({"requests": -5, "per_seconds": 60}),
        json!({"requests": 0.5, "per_seconds": 60}),
        json!({"requests": 5, "per_seconds": 60, "burst": 0}),
    ];
    for text in refused {
        assert!(serde_json::from_value::<RateLimit>(text.clone()).is_err(), "{text}");
    }
}

fn any_limit() -> impl Strategy<Value = RateLimit> {
    let requests = prop_oneof![1..20u64, 1..=MAX_REQUESTS];
    let per_seconds = prop_oneof![1..5u64, 1..=MAX_PERIOD];
    let burst = prop_oneof![1..8u64, 1..=MAX_REQUESTS];
    (requests, per_seconds, burst).prop_filter_map("fills within a year", |(requests, per_seconds, burst)| {
        RateLimit::new(requests, per_seconds, Some(burst)).ok()
    })
}

/// Steps of a clock, in shares of the time that a token takes: most of them near that time, where it is decided.
fn steps() -> impl Strategy<Value = Vec<i64>> {
    prop::collection::vec(prop_oneof![Just(0), 1..5i64, 900..1_100i64, 0..20_000i64], 1..80)
}

fn moments(limit: RateLimit, steps: &[i64]) -> Vec<i64> {
    let token = i64::try_from(limit.per().as_millis()).unwrap() / i64::from(limit.requests());
    let mut now = 1_700_000_000_000;
    let step = |step: &i64| {
        now += step * token.clamp(1, 1_000_000_000) / 1_000;
        now
    };
    steps.iter().map(step).collect()
}

proptest! {
    #[test]
    fn a_bucket_decides_as_one_that_counts_its_tokens(limit in any_limit(), steps in steps()) {
        let moments = moments(limit, &steps);
        let mut counted = Counted::full(limit, moments[0]);
        let mut state = None;
        for &now in &moments {
            let taken = limit.take(state, at(now));
            prop_assert_eq!(taken.is_ok(), counted.take(now));
            match taken {
                Ok(next) => state = Some(next),
                Err(wait) => {
                    let wait = i64::try_from(wait.duration().as_millis()).unwrap();
                    let later = |after| Counted { ..counted }.has_token(now + after);
                    prop_assert!(later(wait) && !later(wait - 1));
                }
            }
        }
    }

    #[test]
    fn no_window_holds_more_than_the_burst_and_the_rate(limit in any_limit(), steps in steps()) {
        let moments = moments(limit, &steps);
        let passes = passed(limit, &moments);
        let passed: Vec<i64> = moments.into_iter().zip(passes).filter(|(_, passes)| *passes).map(|(at, _)| at).collect();
        let token = i128::try_from(limit.per().as_millis()).unwrap();
        for (first, from) in passed.iter().enumerate() {
            for (last, to) in passed.iter().enumerate().skip(first) {
                let count = i128::try_from(last - first + 1).unwrap();
                let filled = i128::from(to - from) * i128::from(limit.requests());
                prop_assert!(count * token <= i128::from(limit.burst()) * token + filled);
            }
        }
    }

    #[test]
    fn a_clock_that_jumps_about_gives_no_more_than_its_furthest_time(
        limit in any_limit(), steps in steps(), back in prop::collection::vec(0..5_000i64, 80),
    ) {
        let mut moments = moments(limit, &steps);
        moments.iter_mut().zip(back).for_each(|(moment, back)| *moment -= if back % 3 == 0 { back } else { 0 });
        let mut furthest = moments[0];
        let mut counted = Counted::full(limit, furthest);
        for (&moment, passes) in moments.iter().zip(passed(limit, &moments)) {
            furthest = furthest.max(moment);
            let has_token = counted.has_token(furthest);
            prop_assert!(has_token || !passes);
            if passes {
                prop_assert!(counted.take(furthest));
            }
        }
    }

    #[test]
    fn what_the_stricter_limit_lets_through_both_let_through(
        one in any_limit(), other in any_limit(), steps in steps(),
    ) {
        let stricter = one.stricter(other);
        prop_assert_eq!(stricter, other.stricter(one));
        let written = serde_json::to_value(stricter).unwrap();
        prop_assert_eq!(serde_json::from_value::<RateLimit>(written).unwrap(), stricter);
        let moments = moments(stricter, &steps);
        let passes = passed(stricter, &moments);
        let kept: Vec<i64> = moments.into_iter().zip(passes).filter(|(_, passes)| *passes).map(|(at, _)| at).collect();
        prop_assert!(passed(one, &kept).into_iter().all(|passes| passes));
        prop_assert!(passed(other, &kept).into_iter().all(|passes| passes));
    }

    #[test]
    fn states_only_grow(limit in any_limit(), steps in steps()) {
        let mut state = None;
        for now in moments(limit, &steps) {
            if let Ok(next) = limit.take(state, at(now)) {
                prop_assert!(state < Some(next));
                state = Some(BucketState::from_i64(next.as_i64()));
            }
        }
    }

    #[test]
    fn tokens_that_are_given_back_let_nobody_else_pass_who_would_not_pass_without_them(
        limit in any_limit(), steps in steps(), lent in prop::collection::vec(0..4usize, 80),
    ) {
        let (mut state, mut borrowed): (_, Vec<(Timestamp, usize)>) = (None, Vec::new());
        let mut alone = None;
        for ((number, now), lent) in moments(limit, &steps).into_iter().map(at).enumerate().zip(lent) {
            let (due, later): (Vec<_>, Vec<_>) = borrowed.into_iter().partition(|(_, step)| *step <= number);
            borrowed = later;
            for (taken_at, _) in due {
                state = state.map(|state| limit.give_back(state, taken_at, now));
            }
            let Ok(next) = limit.take(state, now) else { continue };
            state = Some(next);
            if lent > 0 {
                borrowed.push((now, number + lent));
            } else {
                let passes_alone = limit.take(alone, now);
                prop_assert!(passes_alone.is_ok());
                alone = passes_alone.ok();
            }
        }
    }
}
