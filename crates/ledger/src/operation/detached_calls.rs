//! The port of detached calls.

use async_trait::async_trait;
use toolgate_gate::ports::ledger::{
    ClaimDetached, ClaimedCall, DetachCall, Detached, DetachedCall, DetachedCalls, DetachedState, FinishDetached, Page,
    PageRequest, StoredCall,
};
use toolgate_gate::refusal::Refusal;
use toolgate_model::id::{InvocationId, ProcessId};
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::time::Timestamp;

use super::detached::{
    CancelDetached, Claiming, Finishing, ForgetOutcome, HasReady, NoteFetched, ReadDetached, ReleaseDetached,
};
use super::detached_lists::{BATCH, EndCutOff, ForgetDetached, HasOverdue, ListDetached, ReadStates};
use crate::ledger::{Engine, SqlLedger};

#[async_trait]
impl<E: Engine> DetachedCalls for SqlLedger<E> {
    async fn detach_call(&self, command: DetachCall) -> Result<Detached, Refusal> {
        self.engine.write(command).await
    }

    async fn claim_detached(&self, command: ClaimDetached) -> Result<Vec<ClaimedCall>, Refusal> {
        // Checked first: this runs several times a second, and nothing is written if nothing is ready.
        if !self.engine.read(HasReady { running: command.running.clone() }).await? {
            return Ok(Vec::new());
        }
        self.engine.write(Claiming { command, shared: E::IS_SHARED }).await
    }

    async fn has_overdue_detached(&self, now: Timestamp) -> Result<bool, Refusal> {
        self.engine.read(HasOverdue { now }).await
    }

    async fn release_detached(&self, tenant: &TenantId, id: InvocationId, process: ProcessId) -> Result<(), Refusal> {
        self.engine.write(ReleaseDetached { tenant: tenant.clone(), id, process }).await
    }

    async fn detached_call(&self, tenant: &TenantId, id: InvocationId) -> Result<Option<StoredCall>, Refusal> {
        self.engine.read(ReadDetached { tenant: tenant.clone(), id }).await
    }

    async fn detached_calls(
        &self,
        tenant: &TenantId,
        agent: Option<&PrincipalId>,
        page: PageRequest,
    ) -> Result<Page<DetachedCall>, Refusal> {
        self.engine.read(ListDetached { tenant: tenant.clone(), agent: agent.cloned(), page }).await
    }

    async fn detached_states(&self, calls: &[InvocationId]) -> Result<Vec<(InvocationId, DetachedState)>, Refusal> {
        self.engine.read(ReadStates { calls: calls.to_vec() }).await
    }

    async fn cancel_detached(&self, tenant: &TenantId, id: InvocationId) -> Result<Option<DetachedCall>, Refusal> {
        self.engine.write(CancelDetached { tenant: tenant.clone(), id }).await
    }

    async fn finish_detached(
        &self,
        tenant: &TenantId,
        id: InvocationId,
        command: FinishDetached,
    ) -> Result<(), Refusal> {
        self.engine.write(Finishing { tenant: tenant.clone(), id, command }).await
    }

    async fn forget_outcome(&self, tenant: &TenantId, id: InvocationId) -> Result<bool, Refusal> {
        self.engine.write(ForgetOutcome { tenant: tenant.clone(), id }).await
    }

    async fn note_fetched(&self, tenant: &TenantId, id: InvocationId) -> Result<(), Refusal> {
        self.engine.write(NoteFetched { tenant: tenant.clone(), id }).await
    }

    async fn sweep_detached(&self, now: Timestamp, kept_until: Timestamp) -> Result<u64, Refusal> {
        let mut done = self.engine.write(EndCutOff { now }).await?;
        loop {
            let deleted = self.engine.write(ForgetDetached { before: kept_until }).await?;
            done += deleted;
            if deleted < u64::from(BATCH) {
                return Ok(done);
            }
        }
    }
}
