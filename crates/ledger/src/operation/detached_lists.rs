//! Lists of detached calls, and their expiry.

use toolgate_gate::ports::ledger::{DetachedCall, DetachedState, Page, PageRequest};
use toolgate_model::id::InvocationId;
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::time::Timestamp;

use super::Operation;
use super::detached::{COLUMNS, read};
use super::listing::{Conditions, padded};
use crate::sql::{Failure, Value};
use crate::transaction::{Transaction, values};

/// The number of calls per transaction and per statement.
pub const BATCH: u32 = 200;

/// Lists calls, newest first.
pub struct ListDetached {
    pub tenant: TenantId,
    pub agent: Option<PrincipalId>,
    pub page: PageRequest,
}

impl Operation for ListDetached {
    type Output = Page<DetachedCall>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Page<DetachedCall>, Failure> {
        let mut conditions = Conditions::default();
        conditions.and("tenant =", &self.tenant);
        conditions.and_if("agent =", self.agent.as_ref());
        conditions.and_if("id <", self.page.after.as_deref());
        let from = (COLUMNS, "detached_calls", "id DESC");
        conditions.page(transaction, from, &self.page, read, |call| call.id.to_string()).await
    }
}

/// Reads the states of calls.
pub struct ReadStates {
    pub calls: Vec<InvocationId>,
}

impl Operation for ReadStates {
    type Output = Vec<(InvocationId, DetachedState)>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Self::Output, Failure> {
        let mut states = Vec::with_capacity(self.calls.len());
        for calls in self.calls.chunks(BATCH as usize) {
            let (places, ids) = padded(calls.iter().map(Value::from).collect());
            let sql = format!("SELECT id, state FROM detached_calls WHERE id IN ({places})");
            for row in transaction.query(&sql, &ids).await? {
                let state = row.parsed(1, |text| DetachedState::parse(text).ok_or(()))?;
                states.push((row.parsed(0, InvocationId::parse)?, state));
            }
        }
        Ok(states)
    }
}

/// Whether the approval of a detached call is overdue.
pub struct HasOverdue {
    pub now: Timestamp,
}

impl Operation for HasOverdue {
    type Output = bool;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<bool, Failure> {
        let sql = "SELECT id FROM approvals WHERE status = 'pending' AND expires_at <= $1 AND detached = 1 LIMIT 1";
        Ok(transaction.query_optional(sql, values![self.now]).await?.is_some())
    }
}

/// Ends admitted calls that nothing will settle any more.
pub struct EndCutOff {
    pub now: Timestamp,
}

impl Operation for EndCutOff {
    type Output = u64;

    const CHANGES_AUTHORITY: bool = false;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<u64, Failure> {
        // A settlement ends the detached call in its own transaction: a call with an outcome that has not ended was cut
        // off.
        let sql = "UPDATE detached_calls SET state = 'finished', finished_at = $1, ciphertext = NULL, \
             wrapped_key = NULL, master_key = NULL WHERE state = 'running' AND EXISTS (SELECT 1 FROM invocations \
             WHERE invocations.tenant = detached_calls.tenant AND invocations.id = detached_calls.id)";
        Ok(transaction.execute(sql, values![self.now]).await?)
    }
}

/// Deletes a batch of calls whose outcome has expired.
pub struct ForgetDetached {
    /// Those that ended before.
    pub before: Timestamp,
}

impl Operation for ForgetDetached {
    type Output = u64;

    const CHANGES_AUTHORITY: bool = false;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<u64, Failure> {
        let sql = "DELETE FROM detached_calls WHERE (tenant, id) IN (SELECT tenant, id FROM detached_calls \
             WHERE finished_at IS NOT NULL AND finished_at <= $1 ORDER BY finished_at LIMIT $2)";
        Ok(transaction.execute(sql, values![self.before, BATCH]).await?)
    }
}
