//! Coordinators: registration, changes by their supervisors, heartbeats, ends.

use std::collections::BTreeMap;

use async_trait::async_trait;
use toolgate_gate::ports::ledger::{
    AuditContext, ChangeCoordinator, CoordinatorChanges, Coordinators, CreateCoordinator, Mandate, SendHeartbeat,
    Viewer,
};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::event::{EventPayload, WorkCoordinatorChanged, WorkCoordinatorCreated};
use toolgate_model::id::{CoordinatorId, IntentId};
use toolgate_model::permission::Permission;
use toolgate_model::principal::TenantId;
use toolgate_model::spending::Used;
use toolgate_model::time::Timestamp;
use toolgate_model::work::limits::COORDINATORS;
use toolgate_model::work::{Coordinator, CoordinatorStatus, IntentEventDetails, IntentEventKind};

use super::access::{hold, sees};
use super::coordinator_rows::{COLUMNS, read};
use super::{Noted, count_change, require_below, require_version};
use crate::ledger::{Engine, SqlLedger};
use crate::operation::administration::{Administration, Entitled};
use crate::operation::spending::budgets::ReadCoordinatorUse;
use crate::operation::{Operation, principals};
use crate::sql::{Failure, json_text};
use crate::transaction::{Transaction, values};

#[async_trait]
impl<E: Engine> Coordinators for SqlLedger<E> {
    async fn create_coordinator(&self, command: CreateCoordinator) -> Result<(), Refusal> {
        self.engine.write(command).await
    }

    async fn coordinator(
        &self,
        tenant: &TenantId,
        id: CoordinatorId,
        viewer: &Viewer,
    ) -> Result<Option<Coordinator>, Refusal> {
        self.engine.read(ReadCoordinator { tenant: tenant.clone(), id, viewer: viewer.clone() }).await
    }

    async fn coordinators(
        &self,
        tenant: &TenantId,
        intent: IntentId,
        viewer: &Viewer,
    ) -> Result<Option<Vec<Coordinator>>, Refusal> {
        self.engine.read(ListCoordinators { tenant: tenant.clone(), intent, viewer: viewer.clone() }).await
    }

    async fn coordinator_use(
        &self,
        tenant: &TenantId,
        ids: Vec<CoordinatorId>,
    ) -> Result<BTreeMap<CoordinatorId, Used>, Refusal> {
        self.engine.read(ReadCoordinatorUse { tenant: tenant.clone(), ids }).await
    }

    async fn change_coordinator(&self, command: ChangeCoordinator) -> Result<Coordinator, Refusal> {
        self.engine.write(command).await
    }

    async fn send_heartbeat(&self, command: SendHeartbeat) -> Result<Coordinator, Refusal> {
        self.engine.write(command).await
    }
}

/// When the sweep has to look at it next.
pub fn due(coordinator: &Coordinator) -> Option<Timestamp> {
    let is_beating = matches!(coordinator.status, CoordinatorStatus::Active | CoordinatorStatus::Completing);
    let lapses = is_beating.then(|| coordinator.lapses_at());
    [lapses, coordinator.expires_at].into_iter().flatten().min().filter(|_| !coordinator.status.has_ended())
}

impl Administration for CreateCoordinator {
    type Output = ();

    fn mandate(&self) -> &Mandate {
        &self.audit
    }

