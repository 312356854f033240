//! One-time links to approvals: found by the digest of their token, redeemed once, by a principal of the tenant.

use std::time::Duration;

use async_trait::async_trait;
use toolgate_gate::ports::ledger::{ApprovalLinks, CreateApprovalLink, Mandate, RedeemApprovalLink};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::approval::Approval;
use toolgate_model::id::ApprovalId;

use super::Operation;
use super::administration::{Administration, Entitled};
use super::approvals::ReadApproval;
use crate::ledger::{Engine, SqlLedger};
use crate::sql::{Failure, SqlError};
use crate::transaction::{Transaction, values};

#[async_trait]
impl<E: Engine> ApprovalLinks for SqlLedger<E> {
    async fn create_approval_link(&self, command: CreateApprovalLink) -> Result<(), Refusal> {
        self.engine.write(command).await
    }

    async fn redeem_approval_link(&self, command: RedeemApprovalLink) -> Result<Approval, Refusal> {
        self.engine.write(command).await
    }
}

/// How long an expired link is kept, so that a late user gets an explanation.
const KEPT_FOR: Duration = Duration::from_secs(24 * 3600);

impl Operation for CreateApprovalLink {
    type Output = ();

    const CHANGES_AUTHORITY: bool = false;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<(), Failure> {
        let forgotten = "DELETE FROM approval_links WHERE expires_at < $1";
        transaction.execute(forgotten, values![self.now.minus(KEPT_FOR)]).await?;
        let sql = "INSERT INTO approval_links (token_hash, tenant, approval, expires_at) VALUES ($1, $2, $3, $4)";
        let hash = self.digest.as_bytes().as_slice();
        transaction.execute(sql, values![hash, &self.tenant, self.approval, self.expires_at]).await?;
        Ok(())
    }
}

impl Administration for RedeemApprovalLink {
    type Output = Approval;

    const CHANGES_AUTHORITY: bool = false;

    fn mandate(&self) -> &Mandate {
        &self.audit
    }

    async fn perform<T: Transaction>(&self, transaction: &mut T, by: &Entitled<'_>) -> Result<Approval, Failure> {
        let (tenant, now) = (&by.tenant, by.time);
        let hash = self.digest.as_bytes().as_slice();
        let sql = format!(
            "SELECT approval, expires_at, used_at FROM approval_links WHERE token_hash = $1 AND tenant = $2{}",
            T::FOR_UPDATE
        );
        let row = transaction.query_optional(&sql, values![hash, tenant]).await?;
        let row = row.ok_or_else(|| Refusal::new(Code::ApprovalNotFound, "there is no such link"))?;
        let id = row.parsed(0, ApprovalId::parse)?;
        let over = |reason: &str| Refusal::new(Code::ApprovalEnded, reason.to_owned());
        if row.optional_time(2)?.is_some() {
            let reason = "this link has already been used; find the approval with `toolgate approvals`";
            return Err(over(reason).into());
        }
        if row.time(1)? <= now {
            return Err(over("this link has expired: the approval can no longer be decided").into());
        }
        let sql = "UPDATE approval_links SET used_at = $1 WHERE token_hash = $2 AND used_at IS NULL";
        transaction.execute(sql, values![now, hash]).await?;
        let approval = ReadApproval { tenant: tenant.clone(), id }.run(transaction).await?;
        Ok(approval.ok_or_else(|| SqlError::Corrupt(format!("link to {id}")))?)
    }
}
