//! Standing approvals, which cover later calls. The transaction that admits a call counts its use; see `consents`.

use async_trait::async_trait;
use toolgate_gate::ports::ledger::{Mandate, Page, PageRequest, RevokeStanding, StandingApprovals, StandingFilter};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::approval::StandingApproval;
use toolgate_model::event::EventPayload;
use toolgate_model::id::StandingApprovalId;
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::time::Timestamp;

use super::Operation;
use super::administration::{Administration, Entitled};
use super::listing::Conditions;
use super::record::{Entry, record};
use crate::ledger::{Engine, SqlLedger};
use crate::sql::{Failure, Row, SqlError, Value, json_text};
use crate::transaction::{Transaction, values};

#[async_trait]
impl<E: Engine> StandingApprovals for SqlLedger<E> {
    async fn standing_for(
        &self,
        tenant: &TenantId,
        agent: &PrincipalId,
        tool: &str,
        now: Timestamp,
    ) -> Result<Vec<StandingApproval>, Refusal> {
        let (tenant, agent, tool) = (tenant.clone(), agent.clone(), tool.to_owned());
        self.engine.read(ReadStandingFor { tenant, agent, tool, now }).await
    }

    async fn standing(&self, tenant: &TenantId, id: StandingApprovalId) -> Result<Option<StandingApproval>, Refusal> {
        self.engine.read(ReadStanding { tenant: tenant.clone(), id }).await
    }

    async fn standings(
        &self,
        tenant: &TenantId,
        filter: StandingFilter,
        page: PageRequest,
    ) -> Result<Page<StandingApproval>, Refusal> {
        self.engine.read(ListStandings { tenant: tenant.clone(), filter, page }).await
    }

    async fn revoke_standing(&self, command: RevokeStanding) -> Result<StandingApproval, Refusal> {
        self.engine.write(command).await
    }
}

/// The columns that [`read`] reads.
pub const COLUMNS: &str = "id, body";

/// Writes the present state of a standing approval: the values of [`row`].
pub const UPDATE: &str =
    "UPDATE standing_approvals SET used = $1, revoked_at = $2, body = $3 WHERE tenant = $4 AND id = $5";

/// The maximum number examined for one call: the newest. What is not examined covers nothing.
const LIMIT: u32 = 1000;

impl Administration for RevokeStanding {
    type Output = StandingApproval;

    const CHANGES_AUTHORITY: bool = false;

    fn mandate(&self) -> &Mandate {
        &self.audit
    }

    async fn perform<T: Transaction>(
        &self,
        transaction: &mut T,
        by: &Entitled<'_>,
    ) -> Result<StandingApproval, Failure> {
        let (tenant, id) = (&by.tenant, self.id);
        let sql = format!("SELECT {COLUMNS} FROM standing_approvals WHERE tenant = $1 AND id = $2{}", T::FOR_UPDATE);
        let row = transaction.query_optional(&sql, values![tenant, id]).await?;
        let row = row.ok_or_else(|| {
            Refusal::new(Code::StandingApprovalNotFound, format!("there is no standing approval {id}"))
                .with("standing_approval_id", id)
        })?;
        let standing = read(&row)?;
        if standing.revoked_at.is_some() {
            return Ok(standing);
        }
        let (revoked_at, revoked_by) = (Some(by.time), Some(by.actor.clone()));
        let revoked = StandingApproval { revoked_at, revoked_by, ..standing };
        transaction.execute(UPDATE, &self::row(&revoked)?).await?;
        let payload = EventPayload::standing_approval_revoked(&revoked);
        let entry = Entry { tool: Some(revoked.tool.as_str().into()), ..Entry::about(payload, &revoked.agent) };
        record(transaction, by, entry).await?;
        Ok(revoked)
    }
}

/// Reads one standing approval.
pub struct ReadStanding {
    pub tenant: TenantId,
    pub id: StandingApprovalId,
}

impl Operation for ReadStanding {
    type Output = Option<StandingApproval>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Option<StandingApproval>, Failure> {
        let sql = format!("SELECT {COLUMNS} FROM standing_approvals WHERE tenant = $1 AND id = $2");
        let row = transaction.query_optional(&sql, values![&self.tenant, self.id]).await?;
        Ok(row.as_ref().map(read).transpose()?)
    }
}

/// Lists standing approvals, newest first.
pub struct ListStandings {
    pub tenant: TenantId,
    pub filter: StandingFilter,
    pub page: PageRequest,
}

impl Operation for ListStandings {
    type Output = Page<StandingApproval>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Page<StandingApproval>, Failure> {
        let filter = &self.filter;
        let mut conditions = Conditions::default();
        conditions.and("tenant =", &self.tenant);
        conditions.and_if("agent =", filter.agent.as_ref());
        conditions.and_if("tool =", filter.tool.as_deref());
        if let Some(now) = filter.active_at {
            active(&mut conditions, now);
        }
        conditions.and_if("id <", self.page.after.as_deref());
        let from = (COLUMNS, "standing_approvals", "id DESC");
        conditions.page(transaction, from, &self.page, read, |standing| standing.id.to_string()).await
    }
}

/// Reads the standing approvals that may cover calls of a tool by an agent.
pub struct ReadStandingFor {
    pub tenant: TenantId,
    pub agent: PrincipalId,
    /// Of which tool, with its service.
    pub tool: String,
    pub now: Timestamp,
}

impl Operation for ReadStandingFor {
    type Output = Vec<StandingApproval>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Vec<StandingApproval>, Failure> {
        let (agent, tool) = (Some(self.agent.clone()), Some(self.tool.clone()));
        let filter = StandingFilter { agent, tool, active_at: Some(self.now) };
        let list = ListStandings { tenant: self.tenant.clone(), filter, page: PageRequest::first(LIMIT) };
        Ok(list.run(transaction).await?.items)
    }
}

pub async fn insert<T: Transaction>(transaction: &mut T, standing: &StandingApproval) -> Result<(), Failure> {
    let sql = "INSERT INTO standing_approvals (tenant, id, agent, tool, expires_at, max_uses, used, revoked_at, body) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
    let parameters = [
        Value::from(&standing.tenant),
        Value::from(standing.id),
        Value::from(&standing.agent),
        Value::from(standing.tool.as_str()),
        Value::from(standing.expires_at),
        Value::from(standing.max_uses),
        Value::from(standing.used),
        Value::from(standing.revoked_at),
        json_text(standing)?,
    ];
    transaction.execute(sql, &parameters).await?;
    Ok(())
}

/// The parameters of [`UPDATE`].
pub fn row(standing: &StandingApproval) -> Result<Vec<Value<'_>>, SqlError> {
    Ok(vec![
        Value::from(standing.used),
        Value::from(standing.revoked_at),
        json_text(standing)?,
        Value::from(&standing.tenant),
        Value::from(standing.id),
    ])
}

/// The standing approval of a row.
pub fn read(row: &Row) -> Result<StandingApproval, SqlError> {
    row.json(1)
}

/// The same as [`StandingApproval::state`].
fn active(conditions: &mut Conditions, now: Timestamp) {
    conditions.and_that("revoked_at IS NULL");
    conditions.and("COALESCE(expires_at, 9223372036854775807) >", now);
    conditions.and_that("(max_uses IS NULL OR used < max_uses)");
}
