//! What the key file needs from the file system: closed permissions, whole replacement, and one writer at a time.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use zeroize::Zeroizing;

use crate::key_provider::KeyError;

/// Far more than any key file has; a larger one is something else.
const LENGTH_LIMIT: u64 = 64 * 1024;

/// What tells one state of the file from the next. The change time is part of it so that a change of the permissions is
/// seen too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileVersion {
    device: u64,
    inode: u64,
    length: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// The path from the root, so that a later change of the working directory does not move it.
pub(super) fn absolute(path: &Path) -> Result<PathBuf, KeyError> {
    std::path::absolute(path).map_err(|error| failed("find", path, &error))
}

/// The path with all links followed, so that every name of one file leads to the same lock.
pub(super) fn real(path: &Path) -> Result<PathBuf, KeyError> {
    fs::canonicalize(path).map_err(|error| failed("find", path, &error))
}

/// Whether there is anything at the path.
pub(super) fn exists(path: &Path) -> Result<bool, KeyError> {
    path.try_exists().map_err(|error| failed("find", path, &error))
}

/// Refuses a path that lies, links followed, inside a directory; neither needs to exist yet.
pub(super) fn refuse_inside(path: &Path, directory: &Path) -> Result<(), KeyError> {
    if resolve(path)?.starts_with(resolve(directory)?) {
        return Err(KeyError::failed(format!(
            "the key file {} lies inside the data directory {}; keep it elsewhere, so that a copy of the data does not \
             carry its own key",
            path.display(),
            directory.display()
        )));
    }
    Ok(())
}

/// The state of the file.
pub(super) fn file_version(path: &Path) -> Result<FileVersion, KeyError> {
    fs::metadata(path).map(|metadata| FileVersion::of(&metadata)).map_err(|error| failed("find", path, &error))
}

/// Reads the file and its state, unless someone else might read it as well.
pub(super) fn read(path: &Path) -> Result<(FileVersion, Zeroizing<Vec<u8>>), KeyError> {
    let unreadable = |error: io::Error| failed("read", path, &error);
    // Asked before opening, because opening a pipe would wait for its writer; and again of what was really opened.
    check(path, &fs::metadata(path).map_err(unreadable)?)?;
    let file = File::open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    check(path, &metadata)?;

    // Room for one byte more than is allowed and than is expected, so that reading to the end never grows the buffer
    // and leaves a copy behind.
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

/// Makes the directories above the file, open to nobody else, and makes them last.
pub(super) fn create_parents(path: &Path) -> Result<(), KeyError> {
    let missing: Vec<&Path> = path.ancestors().skip(1).take_while(|directory| !directory.exists()).collect();
    if let Some(directory) = missing.first() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .map_err(|error| failed("make the directory of", path, &error))?;
    }
    missing.into_iter().try_for_each(sync_directory_of)
}

/// Waits until no other writer is at work; others wait until the answer is dropped.
pub(super) fn lock(path: &Path) -> Result<File, KeyError> {
    let path = sibling(path, "", ".lock");
    let lock = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path);
    lock.and_then(|file| file.lock().map(|()| file)).map_err(|error| failed("lock", &path, &error))
}

/// Replaces the file as a whole: a reader, or a crash at any point, finds the old text or the new one. The caller holds
/// the lock.
pub(super) fn replace(path: &Path, text: &[u8]) -> Result<(), KeyError> {
    let temporary = sibling(path, ".", ".tmp");
    let written = write_new(&temporary, text).and_then(|()| fs::rename(&temporary, path));
    if let Err(error) = written {
        // It holds keys; if it cannot be removed now, the next change does.
        let _ = fs::remove_file(&temporary);
        return Err(failed("write", path, &error));
    }
    sync_directory_of(path)
}

fn write_new(path: &Path, text: &[u8]) -> io::Result<()> {
    // Under the lock, a file of this name is what a crash left behind.
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
        return Err(KeyError::failed(format!("the key file {path} is not a regular file; give the path of one")));
    }
    let mode = metadata.mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(KeyError::failed(format!(
            "the key file {path} is open to other users (mode {mode:04o}); run: chmod 600 {path}"
        )));
    }
    if metadata.len() > LENGTH_LIMIT {
        return Err(KeyError::failed(format!("the file {path} is too large to be a key file; give the path of one")));
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

/// Follows all links of the part that exists, and adds the part that does not.
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
        .map_err(|error| failed("store the directory of", path, &error))
}

fn failed(action: &str, path: &Path, error: &io::Error) -> KeyError {
    KeyError::failed(format!("cannot {action} the key file {}: {error}", path.display()))
}
