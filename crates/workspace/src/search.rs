//! `Glob` and `Grep`: traverse the directories below a path. Links are not followed, version control data is skipped,
//! and the traversal stops at its limits.

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

/// The maximum depth.
const DEEPEST: usize = 64;

/// The maximum number of entries.
const MAX_ENTRIES: usize = 500_000;

/// A file found by the traversal.
struct Found<'a> {
    /// The open directory that contains it.
    parent: &'a Dir,
    name: &'a Path,
    /// Relative to the start of the traversal.
    path: &'a Path,
    is_link: bool,
}

struct Walk<'a> {
    stop: &'a Stop,
    entries_left: usize,
    /// True if something was left out because of depth, number of entries or time.
    cut: bool,
}

impl<'a> Walk<'a> {
    fn new(stop: &'a Stop) -> Self {
        Self { stop, entries_left: MAX_ENTRIES, cut: false }
    }

    /// Passes every file and link below `directory` to `visit`, ordered by name.
    fn run(
        &mut self,
        directory: &Dir,
        visit: &mut dyn FnMut(Found<'_>) -> ControlFlow<()>,
    ) -> Result<(), WorkspaceError> {
        // Only the first directory must open: unreadable ones below it are skipped.
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
                // Resolved beneath its parent: a link that has replaced it since cannot lead out.
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
