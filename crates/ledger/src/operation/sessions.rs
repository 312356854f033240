//! Tool sessions: a row while one is open, an event at each end of it.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use toolgate_gate::ports::ledger::{AuditContext, CloseSession, Mandate, OpenSession, ToolSession, ToolSessions};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::event::{EventPayload, SessionOutcome, ToolSessionClosed, ToolSessionOpened};
use toolgate_model::hook::RunId;
use toolgate_model::id::SessionId;
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::time::Timestamp;

use super::Operation;
use super::administration::{Administration, Entitled};
use super::listing::padded;
use super::record::{Entry, record};
use super::sweeping::{Readable, Swept};
use crate::ledger::{Engine, SqlLedger};
use crate::sql::{Failure, Row, SqlError, Value};
use crate::transaction::{Transaction, values};

#[async_trait]
impl<E: Engine> ToolSessions for SqlLedger<E> {
    async fn open_session(&self, command: OpenSession) -> Result<(), Refusal> {
        self.engine.write(command).await
    }

    async fn close_session(&self, command: CloseSession) -> Result<(), Refusal> {
        self.engine.write(command).await
    }

    async fn session(&self, tenant: &TenantId, id: SessionId) -> Result<Option<ToolSession>, Refusal> {
        self.engine.read(ReadSession { tenant: tenant.clone(), id }).await
    }

    async fn close_sessions(&self, now: Timestamp) -> Result<u64, Refusal> {
        let only_overdue = self.inherited_sessions_closed.load(Ordering::Acquire);
        let closed = self.in_batches(|passed_over| CloseSessions { now, only_overdue, passed_over }).await?;
        self.inherited_sessions_closed.store(true, Ordering::Release);
        closed.report()
    }
}

/// The maximum number closed in one transaction.
pub const BATCH: u32 = 100;

const COLUMNS: &str = "id, principal, tool, run, opened_at, expires_at";
/// A session with a call in flight is not closed: the result of the call belongs to it. To the session of a mounted server
/// belong all calls of its principal to it.
const RUNNING: &str = "(EXISTS (SELECT 1 FROM calls_in_flight WHERE calls_in_flight.tenant = tool_sessions.tenant \
     AND calls_in_flight.session = tool_sessions.id AND calls_in_flight.status = 'running') \
     OR EXISTS (SELECT 1 FROM calls_in_flight WHERE calls_in_flight.tenant = tool_sessions.tenant \
     AND calls_in_flight.agent = tool_sessions.principal AND 'mcp:' || calls_in_flight.service = tool_sessions.tool \
     AND calls_in_flight.status = 'running'))";

impl Administration for OpenSession {
    type Output = ();

    const CHANGES_AUTHORITY: bool = false;

    fn mandate(&self) -> &Mandate {
        &self.audit
    }

    async fn perform<T: Transaction>(&self, transaction: &mut T, by: &Entitled<'_>) -> Result<(), Failure> {
        let session = &self.session;
        // Two concurrent transactions may both find the last slot: exceeding the limit by one is harmless.
        let open = "SELECT COUNT(*) FROM tool_sessions WHERE tenant = $1 AND principal = $2";
        let open = transaction.query_optional(open, values![&by.tenant, &session.principal]).await?;
        if open.map_or(Ok(0), |row| row.count::<u64>(0))? >= u64::from(self.most) {
            let reason = format!(
                "`{}` has {} tool sessions open, the maximum; close some of them, or raise \
                openwop.sessions_per_principal",
                session.principal, self.most
            );
            return Err(Refusal::new(Code::TooManySessions, reason).with("limit", self.most).into());
        }
        let sql = "INSERT INTO tool_sessions (tenant, id, principal, tool, run, opened_at, expires_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7)";
        let parameters = values![
            &by.tenant,
            session.id,
            &session.principal,
            session.tool.as_str(),
            session.run.as_str(),
            session.opened_at,
            session.expires_at,
        ];
        transaction.execute(sql, parameters).await?;
        let payload = EventPayload::ToolSessionOpened(ToolSessionOpened {
            session_id: session.id,
            tool_id: session.tool.clone(),
        });
        record(transaction, by, entry(payload, session)).await
    }
}

impl Administration for CloseSession {
    type Output = ();

    const CHANGES_AUTHORITY: bool = false;

    fn mandate(&self) -> &Mandate {
        &self.audit
    }

    async fn perform<T: Transaction>(&self, transaction: &mut T, by: &Entitled<'_>) -> Result<(), Failure> {
        let tenant = &by.tenant;
        let Some(session) = hold(transaction, tenant, self.id).await? else {
            return Err(no_session(self.id).into());
        };
        let sql = format!("SELECT id FROM tool_sessions WHERE tenant = $1 AND id = $2 AND {RUNNING}");
        if transaction.query_optional(&sql, values![tenant, self.id]).await?.is_some() {
            let reason = "a call of this session is still in flight; close the session after it has returned";
            return Err(Refusal::new(Code::VersionConflict, reason).into());
        }
        close(transaction, by, &session, self.completed).await
    }
}

