//! The progress of the webhook deliveries of each tenant. One process at a time delivers, as long as it holds the
//! lease; progress is stored before the next delivery.

use async_trait::async_trait;
use toolgate_gate::ports::ledger::{AdvanceWebhook, ApprovalWebhooks, LeaseWebhook, WebhookBacklog};
use toolgate_gate::refusal::Refusal;
use toolgate_model::id::ProcessId;
use toolgate_model::principal::TenantId;

use super::Operation;
use super::settings::{ReadSetting, SetSettingOnce};
use super::sweeping::Readable;
use crate::ledger::{Engine, SqlLedger};
use crate::sql::{Failure, Row, SqlError, Value};
use crate::transaction::{Transaction, values};

#[async_trait]
impl<E: Engine> ApprovalWebhooks for SqlLedger<E> {
    async fn begin_webhooks(&self) -> Result<(), Refusal> {
        self.engine.write(BeginWebhooks).await
    }

    async fn webhook_backlog(&self) -> Result<Vec<WebhookBacklog>, Refusal> {
        self.engine.read(ReadWebhookBacklog).await
    }

    async fn lease_webhook(&self, command: LeaseWebhook) -> Result<Option<u64>, Refusal> {
        self.engine.write(TakeLease { command, shared: E::IS_SHARED }).await
    }

    async fn advance_webhook(&self, command: AdvanceWebhook) -> Result<bool, Refusal> {
        self.engine.write(command).await
    }
}

/// The setting that says that deliveries have begun.
const BEGUN: &str = "approval_webhooks_begun";

/// Begins at the end of every log, the first time: earlier events are not delivered. For tenants created later,
/// deliveries begin with their first event.
pub struct BeginWebhooks;

impl Operation for BeginWebhooks {
    type Output = ();

    const CHANGES_AUTHORITY: bool = false;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<(), Failure> {
        if (ReadSetting { name: BEGUN }).run(transaction).await?.is_some() {
            return Ok(());
        }
        // `WHERE true` tells SQLite that ON does not belong to a join.
        let sql = "INSERT INTO approval_webhook_positions (tenant, position) \
             SELECT tenants.id, COALESCE(heads.size, 0) FROM tenants LEFT JOIN heads ON heads.tenant = tenants.id \
             WHERE true ON CONFLICT (tenant) DO NOTHING";
        transaction.execute(sql, &[]).await?;
        SetSettingOnce { name: BEGUN, value: "yes".to_owned() }.run(transaction).await?;
        Ok(())
    }
}

/// Reads the logs with undelivered events.
pub struct ReadWebhookBacklog;

impl Operation for ReadWebhookBacklog {
    type Output = Vec<WebhookBacklog>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Vec<WebhookBacklog>, Failure> {
        let sql = "SELECT heads.tenant, COALESCE(told.position, 0), heads.size, told.leased_by, told.leased_until \
             FROM heads LEFT JOIN approval_webhook_positions AS told ON told.tenant = heads.tenant \
             WHERE heads.size > COALESCE(told.position, 0) ORDER BY heads.tenant";
        let rows = transaction.query(sql, &[]).await?;
        Ok(Readable::of(&rows, backlog).logged())
    }
}

fn backlog(row: &Row) -> Result<WebhookBacklog, SqlError> {
    Ok(WebhookBacklog {
        tenant: row.parsed(0, TenantId::parse)?,
        position: row.count(1)?,
        size: row.count(2)?,
        lease: row.optional_parsed(3, ProcessId::parse)?.zip(row.optional_time(4)?),
    })
}

/// Takes or extends the lease.
pub struct TakeLease {
    pub command: LeaseWebhook,
    /// Whether other processes may be alive: then theirs is respected until it ends.
    pub shared: bool,
}

impl Operation for TakeLease {
    /// The number of delivered events; `None` if another process holds the lease.
    type Output = Option<u64>;

    const CHANGES_AUTHORITY: bool = false;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Option<u64>, Failure> {
        let LeaseWebhook { tenant, process, now, until } = &self.command;
        let sql =
            "INSERT INTO approval_webhook_positions (tenant, position) VALUES ($1, 0) ON CONFLICT (tenant) DO NOTHING";
        transaction.execute(sql, values![tenant]).await?;
        // Without other processes, the lease of another process was left by an earlier run of this one.
        let ended_by = if self.shared { now.as_millis() } else { i64::MAX };
        let sql = "UPDATE approval_webhook_positions SET leased_by = $1, leased_until = $2 WHERE tenant = $3 \
             AND (leased_by IS NULL OR leased_by = $4 OR leased_until <= $5) RETURNING position";
        let parameters = values![*process, *until, tenant, *process, Value::Integer(ended_by)];
        let row = transaction.query_optional(sql, parameters).await?;
        Ok(row.map(|row| row.count(0)).transpose()?)
    }
}

impl Operation for AdvanceWebhook {
    /// Whether this process still had the lease; if not, nothing was noted.
    type Output = bool;

    const CHANGES_AUTHORITY: bool = false;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<bool, Failure> {
        let sql = "UPDATE approval_webhook_positions SET position = $1, leased_by = $2, leased_until = $3 \
             WHERE tenant = $4 AND leased_by = $5 AND position <= $6";
        let holder = self.until.map(|_| self.process);
        let parameters = values![self.position, holder, self.until, &self.tenant, self.process, self.position];
        Ok(transaction.execute(sql, parameters).await? == 1)
    }
}
