//! The servers over HTTP that calls were made to: the era of each, its sessions and its list of tools. Kept in memory
//! and found out again when it is gone.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::{Instant, timeout_at};
use toolgate_gate::ports::mount::{McpEra, MessageGuard, MountSession, MountSessions};
use toolgate_gate::ports::source::{FailureKind, SourceFailure};
use toolgate_model::client_input::InputCapabilities;
use toolgate_model::credential::ServiceName;
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::redaction::Redactor;
use url::Url;

use super::guarded::{after_greeting, before_greeting};
use super::http::{Announced, Endpoint, Responded, Session};
use super::listing::{Listing, Peer};
use super::message::Request;
use super::result::{Raw, malformed};
use crate::pool::PoolKey;
use crate::time::now;

/// How many servers are remembered, each with a credential.
const SERVER_LIMIT: usize = 4_096;
/// How many sessions one server has with the gate; each principal has one for each set of capabilities.
const SESSION_LIMIT: usize = 1_024;
/// How long a session may be idle.
const SESSION_IDLE: Duration = Duration::from_secs(600);
/// How long the era of a server is believed.
const ERA_AGE: Duration = Duration::from_secs(3_600);

/// A server, and with whose credential it is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ServerKey<'a> {
    pub(crate) tenant: &'a TenantId,
    pub(crate) url: &'a Url,
    pub(crate) pool: PoolKey,
}

/// The servers that are known: found by the credential first, which hardly ever has more than one.
#[derive(Default)]
pub(crate) struct Servers {
    known: Mutex<HashMap<PoolKey, Vec<Known>>>,
}

struct Known {
    tenant: TenantId,
    url: Url,
    server: Arc<Server>,
}

/// What is known of a server.
#[derive(Default)]
pub(crate) struct Server {
    state: Mutex<State>,
    /// Held by the one that greets it.
    greeting: tokio::sync::Mutex<()>,
    pub(crate) listing: Listing,
}

#[derive(Default)]
struct State {
    used: Option<Instant>,
    modern: Option<(Arc<Session>, Instant)>,
    is_legacy: Option<Instant>,
    /// The sessions, with the time of their last use.
    sessions: HashMap<SessionKey, (Arc<Session>, Instant)>,
}

/// With whom a session is: a principal, or the gate itself. What a server keeps for one of them is not shown to another,
/// and it asks each client only for what that client has declared.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct SessionKey {
    agent: Option<PrincipalId>,
    capabilities: InputCapabilities,
}

impl Servers {
    pub(crate) fn of(&self, ServerKey { tenant, url, pool }: ServerKey<'_>) -> Arc<Server> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |known: &&Known| known.tenant == *tenant && known.url == *url;
        if let Some(found) = known.get(&pool).and_then(|of_pool| of_pool.iter().find(is_it)) {
            return Arc::clone(&found.server);
        }
        if known.values().map(Vec::len).sum::<usize>() >= SERVER_LIMIT {
            forget_oldest(&mut known);
        }
        let server = Arc::<Server>::default();
        let found = Known { tenant: tenant.clone(), url: url.clone(), server: Arc::clone(&server) };
        known.entry(pool).or_default().push(found);
        server
    }

    /// Ends the sessions that nobody has used for long.
    pub(crate) fn sweep(&self) {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let servers: Vec<Arc<Server>> = known.values().flatten().map(|known| Arc::clone(&known.server)).collect();
        drop(known);
        let now = now();
        for server in servers {
            server.state().sessions.retain(|_, (_, used)| now - *used < SESSION_IDLE);
        }
    }
}

/// On whose behalf a server is spoken to.
pub(crate) struct PeerUser<'a> {
    pub(crate) tenant: &'a TenantId,
    pub(crate) service: &'a ServiceName,
    /// `None` for the gate itself.
    pub(crate) principal: Option<&'a PrincipalId>,
    pub(crate) guard: &'a dyn MessageGuard,
    pub(crate) sessions: &'a dyn MountSessions,
}

impl PeerUser<'_> {
    /// Records that the server keeps state for the principal from now on.
    pub(crate) async fn begin(&self) -> Result<Option<MountSession>, SourceFailure> {
        let Some(principal) = self.principal else { return Ok(None) };
        let begun = self.sessions.begin(self.tenant, self.service, principal).await;
        begun.map(Some).map_err(|refusal| SourceFailure::not_sent(FailureKind::Overloaded, refusal.reason()))
    }
}

fn forget_oldest(known: &mut HashMap<PoolKey, Vec<Known>>) {
    let all = known.iter().flat_map(|(pool, of_pool)| of_pool.iter().map(move |known| (*pool, &known.server)));
    let oldest = all.min_by_key(|(_, server)| server.state().used);
    let Some((pool, oldest)) = oldest.map(|(pool, server)| (pool, Arc::clone(server))) else { return };
    if let Some(of_pool) = known.get_mut(&pool) {
        of_pool.retain(|known| !Arc::ptr_eq(&known.server, &oldest));
        if of_pool.is_empty() {
            known.remove(&pool);
        }
    }
}

