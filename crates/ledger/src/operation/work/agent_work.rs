//! The work of an agent, as its calls see it: read together with its grants.

use std::sync::Arc;

use toolgate_model::context::{ContextId, GrantContext};
use toolgate_model::id::{IntentId, PlanId, TaskId};
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::work::limits::CALLABLE;
use toolgate_model::work::{AgentWork, Coordinator, RunningTask};

use super::access::taken_part_in;
use crate::sql::Failure;
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

/// Reads the work of an agent; `None` if there is none.
pub async fn read<T: Transaction>(
    transaction: &mut T,
    tenant: &TenantId,
    agent: &PrincipalId,
    coordinators: &[Arc<Coordinator>],
) -> Result<Option<Arc<AgentWork>>, Failure> {
    let coordinators = coordinators.iter().filter(|one| one.agent == *agent).map(Arc::clone).collect();
    let mut work = AgentWork { coordinators, ..AgentWork::default() };
    let running = "SELECT id, intent, plan, due FROM tasks \
         WHERE tenant = $1 AND assigned_agent = $2 AND status = 'running' ORDER BY id LIMIT $3";
    for row in &transaction.query(running, values![tenant, agent, CALLABLE]).await? {
        let context = GrantContext {
            intent_id: Some(row.parsed(1, ContextId::parse)?),
            plan_id: row.optional_parsed(2, ContextId::parse)?,
            task_id: Some(row.parsed(0, ContextId::parse)?),
        };
        work.running.insert(row.parsed(0, TaskId::parse)?, RunningTask { context, due: row.optional_time(3)? });
    }
    let open = format!(
        "SELECT id FROM intents WHERE tenant = $1 AND status <> 'completed' AND status <> 'abandoned' \
         AND id IN ({}) ORDER BY id LIMIT $3",
        taken_part_in(2)
    );
    for row in &transaction.query(&open, values![tenant, agent, CALLABLE]).await? {
        work.intents.insert(row.parsed(0, IntentId::parse)?);
    }
    if !work.intents.is_empty() {
        let plans = format!(
            "SELECT id, intent FROM plans WHERE tenant = $1 AND state IN ('draft', 'active', 'paused') \
             AND intent IN ({}) ORDER BY id LIMIT $3",
            taken_part_in(2)
        );
        for row in &transaction.query(&plans, values![tenant, agent, CALLABLE]).await? {
            work.plans.insert(row.parsed(0, PlanId::parse)?, row.parsed(1, IntentId::parse)?);
        }
    }
    Ok((!work.is_empty()).then(|| Arc::new(work)))
}
