//! Stopping calls: of an agent, of a tenant, of the whole gate. The admission sees it like every other change of what a
//! call is based on; approvals that calls wait for are cancelled, and detached calls are not admitted any more.

use async_trait::async_trait;
use toolgate_gate::ports::ledger::{
    AuditContext, BudgetUse, EndApproval, Mandate, Page, PageRequest, SetTenantBudget, Spending, StopCalls,
    StopOutcome, StoppedBy,
};
use toolgate_gate::refusal::Refusal;
use toolgate_model::approval::ApprovalStatus;
use toolgate_model::event::{CallsStopped, EventPayload};
use toolgate_model::id::ApprovalId;
use toolgate_model::principal::{PrincipalChanges, PrincipalId, Tenant, TenantId};
use toolgate_model::spending::{Stop, StopScope};

use super::budgets::ListBudgets;
use crate::ledger::{Engine, SqlLedger};
use crate::operation::administration::{Administration, Entitled};
use crate::operation::record::{Entry, Recorded, record, record_each};
use crate::operation::{Operation, principals, tenants};
use crate::sql::{Failure, Value, json_text};
use crate::transaction::{Transaction, values};

/// The number of approvals that are looked for at once.
const BATCH: u32 = 200;

#[async_trait]
impl<E: Engine> Spending for SqlLedger<E> {
    async fn set_tenant_budget(&self, command: SetTenantBudget) -> Result<Tenant, Refusal> {
        self.engine.write(command).await
    }

    async fn stop_calls(&self, command: StopCalls) -> Result<StopOutcome, Refusal> {
        let (scope, resume) = (command.scope.clone(), command.resume);
        let audit = AuditContext {
            tenant: command.audit.tenant().clone(),
            actor: command.audit.actor().clone(),
            time: command.audit.time(),
        };
        let changed = self.engine.write(command).await?;
        let mut outcome = StopOutcome { changed, ..StopOutcome::default() };
        if resume {
            return Ok(outcome);
        }
        // From here on nothing is admitted; what still waits is cancelled. An approval that is decided meanwhile helps
        // nobody: its call is decided again, and stopped.
        let cancelled = self.engine.write(CancelDetached { audit: audit.clone(), scope: scope.clone() }).await?;
        outcome.cancelled_calls = cancelled;
        let mut after: Option<ApprovalId> = None;
        loop {
            let open = self.engine.read(OpenApprovals { audit: audit.clone(), scope: scope.clone(), after }).await?;
            let Some((_, last)) = open.last() else { break };
            after = Some(*last);
            for (tenant, id) in open {
                let audit = AuditContext { tenant, ..audit.clone() };
                let reason = "the calls of the agent are stopped".to_owned();
                let end = EndApproval { audit, id, status: ApprovalStatus::Cancelled, reason };
                if self.engine.write(end).await?.status == ApprovalStatus::Cancelled {
                    outcome.cancelled_approvals = outcome.cancelled_approvals.saturating_add(1);
                }
            }
        }
        outcome.in_flight = self.engine.read(InFlight { audit, scope }).await?;
        Ok(outcome)
    }

    async fn stopped(&self, tenant: &TenantId, agent: &PrincipalId) -> Result<Option<StoppedBy>, Refusal> {
        self.engine.read(ReadStopped { tenant: tenant.clone(), agent: agent.clone() }).await
    }

    async fn limits_state(&self) -> Result<u64, Refusal> {
        self.engine.read(ReadLimitsState).await
    }

    async fn budgets(
        &self,
        tenant: &TenantId,
        agent: Option<&PrincipalId>,
        now: toolgate_model::time::Timestamp,
        page: PageRequest,
    ) -> Result<Page<BudgetUse>, Refusal> {
        self.engine.read(ListBudgets { tenant: tenant.clone(), agent: agent.cloned(), now, page }).await
    }
}

impl Administration for StopCalls {
    /// Whether the state is another one now.
    type Output = bool;

    fn mandate(&self) -> &Mandate {
        &self.audit
    }

