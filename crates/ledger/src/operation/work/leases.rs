//! Leases.

use async_trait::async_trait;
use toolgate_gate::ports::ledger::{AcquireLease, EndLease, Leases, Mandate, RenewLease, Viewer};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::event::{EventPayload, WorkLeaseAcquired};
use toolgate_model::id::{IntentId, LeaseId, TaskId};
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::time::Timestamp;
use toolgate_model::work::limits::LEASES;
use toolgate_model::work::{IntentEventDetails, IntentEventKind, Lease, LeaseStatus, TaskStatus};

use super::access::{hold, participates, sees};
use super::claims::claim;
use super::endings::{Leaving, end_lease, move_task};
use super::{Noted, number, require_below, task_rows};
use crate::ledger::{Engine, SqlLedger};
use crate::operation::administration::{Administration, Entitled};
use crate::operation::{Operation, principals};
use crate::sql::{Failure, Row, SqlError};
use crate::transaction::{Transaction, values};

#[async_trait]
impl<E: Engine> Leases for SqlLedger<E> {
    async fn acquire_lease(&self, command: AcquireLease) -> Result<Lease, Refusal> {
        self.engine.write(command).await
    }

    async fn renew_lease(&self, command: RenewLease) -> Result<Lease, Refusal> {
        self.engine.write(command).await
    }

    async fn end_lease(&self, command: EndLease) -> Result<Lease, Refusal> {
        self.engine.write(command).await
    }

    async fn leases(
        &self,
        tenant: &TenantId,
        intent: IntentId,
        viewer: &Viewer,
        now: Timestamp,
    ) -> Result<Option<Vec<Lease>>, Refusal> {
        self.engine.read(ListLeases { tenant: tenant.clone(), intent, viewer: viewer.clone(), now }).await
    }
}

pub const COLUMNS: &str = "id, tenant, intent, agent, scope, task, status, created_at, expires_at, ended_at";

/// Reads a row of [`COLUMNS`].
pub fn read(row: &Row) -> Result<Lease, SqlError> {
    Ok(Lease {
        id: row.parsed(0, LeaseId::parse)?,
        tenant: row.parsed(1, TenantId::parse)?,
        intent: row.parsed(2, IntentId::parse)?,
        agent: row.parsed(3, PrincipalId::parse)?,
        scope: row.text(4)?.to_owned(),
        task: row.optional_parsed(5, TaskId::parse)?,
        status: row.parsed(6, LeaseStatus::parse)?,
        created_at: row.time(7)?,
        expires_at: row.time(8)?,
        ended_at: row.optional_time(9)?,
    })
}

impl Administration for AcquireLease {
    type Output = Lease;

    fn mandate(&self) -> &Mandate {
        &self.audit
    }

    async fn perform<T: Transaction>(&self, transaction: &mut T, by: &Entitled<'_>) -> Result<Lease, Failure> {
        let lease = &self.lease;
        principals::share_grantee(transaction, &by.tenant, &lease.agent).await?;
        let held = hold(transaction, by, lease.intent).await?;
        held.require_open()?;
        if !held.directs() && !participates(transaction, by, lease.intent, &lease.agent).await? {
            return Err(Refusal::no_intent(lease.intent).into());
        }
        if let Some(renewed) = in_the_way(transaction, by, lease).await? {
            return Ok(renewed);
        }
        // Tasks are limited themselves, and nobody takes the places of others.
        if lease.task.is_none() {
            let live = "SELECT COUNT(*) FROM leases \
                 WHERE intent = $1 AND agent = $2 AND task IS NULL AND ended_at IS NULL";
            let live = number(transaction, live, values![lease.intent, &lease.agent]).await?;
            require_below(live, LEASES, &format!("leases of `{}` on the intent", lease.agent))?;
        }
        if let Some(id) = lease.task {
            let task = task_rows::one(transaction, lease.intent, id).await?;
            let mut task = task.ok_or_else(|| Refusal::no_task(id))?;
            // The lease is recorded below, in the same transaction.
            claim(transaction, by, &held, &mut task, &lease.agent, Some((lease.id, lease.expires_at))).await?;
        }
        let sql = format!("INSERT INTO leases ({COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, NULL)");
        let parameters = values![
            lease.id,
            &lease.tenant,
            lease.intent,
            &lease.agent,
            lease.scope.as_str(),
            lease.task,
            lease.status.as_str(),
            lease.created_at,
            lease.expires_at,
        ];
        transaction.execute(&sql, parameters).await?;
        note_acquired(transaction, by, lease).await?;
        Ok(lease.clone())
    }
}

