//! Small files that only their owner can read: written atomically, and refused if others have access.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use thiserror::Error;
use zeroize::Zeroizing;

/// Far more than a key or a token needs.
const LENGTH_LIMIT: u64 = 64 * 1024;

#[derive(Debug, Error)]
pub enum PrivateFileError {
    #[error("{path} is accessible to other users (mode {mode:04o}); run: chmod 600 {path}")]
    Open { path: String, mode: u32 },
    #[error("{path} belongs to another user (uid {owner}), who can change it; run: chown {user} {path}")]
    Owner {
        path: String,
        owner: u32,
        /// The required owner.
        user: u32,
    },
    #[error("{path} can be changed by other users (mode {mode:04o}); run: chmod go-w {path}")]
    Writable { path: String, mode: u32 },
    #[error("{path} is not a small text file; check the path")]
    Unfit { path: String },
    #[error("could not access {path}: {reason}")]
    Io { path: String, reason: io::Error },
}

/// `None` if the file does not exist.
pub fn read(path: &Path) -> Result<Option<Zeroizing<String>>, PrivateFileError> {
    read_within(path, LENGTH_LIMIT)
}

/// Reads a file of at most this many bytes; `None` if it does not exist.
pub fn read_within(path: &Path, limit: u64) -> Result<Option<Zeroizing<String>>, PrivateFileError> {
    let unfit = || PrivateFileError::Unfit { path: path.display().to_string() };
    // Checked before it is opened: opening a named pipe would block.
    match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => return Err(unfit()),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(path, error)),
    }
    let file = File::open(path).map_err(|error| failed(path, error))?;
    let metadata = file.metadata().map_err(|error| failed(path, error))?;
    if !metadata.is_file() || metadata.len() > limit {
        return Err(unfit());
    }
    let mode = metadata.mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(PrivateFileError::Open { path: path.display().to_string(), mode });
    }
    // Allocated once: a reallocation would leave a copy that is not wiped.
    let room = usize::try_from(metadata.len().saturating_add(1)).unwrap_or(0);
    let mut bytes = Zeroizing::new(Vec::with_capacity(room));
    file.take(limit).read_to_end(&mut bytes).map_err(|error| failed(path, error))?;
    match std::str::from_utf8(&bytes) {
        Ok(text) => Ok(Some(Zeroizing::new(text.to_owned()))),
        Err(_) => Err(unfit()),
    }
}

/// Creates the file with this text. Returns false if it exists already.
pub fn create(path: &Path, text: &str) -> Result<bool, PrivateFileError> {
    let temporary = write_beside(path, text).map_err(|error| failed(path, error))?;
    // Unlike a rename, a link never replaces an existing file.
    let linked = fs::hard_link(&temporary, path);
    let _ = fs::remove_file(&temporary);
    match linked {
        Ok(()) => sync_directory(path).map(|()| true).map_err(|error| failed(path, error)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(failed(path, error)),
    }
}

pub fn replace(path: &Path, text: &str) -> Result<(), PrivateFileError> {
    let temporary = write_beside(path, text).map_err(|error| failed(path, error))?;
    if let Err(error) = fs::rename(&temporary, path) {
        let _ = fs::remove_file(&temporary);
        return Err(failed(path, error));
    }
    sync_directory(path).map_err(|error| failed(path, error))
}

/// Refuses a file or directory that belongs to another user, or that others can write: replacing a key or a ledger needs no
/// permission to read it. A missing file is accepted.
pub fn require_own(path: &Path) -> Result<(), PrivateFileError> {
    let Some(metadata) = require_owner(path)? else { return Ok(()) };
    let path = path.display().to_string();
    let mode = metadata.mode() & 0o7777;
    // In a sticky directory, such as /tmp, users cannot replace files of others.
    let sticky = metadata.is_dir() && mode & 0o1000 != 0;
    if mode & 0o022 != 0 && !sticky {
        return Err(PrivateFileError::Writable { path, mode });
    }
    Ok(())
}

/// The same for the directory of a key file, and the owner of the file; its mode is checked when it is read.
pub fn require_own_with_directory(path: &Path) -> Result<(), PrivateFileError> {
    require_own(directory_of(path))?;
    require_owner(path).map(|_| ())
}

/// Refuses a file of another user than this one and root; `None` if it does not exist.
fn require_owner(path: &Path) -> Result<Option<fs::Metadata>, PrivateFileError> {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(path, error)),
    };
    let (owner, user) = (metadata.uid(), rustix::process::geteuid().as_raw());
    if owner != user && owner != 0 {
        return Err(PrivateFileError::Owner { path: path.display().to_string(), owner, user });
    }
    Ok(Some(metadata))
}

