//! The ports of calls and of their records.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use toolgate_gate::ports::ledger::{
    Admission, Admit, Calls, DenialCount, InvocationFilter, Invocations, Page, PageRequest, RecordDecision,
    RecordDenial, ReportInvocation, Settle,
};
use toolgate_gate::refusal::Refusal;
use toolgate_model::id::InvocationId;
use toolgate_model::invocation::Invocation;
use toolgate_model::principal::TenantId;
use toolgate_model::time::Timestamp;

use super::closing::{CloseCalls, ForgetKeys};
use super::denial_counts::{CountDenials, ListDenialCounts, SumUpDenials};
use super::invocations::{ListInvocations, ReadInvocation};
use super::marks::ForgetMarks;
use super::rates::ForgetRates;
use super::{closing, marks, rates};
use crate::ledger::{Engine, SqlLedger};

#[async_trait]
impl<E: Engine> Calls for SqlLedger<E> {
    async fn admit(&self, command: Arc<Admit>) -> Result<Admission, Refusal> {
        self.heads.intact()?;
        self.engine.admit(command).await
    }

    async fn settle(&self, command: Arc<Settle>) -> Result<(), Refusal> {
        self.engine.settle(command).await
    }

    async fn record_denial(&self, command: RecordDenial) -> Result<(), Refusal> {
        self.engine.write(command).await
    }

    async fn count_denials(&self, counts: Vec<DenialCount>) -> Result<(), Refusal> {
        self.engine.write(CountDenials { counts }).await
    }

    async fn sum_up_denials(&self, before: Timestamp, now: Timestamp) -> Result<u64, Refusal> {
        let mut total = 0;
        for (tenant, principal) in self.engine.read(ListDenialCounts { before }).await? {
            total += self.engine.write(SumUpDenials { tenant, principal, now }).await?;
        }
        Ok(total)
    }

    async fn record_decision(&self, command: RecordDecision) -> Result<(), Refusal> {
        self.engine.write(command).await
    }

    async fn close_calls(&self, now: Timestamp) -> Result<u64, Refusal> {
        // The first time, in the only process, no call can be running: what is in flight was left by an earlier run.
        let only_overdue = self.inherited_closed.load(Ordering::Acquire);
        let closed = self.in_batches(|passed_over| CloseCalls { now, only_overdue, passed_over }).await?;
        self.inherited_closed.store(true, Ordering::Release);
        while self.engine.write(ForgetKeys { now }).await? >= u64::from(closing::BATCH) {}
        for _ in 0..rates::BATCHES {
            if !self.engine.write(ForgetRates).await? {
                break;
            }
        }
        while self.engine.write(ForgetMarks { now }).await? >= u64::from(marks::BATCH) {}
        closed.report()
    }
}

#[async_trait]
impl<E: Engine> Invocations for SqlLedger<E> {
    async fn report_invocation(&self, command: ReportInvocation) -> Result<(), Refusal> {
        self.engine.write(command).await
    }

    async fn invocation(&self, tenant: &TenantId, id: InvocationId) -> Result<Option<Invocation>, Refusal> {
        self.engine.read(ReadInvocation { tenant: tenant.clone(), id }).await
    }

    async fn invocations(
        &self,
        tenant: &TenantId,
        filter: InvocationFilter,
        page: PageRequest,
    ) -> Result<Page<Invocation>, Refusal> {
        self.engine.read(ListInvocations { tenant: tenant.clone(), filter, page }).await
    }
}
