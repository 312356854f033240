//! The identity of the ledger's file. SQLite keeps writing to a file that was removed or replaced, and those writes are
//! lost: so nothing is acknowledged once another file, or none, is at the ledger's path.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::sql::SqlError;

/// The files of an open ledger.
#[derive(Debug)]
pub(super) struct Identity {
    ledger: Known,
    /// The write-ahead log; SQLite creates it with the first write.
    ahead: Known,
    lost: bool,
}

#[derive(Debug)]
struct Known {
    path: PathBuf,
    file: Option<(u64, u64)>,
}

impl Identity {
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let mut ahead = path.as_os_str().to_owned();
        ahead.push("-wal");
        let ledger = Known { file: Some(file_at(path)?), path: path.to_owned() };
        Ok(Self { ledger, ahead: Known { path: ahead.into(), file: None }, lost: false })
    }

    /// Fails if what was just written is not in the files at the ledger's paths; permanently, once it has failed.
    pub(super) fn check(&mut self) -> Result<(), SqlError> {
        let gone = match self.lost {
            true => Some(&self.ledger),
            false => {
                [&mut self.ledger, &mut self.ahead].into_iter().find_map(|known| (!known.is_there()).then_some(&*known))
            }
        };
        let Some(gone) = gone else { return Ok(()) };
        let reason = format!(
            "{} was removed or replaced while the gate was running; restore the ledger and restart the gate",
            gone.path.display()
        );
        if !std::mem::replace(&mut self.lost, true) {
            tracing::error!(reason, "the ledger file is lost: refusing all writes");
        }
        Err(SqlError::Unavailable(reason))
    }
}

impl Known {
    fn is_there(&mut self) -> bool {
        match (file_at(&self.path), self.file) {
            (Ok(now), Some(known)) => now == known,
            (Ok(now), None) => {
                self.file = Some(now);
                true
            }
            // Before the first write there may be none.
            (Err(_), known) => known.is_none(),
        }
    }
}

fn file_at(path: &Path) -> io::Result<(u64, u64)> {
    let found = std::fs::metadata(path)?;
    Ok((found.dev(), found.ino()))
}
