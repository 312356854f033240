//! Limits the requests of one key in flight: waiting calls and event streams hold memory and connections as long as
//! they last, whatever their rate.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::response::Response;
use toolgate_model::source_network::SourceNetwork;

use super::BodyShare;
use crate::caller::Credential;
use crate::held_body::hold;

/// Counts requests in flight, in the memory of this gate.
#[derive(Debug)]
pub struct InFlightLimit {
    most: usize,
    hasher: RandomState,
    /// By the keyed hash of a key, or of an address without one. Only holders with requests in flight are in it.
    taken: Mutex<HashMap<u64, usize>>,
}

/// A request in flight; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Taken {
    limit: Arc<InFlightLimit>,
    holder: u64,
    _body: Option<Arc<BodyShare>>,
}

impl InFlightLimit {
    /// So many of each key, and of each address without one.
    pub fn new(most: usize) -> Self {
        Self { most, hasher: RandomState::new(), taken: Mutex::default() }
    }

    /// The maximum per key.
    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// Takes a slot for a request with this unverified credential from this address; `None` if there is none.
    pub(crate) fn take(self: &Arc<Self>, credential: Option<Credential<'_>>, address: IpAddr) -> Option<Taken> {
        let holder = match credential {
            Some(credential) => self.hasher.hash_one(credential),
            None => self.hasher.hash_one(SourceNetwork::of(address)),
        };
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let count = taken.entry(holder).or_default();
        if *count >= self.most {
            return None;
        }
        *count += 1;
        Some(Taken { limit: Arc::clone(self), holder, _body: None })
    }
}

impl Taken {
    /// The keyed hash of the holder.
    pub(crate) fn holder(&self) -> u64 {
        self.holder
    }

    /// Holds the memory of the request's body as long as the slot.
    pub(crate) fn with(mut self, body: Arc<BodyShare>) -> Self {
        self._body = Some(body);
        self
    }

    /// Holds the slot until the response is written, if that takes a while.
    pub(crate) fn until_written(self, response: Response) -> Response {
        hold(response, self, u64::MAX)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut taken = self.limit.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = taken.get_mut(&self.holder) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.holder);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use bytes::Bytes;

    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    #[test]
    fn each_key_has_its_own_places_and_gives_them_back() {
        let limit = Arc::new(InFlightLimit::new(2));
        let first = limit.take(Some(Credential::Key("one")), HERE).unwrap();
        let _second = limit.take(Some(Credential::Key("one")), HERE).unwrap();
        assert!(limit.take(Some(Credential::Key("one")), HERE).is_none());
        assert!(limit.take(Some(Credential::Key("two")), HERE).is_some() && limit.take(None, HERE).is_some());
        drop(first);
        assert!(limit.take(Some(Credential::Key("one")), HERE).is_some());
    }

    #[test]
    fn a_stream_keeps_its_place_until_it_ends_and_nothing_is_left_behind() {
        let limit = Arc::new(InFlightLimit::new(1));
        let chunks = futures_util::stream::pending::<Result<Bytes, std::io::Error>>();
        let taken = limit.take(Some(Credential::Key("one")), HERE).unwrap();
        let stream = taken.until_written(Response::new(Body::from_stream(chunks)));
        assert!(limit.take(Some(Credential::Key("one")), HERE).is_none());
        drop(stream);
        let whole =
            limit.take(Some(Credential::Key("one")), HERE).unwrap().until_written(Response::new(Body::from("whole")));
        assert!(limit.take(Some(Credential::Key("one")), HERE).is_some());
        drop(whole);
        assert!(limit.taken.lock().unwrap().is_empty());
    }
}
