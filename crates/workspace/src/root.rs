//! The root directory, held open, and paths below it. The kernel resolves every path beneath the open directory, so
//! that neither `..` nor a link, even one swapped in concurrently, leads out.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Component, Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, FileType, OpenOptions, OpenOptionsExt};

use crate::error::WorkspaceError;

#[derive(Debug)]
pub struct Root {
    directory: Dir,
    /// The canonical path.
    path: PathBuf,
    is_protected: fn(&Path) -> bool,
    /// The path as configured.
    named: PathBuf,
}

/// A path below the root: relative, without `..`; `.` is the root itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place(PathBuf);

impl Root {
    /// Opens the directory. Links in its path are followed once, here.
    pub fn open(named: &Path, hidden: &[PathBuf], is_protected: fn(&Path) -> bool) -> Result<Self, WorkspaceError> {
        let unopened = |error: io::Error| WorkspaceError::Root { kind: error.kind() };
        let path = named.canonicalize().map_err(unopened)?;
        if path.parent().is_none() {
            return Err(WorkspaceError::RootIsEverything);
        }
        if let Some(hidden) = hidden.iter().find(|hidden| hidden.starts_with(&path) || path.starts_with(hidden)) {
            return Err(WorkspaceError::RootMeetsHidden { hidden: hidden.clone() });
        }
        let directory = Dir::open_ambient_dir(&path, ambient_authority()).map_err(unopened)?;
        Ok(Self { directory, path, is_protected, named: named.to_path_buf() })
    }

    /// The canonical path of the root.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The open directory.
    pub fn directory(&self) -> &Dir {
        &self.directory
    }

    /// Parses a path from an agent: relative to the root, or absolute and below it.
    pub fn place(&self, text: &str) -> Result<Place, WorkspaceError> {
        let path = Path::new(text);
        let below = if path.is_absolute() {
            let stripped = path.strip_prefix(&self.path).or_else(|_| path.strip_prefix(&self.named));
            stripped.map_err(|_| WorkspaceError::OutsideRoot)?
        } else {
            path
        };
        if text.is_empty() || text.contains('\0') {
            return Err(WorkspaceError::NotFound);
        }
        let mut place = PathBuf::new();
        for component in below.components() {
            match component {
                Component::Normal(name) => place.push(name),
                Component::CurDir => {}
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                    return Err(WorkspaceError::OutsideRoot);
                }
            }
        }
        if place.as_os_str().is_empty() { Ok(Place::root()) } else { Ok(Place(place)) }
    }

    pub fn open_directory(&self, place: &Place) -> Result<Dir, WorkspaceError> {
        self.directory.open_dir(&place.0).map_err(|error| WorkspaceError::from_io("opening the directory", &error))
    }

    /// Refuses a protected path that the call did not name itself. `opened` stays open during the check, so that the
    /// object that is checked is the object that is used, whatever its path leads to by now.
    pub fn refuse_led(&self, opened: &Dir, name: Option<&OsStr>, place: &Place) -> Result<(), WorkspaceError> {
        let failed = |error: io::Error| WorkspaceError::from_io("inspecting the directory", &error);
        let real = if cfg!(target_os = "linux") {
            std::fs::read_link(format!("/proc/self/fd/{}", opened.as_raw_fd())).map_err(failed)?
        } else {
            let directory = if name.is_some() { place.0.parent().unwrap_or(Path::new(".")) } else { &place.0 };
            self.path.join(self.directory.canonicalize(directory).map_err(failed)?)
        };
        let below = real.strip_prefix(&self.path).map_err(|_| WorkspaceError::OutsideRoot)?;
        let below = name.map_or_else(|| below.to_path_buf(), |name| below.join(name));
        if (self.is_protected)(&below) && !(self.is_protected)(&place.0) {
            return Err(WorkspaceError::LeadsToProtected);
        }
        Ok(())
    }

    pub fn open_file(&self, place: &Place) -> Result<File, WorkspaceError> {
        open_regular(&self.directory, &place.0)
    }

    /// The type of the object at this path, following links that stay below the root.
    pub fn file_type(&self, place: &Place) -> Result<FileType, WorkspaceError> {
        let metadata = self.directory.metadata(&place.0);
        Ok(metadata.map_err(|error| WorkspaceError::from_io("inspecting the file", &error))?.file_type())
    }
}

impl Place {
    pub fn root() -> Self {
        Self(PathBuf::from("."))
    }

    /// Relative to the root.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

/// Opens a regular file beneath `directory` for reading; does not open or block on a pipe or a device.
pub fn open_regular(directory: &Dir, path: &Path) -> Result<File, WorkspaceError> {
    let failed = |error: io::Error| WorkspaceError::from_io("opening the file", &error);
    require_regular(directory.metadata(path).map_err(failed)?.file_type())?;
    let mut options = OpenOptions::new();
    // The file may have been replaced by a pipe: the open must not block until there is a writer.
    options.read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    let file = directory.open_with(path, &options).map_err(failed)?;
    require_regular(file.metadata().map_err(failed)?.file_type())?;
    Ok(file.into_std())
}

/// Refuses directories and special files.
pub fn require_regular(kind: FileType) -> Result<(), WorkspaceError> {
    if kind.is_file() {
        Ok(())
    } else if kind.is_dir() {
        Err(WorkspaceError::IsDirectory)
    } else {
        Err(WorkspaceError::Special)
    }
}
