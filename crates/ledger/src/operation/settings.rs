//! Settings that belong to the ledger itself, and the check that it works.

use toolgate_gate::ports::ledger::Revision;

use super::Operation;
use crate::sql::Failure;
use crate::transaction::{Transaction, values};

/// Reads a setting.
pub struct ReadSetting {
    /// Which.
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

/// Sets a setting once; answers the value that holds.
pub struct SetSettingOnce {
    /// Which.
    pub name: &'static str,
    /// To what.
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

/// Writes something that means nothing, to see that writes are taken. Each time something else: SQLite would not write a
/// row anew that stays the same, and the check would pass on a full disk.
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

/// Reads the revision.
pub struct ReadRevision;

impl Operation for ReadRevision {
    type Output = Revision;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Revision, Failure> {
        Ok(transaction.revision().await?)
    }
}
