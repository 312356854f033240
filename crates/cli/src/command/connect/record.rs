//! What a file was before `toolgate connect` changed it, so that `--remove` can restore it to the byte. Kept with mode 0600,
//! because files of clients may contain keys.

use std::path::{Path, PathBuf};

use aws_lc_rs::digest;
use serde::{Deserialize, Serialize};

use crate::command::Failure;
use crate::private_file;

/// The directory of the records, below the configuration directory.
const DIRECTORY: &str = "connected";
/// A record contains a file of a client.
const LENGTH_LIMIT: u64 = 64 * 1024 * 1024;

pub struct Records {
    directory: PathBuf,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    file: String,
    /// `None` if there was no file.
    pub before: Option<String>,
    /// The SHA-256 of the file as it was written.
    after: String,
}

impl Records {
    pub fn below(configuration: &Path) -> Self {
        Self { directory: configuration.join(DIRECTORY) }
    }

    pub fn find(&self, file: &Path) -> Result<Option<Record>, Failure> {
        let path = self.path(file);
        let Some(text) = private_file::read_within(&path, LENGTH_LIMIT)? else { return Ok(None) };
        let damaged = |_| Failure::Said(format!("{} is damaged; remove it", path.display()));
        serde_json::from_str::<Record>(&text).map(Some).map_err(damaged)
    }

    /// Notes that a file is about to be changed from `old` to `new`. `clean` is `old` without what Toolgate added to it.
    pub fn remember(&self, file: &Path, old: Option<&str>, clean: Option<String>, new: &str) -> Result<(), Failure> {
        let before = match self.find(file)? {
            Some(record) if record.is_unchanged(old) => record.before,
            _ => clean,
        };
        let record = Record { file: file.display().to_string(), before, after: hash(new) };
        let text = serde_json::to_string(&record).unwrap_or_default();
        Ok(private_file::replace(&self.path(file), &text)?)
    }

    pub fn forget(&self, file: &Path) {
        // A record that stays is of no use: the file is no longer what it says.
        let _ = std::fs::remove_file(self.path(file));
    }

    pub fn path(&self, file: &Path) -> PathBuf {
        let name: String = hash(&file.display().to_string()).chars().take(32).collect();
        self.directory.join(format!("{name}.json"))
    }
}

impl Record {
    /// Whether the file is as it was written.
    pub fn is_unchanged(&self, text: Option<&str>) -> bool {
        text.is_some_and(|text| hash(text) == self.after)
    }
}

fn hash(text: &str) -> String {
    digest::digest(&digest::SHA256, text.as_bytes()).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_first_state_is_kept_until_somebody_else_changes_the_file() {
        let home = tempfile::tempdir().unwrap();
        let records = Records::below(home.path());
        let file = Path::new("/home/ann/.cursor/mcp.json");
        assert!(records.find(file).unwrap().is_none());
        records.remember(file, None, None, "one").unwrap();
        records.remember(file, Some("one"), Some("clean".to_owned()), "two").unwrap();
        let record = records.find(file).unwrap().unwrap();
        assert!(record.before.is_none() && record.is_unchanged(Some("two")) && !record.is_unchanged(Some("one")));
        records.remember(file, Some("edited"), Some("clean".to_owned()), "three").unwrap();
        assert_eq!(records.find(file).unwrap().unwrap().before.as_deref(), Some("clean"));
        let mode = std::fs::metadata(records.path(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        records.forget(file);
        assert!(records.find(file).unwrap().is_none());
    }
}
