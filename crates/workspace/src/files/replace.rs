//! `Write`, and atomic replacement of a file's content: a new file is written next to it and renamed over it. Readers
//! see the old content or the new, and other hard links keep the old content.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use cap_std::fs::{Dir, File, OpenOptions, OpenOptionsExt, Permissions, PermissionsExt};
use serde_json::{Map, Value, json};

use crate::arguments::Arguments;
use crate::error::WorkspaceError;
use crate::output::Output;
use crate::root::{Place, Root, require_regular};

/// The largest content that is written or edited in one step, in bytes.
pub const LARGEST: usize = 16 * 1024 * 1024;

/// A parsed call.
#[derive(Debug)]
pub struct Write {
    place: Place,
    content: String,
}

impl Write {
    pub fn parse(root: &Root, values: &Map<String, Value>) -> Result<Self, WorkspaceError> {
        let arguments = Arguments::new(values, &["file_path", "content"])?;
        let place = root.place(arguments.text("file_path")?)?;
        Ok(Self { place, content: arguments.text("content")?.to_owned() })
    }

    pub fn run(&self, root: &Root) -> Result<Output, WorkspaceError> {
        let created = replace(root, &self.place, self.content.as_bytes())?;
        let bytes = self.content.len();
        let done = if created { "created" } else { "replaced" };
        Ok(Output {
            text: format!("{done} {} ({bytes} bytes)", self.place.path().display()),
            is_error: false,
            truncated: false,
            details: json!({ "bytes": bytes, "created": created }),
        })
    }
}

/// Replaces the content atomically; returns true if the file is new.
pub fn replace(root: &Root, place: &Place, content: &[u8]) -> Result<bool, WorkspaceError> {
    if content.len() > LARGEST {
        return Err(WorkspaceError::TooLarge { limit: LARGEST });
    }
    let failed = |error: io::Error| WorkspaceError::from_io("writing the file", &error);
    let target = Target::find(root.directory(), place.path())?;
    let name = target.path.file_name().ok_or(WorkspaceError::IsDirectory)?;
    let parent = target.path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if target.mode.is_none() {
        refuse_led_before_making(root, parent, place)?;
        root.directory().create_dir_all(parent).map_err(failed)?;
    }
    let parent = root.directory().open_dir(parent).map_err(failed)?;
    root.refuse_led(&parent, Some(name), place)?;
    let (beside, mut file) = create_beside(&parent, target.mode).map_err(failed)?;
    let filled = fill(&mut file, content, target.mode).and_then(|()| parent.rename(&beside, &parent, name));
    if let Err(error) = filled {
        // Report the first error.
        let _gone_or_left = parent.remove_file(&beside);
        return Err(failed(error));
    }
    Ok(target.mode.is_none())
}

/// Checks the directories that exist before creating others in them.
fn refuse_led_before_making(root: &Root, parent: &Path, place: &Place) -> Result<(), WorkspaceError> {
    for ancestor in parent.ancestors() {
        let existing = if ancestor.as_os_str().is_empty() { Path::new(".") } else { ancestor };
        if let (Ok(opened), Ok(rest)) = (root.directory().open_dir(existing), place.path().strip_prefix(ancestor)) {
            return root.refuse_led(&opened, Some(rest.as_os_str()), place);
        }
    }
    Ok(())
}

/// The file to write, with the mode of the existing one.
struct Target {
    /// The canonical path.
    path: PathBuf,
    mode: Option<u32>,
}

impl Target {
    /// Follows links that stay below the root, and refuses anything that is not a writable file.
    fn find(directory: &Dir, path: &Path) -> Result<Self, WorkspaceError> {
        let failed = |error: io::Error| WorkspaceError::from_io("inspecting the file", &error);
        match directory.symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self { path: path.to_path_buf(), mode: None });
            }
            Err(error) => return Err(failed(error)),
            Ok(_there) => {}
        }
        // A dangling link has no canonical path: it is refused and not written through.
        let path = directory.canonicalize(path).map_err(failed)?;
        let metadata = directory.metadata(&path).map_err(failed)?;
        require_regular(metadata.file_type())?;
        if metadata.permissions().readonly() {
            return Err(WorkspaceError::ReadOnly);
        }
        Ok(Self { path, mode: Some(metadata.permissions().mode() & 0o777) })
    }
}

fn fill(file: &mut File, content: &[u8], mode: Option<u32>) -> io::Result<()> {
    file.write_all(content)?;
    if let Some(mode) = mode {
        file.set_permissions(Permissions::from_mode(mode))?;
    }
    file.sync_all()
}

/// Creates a new file under an unused name.
fn create_beside(parent: &Dir, mode: Option<u32>) -> io::Result<(PathBuf, File)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    // Never more permissive than the file that it replaces, not even briefly.
    if let Some(mode) = mode {
        options.mode(mode);
    }
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = PathBuf::from(format!(".toolgate-{}-{number}.tmp", std::process::id()));
        match parent.open_with(&name, &options) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            opened => return Ok((name, opened?)),
        }
    }
}
