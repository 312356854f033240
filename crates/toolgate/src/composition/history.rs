//! Checks at start that the ledger is the newest one: compares it with the heads that are stored apart from it.

use std::path::{Path, PathBuf};

use toolgate_gate::Gate;
use toolgate_gate::maintenance::Maintenance;
use toolgate_gate::ports::ledger::{LedgerState, LogHead, LogRollback};
use toolgate_ledger::postgres;
use toolgate_model::checkpoint::PublicKey;

use super::{LEDGER_FILE, StartError};
use crate::audit_key::real;
use crate::configuration::{Configuration, Store};
use crate::heads_file::{HeadsFileError, HeadsFiles, HeadsKeeper, Kept};

/// The maximum number of tenants in an error.
const NAMED: usize = 3;

/// The heads from earlier starts.
pub struct Known {
    files: HeadsFiles,
    place: String,
    /// The heads of this ledger, and of any other at its place, each with its file.
    heads: Vec<(PathBuf, Vec<LogHead>)>,
    /// Files that cannot be used, which the operator accepts.
    unusable: Vec<PathBuf>,
}

/// A ledger that went back, and that the operator accepts.
pub struct Rollback {
    log_rollbacks: Vec<LogRollback>,
    /// The files that knew better.
    files: Vec<PathBuf>,
}

/// Refuses a missing embedded ledger, before a new one is created in its place.
pub fn require_ledger(configuration: &Configuration) -> Result<(), StartError> {
    let Some(ledger) = configuration.data().map(|data| data.join(LEDGER_FILE)) else { return Ok(()) };
    if configuration.accept_ledger_rollback || !is_missing(&ledger) {
        return Ok(());
    }
    let place = place(configuration);
    for path in files(configuration).all()? {
        if Kept::read(&path)?.place == place {
            let (path, heads) = (ledger.display().to_string(), path.display().to_string());
            return Err(StartError::LedgerMissing { path, heads });
        }
    }
    Ok(())
}

/// A file with heads that the audit key has signed, of whichever ledger.
pub fn any_file(configuration: &Configuration) -> Result<Option<PathBuf>, StartError> {
    Ok(files(configuration).all()?.into_iter().next())
}

impl Known {
    /// The contents of the files about this ledger. If the ledger has no id yet, an unreadable file may be about it.
    pub async fn of(
        configuration: &Configuration,
        ledger: &dyn LedgerState,
        key: &PublicKey,
    ) -> Result<Self, StartError> {
        let (files, place) = (files(configuration), place(configuration));
        let id = ledger.setting(Maintenance::LEDGER_ID_SETTING).await?;
        let own = id.as_deref().map(|id| files.path(id));
        let (mut heads, mut unusable) = (Vec::new(), Vec::new());
        for path in files.all()? {
            let is_own = own.as_ref() == Some(&path);
            let read = Kept::read(&path).and_then(|kept| match is_own || kept.place == place {
                true => kept.verified(key).map(Some),
                false => Ok(None),
            });
            match read {
                Ok(Some(found)) => heads.push((path, found)),
                Ok(None) => {}
                Err(error) if is_own || own.is_none() => {
                    unless_refused(configuration, error)?;
                    unusable.push(path);
                }
                Err(error) => tracing::warn!(%error, "the heads of another ledger cannot be read"),
            }
        }
        if heads.is_empty() && unusable.is_empty() {
            let directory = configuration.heads_directory.display();
            tracing::info!(%directory, "no signed heads of this ledger are known yet; they are stored from now on");
        }
        Ok(Self { files, place, heads, unusable })
    }

    /// Compares the ledger with the known heads, before anything is written to it. Returns what to record if it was
    /// rolled back and the operator accepts that.
    pub async fn compare(&self, configuration: &Configuration, gate: &Gate) -> Result<Option<Rollback>, StartError> {
        let mut rollback = Rollback { log_rollbacks: Vec::new(), files: self.unusable.clone() };
        for (path, heads) in &self.heads {
            let log_rollbacks = gate.maintenance.compare_heads(heads).await?;
            if log_rollbacks.is_empty() {
                continue;
            }
            let details = named(&log_rollbacks);
            if !configuration.accept_ledger_rollback {
                return Err(StartError::LedgerRolledBack { heads: path.display().to_string(), details });
            }
            tracing::warn!(details, "the ledger was rolled back, and the operator accepts it");
            rollback.log_rollbacks.extend(log_rollbacks);
            rollback.files.push(path.clone());
        }
        Ok((!rollback.files.is_empty()).then_some(rollback))
    }

    /// Stores the heads of this ledger from now on.
    pub async fn keeper(&self, gate: &Gate) -> Result<HeadsKeeper, StartError> {
        Ok(HeadsKeeper::new(&self.files, &gate.maintenance.ledger_id().await?, &self.place))
    }
}

impl Rollback {
    /// Records the rollback, and stores the heads of this ledger at once: the acceptance stays, even if the process
    /// stops now.
    pub async fn accept(self, gate: &Gate, keeper: &HeadsKeeper) -> Result<(), StartError> {
        gate.maintenance.accept_rollback(self.log_rollbacks).await?;
        gate.audit.integrate().await?;
        gate.maintenance.watch_heads().await?;
        keeper.keep(gate).await?;
        for path in self.files.iter().filter(|path| *path != keeper.path()) {
            std::fs::remove_file(path)?;
        }
        Ok(())
    }
}

fn files(configuration: &Configuration) -> HeadsFiles {
    HeadsFiles::of(&configuration.audit_key_file, &configuration.heads_directory)
}

/// Where the ledger is, without any password.
fn place(configuration: &Configuration) -> String {
    match &configuration.store {
        Store::Embedded { data } => real(data).join(LEDGER_FILE).display().to_string(),
        Store::Postgres { url, .. } => postgres::address(url.expose()).unwrap_or_default(),
    }
}

fn unless_refused(configuration: &Configuration, error: HeadsFileError) -> Result<(), StartError> {
    if !configuration.accept_ledger_rollback {
        return Err(error.into());
    }
    tracing::warn!(%error, "recreating the heads file, as the operator requested");
    Ok(())
}

fn named(log_rollbacks: &[LogRollback]) -> String {
    let mut names: Vec<String> = log_rollbacks.iter().take(NAMED).map(ToString::to_string).collect();
    if let Some(more) = log_rollbacks.len().checked_sub(NAMED).filter(|more| *more > 0) {
        names.push(format!("and {more} more tenants"));
    }
    names.join(", ")
}

/// Whether the path certainly does not exist: any other problem is found when it is opened.
pub fn is_missing(path: &Path) -> bool {
    path.try_exists().is_ok_and(|exists| !exists)
}
