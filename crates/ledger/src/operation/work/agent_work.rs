//! The work of an agent, as its calls see it: read together with its grants.

use std::sync::Arc;

use toolgate_gate::ports::ledger::Viewer;
use toolgate_model::context::{ContextId, GrantContext};
use toolgate_model::id::{IntentId, PlanId, TaskId};
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::work::limits::READ_WITH_GRANTS;
use toolgate_model::work::{AgentWork, Coordinator, RunningTask};

use super::access::{sees, taken_part_in};
use crate::operation::Operation;
use crate::sql::{Failure, Row, SqlError};
use crate::transaction::{Transaction, values};

/// The number of changes of coordinated work in this tenant; zero if it has never had any.
pub async fn revision<T: Transaction>(transaction: &mut T, tenant: &TenantId) -> Result<u64, Failure> {
    let row = transaction.query_optional("SELECT work FROM registries WHERE tenant = $1", values![tenant]).await?;
    Ok(row.map_or(Ok(0), |row| row.count(0))?)
}

/// Notes that the tenant has coordinated work.
pub async fn begin<T: Transaction>(transaction: &mut T, tenant: &TenantId) -> Result<(), Failure> {
    let sql = "INSERT INTO registries (tenant, revision, work) VALUES ($1, 0, 1) \
         ON CONFLICT (tenant) DO UPDATE SET work = 1 WHERE registries.work = 0";
    transaction.execute(sql, values![tenant]).await?;
    Ok(())
}

/// Reads the newest work of an agent; `None` if there is none.
pub async fn read<T: Transaction>(
    transaction: &mut T,
    tenant: &TenantId,
    agent: &PrincipalId,
    coordinators: &[Arc<Coordinator>],
) -> Result<Option<Arc<AgentWork>>, Failure> {
    let coordinators = coordinators.iter().filter(|one| one.agent == *agent).map(Arc::clone).collect();
    let mut work = AgentWork { coordinators, ..AgentWork::default() };
    let running = "SELECT id, intent, plan, due FROM tasks \
         WHERE tenant = $1 AND assigned_agent = $2 AND status = 'running' ORDER BY id DESC LIMIT $3";
    for row in &transaction.query(running, values![tenant, agent, READ_WITH_GRANTS]).await? {
        work.running.insert(row.parsed(0, TaskId::parse)?, running_task(row)?);
    }
    let open = format!(
        "SELECT id FROM intents WHERE tenant = $1 AND status <> 'completed' AND status <> 'abandoned' \
         AND id IN ({}) ORDER BY id DESC LIMIT $3",
        taken_part_in(2)
    );
    for row in &transaction.query(&open, values![tenant, agent, READ_WITH_GRANTS]).await? {
        work.intents.insert(row.parsed(0, IntentId::parse)?);
    }
    if !work.intents.is_empty() {
        let plans = format!(
            "SELECT id, intent FROM plans WHERE tenant = $1 AND state IN ('draft', 'active', 'paused') \
             AND intent IN ({}) ORDER BY id DESC LIMIT $3",
            taken_part_in(2)
        );
        for row in &transaction.query(&plans, values![tenant, agent, READ_WITH_GRANTS]).await? {
            work.plans.insert(row.parsed(0, PlanId::parse)?, row.parsed(1, IntentId::parse)?);
        }
    }
    Ok((!work.is_empty()).then(|| Arc::new(work)))
}

/// Reads a running task: id, intent, plan, due.
fn running_task(row: &Row) -> Result<RunningTask, SqlError> {
    let context = GrantContext {
        intent_id: Some(row.parsed(1, ContextId::parse)?),
        plan_id: row.optional_parsed(2, ContextId::parse)?,
        task_id: Some(row.parsed(0, ContextId::parse)?),
    };
    Ok(RunningTask { context, due: row.optional_time(3)? })
}

/// Reads what a context names of the work of an agent.
pub struct ReadNamedWork {
    pub tenant: TenantId,
    pub agent: PrincipalId,
    pub context: GrantContext,
}

impl Operation for ReadNamedWork {
    type Output = AgentWork;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<AgentWork, Failure> {
        let Self { tenant, agent, context } = self;
        let mut work = AgentWork::default();
        if let Some(task) = context.task() {
            let sql = "SELECT id, intent, plan, due FROM tasks \
                 WHERE id = $1 AND tenant = $2 AND assigned_agent = $3 AND status = 'running'";
            if let Some(row) = transaction.query_optional(sql, values![task, tenant, agent]).await? {
                work.running.insert(task, running_task(&row)?);
            }
            return Ok(work);
        }
        let viewer = Viewer::Participant(Arc::new(agent.clone()));
        if let Some(plan) = context.plan() {
            let sql = "SELECT id, intent FROM plans \
                 WHERE id = $1 AND tenant = $2 AND state IN ('draft', 'active', 'paused')";
            let row = transaction.query_optional(sql, values![plan, tenant]).await?;
            let intent = row.map(|row| row.parsed(1, IntentId::parse)).transpose()?;
            if let Some(intent) = intent
                && sees(transaction, tenant, intent, &viewer).await?
            {
                work.plans.insert(plan, intent);
            }
        } else if let Some(intent) = context.intent() {
            let sql = "SELECT id FROM intents \
                 WHERE id = $1 AND tenant = $2 AND status <> 'completed' AND status <> 'abandoned'";
            let is_open = transaction.query_optional(sql, values![intent, tenant]).await?.is_some();
            if is_open && sees(transaction, tenant, intent, &viewer).await? {
                work.intents.insert(intent);
            }
        }
        Ok(work)
    }
}
