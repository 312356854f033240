//! Tool sessions of mounted servers: a server that keeps state for a principal, in a session of its protocol or in a process,
//! is used between two events of the log. A session is closed when the state is gone and no call to the server is in flight
//! any more, so that none of its calls is recorded behind its end. What a crash leaves open is closed at the next start.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use toolgate_model::credential::ServiceName;
use toolgate_model::hook::RunId;
use toolgate_model::id::SessionId;
use toolgate_model::principal::{PrincipalId, TenantId};

use crate::ports::clock::Clock;
use crate::ports::entropy::random;
use crate::ports::ledger::{AuditContext, CloseSession, Mandate, OpenSession, ToolSession, ToolSessions};
use crate::ports::mount::{MountSession, MountSessions};
use crate::refusal::{Code, Refusal};

/// How long a session is open at most: that of a process that has crashed ends by itself, and one that goes on is followed
/// by another.
const LIFETIME: Duration = Duration::from_secs(3_600);
/// How long before its end a session is followed by another.
const MARGIN: Duration = Duration::from_secs(120);

/// Records the sessions of this process.
pub struct RecordedSessions {
    tool_sessions: Arc<dyn ToolSessions>,
    clock: Arc<dyn Clock>,
    /// How many sessions a principal may have.
    most: u32,
    open: Arc<Mutex<Open>>,
}

/// The sessions that were opened and not closed, by a number of their own: the one in the ledger changes.
#[derive(Default)]
struct Open {
    next: u64,
    sessions: HashMap<u64, Entry>,
}

#[derive(Clone)]
struct Entry {
    tenant: TenantId,
    session: ToolSession,
    /// Whether the state of the server is gone, and whether that was as it should be.
    ended: Option<bool>,
}

impl RecordedSessions {
    pub fn new(tool_sessions: Arc<dyn ToolSessions>, clock: Arc<dyn Clock>, most: u32) -> Self {
        Self { tool_sessions, clock, most, open: Arc::default() }
    }

    /// Closes the sessions whose servers have nothing any more, and replaces those that have been open for long. One with a
    /// call in flight is left to the next time.
    pub async fn close_ended(&self) -> Result<(), Refusal> {
        let now = self.clock.now();
        let due: Vec<(u64, Entry)> = {
            let open = lock(&self.open);
            let is_due = |entry: &Entry| entry.ended.is_some() || entry.session.expires_at <= now.plus(MARGIN);
            open.sessions.iter().filter(|(_, entry)| is_due(entry)).map(|(key, entry)| (*key, entry.clone())).collect()
        };
        for (key, entry) in due {
            let completed = entry.ended.unwrap_or(true);
            let audit = own(&entry.tenant, &entry.session.principal, now);
            let closed =
                self.tool_sessions.close_session(CloseSession { audit, id: entry.session.id, completed }).await;
            match closed {
                Err(refusal) if refusal.code() == Code::VersionConflict => continue,
                // It has expired meanwhile.
                Err(refusal) if refusal.code() == Code::SessionNotFound => {}
                closed => closed?,
            }
            if entry.ended.is_some() {
                lock(&self.open).sessions.remove(&key);
                continue;
            }
            let next = self.record(&entry.tenant, entry.session.tool.clone(), &entry.session.principal).await?;
            if let Some(entry) = lock(&self.open).sessions.get_mut(&key) {
                entry.session = next;
            }
        }
        Ok(())
    }

    /// Closes all sessions: the gate stops, and its servers with it.
    pub async fn close_all(&self) -> Result<(), Refusal> {
        lock(&self.open).sessions.values_mut().for_each(|entry| entry.ended = entry.ended.or(Some(true)));
        self.close_ended().await
    }

    async fn record(&self, tenant: &TenantId, tool: String, principal: &PrincipalId) -> Result<ToolSession, Refusal> {
        let now = self.clock.now();
        let id = SessionId::new(now, random()?);
        let unnamed = |_| Refusal::new(Code::Internal, "an id is not a valid name");
        let session = ToolSession {
            id,
            principal: principal.clone(),
            tool,
            run: RunId::parse(&id.to_string()).map_err(unnamed)?,
            opened_at: now,
            expires_at: now.plus(LIFETIME),
        };
        let audit = own(tenant, principal, now);
        self.tool_sessions.open_session(OpenSession { audit, session: session.clone(), most: self.most }).await?;
        Ok(session)
    }
}

#[async_trait]
impl MountSessions for RecordedSessions {
    async fn begin(
        &self,
        tenant: &TenantId,
        service: &ServiceName,
        principal: &PrincipalId,
    ) -> Result<MountSession, Refusal> {
        let session = self.record(tenant, ToolSession::of_mount(service), principal).await?;
        let mut open = lock(&self.open);
        let key = open.next;
        open.next += 1;
        open.sessions.insert(key, Entry { tenant: tenant.clone(), session, ended: None });
        let shared = Arc::clone(&self.open);
        Ok(MountSession::new(move |completed| {
            if let Some(entry) = lock(&shared).sessions.get_mut(&key) {
                entry.ended = Some(completed);
            }
        }))
    }
}

/// On behalf of the principal whose call was admitted.
fn own(tenant: &TenantId, principal: &PrincipalId, time: toolgate_model::time::Timestamp) -> Mandate {
    Mandate::own(AuditContext { tenant: tenant.clone(), actor: principal.clone(), time })
}

fn lock(open: &Mutex<Open>) -> MutexGuard<'_, Open> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}
