//! The newest signed heads of the logs, stored apart from the ledger: with them a start detects that the ledger is an
//! older or another one. There is a file for each ledger that the audit key signs for, named by the ledger's id. It may
//! be a second older than the ledger, never newer. Its text is `{"format":1,"ledger":"id","place":"where","heads":["a
//! signed note", ...]}`.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;
use tokio::sync::Mutex;
use toolgate_cli::private_file::{self, PrivateFileError};
use toolgate_gate::ports::ledger::LogHead;
use toolgate_gate::refusal::Code;
use toolgate_gate::{Gate, Refusal};
use toolgate_model::checkpoint::{PublicKey, verify};

const FORMAT: u64 = 1;
const SUFFIX: &str = ".heads";
/// More than the heads of a hundred thousand tenants take.
const LENGTH_LIMIT: u64 = 64 * 1024 * 1024;

/// Why heads cannot be read.
#[derive(Debug, Error)]
pub enum HeadsFileError {
    /// The file cannot be used.
    #[error("the heads file {0}")]
    File(#[from] PrivateFileError),
    /// It is no list of heads that this key signed.
    #[error(
        "the heads file {path} is damaged ({reason}), so the ledger cannot be checked for a rollback; restore the \
        file from a copy, or, if you are sure of the ledger, start once with --accept-ledger-rollback, which \
        recreates the file"
    )]
    Damaged { path: String, reason: String },
}

/// Where the files of one audit key are.
pub struct HeadsFiles {
    directory: PathBuf,
    prefix: String,
}

impl HeadsFiles {
    /// Those of this key, in this directory.
    pub fn of(audit_key: &Path, directory: &Path) -> Self {
        let name = audit_key.file_name().unwrap_or_default().to_string_lossy();
        Self { directory: directory.to_owned(), prefix: format!("{name}.") }
    }

    /// The file of a ledger.
    pub fn path(&self, ledger: &str) -> PathBuf {
        self.directory.join(format!("{}{ledger}{SUFFIX}", self.prefix))
    }

    /// All files that are there.
    pub fn all(&self) -> Result<Vec<PathBuf>, HeadsFileError> {
        let failed = |reason| PrivateFileError::Io { path: self.directory.display().to_string(), reason };
        let entries = match std::fs::read_dir(&self.directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error).into()),
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            let is_one = name.to_str().is_some_and(|name| name.starts_with(&self.prefix) && name.ends_with(SUFFIX));
            if is_one {
                found.push(entry.path());
            }
        }
        found.sort_unstable();
        Ok(found)
    }
}

/// The stored heads of one ledger, unverified.
#[derive(Debug)]
pub struct Kept {
    pub path: PathBuf,
    /// Where the ledger was.
    pub place: String,
    notes: Vec<String>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Document<'a> {
    format: u64,
    #[serde(borrow)]
    ledger: Cow<'a, str>,
    #[serde(borrow)]
    place: Cow<'a, str>,
    #[serde(borrow)]
    heads: Vec<Cow<'a, str>>,
}

impl Kept {
    pub fn read(path: &Path) -> Result<Self, HeadsFileError> {
        let text = private_file::read_within(path, LENGTH_LIMIT)?.ok_or_else(|| damaged(path, "it is missing"))?;
        let document: Document<'_> =
            serde_json::from_str(&text).map_err(|_| damaged(path, "it does not contain heads as JSON"))?;
        if document.format != FORMAT {
            return Err(damaged(path, "its format is unknown"));
        }
        let notes = document.heads.into_iter().map(Cow::into_owned).collect();
        Ok(Self { path: path.to_owned(), place: document.place.into_owned(), notes })
    }

    /// The heads, each signed by this key.
    pub fn verified(&self, key: &PublicKey) -> Result<Vec<LogHead>, HeadsFileError> {
        let heads: Vec<LogHead> = self
            .notes
            .iter()
            .map(|checkpoint| match verify(checkpoint, key) {
                Ok(head) => Ok(LogHead { head, checkpoint: checkpoint.clone() }),
                Err(error) => Err(damaged(&self.path, &error.to_string())),
            })
            .collect::<Result<_, _>>()?;
        let tenants: BTreeSet<_> = heads.iter().map(|head| &head.head.tenant).collect();
        if tenants.len() < heads.len() {
            return Err(damaged(&self.path, "it has two heads for one tenant"));
        }
        Ok(heads)
    }
}

/// Stores the heads of a gate in the file of its ledger.
pub struct HeadsKeeper {
    path: PathBuf,
    ledger: String,
    place: String,
    /// The number of changes that led to the contents of the file.
    written: Mutex<u64>,
}

