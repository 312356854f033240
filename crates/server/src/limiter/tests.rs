//! The limiter without a server: which bucket a request counts in, and what a flood cannot do.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use super::*;

/// A clock that the test moves.
#[derive(Default)]
pub(super) struct StillClock(AtomicI64);

impl StillClock {
    pub(super) fn advance(&self, duration: Duration) {
        self.0.fetch_add(i64::try_from(duration.as_millis()).unwrap(), Ordering::SeqCst);
    }
}

impl Clock for StillClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_000_000 + self.0.load(Ordering::SeqCst)).unwrap()
    }
}

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
const ELSEWHERE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2));

/// One request in ten seconds, with bursts of `burst`.
fn limiter(capacity: usize, burst: u64) -> (Arc<Limiter>, Arc<StillClock>) {
    let clock = Arc::new(StillClock::default());
    let limit = RateLimit::new(1, 10, Some(burst)).unwrap();
    (Arc::new(Limiter::held_grant(capacity, limit, clock.clone())), clock)
}

/// A request with a good key: passes, and is accepted.
fn good(limiter: &Arc<Limiter>, key: &str, address: IpAddr) -> Result<(), Limited> {
    limiter
        .count(Some(Credential::Key(key)), address)
        .map(|unverified_key| unverified_key.into_iter().for_each(UnverifiedKey::accepted))
}

/// A request with a key that the gate does not accept.
fn invented(limiter: &Arc<Limiter>, key: &str, address: IpAddr) -> Result<(), Limited> {
    limiter.count(Some(Credential::Key(key)), address).map(drop)
}

fn without_key(limiter: &Arc<Limiter>, address: IpAddr) -> Result<(), Limited> {
    limiter.count(None, address).map(drop)
}

fn address(number: u32) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + number))
}

#[track_caller]
fn assert_limited(result: Result<(), Limited>, scope: Scope) {
    assert_eq!(result.unwrap_err().scope, scope);
}

#[test]
fn a_key_has_its_burst_wherever_it_comes_from_and_waits_for_the_next_token() {
    let (limiter, clock) = limiter(10, 2);
    good(&limiter, "a", HERE).unwrap();
    good(&limiter, "a", ELSEWHERE).unwrap();
    let limited = good(&limiter, "a", HERE).unwrap_err();
    assert_eq!((limited.scope, limited.wait.seconds()), (Scope::Key, 10));
    clock.advance(Duration::from_millis(9_999));
    assert_limited(good(&limiter, "a", ELSEWHERE), Scope::Key);
    clock.advance(Duration::from_millis(1));
    good(&limiter, "a", HERE).unwrap();
    assert_limited(good(&limiter, "a", HERE), Scope::Key);
}

#[test]
fn another_key_proceeds_even_where_one_request_is_all_that_an_address_has() {
    let (limiter, _) = limiter(10, 1);
    good(&limiter, "a", HERE).unwrap();
    assert_limited(good(&limiter, "a", HERE), Scope::Key);
    good(&limiter, "b", HERE).unwrap();
    good(&limiter, "c", HERE).unwrap();
    without_key(&limiter, HERE).unwrap();
}

#[test]
fn requests_without_a_key_count_by_address_and_hold_up_no_key() {
    let (limiter, _) = limiter(10, 1);
    without_key(&limiter, HERE).unwrap();
    assert_limited(without_key(&limiter, HERE), Scope::Address);
    without_key(&limiter, ELSEWHERE).unwrap();
    good(&limiter, "new here", HERE).unwrap();
}

#[test]
fn addresses_of_one_ipv6_network_count_together() {
    let (limiter, _) = limiter(10, 1);
    without_key(&limiter, IpAddr::from([0x2001, 0xdb8, 0, 1, 0, 0, 0, 1])).unwrap();
    assert_limited(without_key(&limiter, IpAddr::from([0x2001, 0xdb8, 0, 1, 9, 9, 9, 9])), Scope::Address);
    without_key(&limiter, IpAddr::from([0x2001, 0xdb8, 0, 2, 0, 0, 0, 1])).unwrap();
    without_key(&limiter, HERE).unwrap();
    assert_limited(without_key(&limiter, IpAddr::from([0, 0, 0, 0, 0, 0xffff, 0xc000, 0x0201])), Scope::Address);
}

