//! The port of the audit log.

use std::sync::Arc;

use async_trait::async_trait;
use toolgate_gate::ports::ledger::{
    AuditLog, EventFilter, LogHead, LogNews, LogRollback, LoggedEvent, Page, PageRequest, RecordRollback,
};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::checkpoint::SigningKey;
use toolgate_model::merkle::{TileCoordinate, Tiles};
use toolgate_model::principal::TenantId;
use toolgate_model::time::Timestamp;

use super::audit::{self, Integrate, ListPending, ReadHead, ReadTiles};
use super::event_lists::ListEvents;
use super::event_news::ReadNews;
use super::heads::{CompareHeads, rolled_back};
use crate::ledger::{Engine, SqlLedger};

#[async_trait]
impl<E: Engine> AuditLog for SqlLedger<E> {
    async fn integrate(&self, signer: Arc<SigningKey>, now: Timestamp) -> Result<u64, Refusal> {
        self.heads.intact()?;
        let (mut total, mut failure) = (0, None);
        for tenant in self.engine.read(ListPending).await? {
            match self.integrate_tenant(&tenant, &signer, now).await {
                Ok(count) => total += count,
                Err(refusal) if refusal.code() == Code::LedgerRolledBack => return Err(self.heads.lose(refusal)),
                Err(refusal) if refusal.code() == Code::LedgerUnavailable => return Err(refusal),
                // The logs of other tenants continue without this one.
                Err(refusal) => {
                    let reason = format!("the log of tenant `{tenant}` cannot be extended: {}", refusal.reason());
                    failure.get_or_insert(Refusal::new(refusal.code(), reason));
                }
            }
        }
        failure.map_or(Ok(total), Err)
    }

    async fn events(
        &self,
        tenant: &TenantId,
        filter: EventFilter,
        page: PageRequest,
    ) -> Result<Page<LoggedEvent>, Refusal> {
        self.engine.read(ListEvents { tenant: tenant.clone(), filter, page }).await
    }

    async fn log_news(&self, followed: Vec<(TenantId, Option<u64>)>) -> Result<Vec<LogNews>, Refusal> {
        self.engine.read(ReadNews { followed }).await
    }

    async fn log_head(&self, tenant: &TenantId) -> Result<Option<LogHead>, Refusal> {
        self.engine.read(ReadHead { tenant: tenant.clone() }).await
    }

    async fn compare_heads(&self, known: &[LogHead]) -> Result<Vec<LogRollback>, Refusal> {
        let heads = known.iter().map(|known| (known.head.tenant.clone(), known.head.clone())).collect();
        let compared = self.engine.read(CompareHeads { known: heads }).await?;
        if compared.log_rollbacks.is_empty() {
            self.heads.learn(known.iter().cloned().chain(compared.newer));
        }
        Ok(compared.log_rollbacks)
    }

    async fn watch_heads(&self) -> Result<Option<Timestamp>, Refusal> {
        self.heads.intact()?;
        // INVARIANT: read before the ledger, so that what is read from the ledger cannot be older.
        let known = self.heads.all();
        let compared = self.engine.read(CompareHeads { known }).await?;
        if !compared.log_rollbacks.is_empty() {
            return Err(self.heads.lose(rolled_back(&compared.log_rollbacks)));
        }
        self.heads.learn(compared.newer);
        Ok(self.heads.newest())
    }

    fn known_heads(&self, seen: u64) -> Option<(u64, Vec<LogHead>)> {
        self.heads.newer_than(seen)
    }

    async fn record_rollback(&self, command: RecordRollback) -> Result<(), Refusal> {
        self.engine.write(command).await
    }

    async fn tiles(&self, tenant: &TenantId, coordinates: &[TileCoordinate]) -> Result<Tiles, Refusal> {
        self.engine.read(ReadTiles { tenant: tenant.clone(), coordinates: coordinates.to_vec() }).await
    }
}

impl<E: Engine> SqlLedger<E> {
    /// Integrates all pending events of a tenant into its tree.
    async fn integrate_tenant(
        &self,
        tenant: &TenantId,
        signer: &Arc<SigningKey>,
        now: Timestamp,
    ) -> Result<u64, Refusal> {
        let mut total = 0;
        loop {
            let known = self.heads.of(tenant);
            let integrate = Integrate { tenant: tenant.clone(), known, signer: Arc::clone(signer), now };
            let (count, head) = self.engine.write(integrate).await?;
            self.heads.learn(head);
            total += count;
            if count < u64::from(audit::BATCH) {
                return Ok(total);
            }
        }
    }
}
