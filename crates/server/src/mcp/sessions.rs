//! The sessions of legacy clients: capped in total and for each principal, ended when they are idle, and of use to nobody but
//! the principal that opened them. A session is a convenience of the protocol and no authority: each request shows its key.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::oneshot;
use toolgate_gate::call::{Presence, Waiting};
use toolgate_gate::ports::clock::Clock;
use toolgate_gate::ports::entropy::random;
use toolgate_gate::refusal::Refusal;
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::time::Timestamp;

use super::Settings;
use super::client::Capabilities;
use super::era::LegacyVersion;
use super::log_level::LogLevel;
use super::message::RequestId;

#[cfg(test)]
mod tests;

/// How many requests a client of a session has to respond to at a time.
const ASKED_LIMIT: usize = 64;

/// The sessions of this gate.
pub(super) struct Sessions {
    clock: Arc<dyn Clock>,
    most: usize,
    most_of_principal: usize,
    idle: Duration,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    open: HashMap<SessionId, Session>,
    /// The ids of each principal's sessions.
    of_principal: HashMap<Owner, Vec<SessionId>>,
}

/// The principal that opened a session.
pub(super) type Owner = (TenantId, PrincipalId);

/// The id of a session: unpredictable, written as 32 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct SessionId(u128);

struct Session {
    owner: Owner,
    known: Known,
    used: Timestamp,
    /// The requests in flight, each with what ends it; `None` once its client has cancelled it.
    calls: HashMap<CallKey, Option<Vec<Waiting>>>,
    /// The requests that the client has not responded to yet, by their ids.
    asked: HashMap<String, oneshot::Sender<Responded>>,
    streams: usize,
}

/// Names a request in flight: its id as JSON, in which a number is not the text of the same digits.
type CallKey = String;

/// A request of a session from its beginning to its response, also where that is a stream. The session does not end meanwhile,
/// and has no second request of the same id.
pub(super) struct SessionCall {
    state: Arc<Mutex<State>>,
    session: SessionId,
    key: CallKey,
}

impl SessionCall {
    /// A presence that ends with this one, or when the client cancels the request.
    pub(super) fn cancellable(&self, presence: &Presence) -> Presence {
        let (waiting, presence) = presence.child();
        let mut state = lock(&self.state);
        // Where it was cancelled already, dropping the other side says so.
        let call = state.open.get_mut(&self.session).and_then(|session| session.calls.get_mut(&self.key));
        if let Some(Some(call)) = call {
            call.push(waiting);
        }
        presence
    }
}

impl Drop for SessionCall {
    fn drop(&mut self) {
        if let Some(session) = lock(&self.state).open.get_mut(&self.session) {
            session.calls.remove(&self.key);
        }
    }
}

/// An open stream of a session, which does not end meanwhile.
pub(super) struct OpenStream {
    state: Arc<Mutex<State>>,
    session: SessionId,
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        if let Some(session) = lock(&self.state).open.get_mut(&self.session) {
            session.streams -= 1;
        }
    }
}

/// What a client responds to a request: its result, or the code of its error.
pub(super) type Responded = Result<Map<String, Value>, i64>;

/// A request to a client.
pub(super) struct Asked {
    /// Unpredictable, so that nobody responds to what was not sent.
    pub(super) id: String,
    pub(super) response: oneshot::Receiver<Responded>,
}

/// What is known of a client since it opened its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) version: LegacyVersion,
    pub(super) capabilities: Capabilities,
    /// The least severe log messages that it wants to see.
    pub(super) log_level: Option<LogLevel>,
}

impl SessionId {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let is_written_so = text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        is_written_so.then(|| u128::from_str_radix(text, 16).ok().map(Self))?
    }
}

impl std::fmt::Display for SessionId {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:032x}", self.0)
    }
}