    async fn perform<T: Transaction>(&self, transaction: &mut T, by: &Entitled<'_>) -> Result<bool, Failure> {
        let stop = (!self.resume).then(|| Stop { at: by.time, by: by.actor.clone(), reason: self.reason.clone() });
        match &self.scope {
            StopScope::Agent(agent) => stop_agent(transaction, by, agent, stop, self).await,
            StopScope::Tenant(tenant) => stop_tenant(transaction, by, tenant, stop, self).await,
            StopScope::Gate => stop_gate(transaction, by, stop, self).await,
        }
    }
}

fn payload(command: &StopCalls) -> CallsStopped {
    let agent_id = match &command.scope {
        StopScope::Agent(agent) => Some(agent.clone()),
        StopScope::Tenant(_) | StopScope::Gate => None,
    };
    CallsStopped { agent_id, reason: command.reason.clone() }
}

/// Whether a state stays as it is: what is stopped keeps its first reason.
fn is_same(before: Option<&Stop>, after: Option<&Stop>) -> bool {
    before.is_some() == after.is_some()
}

async fn stop_agent<T: Transaction>(
    transaction: &mut T,
    by: &Entitled<'_>,
    agent: &PrincipalId,
    stop: Option<Stop>,
    command: &StopCalls,
) -> Result<bool, Failure> {
    let found = principals::locked(transaction, &by.tenant, agent, T::FOR_UPDATE).await?;
    let found = found.filter(|found| found.removed_at.is_none());
    let mut principal = found.ok_or_else(|| principals::not_found(agent))?;
    by.require_within_own(&principal)?;
    if is_same(principal.stopped.as_ref(), stop.as_ref()) {
        return Ok(false);
    }
    PrincipalChanges { stopped: Some(stop), ..PrincipalChanges::default() }.apply(&mut principal);
    principals::store(transaction, &principal).await?;
    // Also for the processes that look whether calls in flight are stopped.
    tenants::limits_changed(transaction, &by.tenant).await?;
    let payload = match command.resume {
        true => EventPayload::AgentResumed(payload(command)),
        false => EventPayload::AgentStopped(payload(command)),
    };
    record(transaction, by, Entry::about(payload, agent)).await?;
    Ok(true)
}

async fn stop_tenant<T: Transaction>(
    transaction: &mut T,
    by: &Entitled<'_>,
    id: &TenantId,
    stop: Option<Stop>,
    command: &StopCalls,
) -> Result<bool, Failure> {
    let tenant = tenants::hold_limits(transaction, id).await?;
    if is_same(tenant.stopped.as_ref(), stop.as_ref()) {
        return Ok(false);
    }
    let text = stop.as_ref().map(json_text).transpose()?.unwrap_or(Value::Null);
    transaction.execute("UPDATE tenants SET stopped = $1 WHERE id = $2", &[text, Value::from(id)]).await?;
    tenants::limits_changed(transaction, id).await?;
    let payload = match command.resume {
        true => EventPayload::TenantResumed(payload(command)),
        false => EventPayload::TenantStopped(payload(command)),
    };
    tenants::record_in_both(transaction, by, id, &payload).await?;
    Ok(true)
}

async fn stop_gate<T: Transaction>(
    transaction: &mut T,
    by: &Entitled<'_>,
    stop: Option<Stop>,
    command: &StopCalls,
) -> Result<bool, Failure> {
    // In the global lock order. A tenant that is created meanwhile takes over the state of the default tenant, whose
    // row it holds.
    let hold = format!("SELECT tenant FROM registries ORDER BY tenant{}", T::FOR_UPDATE);
    transaction.query(&hold, &[]).await?;
    let default = tenants::hold_limits(transaction, &TenantId::default_tenant()).await?;
    if is_same(default.gate_stopped.as_ref(), stop.as_ref()) {
        return Ok(false);
    }
    let text = stop.as_ref().map(json_text).transpose()?.unwrap_or(Value::Null);
    transaction.execute("UPDATE tenants SET gate_stopped = $1", &[text]).await?;
    transaction.execute("UPDATE registries SET limits = limits + 1", &[]).await?;
    // Every tenant can see in its own log why its calls were refused.
    let mut recorded = Vec::new();
    for row in transaction.query("SELECT id FROM tenants ORDER BY id", &[]).await? {
        let audit = AuditContext { tenant: row.parsed(0, TenantId::parse)?, ..AuditContext::clone(by) };
        let payload = match command.resume {
            true => EventPayload::GateResumed(payload(command)),
            false => EventPayload::GateStopped(payload(command)),
        };
        recorded.push(Recorded::new(&audit, [Entry::new(payload)])?);
    }
    record_each(transaction, &recorded).await?;
    Ok(true)
}

