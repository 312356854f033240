//! A change to a file of a client: read, shown as a difference, and written atomically.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use crate::command::{Failure, diff};

/// Claude Code keeps its history in the same file as its servers.
const LENGTH_LIMIT: u64 = 32 * 1024 * 1024;

pub struct Change {
    pub file: PathBuf,
    /// `None` if the file does not exist.
    pub old: Option<String>,
    /// `None` if the file is to be removed.
    pub new: Option<String>,
}

impl Change {
    /// The file as it is, without a change.
    pub fn of(file: PathBuf) -> Result<Self, Failure> {
        let file = resolved(&file);
        let old = read(&file)?;
        Ok(Self { file, new: old.clone(), old })
    }

    pub fn is_needed(&self) -> bool {
        self.old != self.new
    }

    /// The text as changed so far; empty for a missing file.
    pub fn text(&self) -> &str {
        self.new.as_deref().unwrap_or_default()
    }

    pub fn diff(&self) -> String {
        let name = self.file.display().to_string();
        let name_of = |text: &Option<String>| if text.is_some() { name.clone() } else { "/dev/null".to_owned() };
        let text_of = |text: &Option<String>| text.clone().unwrap_or_default();
        diff::unified(&name_of(&self.old), &text_of(&self.old), &name_of(&self.new), &text_of(&self.new))
    }

    /// Writes the file atomically, unless it has changed since the diff was shown.
    pub fn write(&self) -> Result<(), Failure> {
        self.check()?;
        let failed = |error| Failure::io(self.file.display().to_string(), error);
        match (&self.old, &self.new) {
            (old, new) if old == new => Ok(()),
            (_, Some(text)) => replace(&self.file, text).map_err(failed),
            (_, None) => fs::remove_file(&self.file).map_err(failed),
        }
    }

    /// Refuses a file that has changed since it was read.
    pub fn check(&self) -> Result<(), Failure> {
        if read(&self.file)? == self.old {
            return Ok(());
        }
        Err(Failure::Said(format!("{} has changed in the meantime; try again", self.file.display())))
    }
}

/// The path with its links followed, the same whether the file exists or not.
fn resolved(file: &Path) -> PathBuf {
    let existing = file.ancestors().find_map(|ancestor| Some((ancestor, ancestor.canonicalize().ok()?)));
    match existing {
        Some((ancestor, real)) if ancestor != file => {
            file.strip_prefix(ancestor).map_or(file.to_owned(), |rest| real.join(rest))
        }
        Some((_, real)) => real,
        None => file.to_owned(),
    }
}

/// `None` if the file does not exist.
pub fn read(path: &Path) -> Result<Option<String>, Failure> {
    let failed = |error| Failure::io(path.display().to_string(), error);
    let unfit = || Failure::Said(format!("{} is not a small text file; check the file", path.display()));
    // Checked before it is opened: opening a named pipe would block.
    match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() || metadata.len() > LENGTH_LIMIT => return Err(unfit()),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    }
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(LENGTH_LIMIT).read_to_end(&mut bytes)).map_err(failed)?;
    String::from_utf8(bytes).map(Some).map_err(|_| unfit())
}

/// Writes a temporary file with the permissions of the previous file, and renames it.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(directory)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = directory.join(format!(".{name}.{}.tmp", std::process::id()));
    let written = OpenOptions::new().create_new(true).write(true).open(&temporary).and_then(|mut file| {
        if let Ok(metadata) = fs::metadata(path) {
            file.set_permissions(metadata.permissions())?;
        }
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    });
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}