impl Sessions {
    pub(super) fn new(settings: &Settings, clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            most: settings.sessions,
            most_of_principal: settings.sessions_of_principal,
            idle: settings.session_idle,
            state: Arc::default(),
        }
    }

    /// Opens a session. Where there is no room, the one that was not used for the longest time ends: of the same principal
    /// first, so that nobody ends the sessions of others by opening many.
    pub(super) fn open(&self, owner: &Owner, known: Known) -> Result<SessionId, Refusal> {
        let id = SessionId(u128::from_be_bytes(random()?));
        let now = self.clock.now();
        let mut state = self.state();
        if state.of_principal.get(owner).is_some_and(|own| own.len() >= self.most_of_principal) {
            let oldest = state.of_principal.get(owner).into_iter().flatten();
            let oldest = oldest.min_by_key(|id| state.open.get(*id).map(|session| session.used)).copied();
            oldest.into_iter().for_each(|oldest| state.end(oldest));
        }
        if state.open.len() >= self.most {
            state.end_all(|session| self.is_over(session, now));
        }
        if state.open.len() >= self.most {
            let oldest = state.open.iter().min_by_key(|(_, session)| session.used).map(|(id, _)| *id);
            oldest.into_iter().for_each(|oldest| state.end(oldest));
        }
        state.of_principal.entry(owner.clone()).or_default().push(id);
        state.open.insert(id, Session::new(owner.clone(), known, now));
        Ok(id)
    }

    /// The session of this id, if it is the caller's and is not over. It counts as used.
    pub(super) fn find(&self, owner: &Owner, id: SessionId) -> Option<Known> {
        let now = self.clock.now();
        let mut state = self.state();
        let session = state.open.get_mut(&id).filter(|session| session.owner == *owner)?;
        if self.is_over(session, now) {
            state.end(id);
            return None;
        }
        session.used = now;
        Some(session.known)
    }

    /// Opens a stream of a session of the caller's; `None` where there is no such session.
    pub(super) fn open_stream(&self, owner: &Owner, id: SessionId) -> Option<OpenStream> {
        self.find(owner, id)?;
        self.state().open.get_mut(&id)?.streams += 1;
        Some(OpenStream { state: Arc::clone(&self.state), session: id })
    }

    /// Ends a session of the caller's; false where there is none.
    pub(super) fn close(&self, owner: &Owner, id: SessionId) -> bool {
        let mut state = self.state();
        let is_own = state.open.get(&id).is_some_and(|session| session.owner == *owner);
        if is_own {
            state.end(id);
        }
        is_own
    }

    /// Notes a request, which its client may cancel by its id; `None` where one of the same id is in flight.
    pub(super) fn begin_call(&self, id: SessionId, RequestId(request): &RequestId) -> Option<SessionCall> {
        let key = request.to_string();
        if let Some(session) = self.state().open.get_mut(&id) {
            match session.calls.entry(key.clone()) {
                Entry::Occupied(_) => return None,
                Entry::Vacant(call) => call.insert(Some(Vec::new())),
            };
        }
        Some(SessionCall { state: Arc::clone(&self.state), session: id, key })
    }

    /// Cancels a request. It stays in flight until its response has been sent.
    pub(super) fn cancel_call(&self, id: SessionId, RequestId(request): &RequestId) {
        let mut state = self.state();
        let call = state.open.get_mut(&id).and_then(|session| session.calls.get_mut(&request.to_string()));
        drop(call.and_then(Option::take));
    }

    /// A request to the client of a session; `None` where it has too many to respond to, or is gone.
    pub(super) fn ask(&self, id: SessionId) -> Option<Asked> {
        let number = u128::from_be_bytes(random().ok()?);
        let mut state = self.state();
        let session = state.open.get_mut(&id)?;
        session.asked.retain(|_, sender| !sender.is_closed());
        if session.asked.len() >= ASKED_LIMIT {
            return None;
        }
        let (sender, response) = oneshot::channel();
        let id = format!("toolgate-{number:032x}");
        session.asked.insert(id.clone(), sender);
        Some(Asked { id, response })
    }

    /// Takes the response of the client to a request.
    pub(super) fn respond(&self, id: SessionId, request: &str, response: Responded) {
        let sender = self.state().open.get_mut(&id).and_then(|session| session.asked.remove(request));
        sender.map(|sender| sender.send(response));
    }

    pub(super) fn set_log_level(&self, id: SessionId, level: LogLevel) {
        if let Some(session) = self.state().open.get_mut(&id) {
            session.known.log_level = Some(level);
        }
    }

    fn is_over(&self, session: &Session, now: Timestamp) -> bool {
        session.calls.is_empty() && session.streams == 0 && session.used.plus(self.idle) <= now
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Session {
    fn new(owner: Owner, known: Known, used: Timestamp) -> Self {
        Self { owner, known, used, calls: HashMap::new(), asked: HashMap::new(), streams: 0 }
    }
}

impl State {
    fn end(&mut self, id: SessionId) {
        let Some(session) = self.open.remove(&id) else { return };
        if let Some(own) = self.of_principal.get_mut(&session.owner) {
            own.retain(|known| *known != id);
            if own.is_empty() {
                self.of_principal.remove(&session.owner);
            }
        }
    }

    fn end_all(&mut self, is_over: impl Fn(&Session) -> bool) {
        let over: Vec<SessionId> =
            self.open.iter().filter(|(_, session)| is_over(session)).map(|(id, _)| *id).collect();
        over.into_iter().for_each(|id| self.end(id));
    }
}
