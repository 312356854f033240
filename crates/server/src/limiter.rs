//! The inbound limiter: bounds the requests of one client, before anything else about a request is decided. It is
//! independent of the limits of grants and tools, which are in the ledger; this one is in the memory of a replica.
//!
//! A request counts in one of three tables, all under the same limit:
//! - with a key that was accepted here before: the bucket of that key, by its digest;
//! - with any other key: the bucket of unverified keys of its address, so that inventing a new key for every request
//!   gains nothing. If the gate then accepts the key, the token is returned and the key has its own bucket from then
//!   on;
//! - without a key: the bucket of its address. It is separate from that of unverified keys, so that clients without a
//!   key cannot shut out a key that is new here.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use toolgate_gate::ports::clock::Clock;
use toolgate_model::key::KeyDigest;
use toolgate_model::rate_limit::{RateLimit, Wait};
use toolgate_model::source_network::SourceNetwork;
use toolgate_model::time::Timestamp;

pub use self::body_memory::BodyMemory;
pub(crate) use self::body_memory::BodyShare;
use self::buckets::{Buckets, Place};
pub use self::in_flight::InFlightLimit;
use crate::caller::Credential;

mod body_memory;
mod buckets;
mod in_flight;
pub mod middleware;
#[cfg(test)]
mod tests;

/// The capacity of a table: a few megabytes at most.
const CAPACITY: usize = 65_536;

/// Counts requests.
///
/// INVARIANT: a bucket that owes a token is never forgotten, so that no flood of keys or addresses lifts a limit.
/// Memory is bounded all the same, see `limiter/buckets.rs`.
pub struct Limiter {
    clock: Arc<dyn Clock>,
    tables: Mutex<Tables>,
}

/// A request that was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limited {
    /// The limit that was exceeded.
    pub scope: Scope,
    pub wait: Wait,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Those with one key.
    Key,
    /// Those from one address.
    Address,
}

/// A request that passed with an unverified key. This travels with the request until the gate has accepted the key; if
/// it is dropped, the request stays counted for its address.
#[derive(Clone)]
pub struct UnverifiedKey {
    limiter: Arc<Limiter>,
    digest: KeyDigest,
    network: SourceNetwork,
    place: Place,
    since: Timestamp,
}

struct Tables {
    keys: Buckets<KeyDigest>,
    unverified_keys: Buckets<SourceNetwork>,
    without_key: Buckets<SourceNetwork>,
}

impl Limiter {
    /// With this limit for each key and each address.
    pub fn new(limit: RateLimit, clock: Arc<dyn Clock>) -> Self {
        Self::held_grant(CAPACITY, limit, clock)
    }

    /// Counts a request with this unverified credential from this address.
    pub fn count(
        self: &Arc<Self>,
        credential: Option<Credential<'_>>,
        address: IpAddr,
    ) -> Result<Option<UnverifiedKey>, Limited> {
        let network = SourceNetwork::of(address);
        let digest = credential.map(Credential::digest);
        let mut tables = self.tables();
        // Behind the lock, so that no request counts at an earlier time than one that was counted before.
        let now = self.clock.now();
        let Some(digest) = digest else {
            let taken = tables.without_key.take(network, now);
            return taken.map(|_| None).map_err(|wait| Limited { scope: Scope::Address, wait });
        };
        if let Some(taken) = tables.keys.take_known(&digest, now) {
            return taken.map(|()| None).map_err(|wait| Limited { scope: Scope::Key, wait });
        }
        let place =
            tables.unverified_keys.take(network, now).map_err(|wait| Limited { scope: Scope::Address, wait })?;
        Ok(Some(UnverifiedKey { limiter: Arc::clone(self), digest, network, place, since: now }))
    }

    fn held_grant(capacity: usize, limit: RateLimit, clock: Arc<dyn Clock>) -> Self {
        let tables = Tables {
            keys: Buckets::new(capacity, limit),
            unverified_keys: Buckets::new(capacity, limit),
            without_key: Buckets::new(capacity, limit),
        };
        Self { clock, tables: Mutex::new(tables) }
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl UnverifiedKey {
    /// The gate has accepted the key. Access tokens are counted by their subject, of which there are fewer.
    pub(crate) fn accepted_as(self, subject: Option<KeyDigest>) {
        Self { digest: subject.unwrap_or(self.digest), ..self }.accepted();
    }

    /// The gate has accepted the key: the request counts for the key, and no longer for the address.
    ///
    /// Requests before the first acceptance of a key have passed already. The key is charged for them up to the size of
    /// its bucket; the rest, at most what the bucket of unverified keys let pass, is forgiven once.
    pub fn accepted(self) {
        let mut tables = self.limiter.tables();
        let now = self.limiter.clock.now();
        // Without room the key continues as an unverified one.
        if tables.keys.make_known(self.digest, now) {
            tables.unverified_keys.give_back(&self.network, self.place, self.since, now);
        }
    }
}

impl Scope {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Address => "address",
        }
    }
}