/// Deals with a lease that is there on the same scope, also under the other name of the same task: an expired one ends, the
/// holder's own is renewed and returned, and another one refuses the new one.
async fn in_the_way<T: Transaction>(
    transaction: &mut T,
    by: &Entitled<'_>,
    lease: &Lease,
) -> Result<Option<Lease>, Failure> {
    let sql = format!(
        "SELECT {COLUMNS} FROM leases WHERE intent = $1 AND ended_at IS NULL \
         AND (scope = $2 OR task = CAST($3 AS TEXT))"
    );
    let rows = transaction.query(&sql, values![lease.intent, lease.scope.as_str(), lease.task]).await?;
    for row in &rows {
        let present = read(row)?;
        if present.expires_at <= by.time {
            expire(transaction, by, &present).await?;
        } else if present.agent == lease.agent {
            return prolong(transaction, present, lease.expires_at).await.map(Some);
        } else {
            let reason = format!(
                "`{}` has a lease on `{}` until {}; try again then",
                present.agent, present.scope, present.expires_at
            );
            return Err(Refusal::new(Code::LeaseHeld, reason)
                .with("existing_lease", Existing::of(&present))
                .with("lease_id", present.id)
                .into());
        }
    }
    Ok(None)
}

/// The lease that refuses another one.
#[derive(serde::Serialize)]
struct Existing<'a> {
    agent_id: &'a PrincipalId,
    created_at: Timestamp,
    expires_at: Timestamp,
    id: LeaseId,
    intent_id: IntentId,
    scope: &'a str,
    status: LeaseStatus,
}

impl<'a> Existing<'a> {
    fn of(lease: &'a Lease) -> Self {
        Self {
            agent_id: &lease.agent,
            created_at: lease.created_at,
            expires_at: lease.expires_at,
            id: lease.id,
            intent_id: lease.intent,
            scope: &lease.scope,
            status: lease.status,
        }
    }
}

/// Ends an expired lease, with the work under it.
pub async fn expire<T: Transaction>(
    transaction: &mut T,
    by: &toolgate_gate::ports::ledger::AuditContext,
    lease: &Lease,
) -> Result<(), Failure> {
    leave_task(transaction, by, lease, LeaseStatus::Expired).await?;
    end_lease(transaction, by, lease.intent, lease.id, LeaseStatus::Expired).await
}

/// A claimed task is given back with its lease, and one that was begun fails.
async fn leave_task<T: Transaction>(
    transaction: &mut T,
    by: &toolgate_gate::ports::ledger::AuditContext,
    lease: &Lease,
    status: LeaseStatus,
) -> Result<(), Failure> {
    let Some(id) = lease.task else { return Ok(()) };
    let Some(mut task) = task_rows::one(transaction, lease.intent, id).await? else { return Ok(()) };
    if task.lease != Some(lease.id) {
        return Ok(());
    }
    let leaving = Leaving { reason: Some("the lease ended"), lease: status };
    match task.status {
        TaskStatus::Claimed => {
            move_task(transaction, by, &mut task, TaskStatus::Ready, leaving).await?;
        }
        TaskStatus::Running | TaskStatus::Blocked => {
            task.details.error = Some("the lease ended".to_owned());
            move_task(transaction, by, &mut task, TaskStatus::Failed, leaving).await?;
        }
        _ => {}
    }
    Ok(())
}

