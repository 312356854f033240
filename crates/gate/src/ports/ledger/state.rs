//! The ledger itself: its settings, its position and whether it works.

use async_trait::async_trait;
use toolgate_model::time::Timestamp;

use super::Revision;
use crate::refusal::Refusal;

/// The ledger itself: its settings, its position and whether it works.
#[async_trait]
pub trait LedgerState: Send + Sync {
    /// Returns a setting of this ledger, such as the audit key that its log began with.
    async fn setting(&self, name: &'static str) -> Result<Option<String>, Refusal>;
    /// Sets a setting unless it is set; returns the value that holds.
    async fn set_setting_once(&self, name: &'static str, value: &str) -> Result<String, Refusal>;
    /// Returns the time of the newest id of everything that is listed by id.
    async fn newest_id(&self) -> Result<Option<Timestamp>, Refusal>;
    /// Returns the revision that a read made now would include.
    async fn revision(&self) -> Result<Revision, Refusal>;
    /// Writes and reads, to see that the ledger works.
    async fn check(&self) -> Result<(), Refusal>;
}