    async fn perform<T: Transaction>(&self, transaction: &mut T, by: &Entitled<'_>) -> Result<(), Failure> {
        let new = &self.coordinator;
        principals::share_grantee(transaction, &by.tenant, &new.agent).await?;
        let held = hold(transaction, by, new.intent).await?;
        held.require_directed()?;
        held.require_open()?;
        let live = u64::try_from(held.coordinators.len()).unwrap_or(u64::MAX);
        require_below(live, COORDINATORS, "coordinators of the intent")?;
        let sql = format!(
            "INSERT INTO coordinators ({COLUMNS}, due) VALUES \
             ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)"
        );
        let parameters = values![
            new.id,
            &new.tenant,
            new.intent,
            &new.agent,
            &new.supervisor,
            new.version,
            new.status.as_str(),
            new.role.as_str(),
            new.kind.as_str(),
            json_text(&new.guardrails)?,
            new.heartbeat_seconds,
            new.last_heartbeat,
            new.granted_at,
            new.expires_at,
            json_text(&new.metadata)?,
            due(new),
        ];
        transaction.execute(&sql, parameters).await?;
        let payload = EventPayload::WorkCoordinatorCreated(Box::new(WorkCoordinatorCreated {
            agent_id: new.agent.clone(),
            coordinator_id: new.id,
            guardrails: new.guardrails.clone(),
            intent_id: new.intent,
            supervisor_id: new.supervisor.clone(),
        }));
        let details = IntentEventDetails {
            agent_id: Some(new.agent.clone()),
            coordinator_id: Some(new.id),
            role: Some(new.role.clone()),
            ..IntentEventDetails::default()
        };
        // The client has no type for a new coordinator.
        Noted::new(payload, IntentEventKind::CoordinatorGuardrailsUpdated, details)
            .record(transaction, by, new.intent)
            .await?;
        count_change(transaction, &by.tenant).await
    }
}

/// Locks the intent of a coordinator that the actor sees, and reads it.
async fn held<T: Transaction>(
    transaction: &mut T,
    by: &Entitled<'_>,
    id: CoordinatorId,
) -> Result<Coordinator, Failure> {
    let missing = || Refusal::no_coordinator(id);
    let sql = "SELECT intent FROM coordinators WHERE id = $1 AND tenant = $2";
    let row = transaction.query_optional(sql, values![id, &by.tenant]).await?;
    let intent = row.ok_or_else(missing)?.parsed(0, IntentId::parse)?;
    match hold(transaction, by, intent).await {
        Err(Failure::Refused(refusal)) if refusal.code() == Code::IntentNotFound => return Err(missing().into()),
        held => held.map(drop)?,
    }
    let sql = format!("SELECT {COLUMNS} FROM coordinators WHERE id = $1");
    let row = transaction.query_optional(&sql, values![id]).await?;
    Ok(read(&row.ok_or_else(missing)?)?)
}

fn require_live(coordinator: &Coordinator) -> Result<(), Refusal> {
    if !coordinator.status.has_ended() {
        return Ok(());
    }
    let reason = format!("coordinator {} is {}", coordinator.id, coordinator.status);
    Err(Refusal::new(Code::CoordinatorStateInvalid, reason)
        .with("coordinator_id", coordinator.id)
        .with("status", coordinator.status))
}

impl Administration for ChangeCoordinator {
    type Output = Coordinator;

    fn mandate(&self) -> &Mandate {
        &self.audit
    }

    async fn perform<T: Transaction>(&self, transaction: &mut T, by: &Entitled<'_>) -> Result<Coordinator, Failure> {
        let before = held(transaction, by, self.id).await?;
        require_live(&before)?;
        if let Some(expected) = self.expected_version {
            require_version(&format!("coordinator {}", self.id), before.version, expected)?;
        }
        require_allowed(by, &before, &self.changes)?;
        let mut after = before.clone();
        let changes = self.changes.clone();
        after.guardrails = changes.guardrails.unwrap_or(after.guardrails);
        after.status = changes.status.unwrap_or(after.status);
        after.heartbeat_seconds = changes.heartbeat_seconds.unwrap_or(after.heartbeat_seconds);
        after.expires_at = changes.expires_at.unwrap_or(after.expires_at);
        after.metadata = changes.metadata.unwrap_or(after.metadata);
        if after == before {
            return Ok(before);
        }
        if after.status.has_ended() {
            end(transaction, by, &before, after.status).await?;
            count_change(transaction, &by.tenant).await?;
            return Ok(Coordinator { version: before.version + 1, ..after });
        }
        store(transaction, by, &before, &mut after).await?;
        count_change(transaction, &by.tenant).await?;
        Ok(after)
    }
}

/// Checks that this actor may end the coordinators with the intent that they coordinate: an agent that directs an intent must not
/// be rid of guardrails by ending it.
pub fn require_endable(by: &Entitled<'_>, coordinators: &[Coordinator]) -> Result<(), Refusal> {
    let ended = CoordinatorChanges { status: Some(CoordinatorStatus::Completed), ..CoordinatorChanges::default() };
    let limited = coordinators.iter().filter(|coordinator| !coordinator.guardrails.is_unlimited());
    for coordinator in limited {
        require_allowed(by, coordinator, &ended).map_err(|refusal| {
            let reason = format!("the end of the intent would end guardrails: {}", refusal.reason());
            Refusal::new(Code::PermissionDenied, reason)
                .with("coordinator_id", coordinator.id)
                .with("intent_id", coordinator.intent)
        })?;
    }
    Ok(())
}

