//! Coordinated work. Every change locks the row of its intent first, so that changes below one intent are serialized;
//! then come tasks, credentials and grants, and the registry of the tenant last. An admission only shares the rows of
//! tasks.

use std::sync::atomic::{AtomicU16, Ordering};

use toolgate_gate::ports::entropy::random_for_id;
use toolgate_gate::ports::ledger::AuditContext;
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::context::{ContextId, GrantContext};
use toolgate_model::event::EventPayload;
use toolgate_model::id::{EventId, IntentId, TaskId, numbered};
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::time::Timestamp;
use toolgate_model::work::{IntentEventDetails, IntentEventKind};

use super::record::{Entry, record};
use crate::sql::{Failure, Value, json_text};
use crate::transaction::{Transaction, values};

mod access;
mod agent_access;
pub mod agent_work;
mod auto_delegation;
mod claims;
mod coordination;
pub mod coordinator_rows;
mod coordinators;
mod costs;
mod endings;
pub mod governing;
mod intent_events;
mod intents;
mod leases;
mod participants;
mod plans;
mod retention;
mod task_changes;
mod task_context;
mod task_rows;
mod task_sweep;
mod tasks;

pub use self::coordination::{coordination, hold_coordination};
pub use self::task_context::{complete_context, read_shared, share_tasks};
pub use self::tasks::require_claimable;

/// An event of an intent with its entry in the audit log.
struct Noted {
    payload: EventPayload,
    kind: Option<IntentEventKind>,
    details: IntentEventDetails,
    agent: Option<PrincipalId>,
    task: Option<TaskId>,
}

impl Noted {
    fn new(payload: EventPayload, kind: impl Into<Option<IntentEventKind>>, details: IntentEventDetails) -> Self {
        Self { payload, kind: kind.into(), agent: details.agent_id.clone(), task: details.task_id, details }
    }

    /// Writes both.
    async fn record<T: Transaction>(
        self,
        transaction: &mut T,
        by: &AuditContext,
        intent: IntentId,
    ) -> Result<(), Failure> {
        if let Some(kind) = self.kind {
            let id = next_event_id(by.time)?;
            let payload = json_text(&self.details)?;
            insert_event(transaction, &by.tenant, (id, intent, kind), &by.actor, payload, by.time).await?;
        }
        let context = GrantContext {
            intent_id: ContextId::parse(&intent.to_string()).ok(),
            plan_id: self.details.plan_id.and_then(|plan| ContextId::parse(&plan.to_string()).ok()),
            task_id: self.task.and_then(|task| ContextId::parse(&task.to_string()).ok()),
        };
        let entry = Entry { context, agent: self.agent, ..Entry::new(self.payload) };
        record(transaction, by, entry).await
    }
}

/// The id of an event of an intent. Events of one millisecond keep their order, except where the numbers begin again.
fn next_event_id(time: Timestamp) -> Result<EventId, Failure> {
    static NUMBER: AtomicU16 = AtomicU16::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed) & 0x0fff;
    Ok(EventId::new(time, numbered(number, random_for_id()?)))
}

async fn insert_event<T: Transaction>(
    transaction: &mut T,
    tenant: &TenantId,
    (id, intent, kind): (EventId, IntentId, IntentEventKind),
    actor: &PrincipalId,
    payload: Value<'_>,
    time: Timestamp,
) -> Result<(), Failure> {
    let sql = "INSERT INTO intent_events (id, tenant, intent, kind, actor, payload, created_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7)";
    transaction.execute(sql, values![id, tenant, intent, kind.as_str(), actor, payload, time]).await?;
    Ok(())
}

/// Counts a change of what admissions are based on besides tasks: coordinators, and who takes part in an intent.
async fn count_change<T: Transaction>(transaction: &mut T, tenant: &TenantId) -> Result<(), Failure> {
    let sql = "INSERT INTO registries (tenant, revision, work) VALUES ($1, 0, 1) \
         ON CONFLICT (tenant) DO UPDATE SET work = registries.work + 1";
    transaction.execute(sql, values![tenant]).await?;
    Ok(())
}

/// The number that a statement returns.
async fn number<T: Transaction>(transaction: &mut T, sql: &str, parameters: &[Value<'_>]) -> Result<u64, Failure> {
    let row = transaction.query_optional(sql, parameters).await?;
    Ok(row.map_or(Ok(0), |row| row.count(0))?)
}

/// Refuses one more than may be kept.
fn require_below(count: u64, limit: u32, what: &str) -> Result<(), Refusal> {
    if count < u64::from(limit) {
        return Ok(());
    }
    let reason = format!("there are {count} {what}, and at most {limit} are kept");
    Err(Refusal::new(Code::WorkLimitReached, reason).with("limit", limit))
}

/// Refuses a change that was decided on another version. The text must not name what else may conflict: clients tell the
/// two apart by it.
fn require_version(what: &str, present: u64, expected: u64) -> Result<(), Refusal> {
    if present == expected {
        return Ok(());
    }
    let reason = format!("{what} has version {present} now, not {expected}; read it and try again");
    Err(Refusal::new(Code::VersionConflict, reason).with("current_version", present))
}
