//! The ledger itself: its settings, its position and whether it works.

use async_trait::async_trait;
use toolgate_model::time::Timestamp;

use super::Revision;
use crate::distribution::Counted;
use crate::refusal::Refusal;

#[async_trait]
pub trait LedgerState: Send + Sync {
    /// Returns a setting of this ledger, such as the audit key that its log began with.
    async fn setting(&self, name: &'static str) -> Result<Option<String>, Refusal>;
    /// Sets a setting unless it is set; returns the value that holds.
    async fn set_setting_once(&self, name: &'static str, value: &str) -> Result<String, Refusal>;
    /// Returns the time of the newest id of all objects that are listed by id.
    async fn newest_id(&self) -> Result<Option<Timestamp>, Refusal>;
    /// Returns the revision that a read made now would include.
    async fn revision(&self) -> Result<Revision, Refusal>;
    /// Writes and reads, to check that the ledger works.
    async fn check(&self) -> Result<(), Refusal>;
    async fn statistics(&self) -> Result<LedgerStatistics, Refusal>;
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LedgerStatistics {
    /// Approvals that wait for a decision, of all processes that share the ledger.
    pub open_approvals: u64,
    /// When the oldest of them was requested.
    pub oldest_open_approval: Option<Timestamp>,
    pub engine: EngineStatistics,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EngineStatistics {
    pub bytes: u64,
    /// The size of its write-ahead log, if the engine knows it.
    pub wal_bytes: Option<u64>,
    /// Operations that wait to be written.
    pub queued: u64,
    /// The number of operations per transaction.
    pub batches: Counted,
    /// Connections that reads, and on PostgreSQL all single operations, share.
    pub pool_connections: u64,
    pub pool_connections_in_use: u64,
}
