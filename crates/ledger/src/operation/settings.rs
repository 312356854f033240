//! Settings that belong to the ledger itself, and the check that it works.

use async_trait::async_trait;
use toolgate_gate::ports::ledger::{LedgerState, LedgerStatistics, Revision};
use toolgate_gate::refusal::Refusal;
use toolgate_model::time::Timestamp;

use super::Operation;
use super::approvals::CountOpenApprovals;
use super::newest::ReadNewestId;
use crate::ledger::{Engine, SqlLedger};
use crate::sql::Failure;
use crate::transaction::{Transaction, values};

#[async_trait]
impl<E: Engine> LedgerState for SqlLedger<E> {
    async fn setting(&self, name: &'static str) -> Result<Option<String>, Refusal> {
        self.engine.read(ReadSetting { name }).await
    }

    async fn set_setting_once(&self, name: &'static str, value: &str) -> Result<String, Refusal> {
        self.engine.write(SetSettingOnce { name, value: value.to_owned() }).await
    }

    async fn newest_id(&self) -> Result<Option<Timestamp>, Refusal> {
        self.engine.read(ReadNewestId).await
    }

    async fn revision(&self) -> Result<Revision, Refusal> {
        self.engine.read(ReadRevision).await
    }

    async fn check(&self) -> Result<(), Refusal> {
        self.heads.intact()?;
        self.engine.write(CheckWrite).await
    }

    async fn statistics(&self) -> Result<LedgerStatistics, Refusal> {
        let (open_approvals, oldest_open_approval) = self.engine.read(CountOpenApprovals).await?;
        Ok(LedgerStatistics { open_approvals, oldest_open_approval, engine: self.engine.statistics().await? })
    }
}

impl<E: Engine> SqlLedger<E> {
    /// The revision that includes a change that was just made: later reads report this one or a later one.
    pub(super) async fn revision_after_change(&self) -> Result<Revision, Refusal> {
        self.engine.read(ReadRevision).await.map_err(|refusal| {
            Refusal::new(
                refusal.code(),
                "the change was made, but the ledger became unavailable before it could be read back; read it later",
            )
        })
    }
}

pub struct ReadSetting {
    pub name: &'static str,
}

impl Operation for ReadSetting {
    type Output = Option<String>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Option<String>, Failure> {
        let sql = "SELECT value FROM settings WHERE name = $1";
        let row = transaction.query_optional(sql, values![self.name]).await?;
        Ok(row.map(|row| row.text(0).map(str::to_owned)).transpose()?)
    }
}

/// Sets a setting once; returns the value in effect.
pub struct SetSettingOnce {
    pub name: &'static str,
    pub value: String,
}

impl Operation for SetSettingOnce {
    type Output = String;

    const CHANGES_AUTHORITY: bool = false;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<String, Failure> {
        let sql = "INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";
        transaction.execute(sql, values![self.name, self.value.as_str()]).await?;
        let held = ReadSetting { name: self.name }.run(transaction).await?;
        Ok(held.unwrap_or_else(|| self.value.clone()))
    }
}

/// Writes a meaningless value, to check that writes succeed. A new value each time: SQLite does not write an unchanged
/// row, and the check would pass on a full disk.
pub struct CheckWrite;

impl Operation for CheckWrite {
    type Output = ();

    const CHANGES_AUTHORITY: bool = false;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<(), Failure> {
        let sql = "INSERT INTO settings (name, value) VALUES ('last_check', 'tick') ON CONFLICT (name) DO UPDATE \
             SET value = CASE settings.value WHEN 'tick' THEN 'tock' ELSE 'tick' END";
        transaction.execute(sql, &[]).await?;
        Ok(())
    }
}

pub struct ReadRevision;

impl Operation for ReadRevision {
    type Output = Revision;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Revision, Failure> {
        Ok(transaction.revision().await?)
    }
}
