//! Rotation of the master key while the gate runs. Every step can be repeated, so after a crash it simply continues:
//! the ledger knows what is left to do.

use std::sync::atomic::Ordering;

use super::Maintenance;
use crate::authority::tenants::require_platform;
use crate::identify::Caller;
use crate::ports::ledger::{AuditContext, KeyUsage, RecordRekey, Rewrap, SealedVersion};
use crate::ports::sealer::{MasterKeyId, SealError};
use crate::refusal::Refusal;
use toolgate_model::principal::{PrincipalId, TenantId};

/// The number of versions rewrapped per query of the ledger.
const BATCH: u32 = 128;

pub struct KeyStatus {
    /// The key that new material is sealed under.
    pub current: MasterKeyId,
    /// All keys that wrap or have wrapped something.
    pub usage: Vec<KeyUsage>,
}

impl KeyStatus {
    /// The number of data keys that still have to be rewrapped.
    pub fn remaining(&self) -> u64 {
        self.usage.iter().filter(|usage| usage.key != self.current).map(|usage| usage.wraps).sum()
    }
}

/// The result of a rekey run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rekeyed {
    pub rewrapped: u64,
    /// Versions that cannot be unsealed; they stay as they are, and so does the key that wraps them.
    pub damaged: u64,
}

impl Maintenance {
    /// Which master key wraps what.
    pub async fn key_status(&self, caller: &Caller) -> Result<KeyStatus, Refusal> {
        require_platform(caller)?;
        self.read_key_status().await
    }

    /// Makes a new master key current, unless a rekey is in progress, and requests the background rekey.
    pub async fn begin_rekey(&self, caller: &Caller) -> Result<KeyStatus, Refusal> {
        // The key provider has no transaction that could check this, so it is checked right before.
        require_platform(&self.authenticator.identify_again(caller).await?)?;
        let before = self.read_key_status().await?;
        if before.remaining() == 0 {
            // The ledger must know the key even if it wraps nothing, so that it is retired and removed like any other.
            self.master_keys.register_key(&before.current).await?;
            let key = self.sealer.renew_key().await?;
            tracing::info!(key = key.0, "a new master key is current");
        }
        self.rekey_wanted.store(true, Ordering::Release);
        self.read_key_status().await
    }

    /// Returns whether a rekey is requested, and clears the request.
    pub fn take_rekey_request(&self) -> bool {
        self.rekey_wanted.swap(false, Ordering::AcqRel)
    }

    /// Rewraps everything under the current master key, then retires the others.
    pub async fn rekey(&self) -> Result<Rekeyed, Refusal> {
        let current = self.sealer.current_key().await?;
        let mut done = Rekeyed::default();
        let mut after = None;
        loop {
            let versions = self.master_keys.sealed_under_other_keys(&current, after, BATCH).await?;
            let Some(last) = versions.last() else { break };
            after = Some(last.binding.subject);
            for version in versions {
                match self.rewrap(version).await? {
                    Some(true) => done.rewrapped += 1,
                    Some(false) => {}
                    None => done.damaged += 1,
                }
            }
        }
        for usage in self.master_keys.key_usage().await? {
            if usage.key != current && self.master_keys.retire_key(&usage.key, self.clock.now()).await? {
                // Nothing is or ever will be stored under a retired key: see the ledger's master_keys.
                self.sealer.forget_key(&usage.key).await?;
            }
        }
        if done.rewrapped > 0 {
            let audit = AuditContext {
                tenant: TenantId::default_tenant(),
                actor: PrincipalId::system(),
                time: self.clock.now(),
            };
            self.master_keys.record_rekey(RecordRekey { audit, key: current, rewrapped: done.rewrapped }).await?;
        }
        Ok(done)
    }

    /// Rewraps one version; `None` if it cannot be unsealed.
    async fn rewrap(&self, version: SealedVersion) -> Result<Option<bool>, Refusal> {
        match self.sealer.rewrap(&version.binding, &version.sealed).await {
            Ok(sealed) => {
                let command = Rewrap { binding: version.binding, replaced: version.sealed.wrapped_key, sealed };
                Ok(Some(self.master_keys.rewrap(command).await?))
            }
            Err(error @ (SealError::Damaged { .. } | SealError::KeyMissing { .. })) => {
                tracing::warn!(%error, "leaving a credential under its old master key");
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn read_key_status(&self) -> Result<KeyStatus, Refusal> {
        Ok(KeyStatus { current: self.sealer.current_key().await?, usage: self.master_keys.key_usage().await? })
    }
}
