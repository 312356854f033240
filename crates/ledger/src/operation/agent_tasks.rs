//! Which agent the tasks and contexts of peer agents belong to. An id belongs to the first agent that it was returned to.

use std::collections::BTreeSet;

use async_trait::async_trait;
use toolgate_gate::ports::ledger::{AgentTasks, OwnTasks, OwnedTasks};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::a2a::Named;
use toolgate_model::credential::ServiceName;
use toolgate_model::id::GrantId;
use toolgate_model::principal::TenantId;

use super::Operation;
use crate::ledger::{Engine, SqlLedger};
use crate::sql::{Failure, SqlError, Value};
use crate::transaction::{Transaction, values};

/// How many tasks and contexts of one agent are remembered. Beyond that the oldest are forgotten, which makes them unknown.
const LIMIT: u64 = 10_000;
const TASK: &str = "task";
const CONTEXT: &str = "context";

#[async_trait]
impl<E: Engine> AgentTasks for SqlLedger<E> {
    async fn owned_tasks(&self, query: OwnedTasks) -> Result<Named, Refusal> {
        self.engine.read(query).await
    }

    async fn own_tasks(&self, command: OwnTasks) -> Result<(), Refusal> {
        self.engine.write(command).await
    }
}

/// The ids in question, each with its kind.
fn each(named: &Named) -> impl Iterator<Item = (&'static str, &str)> {
    let tasks = named.tasks.iter().map(|id| (TASK, id.as_str()));
    tasks.chain(named.contexts.iter().map(|id| (CONTEXT, id.as_str())))
}

/// Whom an id belongs to.
async fn owner<T: Transaction>(
    transaction: &mut T,
    tenant: &TenantId,
    peer: &ServiceName,
    (kind, id): (&str, &str),
) -> Result<Option<String>, Failure> {
    let sql = "SELECT agent FROM agent_tasks WHERE tenant = $1 AND peer = $2 AND kind = $3 AND id = $4";
    let row = transaction.query_optional(sql, values![tenant, peer, kind, id]).await?;
    Ok(row.map(|row| row.text(0).map(str::to_owned)).transpose()?)
}

impl Operation for OwnedTasks {
    type Output = Named;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Named, Failure> {
        let mut found = Named::default();
        for (kind, id) in each(&self.named) {
            if owner(transaction, &self.tenant, &self.peer, (kind, id)).await?.as_deref() == Some(self.agent.as_str()) {
                let ids = if kind == TASK { &mut found.tasks } else { &mut found.contexts };
                ids.push(id.to_owned());
            }
        }
        Ok(found)
    }
}

impl Operation for OwnTasks {
    type Output = ();

    const CHANGES_AUTHORITY: bool = false;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<(), Failure> {
        let mut added = BTreeSet::new();
        for (kind, id) in each(&self.named) {
            match owner(transaction, &self.tenant, &self.peer, (kind, id)).await? {
                Some(owner) if owner == self.agent.as_str() => continue,
                Some(_) => return Err(foreign().into()),
                None => {}
            }
            if !added.insert((kind, id)) {
                continue;
            }
            let sql = "INSERT INTO agent_tasks (tenant, peer, kind, id, agent, grant_id, created_at) \
                 VALUES ($1, $2, $3, $4, $5, $6, $7)";
            let parameters = values![&self.tenant, &self.peer, kind, id, &self.agent, self.grant, self.time];
            match transaction.execute(sql, parameters).await {
                // Another call owned it in this moment: it looks who that was.
                Err(SqlError::Taken(id)) => return Err(SqlError::Busy(id).into()),
                other => other?,
            };
        }
        if added.is_empty() { Ok(()) } else { forget_oldest(transaction, self).await }
    }
}

async fn forget_oldest<T: Transaction>(transaction: &mut T, command: &OwnTasks) -> Result<(), Failure> {
    let sql = "SELECT created_at FROM agent_tasks WHERE tenant = $1 AND agent = $2 \
         ORDER BY created_at DESC LIMIT 1 OFFSET $3";
    let limit = Value::Integer(i64::try_from(command.limit.unwrap_or(LIMIT)).unwrap_or(i64::MAX));
    let oldest = transaction.query_optional(sql, values![&command.tenant, &command.agent, limit]).await?;
    let Some(oldest) = oldest else { return Ok(()) };
    let sql = "DELETE FROM agent_tasks WHERE tenant = $1 AND agent = $2 AND created_at <= $3";
    transaction.execute(sql, values![&command.tenant, &command.agent, oldest.time(0)?]).await?;
    Ok(())
}

/// Forgets what agents have with a peer that is removed.
pub async fn forget_peer<T: Transaction>(
    transaction: &mut T,
    tenant: &TenantId,
    peer: &ServiceName,
) -> Result<(), Failure> {
    let sql = "DELETE FROM agent_tasks WHERE tenant = $1 AND peer = $2";
    transaction.execute(sql, values![tenant, peer]).await?;
    Ok(())
}

/// Forgets what was begun under grants that are revoked.
pub async fn forget_grants<T: Transaction>(
    transaction: &mut T,
    tenant: &TenantId,
    grants: &[GrantId],
) -> Result<(), Failure> {
    let sql = "SELECT id FROM agent_tasks WHERE tenant = $1 LIMIT 1";
    if grants.is_empty() || transaction.query_optional(sql, values![tenant]).await?.is_none() {
        return Ok(());
    }
    let each: Vec<Vec<Value<'_>>> = grants.iter().map(|&grant| vec![Value::from(grant)]).collect();
    transaction.execute_many("DELETE FROM agent_tasks WHERE grant_id = $1", &each).await?;
    Ok(())
}

/// An agent named a task or context that belongs to another caller.
fn foreign() -> Refusal {
    let reason = "the agent answered about a task or context of another caller; its answer is withheld";
    Refusal::new(Code::PeerResponseInvalid, reason)
}