/// Reads an open session.
pub struct ReadSession {
    pub tenant: TenantId,
    pub id: SessionId,
}

impl Operation for ReadSession {
    type Output = Option<ToolSession>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Option<ToolSession>, Failure> {
        let sql = format!("SELECT {COLUMNS} FROM tool_sessions WHERE tenant = $1 AND id = $2");
        let row = transaction.query_optional(&sql, values![&self.tenant, self.id]).await?;
        Ok(row.as_ref().map(read).transpose()?)
    }
}

/// Closes a batch of abandoned sessions.
pub struct CloseSessions {
    pub now: Timestamp,
    /// Only expired ones; `false` if no process can be using any.
    pub only_overdue: bool,
    /// The number of rows to skip.
    pub passed_over: u32,
}

impl Operation for CloseSessions {
    type Output = Swept;

    const CHANGES_AUTHORITY: bool = false;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Swept, Failure> {
        let before = if self.only_overdue { self.now.as_millis() } else { i64::MAX };
        let skip = T::FOR_UPDATE_SKIPPING;
        let sql = format!(
            "SELECT {COLUMNS}, tenant FROM tool_sessions WHERE expires_at <= $1 AND NOT {RUNNING} \
             ORDER BY expires_at, id LIMIT $2 OFFSET $3{skip}"
        );
        let rows = transaction.query(&sql, values![Value::Integer(before), BATCH, self.passed_over]).await?;
        let with_tenant = |row: &Row| Ok((row.parsed(6, TenantId::parse)?, read(row)?));
        let Readable { items, unreadable } = Readable::of(&rows, with_tenant);
        let (tenants, held): (Vec<TenantId>, Vec<ToolSession>) = items.into_iter().unzip();
        let busy = busy(transaction, &held).await?;
        let mut done = 0;
        for (tenant, session) in tenants.into_iter().zip(&held).filter(|(_, session)| !busy.contains(&session.id)) {
            let audit = AuditContext { tenant, actor: PrincipalId::system(), time: self.now };
            close(transaction, &audit, session, false).await?;
            done += 1;
        }
        // Sessions with a call in flight are examined again at the next sweep.
        Ok(Swept { done, full: done >= BATCH, unreadable })
    }
}

/// The locked sessions that have a call in flight. Queried again after locking: a call may have been admitted after the
/// statement that found them began, and before it reached their row.
async fn busy<T: Transaction>(transaction: &mut T, held: &[ToolSession]) -> Result<BTreeSet<SessionId>, Failure> {
    if held.is_empty() {
        return Ok(BTreeSet::new());
    }
    let (places, ids) = padded(held.iter().map(|session| Value::from(session.id)).collect());
    let sql = format!("SELECT id FROM tool_sessions WHERE id IN ({places}) AND {RUNNING}");
    let rows = transaction.query(&sql, &ids).await?;
    Ok(rows.iter().map(|row| row.parsed(0, SessionId::parse)).collect::<Result<_, _>>()?)
}

/// Keeps sessions from being closed until the transaction ends; returns the open ones.
pub async fn hold<T: Transaction>(
    transaction: &mut T,
    tenant: &TenantId,
    id: SessionId,
) -> Result<Option<ToolSession>, Failure> {
    let sql = format!("SELECT {COLUMNS} FROM tool_sessions WHERE tenant = $1 AND id = $2{}", T::FOR_UPDATE);
    let row = transaction.query_optional(&sql, values![tenant, id]).await?;
    Ok(row.as_ref().map(read).transpose()?)
}

/// The refusal of a session that is not open.
pub fn no_session(id: SessionId) -> Refusal {
    Refusal::new(Code::SessionNotFound, format!("there is no open session {id}")).with("session_id", id)
}

async fn close<T: Transaction>(
    transaction: &mut T,
    audit: &AuditContext,
    session: &ToolSession,
    completed: bool,
) -> Result<(), Failure> {
    let sql = "DELETE FROM tool_sessions WHERE tenant = $1 AND id = $2";
    transaction.execute(sql, values![&audit.tenant, session.id]).await?;
    let outcome = if completed { SessionOutcome::Completed } else { SessionOutcome::Failed };
    let payload = EventPayload::ToolSessionClosed(ToolSessionClosed {
        outcome,
        session_id: session.id,
        tool_id: session.tool.clone(),
    });
    record(transaction, audit, entry(payload, session)).await
}

fn entry(payload: EventPayload, session: &ToolSession) -> Entry {
    Entry { run: Some(session.run.as_str().to_owned()), ..Entry::about(payload, &session.principal) }
}

fn read(row: &Row) -> Result<ToolSession, SqlError> {
    Ok(ToolSession {
        id: row.parsed(0, SessionId::parse)?,
        principal: row.parsed(1, PrincipalId::parse)?,
        tool: row.text(2)?.to_owned(),
        run: row.parsed(3, RunId::parse)?,
        opened_at: row.time(4)?,
        expires_at: row.time(5)?,
    })
}
