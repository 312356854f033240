//! Detects a ledger that was rolled back: its logs must continue from the heads that were signed before.

use toolgate_model::principal::{PrincipalId, TenantId};

use super::Maintenance;
use crate::ports::entropy::random;
use crate::ports::ledger::{AuditContext, LogHead, LogRollback, RecordRollback};
use crate::refusal::Refusal;

impl Maintenance {
    /// The setting with the id of the ledger.
    pub const LEDGER_ID_SETTING: &'static str = "ledger_id";

    /// The id of the ledger: assigned once, and shared by its copies.
    pub async fn ledger_id(&self) -> Result<String, Refusal> {
        let new = format!("{:016x}", u64::from_be_bytes(random()?));
        self.state.set_setting_once(Self::LEDGER_ID_SETTING, &new).await
    }

    /// Compares the ledger with stored heads. Writes nothing.
    pub async fn compare_heads(&self, known: &[LogHead]) -> Result<Vec<LogRollback>, Refusal> {
        self.log.compare_heads(known).await
    }

    /// Records that the operator accepted a rollback of the ledger; without rollbacks, that nothing could be compared.
    pub async fn accept_rollback(&self, log_rollbacks: Vec<LogRollback>) -> Result<(), Refusal> {
        let audit =
            AuditContext { tenant: TenantId::default_tenant(), actor: PrincipalId::system(), time: self.clock.now() };
        self.log.record_rollback(RecordRollback { audit, log_rollbacks }).await
    }

    /// Compares the ledger with the heads that this process knows, and updates those.
    pub async fn watch_heads(&self) -> Result<(), Refusal> {
        // The ids of this process sort after what others have signed, however late its clock is.
        if let Some(newest) = self.log.watch_heads().await? {
            self.ids.go_on_from(newest);
        }
        Ok(())
    }

    /// Makes new ids sort after everything in the ledger, so that lists continue with them.
    pub async fn begin_ids(&self) -> Result<(), Refusal> {
        if let Some(newest) = self.state.newest_id().await? {
            self.ids.go_on_from(newest);
        }
        Ok(())
    }

    /// The heads to store for later starts, with the number of changes that led to them; `None` if there were no more
    /// changes than `seen`.
    pub fn known_heads(&self, seen: u64) -> Option<(u64, Vec<LogHead>)> {
        self.log.known_heads(seen)
    }
}