#[test]
fn a_new_invented_key_for_every_request_wins_nothing() {
    let (limiter, _) = limiter(10, 3);
    good(&limiter, "good", HERE).unwrap();
    let passed = (0..100).filter(|number| invented(&limiter, &format!("invented {number}"), HERE).is_ok()).count();
    assert_eq!(passed, 3);
    assert_limited(invented(&limiter, "one more", HERE), Scope::Address);
    good(&limiter, "good", HERE).unwrap();
    good(&limiter, "at another address", ELSEWHERE).unwrap();
}

#[test]
fn a_flood_of_invented_keys_pushes_out_no_key_and_takes_no_memory() {
    let (limiter, _) = limiter(4, 1);
    good(&limiter, "limited", HERE).unwrap();
    for number in 0..1_000 {
        let _ = invented(&limiter, &format!("invented {number}"), address(number));
    }
    assert_limited(good(&limiter, "limited", HERE), Scope::Key);
    let tables = limiter.tables();
    assert_eq!((tables.keys.len(), tables.unverified_keys.len()), (1, 4));
}

#[test]
fn a_flood_of_addresses_lifts_no_limit_and_takes_no_memory() {
    let (limiter, clock) = limiter(4, 1);
    without_key(&limiter, HERE).unwrap();
    let passed = (0..1_000).filter(|number| without_key(&limiter, address(*number)).is_ok()).count();
    assert_eq!(passed, 4, "three that found room, and one for all the others");
    assert_limited(without_key(&limiter, HERE), Scope::Address);
    assert_eq!(limiter.tables().without_key.len(), 4);
    good(&limiter, "a", HERE).unwrap();
    clock.advance(Duration::from_secs(10));
    without_key(&limiter, ELSEWHERE).unwrap();
    assert_eq!(limiter.tables().without_key.len(), 1, "those that owe nothing are forgotten");
}

#[test]
fn a_key_that_finds_no_room_stays_a_stranger_and_is_limited_all_the_same() {
    let (limiter, clock) = limiter(2, 1);
    good(&limiter, "a", HERE).unwrap();
    good(&limiter, "b", HERE).unwrap();
    good(&limiter, "c", HERE).unwrap();
    assert_limited(good(&limiter, "c", HERE), Scope::Address);
    assert_limited(good(&limiter, "a", HERE), Scope::Key);
    clock.advance(Duration::from_secs(10));
    good(&limiter, "c", HERE).unwrap();
    assert_limited(good(&limiter, "c", HERE), Scope::Key);
}

#[test]
fn a_full_table_is_looked_through_once_in_a_second() {
    let (limiter, clock) = limiter(1, 1);
    without_key(&limiter, HERE).unwrap();
    clock.advance(Duration::from_millis(9_500));
    without_key(&limiter, ELSEWHERE).unwrap();
    clock.advance(Duration::from_millis(500));
    // The bucket of `HERE` is full again, but was not checked yet.
    assert_limited(without_key(&limiter, ELSEWHERE), Scope::Address);
    clock.advance(Duration::from_millis(500));
    without_key(&limiter, ELSEWHERE).unwrap();
}

#[test]
fn a_key_whose_first_requests_come_together_is_forgiven_one_burst_at_most() {
    let (limiter, _) = limiter(10, 3);
    let unverified_keys: Vec<UnverifiedKey> =
        (0..10).filter_map(|_| limiter.count(Some(Credential::Key("a")), HERE).ok().flatten()).collect();
    assert_eq!(unverified_keys.len(), 3);
    unverified_keys.into_iter().for_each(UnverifiedKey::accepted);
    assert_limited(good(&limiter, "a", HERE), Scope::Key);
}

#[test]
fn an_address_gets_a_token_back_once_and_only_what_has_not_come_back_by_itself() {
    let (limiter, clock) = limiter(10, 1);
    let slow = limiter.count(Some(Credential::Key("a")), HERE).unwrap().unwrap();
    clock.advance(Duration::from_secs(10));
    invented(&limiter, "x", HERE).unwrap();
    slow.accepted();
    assert_limited(invented(&limiter, "y", HERE), Scope::Address);
}
