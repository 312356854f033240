//! Slows down the guessing of keys, per source address. An address that failed too often must wait; recently accepted
//! keys still pass, so that a hostile neighbour behind the same address does not lock others out.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use toolgate_model::key::KeyDigest;
use toolgate_model::source_network::SourceNetwork;
use toolgate_model::time::Timestamp;

use crate::penalties::Penalties;
use crate::refusal::{Code, Refusal};

/// How many failures an address may have before it must wait.
const BURST: i64 = 20;
/// The time after which one of them is forgiven.
const FORGIVE: Duration = Duration::from_secs(3);
/// How long an accepted key passes, whatever its address did.
const TRUST: Duration = Duration::from_secs(600);
/// The maximum number of keys kept.
const LIMIT: usize = 65_536;

#[derive(Default)]
pub(crate) struct Attempts(Mutex<Memory>);

struct Memory {
    /// The failures of each address.
    penalties: Penalties<SourceNetwork>,
    trusted: HashMap<KeyDigest, Timestamp>,
}

impl Default for Memory {
    fn default() -> Self {
        Self { penalties: Penalties::new(BURST, FORGIVE), trusted: HashMap::new() }
    }
}

impl Attempts {
    /// Refuses an address that must wait, unless it presents a recently accepted key.
    pub(crate) fn check(&self, source: IpAddr, digest: &KeyDigest, now: Timestamp) -> Result<(), Refusal> {
        let mut memory = self.memory();
        let Some(seconds) = memory.penalties.wait(&SourceNetwork::of(source), now) else { return Ok(()) };
        if memory.trusted.get(digest).is_some_and(|since| now.minus(TRUST) < *since) {
            return Ok(());
        }
        let reason = format!("too many invalid keys from this address; wait {seconds} seconds");
        Err(Refusal::new(Code::TooManyAttempts, reason).with("retry_after_seconds", seconds))
    }

    pub(crate) fn failed(&self, source: IpAddr, now: Timestamp) {
        self.memory().penalties.add(&SourceNetwork::of(source), now);
    }

    pub(crate) fn succeeded(&self, digest: KeyDigest, now: Timestamp) {
        let mut memory = self.memory();
        if memory.trusted.len() >= LIMIT {
            memory.trusted.retain(|_, since| now.minus(TRUST) < *since);
        }
        if memory.trusted.len() < LIMIT || memory.trusted.contains_key(&digest) {
            memory.trusted.insert(digest, now);
        }
    }

    fn memory(&self) -> std::sync::MutexGuard<'_, Memory> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(1_000_000 + seconds * 1000).unwrap()
    }

    #[test]
    fn twenty_failures_close_the_address_and_time_opens_it_again() {
        let attempts = Attempts::default();
        for _ in 0..BURST {
            assert!(attempts.check(SOURCE, &[0; 32], at(0)).is_ok());
            attempts.failed(SOURCE, at(0));
        }
        let refusal = attempts.check(SOURCE, &[0; 32], at(0)).unwrap_err();
        assert_eq!(refusal.code(), Code::TooManyAttempts);
        assert!(attempts.check(SOURCE, &[0; 32], at(4)).is_ok(), "one failure is forgiven after three seconds");
    }

    #[test]
    fn other_addresses_and_keys_accepted_lately_are_not_held_up() {
        let attempts = Attempts::default();
        attempts.succeeded([7; 32], at(0));
        for _ in 0..100 {
            attempts.failed(SOURCE, at(1));
        }
        assert!(attempts.check(SOURCE, &[7; 32], at(2)).is_ok());
        assert!(attempts.check(SOURCE, &[8; 32], at(2)).is_err());
        assert!(attempts.check(IpAddr::from([192, 0, 2, 1]), &[8; 32], at(2)).is_ok());
        assert!(attempts.check(SOURCE, &[7; 32], at(1000)).is_ok(), "by then the failures are forgiven");
    }

    #[test]
    fn addresses_of_one_ipv6_network_count_together() {
        let attempts = Attempts::default();
        for host in 0..100_u16 {
            attempts.failed(IpAddr::from([0x2001, 0xdb8, 0, 1, 0, 0, 0, host]), at(0));
        }
        assert!(attempts.check(IpAddr::from([0x2001, 0xdb8, 0, 1, 9, 9, 9, 9]), &[0; 32], at(0)).is_err());
        assert!(attempts.check(IpAddr::from([0x2001, 0xdb8, 0, 2, 0, 0, 0, 1]), &[0; 32], at(0)).is_ok());
    }
}
