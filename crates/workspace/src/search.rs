//! `Glob` and `Grep`: walks the directories below a place. Links are not followed, version control data is left out,
//! and the walk ends at its limits.

use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::Path;

use cap_std::fs::{Dir, FileType};

use crate::error::WorkspaceError;
use crate::stop::Stop;

mod glob;
mod grep;
mod pattern;

pub use glob::Glob;
pub use grep::Grep;

/// How deep a walk goes.
const DEEPEST: usize = 64;

/// How many entries a walk looks at.
const MAX_ENTRIES: usize = 500_000;

/// A file that the walk came to.
struct Found<'a> {
    /// The open directory that holds it.
    parent: &'a Dir,
    name: &'a Path,
    /// Relative to where the walk began.
    path: &'a Path,
    is_link: bool,
}

/// One walk.
struct Walk<'a> {
    stop: &'a Stop,
    entries_left: usize,
    /// Whether something was left out: too deep, too much, or out of time.
    cut: bool,
}

impl<'a> Walk<'a> {
    fn new(stop: &'a Stop) -> Self {
        Self { stop, entries_left: MAX_ENTRIES, cut: false }
    }

    /// Shows every file and link below `directory` to `visit`, in order of their names.
    fn run(
        &mut self,
        directory: &Dir,
        visit: &mut dyn FnMut(Found<'_>) -> ControlFlow<()>,
    ) -> Result<(), WorkspaceError> {
        // Only the first directory must open: below it, what cannot be read is left out.
        let entries =
            self.entries(directory).map_err(|error| WorkspaceError::from_io("listing the directory", &error))?;
        if self.visit_entries(directory, Path::new(""), entries, 0, visit).is_break() {
            self.cut = true;
        }
        Ok(())
    }

    fn visit_entries(
        &mut self,
        directory: &Dir,
        prefix: &Path,
        entries: Vec<(OsString, FileType)>,
        depth: usize,
        visit: &mut dyn FnMut(Found<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        for (name, kind) in entries {
            if self.stop.is_requested() {
                return ControlFlow::Break(());
            }
            let path = prefix.join(&name);
            if kind.is_dir() {
                if name == ".git" {
                    continue;
                }
                if depth >= DEEPEST {
                    self.cut = true;
                    continue;
                }
                // Resolved beneath its parent: a link put in its place since cannot lead out.
                if let Ok(below) = directory.open_dir(&name)
                    && let Ok(entries) = self.entries(&below)
                {
                    self.visit_entries(&below, &path, entries, depth.saturating_add(1), visit)?;
                }
            } else if kind.is_file() || kind.is_symlink() {
                visit(Found { parent: directory, name: Path::new(&name), path: &path, is_link: kind.is_symlink() })?;
            }
        }
        ControlFlow::Continue(())
    }

    fn entries(&mut self, directory: &Dir) -> std::io::Result<Vec<(OsString, FileType)>> {
        let mut entries = Vec::new();
        for entry in directory.entries()? {
            if self.entries_left == 0 || self.stop.is_requested() {
                self.cut = true;
                break;
            }
            self.entries_left = self.entries_left.saturating_sub(1);
            let entry = entry?;
            entries.push((entry.file_name(), entry.file_type()?));
        }
        entries.sort_by(|(left, _), (right, _)| left.cmp(right));
        Ok(entries)
    }
}
