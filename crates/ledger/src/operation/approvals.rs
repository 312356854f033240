//! Approvals, from the request to the end. The columns contain what is searched and compared, the body is the approval
//! itself; both are written together.

use std::sync::atomic::Ordering;

use async_trait::async_trait;
use toolgate_gate::ports::ledger::{
    ApprovalFilter, Approvals, DecideApproval, EndApproval, GrantRates, Heartbeat, Page, PageRequest, RequestApproval,
};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::approval::{Approval, ApprovalStatus};
use toolgate_model::event::EventPayload;
use toolgate_model::id::{ApprovalId, GrantId, ProcessId};
use toolgate_model::principal::TenantId;
use toolgate_model::time::Timestamp;

use super::approval_decisions::Deciding;
use super::listing::Conditions;
use super::processes::{ForgetProcesses, ReadAttendance};
use super::rates::Rates;
use super::reaping::{
    CollectApprovals, DeadProcesses, EndAbandoned, EndOrphans, EndOverdue, ForgetArguments, HasEnded,
};
use super::record::{Entry, record};
use super::{Operation, detached};
use crate::ledger::{Engine, SqlLedger};
use crate::sql::{Failure, Row, SqlError, Value, json_text};
use crate::transaction::{Transaction, values};

#[async_trait]
impl<E: Engine> Approvals for SqlLedger<E> {
    async fn request_approval(&self, command: RequestApproval) -> Result<(), Refusal> {
        self.engine.write(command).await
    }

    async fn decide_approval(&self, command: DecideApproval) -> Result<Approval, Refusal> {
        self.engine.write(Deciding { command, shared: E::IS_SHARED }).await
    }

    async fn end_approval(&self, command: EndApproval) -> Result<Approval, Refusal> {
        self.engine.write(command).await
    }

    async fn approval(&self, tenant: &TenantId, id: ApprovalId) -> Result<Option<Approval>, Refusal> {
        self.engine.read(ReadApproval { tenant: tenant.clone(), id }).await
    }

    async fn approvals(
        &self,
        tenant: &TenantId,
        filter: ApprovalFilter,
        page: PageRequest,
    ) -> Result<Page<Approval>, Refusal> {
        self.engine.read(ListApprovals { tenant: tenant.clone(), filter, page }).await
    }

    async fn collect_approvals(&self, process: ProcessId) -> Result<Vec<Approval>, Refusal> {
        match self.engine.read(HasEnded { process }).await? {
            true => self.engine.write(CollectApprovals { process }).await,
            false => Ok(Vec::new()),
        }
    }

    fn shares_approvals(&self) -> bool {
        E::IS_SHARED
    }

    async fn reap_approvals(&self, process: ProcessId, now: Timestamp) -> Result<u64, Refusal> {
        let dead = DeadProcesses { process, shared: E::IS_SHARED };
        let all = !self.inherited_reaped.load(Ordering::Acquire);
        let mut sweep = self.in_batches(|passed_over| EndOverdue { now, passed_over }).await?;
        sweep.join(self.in_batches(|passed_over| EndOrphans { dead, now, passed_over }).await?);
        sweep.join(self.in_batches(|passed_over| EndAbandoned { dead, now, all, passed_over }).await?);
        self.inherited_reaped.store(true, Ordering::Release);
        let forgotten = self.in_batches(|passed_over| ForgetArguments { now, passed_over }).await?;
        self.engine.write(ForgetProcesses { now }).await?;
        forgotten.report()?;
        sweep.report()
    }

    async fn heartbeat(&self, command: Heartbeat) -> Result<(), Refusal> {
        self.engine.write(command).await
    }

    async fn is_attended(&self, tenant: &TenantId, now: Timestamp) -> Result<bool, Refusal> {
        self.engine.read(ReadAttendance { tenant: tenant.clone(), now }).await
    }
}

/// The maximum number of pending approvals per tenant.
pub const MAX_OF_TENANT: u32 = 20_000;

/// The columns that [`read`] reads.
pub const COLUMNS: &str = "id, body";

/// Writes the present state of an approval: the values of [`row`].
pub const UPDATE: &str = "UPDATE approvals SET status = $1, resolved_at = $2, body = $3 WHERE tenant = $4 AND id = $5";

impl Operation for RequestApproval {
    type Output = ();