impl HeadsKeeper {
    /// For the ledger with this id.
    pub fn new(files: &HeadsFiles, ledger: &str, place: &str) -> Self {
        let (ledger, place) = (ledger.to_owned(), place.to_owned());
        Self { path: files.path(&ledger), ledger, place, written: Mutex::new(0) }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the heads that the gate knows, unless the file has them.
    pub async fn keep(&self, gate: &Gate) -> Result<(), Refusal> {
        let mut written = self.written.lock().await;
        let Some((changes, heads)) = gate.maintenance.known_heads(*written) else { return Ok(()) };
        let (path, text) = (self.path.clone(), self.text(&heads));
        let failed = |reason: String| {
            let reason = format!("the heads file {reason}; a later start may not detect a rollback of the ledger");
            Refusal::new(Code::Internal, reason)
        };
        let kept = tokio::task::spawn_blocking(move || private_file::replace(&path, &text)).await;
        kept.map_err(|error| failed(error.to_string()))?.map_err(|error| failed(error.to_string()))?;
        *written = changes;
        Ok(())
    }

    fn text(&self, heads: &[LogHead]) -> String {
        let heads = heads.iter().map(|head| head.checkpoint.as_str().into()).collect();
        let (ledger, place) = (self.ledger.as_str().into(), self.place.as_str().into());
        serde_json::to_string(&Document { format: FORMAT, ledger, place, heads }).unwrap_or_default()
    }
}

fn damaged(path: &Path, reason: &str) -> HeadsFileError {
    HeadsFileError::Damaged { path: path.display().to_string(), reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use toolgate_model::checkpoint::{SigningKey, TreeHead, sign};
    use toolgate_model::merkle::leaf_hash;
    use toolgate_model::principal::TenantId;
    use toolgate_model::time::Timestamp;

    use super::*;

    fn head(tenant: &str, size: u64, key: &SigningKey) -> LogHead {
        let time = Timestamp::parse("2026-03-08T10:00:00Z").unwrap();
        let head = TreeHead { tenant: TenantId::parse(tenant).unwrap(), size, root: leaf_hash(b"root"), time };
        LogHead { checkpoint: sign(&head, key).unwrap(), head }
    }

    fn keeper(home: &Path) -> (HeadsFiles, HeadsKeeper) {
        let files = HeadsFiles::of(&home.join("audit.key"), home);
        let keeper = HeadsKeeper::new(&files, "one", "/data/ledger.sqlite3");
        (files, keeper)
    }

    #[test]
    fn heads_are_read_as_they_were_written() {
        let home = tempfile::tempdir().unwrap();
        let (files, keeper) = keeper(home.path());
        let key = SigningKey::from_seed(&[1; 32]).unwrap();
        assert!(files.all().unwrap().is_empty());
        let heads = vec![head("acme", 7, &key), head("default", 12, &key)];
        private_file::replace(keeper.path(), &keeper.text(&heads)).unwrap();
        std::fs::write(home.path().join("other.key.one.heads"), "of another key").unwrap();
        assert_eq!(files.all().unwrap(), [files.path("one")]);
        let kept = Kept::read(&files.path("one")).unwrap();
        assert_eq!(kept.place, "/data/ledger.sqlite3");
        assert_eq!(kept.verified(key.public_key()).unwrap(), heads);
    }

    #[test]
    fn a_file_that_was_changed_is_refused_with_what_to_do() {
        let home = tempfile::tempdir().unwrap();
        let (_, keeper) = keeper(home.path());
        let (key, other) = (SigningKey::from_seed(&[1; 32]).unwrap(), SigningKey::from_seed(&[2; 32]).unwrap());
        let reread = |text: &str, key: &SigningKey| {
            private_file::replace(keeper.path(), text).unwrap();
            Kept::read(keeper.path())?.verified(key.public_key())
        };
        let whole = keeper.text(&[head("default", 12, &key)]);
        let twice = keeper.text(&[head("default", 12, &key), head("default", 13, &key)]);
        let cases = [
            String::new(),
            whole.replace("12", "11"),
            whole.replace("\"format\":1", "\"format\":2"),
            whole.replace("\"heads\"", "\"more\":0,\"heads\""),
            whole.get(..whole.len() / 2).unwrap().to_owned(),
            twice,
        ];
        for text in cases {
            let error = reread(&text, &key).unwrap_err().to_string();
            assert!(error.contains("is damaged") && error.contains("--accept-ledger-rollback"), "{text}: {error}");
        }
        assert!(reread(&whole, &other).is_err());
        assert!(reread(&whole, &key).is_ok());
    }
}
