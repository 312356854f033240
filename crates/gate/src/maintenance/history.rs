//! Whether the ledger is the one that it was: its logs go on from the heads that were signed before.

use toolgate_model::principal::{PrincipalId, TenantId};

use super::Maintenance;
use crate::ports::entropy::random;
use crate::ports::ledger::{AuditContext, LogHead, LogRollback, RecordRollback};
use crate::refusal::Refusal;

impl Maintenance {
    /// Where the ledger says which one it is.
    pub const LEDGER_ID_SETTING: &'static str = "ledger_id";

    /// Which ledger it is: a name that it gets once, and that its copies have too.
    pub async fn ledger_id(&self) -> Result<String, Refusal> {
        let new = format!("{:016x}", u64::from_be_bytes(random()?));
        self.state.set_setting_once(Self::LEDGER_ID_SETTING, &new).await
    }

    /// Compares the ledger with heads that were kept from before. Writes nothing.
    pub async fn compare_heads(&self, known: &[LogHead]) -> Result<Vec<LogRollback>, Refusal> {
        self.log.compare_heads(known).await
    }

    /// Records that the operator accepted a ledger that went back; without rollbacks, that nothing could be compared.
    pub async fn accept_rollback(&self, log_rollbacks: Vec<LogRollback>) -> Result<(), Refusal> {
        let audit =
            AuditContext { tenant: TenantId::default_tenant(), actor: PrincipalId::system(), time: self.clock.now() };
        self.log.record_rollback(RecordRollback { audit, log_rollbacks }).await
    }

    /// Compares the ledger with what this process knows of it, and learns how it went on.
    pub async fn watch_heads(&self) -> Result<(), Refusal> {
        // The ids of this process come behind what others have signed, however late its clock is.
        if let Some(newest) = self.log.watch_heads().await? {
            self.ids.go_on_from(newest);
        }
        Ok(())
    }

    /// Lets new ids come behind all that the ledger has, so that lists that were read go on with them.
    pub async fn begin_ids(&self) -> Result<(), Refusal> {
        if let Some(newest) = self.state.newest_id().await? {
            self.ids.go_on_from(newest);
        }
        Ok(())
    }

    /// The heads to be kept for later starts, with the number of changes that led to them; `None` where there were no more
    /// changes than `seen`.
    pub fn known_heads(&self, seen: u64) -> Option<(u64, Vec<LogHead>)> {
        self.log.known_heads(seen)
    }
}