    const CHANGES_AUTHORITY: bool = false;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<(), Failure> {
        require_room(transaction, &self.approval, self.most_of_agent).await?;
        let grant = with_room(transaction, self).await?;
        // Once stored, it is pending.
        let approval = Approval { status: ApprovalStatus::Pending, ..self.approval.clone() };
        let sql = "INSERT INTO approvals (tenant, id, status, agent, tool, invocation, process, created_at, expires_at, \
             body, grant_id, detached) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";
        let parameters = [
            Value::from(&approval.tenant),
            Value::from(approval.id),
            Value::from(approval.status.as_str()),
            Value::from(&approval.agent),
            Value::from(approval.tool.as_str()),
            Value::from(approval.invocation),
            Value::from(self.process),
            Value::from(approval.created_at),
            Value::from(approval.expires_at),
            json_text(&approval)?,
            Value::from(grant),
            Value::from(approval.detached),
        ];
        transaction.execute(sql, &parameters).await?;
        if let Some(park) = &self.parks {
            detached::park(transaction, &approval, park).await?;
        }
        record(transaction, &self.audit, entry(&approval, EventPayload::approval_requested(&approval))).await
    }
}

impl Operation for EndApproval {
    type Output = Approval;

    const CHANGES_AUTHORITY: bool = false;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Approval, Failure> {
        let approval = hold(transaction, &self.audit.tenant, self.id).await?;
        let Some(ended) = approval.ended(self.status, &self.reason, self.audit.time) else { return Ok(approval) };
        store(transaction, &ended).await?;
        detached::wake(transaction, std::iter::once(&ended)).await?;
        record(transaction, &self.audit, entry(&ended, EventPayload::approval_ended(&ended))).await?;
        Ok(ended)
    }
}

pub struct ReadApproval {
    pub tenant: TenantId,
    pub id: ApprovalId,
}

impl Operation for ReadApproval {
    type Output = Option<Approval>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Option<Approval>, Failure> {
        let sql = format!("SELECT {COLUMNS} FROM approvals WHERE tenant = $1 AND id = $2");
        let row = transaction.query_optional(&sql, values![&self.tenant, self.id]).await?;
        Ok(row.as_ref().map(read).transpose()?)
    }
}

/// Lists approvals, newest first.
pub struct ListApprovals {
    pub tenant: TenantId,
    pub filter: ApprovalFilter,
    pub page: PageRequest,
}

impl Operation for ListApprovals {
    type Output = Page<Approval>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Page<Approval>, Failure> {
        let filter = &self.filter;
        let mut conditions = Conditions::default();
        conditions.and("tenant =", &self.tenant);
        if let Some(status) = filter.status {
            // Spelled out: the partial index of pending approvals serves only a statement that contains the condition.
            conditions.and_that(&format!("status = '{}'", status.as_str()));
        }
        conditions.and_if("agent =", filter.agent.as_ref());
        conditions.and_if("tool =", filter.tool.as_deref());
        conditions.and_if("invocation =", filter.invocation);
        conditions.and_if("id <", self.page.after.as_deref());
        let from = (COLUMNS, "approvals", "id DESC");
        conditions.page(transaction, from, &self.page, read, |approval| approval.id.to_string()).await
    }
}

/// Locks an approval until the transaction ends.
pub async fn hold<T: Transaction>(transaction: &mut T, tenant: &TenantId, id: ApprovalId) -> Result<Approval, Failure> {
    let sql = format!("SELECT {COLUMNS} FROM approvals WHERE tenant = $1 AND id = $2{}", T::FOR_UPDATE);
    let row = transaction.query_optional(&sql, values![tenant, id]).await?;
    let row = row.ok_or_else(|| {
        Refusal::new(Code::ApprovalNotFound, format!("there is no approval {id}")).with("approval_id", id)
    })?;
    Ok(read(&row)?)
}

/// Writes an approval as it is now.
pub async fn store<T: Transaction>(transaction: &mut T, approval: &Approval) -> Result<(), Failure> {
    transaction.execute(UPDATE, &row(approval)?).await?;
    Ok(())
}

/// The parameters of [`UPDATE`].
pub fn row(approval: &Approval) -> Result<Vec<Value<'_>>, SqlError> {
    Ok(vec![
        Value::from(approval.status.as_str()),
        Value::from(approval.resolved_at),
        json_text(approval)?,
        Value::from(&approval.tenant),
        Value::from(approval.id),
    ])
}

/// The approval of a row.
pub fn read(row: &Row) -> Result<Approval, SqlError> {
    row.json(1)
}

