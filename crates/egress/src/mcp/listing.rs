//! The list of a server's tools: read in full, and kept for a while to compare what the server offers now with what a
//! person has accepted.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};
use toolgate_gate::ports::mount::OfferedTool;
use toolgate_gate::ports::source::{FailureKind, SourceFailure};
use toolgate_model::service::{McpMapping, definition_hash};

use super::message::{self, Request};
use super::result::{Raw, malformed};
use crate::time::now;

/// How many pages of a list are read, and how many tools and bytes it may have.
const PAGE_LIMIT: usize = 100;
const TOOL_LIMIT: usize = 2_000;
const SIZE_LIMIT: usize = 16 * 1024 * 1024;
/// How long a list is taken for current, where the server does not ask for less.
const LONGEST_AGE: Duration = Duration::from_secs(300);
/// The shortest: a list is not read again for every call.
const SHORTEST_AGE: Duration = Duration::from_secs(5);

/// A server that can be asked.
#[async_trait]
pub(crate) trait Peer: Send {
    /// Sends a request and gives its response.
    async fn ask(&mut self, request: &Request<'_>) -> Result<Raw, SourceFailure>;
}

/// What is known of a server's list.
#[derive(Default)]
pub(crate) struct Listing {
    current: Mutex<Option<Arc<Listed>>>,
    /// Held by the one that reads it.
    reading: tokio::sync::Mutex<()>,
    /// Whether the server has announced that it changed.
    stale: AtomicBool,
}

/// A list that was read.
pub(crate) struct Listed {
    /// The hashes of the definitions, by name. A name that stands twice has none.
    hashes: HashMap<String, Option<String>>,
    until: Instant,
    reported: AtomicBool,
    /// Names with the accepted hashes that differ from this list, as far as they were asked for.
    differences: Mutex<HashSet<(String, String)>>,
}

/// What the server lists is not what was accepted.
pub(crate) struct Differs {
    pub(crate) failure: SourceFailure,
    /// Whether this was not told before.
    pub(crate) is_news: bool,
}

impl Listing {
    /// The server has announced that its list changed.
    pub(crate) fn expire(&self) {
        self.stale.store(true, Ordering::Release);
    }

    /// Refuses a call of a tool whose definition at the server is not the accepted one. What cannot be compared is not
    /// called.
    pub(crate) async fn check(
        &self,
        mapping: &McpMapping,
        peer: &mut dyn Peer,
        deadline: Instant,
    ) -> Result<Result<(), Differs>, SourceFailure> {
        // Only tools have definitions; the other methods are the protocol's own.
        let Some(name) = &mapping.name else { return Ok(Ok(())) };
        let Some(pinned) = &mapping.definition_hash else {
            let reason = "the tool was registered without the hash of an accepted definition; an administrator must \
                          mount its server, or register it with a `definition_hash`";
            let failure = SourceFailure::not_sent(FailureKind::Quarantined, reason);
            return Ok(Err(Differs { failure, is_news: false }));
        };
        let listed = match self.fresh() {
            Some(listed) => listed,
            None => self.read(peer, deadline).await?,
        };
        let listed = match listed.is_new_difference(name, pinned) {
            false => listed,
            // The definition may have been accepted after this list was read: it is read again, once for each.
            true => {
                self.expire();
                let listed = self.read(peer, deadline).await?;
                listed.is_new_difference(name, pinned);
                listed
            }
        };
        let reason = match listed.hashes.get(name) {
            Some(Some(hash)) if hash == pinned => return Ok(Ok(())),
            Some(Some(_)) => "the server has changed the definition of this tool since it was accepted",
            Some(None) => "the server lists this tool twice",
            None => "the server no longer lists this tool",
        };
        let reason = format!("{reason}; an administrator must review the mount");
        let is_news = !listed.reported.swap(true, Ordering::AcqRel);
        Ok(Err(Differs { failure: SourceFailure::not_sent(FailureKind::Quarantined, reason), is_news }))
    }

    fn fresh(&self) -> Option<Arc<Listed>> {
        if self.stale.load(Ordering::Acquire) {
            return None;
        }
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        current.as_ref().filter(|listed| now() < listed.until).cloned()
    }