impl Server {
    /// The session that this principal has with the server, begun now if there is none.
    async fn session(
        &self,
        user: &PeerUser<'_>,
        key: &SessionKey,
        endpoint: &Endpoint<'_>,
        redactor: &mut Redactor,
        ids: &(dyn Fn() -> u64 + Sync),
    ) -> Result<Arc<Session>, SourceFailure> {
        if let Some(session) = self.current(key) {
            return Ok(session);
        }
        let waiting = timeout_at(endpoint.deadline, self.greeting.lock()).await;
        let _greeting = waiting.map_err(|_| SourceFailure {
            timed_out: true,
            ..SourceFailure::not_sent(FailureKind::Proxy, "the time for this call was over during the handshake")
        })?;
        if let Some(session) = self.current(key) {
            return Ok(session);
        }
        let known = self.state().is_legacy.filter(|since| now() - *since < ERA_AGE).map(|_| McpEra::Legacy);
        before_greeting(user.guard, known).await?;
        match endpoint.greet(known, redactor, &|| ids()).await {
            Ok(session) => {
                after_greeting(user.guard, &session.greeting).await?;
                if session.has_id
                    && let Some(kept) = user.begin().await?
                {
                    *session.kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(kept);
                }
                Ok(self.keep(key, session))
            }
            Err(failure) => {
                self.state().is_legacy = None;
                // The call itself was not sent.
                Err(SourceFailure { sent: false, ..failure })
            }
        }
    }

    fn current(&self, key: &SessionKey) -> Option<Arc<Session>> {
        let now = now();
        let mut state = self.state();
        state.used = Some(now);
        if let Some((session, since)) = &state.modern {
            return (now - *since < ERA_AGE).then(|| Arc::clone(session));
        }
        let (session, used) = state.sessions.get_mut(key)?;
        let is_idle = now - *used >= SESSION_IDLE;
        *used = now;
        (!is_idle).then(|| Arc::clone(session))
    }

    fn keep(&self, key: &SessionKey, session: Session) -> Arc<Session> {
        let (session, now) = (Arc::new(session), now());
        let mut state = self.state();
        match session.greeting.era {
            McpEra::Modern => {
                state.modern = Some((Arc::clone(&session), now));
                state.is_legacy = None;
                state.sessions.clear();
            }
            McpEra::Legacy => {
                state.modern = None;
                state.is_legacy.get_or_insert(now);
                state.sessions.retain(|_, (_, used)| now - *used < SESSION_IDLE);
                if state.sessions.len() >= SESSION_LIMIT {
                    let oldest = state.sessions.iter().min_by_key(|(_, (_, used))| *used).map(|(key, _)| key.clone());
                    oldest.map(|key| state.sessions.remove(&key));
                }
                state.sessions.insert(key.clone(), (Arc::clone(&session), now));
            }
        }
        session
    }

    /// Ends what is known of a session, unless there is a newer one.
    fn forget(&self, key: &SessionKey, session: &Arc<Session>) {
        let mut state = self.state();
        if state.sessions.get(key).is_some_and(|(known, _)| Arc::ptr_eq(known, session)) {
            state.sessions.remove(key);
        }
        if state.modern.as_ref().is_some_and(|(known, _)| Arc::ptr_eq(known, session)) {
            state.modern = None;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A server within one call.
pub(crate) struct HttpPeer<'a> {
    pub(crate) endpoint: &'a Endpoint<'a>,
    pub(crate) server: &'a Server,
    pub(crate) user: &'a PeerUser<'a>,
    pub(crate) redactor: &'a mut Redactor,
    pub(crate) ids: &'a (dyn Fn() -> u64 + Sync),
    /// Told that the server says that its list has changed.
    pub(crate) announced: &'a (dyn Fn() + Sync),
}

impl HttpPeer<'_> {
    /// The session, begun now if there is none.
    pub(crate) async fn session(&mut self) -> Result<Arc<Session>, SourceFailure> {
        self.server.session(self.user, &self.key(), self.endpoint, self.redactor, self.ids).await
    }

    fn key(&self) -> SessionKey {
        SessionKey { agent: self.user.principal.cloned(), capabilities: self.endpoint.capabilities() }
    }
}

#[async_trait]
impl Peer for HttpPeer<'_> {
    /// A session that the server has ended is begun again, once: it has done nothing yet.
    async fn ask(&mut self, request: &Request<'_>) -> Result<Raw, SourceFailure> {
        for _ in 0..2 {
            let session = self.session().await?;
            let id = (self.ids)();
            let mut announced = Announced::default();
            let responded = self.endpoint.request(request, id, &session, self.redactor, &mut announced).await;
            if announced.list_changed {
                self.server.listing.expire();
                (self.announced)();
            }
            match responded {
                Ok(Responded::Message(raw)) => {
                    // A server that refuses the form of the request may have been replaced by another one.
                    if matches!(raw.http_status, 400 | 404 | 405) {
                        self.server.forget(&self.key(), &session);
                    }
                    return Ok(raw);
                }
                Ok(Responded::NoSession) => {
                    session.lost();
                    self.server.forget(&self.key(), &session);
                }
                Err(failure) => {
                    if matches!(failure.http_status, Some(400 | 404 | 405)) {
                        self.server.forget(&self.key(), &session);
                    }
                    return Err(failure);
                }
            }
        }
        Err(malformed(404, "the server ended a session that it had just started"))
    }
}
