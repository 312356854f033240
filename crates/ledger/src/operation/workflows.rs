//! Workflows from files. The changes of a file are the changes that single commands would make, one after the other in
//! one transaction, so that each of them checks and records what it always does.

use std::collections::BTreeSet;
use std::future::Future;

use async_trait::async_trait;
use toolgate_gate::ports::ledger::{
    ApplyWorkflow, Mandate, OwnedObject, WorkflowQuery, WorkflowState, WorkflowStep, Workflows,
};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::event::{EventPayload, WorkflowApplied};
use toolgate_model::id::CredentialId;

use super::administration::{Administration, Entitled};
use super::record::{Entry, record};
use super::work::require_claimable;
use super::workflow_rows::{ReadWorkflowState, hold, state, store};
use crate::ledger::{Engine, SqlLedger};
use crate::sql::{Failure, json_text};
use crate::transaction::{Transaction, values};

/// The maximum number of workflows that one principal has created.
const LIMIT: u64 = 100;

#[async_trait]
impl<E: Engine> Workflows for SqlLedger<E> {
    async fn workflow_state(&self, query: WorkflowQuery) -> Result<WorkflowState, Refusal> {
        self.engine.read(ReadWorkflowState { query }).await
    }

    async fn apply_workflow(&self, command: ApplyWorkflow) -> Result<(), Refusal> {
        self.engine.write(command).await
    }
}

impl Administration for ApplyWorkflow {
    type Output = ();

    fn mandate(&self) -> &Mandate {
        &self.audit
    }

    async fn perform<T: Transaction>(&self, transaction: &mut T, by: &Entitled<'_>) -> Result<(), Failure> {
        hold(transaction, &self.query, &self.expected, &self.credentials()).await?;
        let now =
            WorkflowState { of_others: self.expected.of_others.clone(), ..state(transaction, &self.query).await? };
        if now != *self.expected {
            return Err(changed_meanwhile(self).into());
        }
        if self.expected.record.is_none() {
            require_room(transaction, self, by).await?;
        }
        for step in &self.steps {
            take(transaction, step, by).await?;
        }
        if !store(transaction, &by.tenant, &self.record).await? {
            return Err(changed_meanwhile(self).into());
        }
        self.record_ownership(transaction, by).await?;
        let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        let payload = EventPayload::WorkflowApplied(WorkflowApplied {
            changes: count(self.steps.len()),
            digest: self.digest.clone(),
            revision: self.record.revision,
            version: self.record.version.clone(),
            widenings: self.widenings,
            workflow: self.record.name.clone(),
        });
        record(transaction, by, Entry::new(payload)).await
    }
}

trait Parts {
    fn credentials(&self) -> BTreeSet<CredentialId>;

    fn record_ownership<T: Transaction>(
        &self,
        transaction: &mut T,
        by: &Entitled<'_>,
    ) -> impl Future<Output = Result<(), Failure>> + Send;
}

impl Parts for ApplyWorkflow {
    /// The credentials of the grants that are created.
    fn credentials(&self) -> BTreeSet<CredentialId> {
        let created = self.steps.iter().filter_map(|step| match step {
            WorkflowStep::CreateGrant(command) => Some(command.grant.credential),
            _ => None,
        });
        created.collect()
    }

    async fn record_ownership<T: Transaction>(&self, transaction: &mut T, by: &Entitled<'_>) -> Result<(), Failure> {
        let tenant = &by.tenant;
        for OwnedObject { kind, id } in &self.released {
            let sql = "DELETE FROM workflow_objects WHERE tenant = $1 AND kind = $2 AND object = $3";
            transaction.execute(sql, values![tenant, kind.as_str(), id.as_str()]).await?;
        }
        for (OwnedObject { kind, id }, ownership) in &self.taken {
            let sql = "INSERT INTO workflow_objects (tenant, kind, object, workflow, ownership) \
                 VALUES ($1, $2, $3, $4, $5) \
                 ON CONFLICT (tenant, kind, object) DO UPDATE SET ownership = excluded.ownership \
                 WHERE workflow_objects.workflow = excluded.workflow";
            let name = self.record.name.as_str();
            let parameters = values![tenant, kind.as_str(), id.as_str(), name, json_text(ownership)?];
            // Another workflow may have taken it since the state was read.
            if transaction.execute(sql, parameters).await? == 0 {
                return Err(changed_meanwhile(self).into());
            }
        }
        Ok(())
    }
}

async fn require_room<T: Transaction>(
    transaction: &mut T,
    command: &ApplyWorkflow,
    by: &Entitled<'_>,
) -> Result<(), Failure> {
    let sql = "SELECT COUNT(*) FROM workflows WHERE tenant = $1 AND created_by = $2";
    let row = transaction.query_optional(sql, values![&by.tenant, &command.record.created_by]).await?;
    let count: u64 = row.map_or(Ok(0), |row| row.count(0))?;
    if count < LIMIT {
        return Ok(());
    }
    let reason = format!("`{}` has {LIMIT} workflows already; declare more in one file", command.record.created_by);
    Err(Refusal::new(Code::WorkLimitReached, reason).into())
}

async fn take<T: Transaction>(transaction: &mut T, step: &WorkflowStep, by: &Entitled<'_>) -> Result<(), Failure> {
    match step {
        WorkflowStep::CreatePrincipal(command) => command.perform(transaction, by).await,
        WorkflowStep::UpdatePrincipal(command) => command.perform(transaction, by).await.map(drop),
        WorkflowStep::RevokeGrant(command) => command.perform(transaction, by).await.map(drop),
        WorkflowStep::CreateGrant(command) => command.perform(transaction, by).await.map(drop),
        WorkflowStep::RemovePrincipal(command) => command.perform(transaction, by).await.map(drop),
        WorkflowStep::RemoveService(command) => command.perform(transaction, by).await.map(drop),
        WorkflowStep::ApplyService(command) => command.perform(transaction, by).await.map(drop),
        WorkflowStep::ApplyPolicies(command) => command.perform(transaction, by).await.map(drop),
        WorkflowStep::CreateIntent(command) => command.perform(transaction, by).await.map(drop),
        WorkflowStep::SetTenantBudget(command) => command.perform(transaction, by).await.map(drop),
        WorkflowStep::ChangeCoordinator(command) => command.perform(transaction, by).await.map(drop),
        WorkflowStep::CreateCoordinator(command) => command.perform(transaction, by).await.map(drop),
        WorkflowStep::CreateTasks(command) => {
            let created = command.perform(transaction, by).await?;
            require_claimable(transaction, by, &created).await
        }
        WorkflowStep::CreatePlan(command) => command.perform(transaction, by).await.map(drop),
    }
}

fn changed_meanwhile(command: &ApplyWorkflow) -> Refusal {
    let reason = format!(
        "an object of the workflow `{}` was changed concurrently; nothing was applied; review the differences and \
         apply again",
        command.record.name
    );
    Refusal::new(Code::VersionConflict, reason)
}