    async fn read(&self, peer: &mut dyn Peer, deadline: Instant) -> Result<Arc<Listed>, SourceFailure> {
        let waiting = timeout_at(deadline, self.reading.lock()).await;
        let _reading = waiting.map_err(|_| SourceFailure {
            timed_out: true,
            ..SourceFailure::not_sent(FailureKind::Proxy, "the time for this call was over while the tools were listed")
        })?;
        if let Some(listed) = self.fresh() {
            return Ok(listed);
        }
        // Before the list is asked for: what is announced meanwhile makes this one stale again.
        self.stale.store(false, Ordering::Release);
        let listed = match tools(peer).await {
            Ok((tools, age)) => Arc::new(Listed::of(&tools, age)),
            Err(failure) => {
                self.stale.store(true, Ordering::Release);
                // Whatever came of it, the call itself was not sent.
                return Err(SourceFailure { sent: false, ..failure });
            }
        };
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&listed));
        Ok(listed)
    }
}

impl Listed {
    fn of(tools: &[OfferedTool], age: Option<Duration>) -> Self {
        let mut hashes: HashMap<String, Option<String>> = HashMap::with_capacity(tools.len());
        for tool in tools {
            let hash = definition_hash(&tool.definition);
            hashes.entry(tool.name.clone()).and_modify(|known| *known = None).or_insert(Some(hash));
        }
        let age = age.unwrap_or(LONGEST_AGE).clamp(SHORTEST_AGE, LONGEST_AGE);
        Self { hashes, until: now() + age, reported: AtomicBool::new(false), differences: Mutex::default() }
    }
}

impl Listed {
    /// Whether the list differs from this accepted definition, and that is found for the first time.
    fn is_new_difference(&self, name: &str, pinned: &str) -> bool {
        if self.hashes.get(name).and_then(Option::as_deref) == Some(pinned) {
            return false;
        }
        let mut differences = self.differences.lock().unwrap_or_else(PoisonError::into_inner);
        differences.len() < TOOL_LIMIT && differences.insert((name.to_owned(), pinned.to_owned()))
    }
}

/// All tools of a server in its order, and how long it says that they are current.
pub(crate) async fn tools(peer: &mut dyn Peer) -> Result<(Vec<OfferedTool>, Option<Duration>), SourceFailure> {
    let (mut tools, mut cursor, mut age, mut size) = (Vec::new(), None::<String>, None, 0);
    for _ in 0..PAGE_LIMIT {
        let raw = peer.ask(&Request::list_tools(cursor.as_deref())).await?;
        let status = raw.http_status;
        size += raw.message.len();
        let result = match message::response_with_list(&raw.message, raw.id) {
            Ok(Ok(result)) => result,
            Ok(Err(error)) => {
                let reason = format!("the server refused to list its tools with error {}", error.code);
                return Err(SourceFailure { kind: FailureKind::Service, ..malformed(status, &reason) });
            }
            Err(reason) => return Err(malformed(status, &format!("the server's list of tools {reason}"))),
        };
        let Some(Value::Array(page)) = result.get("tools") else {
            return Err(malformed(status, "the server's list of tools has no tools"));
        };
        for definition in page {
            let Some(name) = definition.get("name").and_then(Value::as_str) else {
                return Err(malformed(status, "the server lists a tool without a name"));
            };
            tools.push(OfferedTool { name: name.to_owned(), definition: definition.clone() });
        }
        if tools.len() > TOOL_LIMIT || size > SIZE_LIMIT {
            return Err(malformed(status, "the server's list of tools is longer than is read"));
        }
        let page_age = result.get("ttlMs").and_then(Value::as_u64).map(Duration::from_millis);
        age = match (age, page_age) {
            (Some(one), Some(other)) => Some(Duration::min(one, other)),
            (one, other) => one.or(other),
        };
        match result.get("nextCursor").and_then(Value::as_str) {
            None => return Ok((tools, age)),
            Some(next) => cursor = Some(next.to_owned()),
        }
    }
    Err(malformed(200, "the server's list of tools has more pages than are read"))
}

#[cfg(test)]
mod tests {
    use toolgate_model::service::McpMethod;

    use super::*;

    /// A server that must not be asked.
    struct Unasked;

    #[async_trait]
    impl Peer for Unasked {
        async fn ask(&mut self, request: &Request<'_>) -> Result<Raw, SourceFailure> {
            panic!("nothing is sent: {}", request.method)
        }
    }

    #[tokio::test]
    async fn a_tool_without_a_pinned_definition_is_quarantined_and_its_server_not_asked() {
        let (listing, deadline) = (Listing::default(), now() + LONGEST_AGE);
        let checked = listing.check(&McpMapping::of_tool("echo"), &mut Unasked, deadline).await;
        let Ok(Err(differs)) = checked else { panic!("it is refused") };
        assert_eq!((differs.failure.kind, differs.failure.sent), (FailureKind::Quarantined, false));
        let method = McpMapping::of_method(McpMethod::ReadResource);
        assert!(matches!(listing.check(&method, &mut Unasked, deadline).await, Ok(Ok(()))));
    }
}
