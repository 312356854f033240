//! The HTTP request that the current task works for: its id, and its position in a distributed trace. A transport sets
//! it once; calls and log lines read it from here, so that no function in between has to pass it on.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use toolgate_model::trace_context::TraceParent;

/// In bytes.
pub const MAX_REQUEST_ID: usize = 64;

/// The id of a request: in its response, in every log line about it and in the spans of its calls.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct RequestId {
    // INVARIANT: the first `length` bytes are ASCII.
    text: [u8; MAX_REQUEST_ID],
    length: u8,
}

/// What the headers of a request say about its trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallerTrace {
    pub parent: TraceParent,
    /// `tracestate`, which is passed on unchanged.
    pub state: Option<Arc<str>>,
    /// Whether the sender may decide that the trace is sampled.
    pub is_trusted: bool,
}

/// The request that a task works for.
#[derive(Debug, Clone)]
pub struct RequestContext {
    pub id: RequestId,
    pub trace: Option<CallerTrace>,
}

tokio::task_local! {
    static CURRENT: RequestContext;
}

impl RequestContext {
    /// The context of the current task, if it works for a request.
    pub fn current() -> Option<Self> {
        CURRENT.try_with(Clone::clone).ok()
    }

    /// Runs a future as work for this request.
    pub async fn scope<F: Future>(self, future: F) -> F::Output {
        CURRENT.scope(self, future).await
    }
}

/// Attaches a future, which may be spawned, to the request of the current task.
pub fn in_current_request<F: Future>(future: F) -> impl Future<Output = F::Output> {
    let current = RequestContext::current();
    async move {
        match current {
            Some(current) => CURRENT.scope(current, future).await,
            None => future.await,
        }
    }
}

/// The keys for new ids, from the system's random generator: an id reveals nothing about the number of other requests.
static KEYS: LazyLock<[RandomState; 2]> = LazyLock::new(|| [RandomState::new(), RandomState::new()]);
static MADE: AtomicU64 = AtomicU64::new(0);

impl RequestId {
    /// Creates an id of 32 hexadecimal digits.
    pub fn generate() -> Self {
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let mut text = [0; MAX_REQUEST_ID];
        let halves = KEYS.iter().flat_map(|key| key.hash_one(number).to_be_bytes());
        for (byte, [high, low]) in halves.zip(text.as_chunks_mut::<2>().0) {
            (*high, *low) = (digit(byte >> 4), digit(byte & 15));
        }
        Self { text, length: 32 }
    }

    /// Parses an id from a proxy; `None` if it is too long or has characters other than letters, digits and `-_.:=+/@`.
    pub fn parse(given: &str) -> Option<Self> {
        let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:=+/@".contains(&byte);
        if given.is_empty() || !given.bytes().all(is_fit) {
            return None;
        }
        let mut text = [0; MAX_REQUEST_ID];
        text.get_mut(..given.len())?.copy_from_slice(given.as_bytes());
        Some(Self { text, length: u8::try_from(given.len()).ok()? })
    }

    pub fn as_str(&self) -> &str {
        let text = self.text.get(..usize::from(self.length)).unwrap_or_default();
        std::str::from_utf8(text).unwrap_or_default()
    }
}

fn digit(value: u8) -> u8 {
    if value < 10 { b'0' + value } else { b'a' + value - 10 }
}

impl fmt::Display for RequestId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn generated_ids_differ_and_can_be_read_back() {
        let ids: HashSet<RequestId> = (0..10_000).map(|_| RequestId::generate()).collect();
        assert_eq!(ids.len(), 10_000);
        for id in ids {
            assert_eq!(id.as_str().len(), 32);
            assert_eq!(RequestId::parse(id.as_str()), Some(id));
        }
    }

    #[test]
    fn an_id_that_could_spoil_a_log_or_a_header_is_not_accepted() {
        let longest = "a".repeat(MAX_REQUEST_ID);
        for good in ["0b2f4e6c-8a10-4f2e-9c1d-2b3a4c5d6e7f", "Root=1-67891233-abc", longest.as_str()] {
            assert_eq!(RequestId::parse(good).unwrap().as_str(), good);
        }
        for bad in ["", " ", "a b", "a\nb", "a\"b", "\u{e9}", "{}", &format!("{longest}a")] {
            assert_eq!(RequestId::parse(bad), None, "{bad}");
        }
    }

    #[tokio::test]
    async fn a_spawned_future_works_for_the_request_that_spawned_it() {
        let context = RequestContext { id: RequestId::generate(), trace: None };
        let id = context.id;
        let seen = context.scope(async { tokio::spawn(in_current_request(async { RequestContext::current() })).await });
        assert_eq!(seen.await.unwrap().unwrap().id, id);
        assert!(tokio::spawn(in_current_request(async { RequestContext::current() })).await.unwrap().is_none());
    }
}
