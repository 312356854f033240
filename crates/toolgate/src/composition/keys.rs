//! The keys of a ledger. Those that it was started with must exist: a lost key is never replaced by a new one, which
//! could unseal nothing and could not continue the log.

use std::path::Path;
use std::sync::Arc;

use toolgate_gate::maintenance::bootstrap::{AUDIT_KEY_SETTING, other_audit_key};
use toolgate_gate::ports::ledger::{LedgerState, MasterKeys};
use toolgate_model::checkpoint::SigningKey;
use toolgate_vault::{CommandProvider, EnvironmentProvider, FileProvider, KeyProvider};

use super::StartError;
use super::history::{self, is_missing};
use crate::audit_key;
use crate::configuration::{Configuration, KeySource};

/// The provider of the master key. Creates the file if there is none and nothing is sealed yet.
pub async fn open_provider(
    configuration: &Configuration,
    sealed_under: &dyn MasterKeys,
) -> Result<Arc<dyn KeyProvider>, StartError> {
    Ok(match &configuration.key_source {
        KeySource::File(path) => {
            if !configuration.accept_lost_master_key && is_missing(path) {
                refuse_lost(path, sealed_under).await?;
            }
            Arc::new(FileProvider::open(path, configuration.data())?)
        }
        KeySource::Environment { current, previous } => Arc::new(EnvironmentProvider::new(current, previous.as_ref())?),
        KeySource::Command { words, timeout } => Arc::new(CommandProvider::new(words, *timeout)?),
    })
}

async fn refuse_lost(path: &Path, sealed_under: &dyn MasterKeys) -> Result<(), StartError> {
    let usage = sealed_under.key_usage().await?;
    let keys: Vec<String> = usage.into_iter().filter(|usage| usage.wraps > 0).map(|usage| usage.key.0).collect();
    if keys.is_empty() {
        return Ok(());
    }
    Err(StartError::MasterKeyLost { path: path.display().to_string(), keys: keys.join(", ") })
}

/// The key that signs the log. Creates the file if there is none and nothing is signed yet.
pub async fn open_audit_key(configuration: &Configuration, ledger: &dyn LedgerState) -> Result<SigningKey, StartError> {
    let path = &configuration.audit_key_file;
    let begun_with = ledger.setting(AUDIT_KEY_SETTING).await?;
    if is_missing(path) {
        if let Some(public_key) = begun_with {
            return Err(StartError::AuditKeyLost { path: path.display().to_string(), public_key });
        }
        if !configuration.accept_ledger_rollback
            && let Some(heads) = history::any_file(configuration)?
        {
            let (path, heads) = (path.display().to_string(), heads.display().to_string());
            return Err(StartError::AuditKeyMissing { path, heads });
        }
    }
    let key = audit_key::open(path, configuration.data())?;
    // Before anything is verified by it.
    let own = key.public_key().to_string();
    match begun_with {
        Some(begun_with) if begun_with != own => Err(other_audit_key(&own, &begun_with).into()),
        _ => Ok(key),
    }
}