/// Creates a directory with mode 0700, and its parents. An existing one is not changed.
pub fn create_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn write_beside(path: &Path, text: &str) -> io::Result<PathBuf> {
    let directory = directory_of(path);
    create_directory(directory)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = directory.join(format!(".{name}.{}.tmp", std::process::id()));
    // Left behind by a crashed process with the same id.
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&temporary)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    match written {
        Ok(()) => Ok(temporary),
        Err(error) => {
            let _ = fs::remove_file(&temporary);
            Err(error)
        }
    }
}

fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(directory_of(path))?.sync_all()
}

fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn failed(path: &Path, reason: io::Error) -> PrivateFileError {
    PrivateFileError::Io { path: path.display().to_string(), reason }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_file_is_made_once_and_closed_to_others() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("a/b/key");
        assert!(read(&path).unwrap().is_none());
        assert!(create(&path, "one").unwrap());
        assert!(!create(&path, "two").unwrap());
        assert_eq!(read(&path).unwrap().unwrap().as_str(), "one");
        replace(&path, "three").unwrap();
        assert_eq!(read(&path).unwrap().unwrap().as_str(), "three");
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_that_others_can_read_or_write_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("key");
        create(&path, "one").unwrap();
        for bad in [0o640, 0o604, 0o620, 0o602, 0o610] {
            fs::set_permissions(&path, fs::Permissions::from_mode(bad)).unwrap();
            assert!(matches!(read(&path), Err(PrivateFileError::Open { mode, .. }) if mode == bad));
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
        assert!(read(&path).is_ok());
    }

    #[test]
    fn what_others_can_change_is_refused_with_the_command_that_helps() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("a/key");
        require_own_with_directory(&path).unwrap();
        create(&path, "one").unwrap();
        let directory = path.parent().unwrap();
        for (place, mode) in [(directory, 0o770), (directory, 0o777), (directory, 0o720), (directory, 0o702)] {
            let before = fs::metadata(place).unwrap().permissions();
            fs::set_permissions(place, fs::Permissions::from_mode(mode)).unwrap();
            let refused = require_own_with_directory(&path).unwrap_err().to_string();
            assert!(refused.ends_with(&format!("run: chmod go-w {}", place.display())), "{refused}");
            fs::set_permissions(place, before).unwrap();
        }
        fs::set_permissions(directory, fs::Permissions::from_mode(0o1777)).unwrap();
        require_own_with_directory(&path).unwrap();
        // Only root can give a file away.
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
            let refused = require_own(&path).unwrap_err().to_string();
            assert!(refused.contains("belongs to another user (uid 65534)"), "{refused}");
        }
    }

    #[test]
    fn what_is_no_small_text_is_refused() {
        let home = tempfile::tempdir().unwrap();
        assert!(matches!(read(home.path()), Err(PrivateFileError::Unfit { .. })));
        let path = home.path().join("key");
        replace(&path, &"x".repeat(70_000)).unwrap();
        assert!(matches!(read(&path), Err(PrivateFileError::Unfit { .. })));
        fs::write(&path, [0xff, 0xfe]).unwrap();
        assert!(matches!(read(&path), Err(PrivateFileError::Unfit { .. })));
    }
}