/// Its supervisor and managers change it. A coordinator that supervises itself cannot free itself: it may only narrow.
fn require_allowed(by: &Entitled<'_>, coordinator: &Coordinator, changes: &CoordinatorChanges) -> Result<(), Refusal> {
    if by.may(Permission::ManageTools) {
        return Ok(());
    }
    let refuse =
        |reason: String| Err(Refusal::new(Code::PermissionDenied, reason).with("coordinator_id", coordinator.id));
    if coordinator.supervisor != by.actor {
        return refuse(format!(
            "only its supervisor and those with the permission {} change coordinator {}",
            Permission::ManageTools,
            coordinator.id
        ));
    }
    if coordinator.agent != by.actor {
        return Ok(());
    }
    let widened = changes.guardrails.as_ref().and_then(|new| new.first_widening(&coordinator.guardrails));
    if let Some(member) = widened {
        return refuse(format!("a coordinator that is its own supervisor may only narrow, and `{member}` is wider"));
    }
    let is_sooner = |end: Option<Timestamp>| end.is_some_and(|end| coordinator.expires_at.is_none_or(|now| end <= now));
    if changes.expires_at.is_some_and(is_sooner) && !coordinator.guardrails.is_unlimited() {
        return refuse("a coordinator that is its own supervisor may not end its guardrails sooner".to_owned());
    }
    if changes.status.is_some_and(CoordinatorStatus::has_ended) && !coordinator.guardrails.is_unlimited() {
        return refuse("a coordinator that is its own supervisor may not end its guardrails".to_owned());
    }
    Ok(())
}

/// Stores a changed coordinator that goes on.
async fn store<T: Transaction>(
    transaction: &mut T,
    by: &AuditContext,
    before: &Coordinator,
    after: &mut Coordinator,
) -> Result<(), Failure> {
    after.version = before.version + 1;
    let sql = "UPDATE coordinators SET version = $1, status = $2, guardrails = $3, heartbeat_seconds = $4, \
         expires_at = $5, metadata = $6, due = $7 WHERE id = $8";
    let parameters = values![
        after.version,
        after.status.as_str(),
        json_text(&after.guardrails)?,
        after.heartbeat_seconds,
        after.expires_at,
        json_text(&after.metadata)?,
        due(after),
        after.id,
    ];
    transaction.execute(sql, parameters).await?;
    note_changed(transaction, by, before, after).await
}

async fn note_changed<T: Transaction>(
    transaction: &mut T,
    by: &AuditContext,
    before: &Coordinator,
    after: &Coordinator,
) -> Result<(), Failure> {
    let changed = [
        ("expires_at", before.expires_at != after.expires_at),
        ("guardrails", before.guardrails != after.guardrails),
        ("heartbeat_interval_seconds", before.heartbeat_seconds != after.heartbeat_seconds),
        ("metadata", before.metadata != after.metadata),
        ("status", before.status != after.status),
    ];
    let is_narrowed = before.guardrails != after.guardrails;
    let payload = EventPayload::WorkCoordinatorChanged(Box::new(WorkCoordinatorChanged {
        changed: changed.iter().filter(|(_, changed)| *changed).map(|(name, _)| (*name).to_owned()).collect(),
        coordinator_id: after.id,
        guardrails: is_narrowed.then(|| after.guardrails.clone()),
        intent_id: after.intent,
        status: after.status,
        version: after.version,
    }));
    let kind = match (before.status, after.status) {
        (from, to) if from == to => is_narrowed.then_some(IntentEventKind::CoordinatorGuardrailsUpdated),
        (_, CoordinatorStatus::Paused) => Some(IntentEventKind::CoordinatorPaused),
        (_, CoordinatorStatus::Unresponsive) => Some(IntentEventKind::CoordinatorUnresponsive),
        (_, CoordinatorStatus::FailedOver) => Some(IntentEventKind::CoordinatorFailedOver),
        (_, CoordinatorStatus::Completed) => Some(IntentEventKind::CoordinatorReplaced),
        (_, CoordinatorStatus::Active) => Some(IntentEventKind::CoordinatorResumed),
        (_, CoordinatorStatus::Registering | CoordinatorStatus::Completing) => None,
    };
    let details = IntentEventDetails {
        agent_id: Some(after.agent.clone()),
        coordinator_id: Some(after.id),
        from: Some(before.status.to_string()),
        to: Some(after.status.to_string()),
        version: Some(after.version),
        ..IntentEventDetails::default()
    };
    Noted::new(payload, kind, details).record(transaction, by, after.intent).await
}