/// The condition for rows of what is stopped, on `tenant` and `agent`, with its parameters.
fn of_scope<'a>(tenant: &'a TenantId, scope: &'a StopScope) -> (&'static str, Vec<Value<'a>>) {
    match scope {
        StopScope::Agent(agent) => ("tenant = $1 AND agent = $2", values![tenant, agent].to_vec()),
        StopScope::Tenant(tenant) => ("tenant = $1", values![tenant].to_vec()),
        StopScope::Gate => ("1 = 1", Vec::new()),
    }
}

/// Marks detached calls that are not admitted yet as cancelled, and makes them ready, so that they end.
struct CancelDetached {
    audit: AuditContext,
    scope: StopScope,
}

impl Operation for CancelDetached {
    type Output = u64;

    const CHANGES_AUTHORITY: bool = false;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<u64, Failure> {
        let (condition, parameters) = of_scope(&self.audit.tenant, &self.scope);
        let sql = format!(
            "UPDATE detached_calls SET cancelled = 1, \
             claimed_by = CASE WHEN state = 'waiting' THEN NULL ELSE claimed_by END, state = 'ready' \
             WHERE (state = 'ready' OR state = 'waiting') AND {condition}"
        );
        Ok(transaction.execute(&sql, &parameters).await?)
    }
}

/// The open approvals of what is stopped, by id.
struct OpenApprovals {
    audit: AuditContext,
    scope: StopScope,
    after: Option<ApprovalId>,
}

impl Operation for OpenApprovals {
    type Output = Vec<(TenantId, ApprovalId)>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Self::Output, Failure> {
        let (condition, mut parameters) = of_scope(&self.audit.tenant, &self.scope);
        parameters.push(Value::from(self.after.map(|after| after.to_string()).unwrap_or_default()));
        parameters.push(Value::from(BATCH));
        let (after, limit) = (parameters.len() - 1, parameters.len());
        let sql = format!(
            "SELECT tenant, id FROM approvals WHERE {condition} AND status = 'pending' AND id > ${after} \
             ORDER BY id LIMIT ${limit}"
        );
        let rows = transaction.query(&sql, &parameters).await?;
        rows.iter().map(|row| Ok((row.parsed(0, TenantId::parse)?, row.parsed(1, ApprovalId::parse)?))).collect()
    }
}

/// The number of calls of what is stopped that are executed.
struct InFlight {
    audit: AuditContext,
    scope: StopScope,
}

impl Operation for InFlight {
    type Output = u64;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<u64, Failure> {
        let (mut condition, parameters) = of_scope(&self.audit.tenant, &self.scope);
        if matches!(self.scope, StopScope::Agent(_)) {
            // Also what it does for other agents.
            condition = "tenant = $1 AND (agent = $2 OR actor = $2)";
        }
        let sql = format!("SELECT COUNT(*) FROM calls_in_flight WHERE {condition} AND status = 'running'");
        let row = transaction.query_optional(&sql, &parameters).await?;
        Ok(row.map_or(Ok(0), |row| row.count(0))?)
    }
}

/// Reads a number that changes whenever something is stopped or resumed.
struct ReadLimitsState;

impl Operation for ReadLimitsState {
    type Output = u64;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<u64, Failure> {
        let sql = "SELECT CAST(COALESCE(SUM(limits), 0) AS BIGINT) FROM registries";
        let row = transaction.query_optional(sql, &[]).await?;
        Ok(row.map_or(Ok(0), |row| row.count(0))?)
    }
}

/// Reads whether calls of an agent are stopped.
struct ReadStopped {
    tenant: TenantId,
    agent: PrincipalId,
}

impl Operation for ReadStopped {
    type Output = Option<StoppedBy>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Option<StoppedBy>, Failure> {
        let row = transaction.query_optional(tenants::SELECT, values![&self.tenant]).await?;
        let Some(tenant) = row.as_ref().map(tenants::read).transpose()? else { return Ok(None) };
        let agent = principals::locked(transaction, &self.tenant, &self.agent, "").await?;
        Ok(StoppedBy::of(&tenant, agent.as_ref()))
    }
}