/// Moves the end of a lease, and with it that of the work under it.
async fn prolong<T: Transaction>(transaction: &mut T, lease: Lease, expires_at: Timestamp) -> Result<Lease, Failure> {
    let sql = "UPDATE leases SET expires_at = $1 WHERE id = $2";
    transaction.execute(sql, values![expires_at, lease.id]).await?;
    if let Some(id) = lease.task
        && let Some(task) = task_rows::one(transaction, lease.intent, id).await?
        && task.lease == Some(lease.id)
    {
        let sql = "UPDATE tasks SET due = $1 WHERE id = $2";
        transaction.execute(sql, values![task.due_with(Some(expires_at)), id]).await?;
    }
    Ok(Lease { expires_at, ..lease })
}

async fn note_acquired<T: Transaction>(transaction: &mut T, by: &Entitled<'_>, lease: &Lease) -> Result<(), Failure> {
    let payload = EventPayload::WorkLeaseAcquired(WorkLeaseAcquired {
        agent_id: lease.agent.clone(),
        expires_at: lease.expires_at,
        intent_id: lease.intent,
        lease_id: lease.id,
        scope: lease.scope.clone(),
    });
    let details = IntentEventDetails {
        agent_id: Some(lease.agent.clone()),
        lease_id: Some(lease.id),
        scope: Some(lease.scope.clone()),
        task_id: lease.task,
        ..IntentEventDetails::default()
    };
    Noted::new(payload, IntentEventKind::LeaseAcquired, details).record(transaction, by, lease.intent).await
}

/// Reads a live lease of an intent that the transaction holds.
async fn live<T: Transaction>(transaction: &mut T, intent: IntentId, id: LeaseId) -> Result<Lease, Failure> {
    let sql = format!("SELECT {COLUMNS} FROM leases WHERE id = $1 AND intent = $2 AND ended_at IS NULL");
    let row = transaction.query_optional(&sql, values![id, intent]).await?;
    Ok(read(&row.ok_or_else(|| Refusal::no_lease(id))?)?)
}

impl Administration for RenewLease {
    type Output = Lease;

    fn mandate(&self) -> &Mandate {
        &self.audit
    }

    async fn perform<T: Transaction>(&self, transaction: &mut T, by: &Entitled<'_>) -> Result<Lease, Failure> {
        hold(transaction, by, self.intent).await?;
        let lease = live(transaction, self.intent, self.id).await?;
        if lease.agent != by.actor && !by.may(toolgate_model::permission::Permission::ActAs) {
            let reason = format!("lease {} is held by `{}`", lease.id, lease.agent);
            return Err(Refusal::new(Code::PermissionDenied, reason).with("lease_id", lease.id).into());
        }
        // An expired lease may be lost to another holder at any moment: it is acquired again, not renewed.
        if lease.expires_at <= by.time {
            return Err(Refusal::no_lease(lease.id).into());
        }
        prolong(transaction, lease, self.expires_at).await
    }
}

impl Administration for EndLease {
    type Output = Lease;

    fn mandate(&self) -> &Mandate {
        &self.audit
    }

    async fn perform<T: Transaction>(&self, transaction: &mut T, by: &Entitled<'_>) -> Result<Lease, Failure> {
        let held = hold(transaction, by, self.intent).await?;
        let lease = live(transaction, self.intent, self.id).await?;
        let status = if lease.agent == by.actor { LeaseStatus::Released } else { LeaseStatus::Revoked };
        if status == LeaseStatus::Revoked {
            held.require_directed()?;
        }
        leave_task(transaction, by, &lease, status).await?;
        end_lease(transaction, by, self.intent, lease.id, status).await?;
        Ok(Lease { status, ended_at: Some(by.time), ..lease })
    }
}

struct ListLeases {
    tenant: TenantId,
    intent: IntentId,
    viewer: Viewer,
    now: Timestamp,
}

impl Operation for ListLeases {
    type Output = Option<Vec<Lease>>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Self::Output, Failure> {
        if !sees(transaction, &self.tenant, self.intent, &self.viewer).await? {
            return Ok(None);
        }
        let sql = format!(
            "SELECT {COLUMNS} FROM leases WHERE intent = $1 AND ended_at IS NULL AND expires_at > $2 ORDER BY id"
        );
        let rows = transaction.query(&sql, values![self.intent, self.now]).await?;
        Ok(Some(rows.iter().map(read).collect::<Result<_, _>>()?))
    }
}
