//! File system access for the key file: permission checks, atomic replacement, and a lock for writers.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use zeroize::Zeroizing;

use crate::key_provider::KeyError;

/// Far above the size of any key file; a larger file is something else.
const LENGTH_LIMIT: u64 = 64 * 1024;

/// Identifies a state of the file. Includes the change time, so that a change of the permissions is noticed too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileVersion {
    device: u64,
    inode: u64,
    length: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// The absolute path, so that a later change of the working directory does not affect it.
pub(super) fn absolute(path: &Path) -> Result<PathBuf, KeyError> {
    std::path::absolute(path).map_err(|error| failed("find", path, &error))
}

/// The canonical path, so that every name of the file leads to the same lock.
pub(super) fn real(path: &Path) -> Result<PathBuf, KeyError> {
    fs::canonicalize(path).map_err(|error| failed("find", path, &error))
}

pub(super) fn exists(path: &Path) -> Result<bool, KeyError> {
    path.try_exists().map_err(|error| failed("find", path, &error))
}

/// Refuses a path inside a directory, after resolving links; neither needs to exist yet.
pub(super) fn refuse_inside(path: &Path, directory: &Path) -> Result<(), KeyError> {
    if resolve(path)?.starts_with(resolve(directory)?) {
        return Err(KeyError::failed(format!(
            "the key file {} is inside the data directory {}; move it elsewhere, so that a copy of the data does not \
             include its key",
            path.display(),
            directory.display()
        )));
    }
    Ok(())
}

pub(super) fn file_version(path: &Path) -> Result<FileVersion, KeyError> {
    fs::metadata(path).map(|metadata| FileVersion::of(&metadata)).map_err(|error| failed("find", path, &error))
}

/// Reads the file and its version; fails if other users could read it as well.
pub(super) fn read(path: &Path) -> Result<(FileVersion, Zeroizing<Vec<u8>>), KeyError> {
    let unreadable = |error: io::Error| failed("read", path, &error);
    // Checked before opening, because opening a pipe would block until there is a writer, and again on the opened file.
    check(path, &fs::metadata(path).map_err(unreadable)?)?;
    let file = File::open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    check(path, &metadata)?;

    // One byte more than allowed and than expected, so that reading to the end never reallocates the buffer and leaves
    // a copy behind.
    let room = usize::try_from(metadata.len() + 1).unwrap_or(0);
    let mut text = Zeroizing::new(vec![0; room]);
    let mut filled = 0;
    while let Some(rest) = text.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match (&file).read(rest) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(unreadable(error)),
        }
    }
    if filled == room {
        return Err(KeyError::failed(format!("the key file {} grew while it was read; try again", path.display())));
    }
    text.truncate(filled);
    Ok((FileVersion::of(&metadata), text))
}

/// Creates the parent directories, accessible only to this user, and syncs them to disk.
pub(super) fn create_parents(path: &Path) -> Result<(), KeyError> {
    let missing: Vec<&Path> = path.ancestors().skip(1).take_while(|directory| !directory.exists()).collect();
    if let Some(directory) = missing.first() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .map_err(|error| failed("create the directory of", path, &error))?;
    }
    missing.into_iter().try_for_each(sync_directory_of)
}

/// Blocks until no other writer holds the lock; it is released when the file is dropped.
pub(super) fn lock(path: &Path) -> Result<File, KeyError> {
    let path = sibling(path, "", ".lock");
    let lock = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path);
    lock.and_then(|file| file.lock().map(|()| file)).map_err(|error| failed("lock", &path, &error))
}

/// Replaces the file atomically: a reader, or a crash at any point, finds the old text or the new one. The caller holds
/// the lock.
pub(super) fn replace(path: &Path, text: &[u8]) -> Result<(), KeyError> {
    let temporary = sibling(path, ".", ".tmp");
    let written = write_new(&temporary, text).and_then(|()| fs::rename(&temporary, path));
    if let Err(error) = written {
        // It contains keys; if it cannot be removed now, the next change removes it.
        let _ = fs::remove_file(&temporary);
        return Err(failed("write", path, &error));
    }
    sync_directory_of(path)
}

fn write_new(path: &Path, text: &[u8]) -> io::Result<()> {
    // Under the lock, a file of this name is left over from a crash.
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(path)?;
    file.write_all(text)?;
    file.sync_all()
}

fn check(path: &Path, metadata: &Metadata) -> Result<(), KeyError> {
    let path = path.display();
    if !metadata.is_file() {
        return Err(KeyError::failed(format!(
            "the key file {path} is not a regular file; configure the path of a regular file"
        )));
    }
    let mode = metadata.mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(KeyError::failed(format!(
            "the key file {path} is accessible to other users (mode {mode:04o}); run: chmod 600 {path}"
        )));
    }
    if metadata.len() > LENGTH_LIMIT {
        return Err(KeyError::failed(format!(
            "the file {path} is too large to be a key file; configure the path of a key file"
        )));
    }
    Ok(())
}

impl FileVersion {
    fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            length: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

/// Resolves the links of the existing part of the path and appends the rest.
fn resolve(path: &Path) -> Result<PathBuf, KeyError> {
    let path = absolute(path)?;
    for existing in path.ancestors() {
        let Ok(real) = fs::canonicalize(existing) else { continue };
        let rest = path.strip_prefix(existing).unwrap_or(&path);
        if rest.components().any(|component| component == Component::ParentDir) {
            break;
        }
        return Ok(real.join(rest));
    }
    Err(KeyError::failed(format!("the path {} leads through a directory that does not exist", path.display())))
}

fn sibling(path: &Path, before: &str, after: &str) -> PathBuf {
    let mut name = std::ffi::OsString::from(before);
    name.push(path.file_name().unwrap_or_default());
    name.push(after);
    path.with_file_name(name)
}

fn sync_directory_of(path: &Path) -> Result<(), KeyError> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    File::open(directory)
        .and_then(|directory| directory.sync_all())
        .map_err(|error| failed("sync the directory of", path, &error))
}

fn failed(action: &str, path: &Path, error: &io::Error) -> KeyError {
    KeyError::failed(format!("cannot {action} the key file {}: {error}", path.display()))
}
