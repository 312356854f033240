//! Limits the memory of request bodies: in total and per key. A body counts from its reading until its request has
//! ended, since the parsed data lives as long: for hours if a call waits for an approver.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Semaphore;
use toolgate_gate::refusal::{Code, Refusal};

#[cfg(test)]
mod tests;

/// Bodies of at most this size are not counted: their number is bounded, and so is the time that they take to parse.
pub(crate) const SMALL: usize = 8 * 1024;
/// Bytes of memory per byte of a body: the raw body, and the strings parsed from it.
const PER_BYTE: usize = 3;
/// Additional bytes per comma, colon and bracket of JSON: measured on a call with a long list of numbers, up to its
/// refusal.
const PER_VALUE: usize = 192;
/// The number of large bodies of one key that are parsed in turn with those of other keys.
const TURNS: usize = 2;
/// When to try again, in seconds: a body that was read is mostly done with by then.
const RETRY_AFTER: u64 = 1;

/// The memory of all bodies.
#[derive(Debug)]
pub struct BodyMemory {
    all: usize,
    of_key: usize,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    total: usize,
    /// By holder. A holder without memory is not in it.
    by_key: HashMap<u64, OfKey>,
}

#[derive(Debug)]
struct OfKey {
    bytes: usize,
    turns: Arc<Semaphore>,
}

impl Default for OfKey {
    fn default() -> Self {
        Self { bytes: 0, turns: Arc::new(Semaphore::new(TURNS)) }
    }
}

/// The memory of one request's body; released on drop.
#[derive(Debug)]
pub(crate) struct BodyShare {
    memory: Arc<BodyMemory>,
    holder: u64,
    own: Mutex<usize>,
}

impl BodyMemory {
    /// So many bytes for all bodies, and so many of them for those of one key.
    pub fn new(all: usize, of_key: usize) -> Self {
        Self { all, of_key, held: Mutex::default() }
    }

    /// The share of a request of this holder.
    pub(crate) fn share(self: &Arc<Self>, holder: u64) -> BodyShare {
        BodyShare { memory: Arc::clone(self), holder, own: Mutex::new(0) }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BodyShare {
    /// Reserves memory for a body of which this many bytes were read. A body beyond the share of its key is accepted if
    /// the key holds nothing else: otherwise it could never pass.
    pub(crate) fn read(&self, bytes: usize) -> Result<(), Refusal> {
        if bytes <= SMALL { Ok(()) } else { self.hold(bytes.saturating_mul(PER_BYTE)) }
    }

    /// Reserves memory for the parsed body, and waits for a turn if parsing takes long: a client with many large bodies
    /// waits for itself, and does not delay others.
    pub(crate) async fn parse(&self, bytes: &[u8]) -> Result<(), Refusal> {
        if bytes.len() <= SMALL {
            return Ok(());
        }
        let values = bytes.iter().filter(|byte| matches!(byte, b',' | b':' | b'[' | b'{')).count();
        self.hold(bytes.len().saturating_mul(PER_BYTE).saturating_add(values.saturating_mul(PER_VALUE)))?;
        let turns = self.memory.held().by_key.get(&self.holder).map(|of_key| Arc::clone(&of_key.turns));
        if let Some(turns) = turns {
            // The turn lasts until all other ready tasks have been polled; then this body is parsed in one go.
            let _turn = turns.acquire_owned().await;
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    fn hold(&self, bytes: usize) -> Result<(), Refusal> {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        let more = bytes.saturating_sub(*own);
        let BodyMemory { all, of_key, .. } = &*self.memory;
        let mut held = self.memory.held();
        let of_this_key = held.by_key.get(&self.holder).map_or(0, |of_key| of_key.bytes);
        if bytes > *all {
            let reason = format!(
                "this body would take {} MiB of memory, more than the limit for all bodies; send less at a time, or \
                raise server.body_memory_mebibytes",
                bytes.div_ceil(1024 * 1024)
            );
            return Err(Refusal::new(Code::BodyTooLarge, reason).with("limit_bytes", *all));
        }
        let fits = |taken: usize, most: usize| taken == *own || taken.saturating_add(more) <= most;
        if !fits(of_this_key, *of_key) {
            let reason = "the request bodies of this key have reached their memory limit; send fewer large requests \
                at a time, or raise server.body_memory_per_key_mebibytes";
            let refusal = Refusal::new(Code::TooManyInFlight, reason).with("limit_bytes", *of_key);
            return Err(refusal.with("retry_after_seconds", RETRY_AFTER));
        }
        if !fits(held.total, *all) {
            let reason = "the bodies of all requests have reached their memory limit; try again, or raise \
                server.body_memory_mebibytes";
            let refusal = Refusal::new(Code::Overloaded, reason).with("limit_bytes", *all);
            return Err(refusal.with("retry_after_seconds", RETRY_AFTER));
        }
        if more > 0 {
            held.total += more;
            held.by_key.entry(self.holder).or_default().bytes += more;
            *own += more;
        }
        Ok(())
    }
}

impl Drop for BodyShare {
    fn drop(&mut self) {
        let own = *self.own.lock().unwrap_or_else(PoisonError::into_inner);
        if own == 0 {
            return;
        }
        let mut held = self.memory.held();
        held.total -= own;
        if let Some(of_key) = held.by_key.get_mut(&self.holder) {
            of_key.bytes -= own;
            if of_key.bytes == 0 {
                held.by_key.remove(&self.holder);
            }
        }
    }
}