pub fn entry(approval: &Approval, payload: EventPayload) -> Entry {
    Entry {
        run: Some(approval.invocation.to_string()),
        tool: Some(approval.tool.as_str().into()),
        ..Entry::about(payload, &approval.agent)
    }
}

/// Refuses if too many approvals are pending. The agent's row is locked, so that concurrent requests are counted one
/// after the other.
async fn require_room<T: Transaction>(
    transaction: &mut T,
    approval: &Approval,
    most_of_agent: u32,
) -> Result<(), Failure> {
    let agent = format!("SELECT id FROM principals WHERE tenant = $1 AND id = $2{}", T::FOR_UPDATE);
    transaction.query_optional(&agent, values![&approval.tenant, &approval.agent]).await?;
    // Reads the row at the limit, which costs no more than the limit, however many rows there are.
    let of_agent = "SELECT id FROM approvals WHERE tenant = $1 AND agent = $2 AND status = 'pending' LIMIT 1 OFFSET $3";
    let last_place = values![&approval.tenant, &approval.agent, most_of_agent.saturating_sub(1)];
    if transaction.query_optional(of_agent, last_place).await?.is_some() {
        let reason = format!(
            "{most_of_agent} calls of `{}` already wait for a decision; have some of them decided first",
            approval.agent
        );
        return Err(Refusal::new(Code::TooManyApprovals, reason).with("limit", most_of_agent).into());
    }
    let of_tenant = "SELECT id FROM approvals WHERE tenant = $1 AND status = 'pending' LIMIT 1 OFFSET $2";
    let last_place = values![&approval.tenant, MAX_OF_TENANT - 1];
    if transaction.query_optional(of_tenant, last_place).await?.is_some() {
        let reason = format!("{MAX_OF_TENANT} calls already wait for a decision; have some of them decided first");
        return Err(Refusal::new(Code::TooManyApprovals, reason).with("limit", MAX_OF_TENANT).into());
    }
    Ok(())
}

/// The first grant whose rate has capacity for the call besides those that already wait. Nothing is reserved: the
/// admission does that.
async fn with_room<T: Transaction>(transaction: &mut T, request: &RequestApproval) -> Result<Option<GrantId>, Failure> {
    let mut refused = None;
    for rates in &request.grants {
        match require_rate(transaction, &request.approval, rates, request.audit.time).await {
            Ok(()) => return Ok(Some(rates.grant)),
            Err(Failure::Refused(refusal)) => refused = refused.or(Some(refusal)),
            Err(failure) => return Err(failure),
        }
    }
    refused.map_or(Ok(None), |refusal| Err(refusal.into()))
}

async fn require_rate<T: Transaction>(
    transaction: &mut T,
    approval: &Approval,
    rates: &GrantRates,
    now: Timestamp,
) -> Result<(), Failure> {
    if rates.lineage.iter().all(|(_, limit)| limit.is_none()) {
        return Ok(());
    }
    let sql = "SELECT COUNT(*) FROM approvals WHERE tenant = $1 AND grant_id = $2 AND status = 'pending'";
    let waiting = transaction.query_optional(sql, values![&approval.tenant, rates.grant]).await?;
    let waiting = waiting.map_or(Ok(0), |row| row.integer(0))?;
    let mut uses = Vec::new();
    for _ in 0..=waiting {
        uses.extend(rates.lineage.iter().filter_map(|(grant, limit)| Some((*grant, (*limit)?))));
    }
    let mut rings = Rates::hold(transaction, uses.into_iter()).await?;
    for _ in 0..=waiting {
        rings.reserve(&rates.lineage, now).map_err(|refusal| match waiting {
            0 => refusal,
            _ => {
                let grant = rates.grant;
                let reason = format!(
                    "{waiting} calls through grant {grant} already wait for a decision, as many as it allows now; \
                    have some of them decided first"
                );
                Refusal::new(Code::GrantRateLimited, reason).with("grant_id", grant).with("waiting", waiting)
            }
        })?;
    }
    Ok(())
}

/// Counts the approvals that wait for a decision, and reads when the oldest was requested.
pub struct CountOpenApprovals;

impl Operation for CountOpenApprovals {
    type Output = (u64, Option<Timestamp>);

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<(u64, Option<Timestamp>), Failure> {
        let sql = "SELECT COUNT(*), MIN(created_at) FROM approvals WHERE status = 'pending'";
        let row = transaction.query_optional(sql, &[]).await?;
        Ok(row.map_or(Ok((0, None)), |row| Ok::<_, SqlError>((row.count(0)?, row.optional_time(1)?)))?)
    }
}
