//! What the gate does without a caller: the first start, checks, and background tasks.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use toolgate_model::checkpoint::SigningKey;

use crate::gate::{Ports, Shared};
use crate::identify::Authenticator;
use crate::ids::Ids;
use crate::ports::clock::Clock;
use crate::ports::ledger::{
    AuditLog, Calls, Credentials, Grants, Keys, LedgerState, LedgerStatistics, MasterKeys, Stores, Tasks, Tenants,
    ToolSessions,
};
use crate::ports::sealer::{SealError, Sealer};
use crate::refusal::{Code, Refusal};

pub mod bootstrap;
mod history;
pub mod master_keys;
pub mod mount_sessions;
pub mod mounts;

/// How long refused calls are counted before they are recorded in a summary.
const REFUSALS_SUMMED_AFTER: Duration = Duration::from_secs(10);

/// Bootstrap, checks, sweeps, rekeying, and the comparison of the ledger with its signed heads.
pub struct Maintenance {
    tenants: Arc<dyn Tenants>,
    keys: Arc<dyn Keys>,
    credentials: Arc<dyn Credentials>,
    master_keys: Arc<dyn MasterKeys>,
    grants: Arc<dyn Grants>,
    calls: Arc<dyn Calls>,
    tool_sessions: Arc<dyn ToolSessions>,
    tasks: Arc<dyn Tasks>,
    stores: Arc<dyn Stores>,
    log: Arc<dyn AuditLog>,
    state: Arc<dyn LedgerState>,
    sealer: Arc<dyn Sealer>,
    clock: Arc<dyn Clock>,
    authenticator: Arc<Authenticator>,
    ids: Arc<Ids>,
    audit_key: Arc<SigningKey>,
    rekey_wanted: AtomicBool,
}

impl Maintenance {
    pub(crate) fn new(ports: &Ports, shared: &Shared, audit_key: Arc<SigningKey>) -> Self {
        Self {
            tenants: ports.ledger.clone(),
            keys: ports.ledger.clone(),
            credentials: ports.ledger.clone(),
            master_keys: ports.ledger.clone(),
            grants: ports.ledger.clone(),
            calls: ports.ledger.clone(),
            tool_sessions: ports.ledger.clone(),
            tasks: ports.ledger.clone(),
            stores: ports.ledger.clone(),
            log: ports.ledger.clone(),
            state: ports.ledger.clone(),
            sealer: Arc::clone(&ports.sealer),
            clock: Arc::clone(&ports.clock),
            authenticator: Arc::clone(&shared.authenticator),
            ids: Arc::clone(&shared.ids),
            audit_key,
            // A rekey that a crash interrupted continues at the next start.
            rekey_wanted: AtomicBool::new(true),
        }
    }

    /// Checks that the ledger takes writes.
    pub async fn check_ledger(&self) -> Result<(), Refusal> {
        self.state.check().await
    }

    pub async fn ledger_statistics(&self) -> Result<LedgerStatistics, Refusal> {
        self.state.statistics().await
    }

    /// Checks that the key provider seals and unseals.
    pub async fn check_key_provider(&self) -> Result<(), Refusal> {
        Ok(self.sealer.check().await?)
    }

    /// Checks that no credential is sealed under a master key that is not available.
    pub async fn check_sealed(&self) -> Result<(), Refusal> {
        let current = self.sealer.current_key().await?;
        let under_others = self.master_keys.sealed_under_other_keys(&current, None, 1).await?;
        let Some(version) = under_others.first() else { return Ok(()) };
        match self.sealer.unseal(&version.binding, &version.sealed).await {
            Err(SealError::KeyMissing { key }) => {
                let reason = format!(
                    "credentials are sealed under master key {}, which is not available; restore it, or rotate them",
                    key.0
                );
                Err(Refusal::new(Code::KeyProviderUnavailable, reason))
            }
            _ => Ok(()),
        }
    }

    /// Records calls that were cut off as unknown, and deletes expired results. Calls that an earlier process left
    /// running are cut off at once if the ledger knows that no other process exists.
    pub async fn close_calls(&self) -> Result<u64, Refusal> {
        if !self.clock.is_steady() {
            return Ok(0);
        }
        self.calls.close_calls(self.clock.now()).await
    }

    /// Closes abandoned sessions.
    pub async fn close_sessions(&self) -> Result<u64, Refusal> {
        if !self.clock.is_steady() {
            return Ok(0);
        }
        self.tool_sessions.close_sessions(self.clock.now()).await
    }

    /// Fails overdue tasks and ends expired leases and coordinators, with everything that ends with them.
    pub async fn sweep_work(&self) -> Result<u64, Refusal> {
        if !self.clock.is_steady() {
            return Ok(0);
        }
        self.tasks.sweep_work(self.clock.now()).await
    }

    /// Deletes what has expired in stores and what was removed, and overwrites what was deleted.
    pub async fn sweep_stores(&self) -> Result<u64, Refusal> {
        if !self.clock.is_steady() {
            return Ok(0);
        }
        let deleted = self.stores.sweep_stores(self.clock.now()).await?;
        self.stores.erase_deleted().await?;
        Ok(deleted)
    }

    /// Records counted refusals, in one event for each principal. Without `all`, only counts that were started a while
    /// ago, so that an event covers more of them.
    pub async fn sum_up_refusals(&self, all: bool) -> Result<(), Refusal> {
        let now = self.clock.now();
        let before = if all { now.plus(Duration::from_secs(1)) } else { now.minus(REFUSALS_SUMMED_AFTER) };
        self.calls.sum_up_denials(before, now).await.map(drop)
    }

    /// Records expiries and destroys material that is no longer needed.
    pub async fn sweep(&self) -> Result<(), Refusal> {
        if !self.clock.is_steady() {
            return Ok(());
        }
        let now = self.clock.now();
        let announced = self.grants.announce_expired(now).await;
        self.credentials.destroy_retired(now).await?;
        announced.map(drop)
    }
}