/// Ends a coordinator. The caller counts the change.
pub async fn end<T: Transaction>(
    transaction: &mut T,
    by: &AuditContext,
    coordinator: &Coordinator,
    status: CoordinatorStatus,
) -> Result<(), Failure> {
    let after = Coordinator { status, version: coordinator.version + 1, ..coordinator.clone() };
    let sql = "UPDATE coordinators SET status = $1, version = $2, ended_at = $3, due = NULL WHERE id = $4";
    transaction.execute(sql, values![status.as_str(), after.version, by.time, coordinator.id]).await?;
    note_changed(transaction, by, coordinator, &after).await
}

/// Records that a coordinator does not answer. Its guardrails stay.
pub async fn lapse<T: Transaction>(
    transaction: &mut T,
    by: &AuditContext,
    coordinator: &Coordinator,
) -> Result<(), Failure> {
    let mut after = Coordinator { status: CoordinatorStatus::Unresponsive, ..coordinator.clone() };
    store(transaction, by, coordinator, &mut after).await
}

impl Administration for SendHeartbeat {
    type Output = Coordinator;

    const CHANGES_AUTHORITY: bool = false;

    fn mandate(&self) -> &Mandate {
        &self.audit
    }

    async fn perform<T: Transaction>(&self, transaction: &mut T, by: &Entitled<'_>) -> Result<Coordinator, Failure> {
        let before = held(transaction, by, self.id).await?;
        require_live(&before)?;
        if before.agent != by.actor && !by.may(Permission::ActAs) {
            let reason = format!("only `{}` sends heartbeats of coordinator {}", before.agent, before.id);
            return Err(Refusal::new(Code::PermissionDenied, reason).with("coordinator_id", before.id).into());
        }
        let mut after = Coordinator { last_heartbeat: Some(by.time), ..before.clone() };
        if before.status == CoordinatorStatus::Unresponsive {
            after.status = CoordinatorStatus::Active;
            store(transaction, by, &before, &mut after).await?;
        }
        let sql = "UPDATE coordinators SET last_heartbeat = $1, due = $2 WHERE id = $3";
        transaction.execute(sql, values![by.time, due(&after), after.id]).await?;
        Ok(after)
    }
}

struct ReadCoordinator {
    tenant: TenantId,
    id: CoordinatorId,
    viewer: Viewer,
}

impl Operation for ReadCoordinator {
    type Output = Option<Coordinator>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Option<Coordinator>, Failure> {
        let sql = format!("SELECT {COLUMNS} FROM coordinators WHERE id = $1 AND tenant = $2");
        let row = transaction.query_optional(&sql, values![self.id, &self.tenant]).await?;
        let Some(row) = row else { return Ok(None) };
        let coordinator = read(&row)?;
        let seen = sees(transaction, &self.tenant, coordinator.intent, &self.viewer).await?;
        Ok(seen.then_some(coordinator))
    }
}

struct ListCoordinators {
    tenant: TenantId,
    intent: IntentId,
    viewer: Viewer,
}

impl Operation for ListCoordinators {
    type Output = Option<Vec<Coordinator>>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Self::Output, Failure> {
        if !sees(transaction, &self.tenant, self.intent, &self.viewer).await? {
            return Ok(None);
        }
        let sql = format!("SELECT {COLUMNS} FROM coordinators WHERE intent = $1 ORDER BY id");
        let rows = transaction.query(&sql, values![self.intent]).await?;
        Ok(Some(rows.iter().map(read).collect::<Result<_, _>>()?))
    }
}
