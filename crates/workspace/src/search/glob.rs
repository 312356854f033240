//! `Glob`: finds files by name.

use std::ops::ControlFlow;
use std::path::Path;

use globset::GlobMatcher;
use serde_json::{Map, Value, json};

use super::{Walk, pattern};
use crate::arguments::Arguments;
use crate::error::WorkspaceError;
use crate::output::Output;
use crate::root::{Place, Root};
use crate::stop::Stop;

/// The maximum number of paths returned.
const MOST: usize = 2000;

/// A parsed call.
#[derive(Debug)]
pub struct Glob {
    place: Place,
    pattern: GlobMatcher,
}

impl Glob {
    pub fn parse(root: &Root, values: &Map<String, Value>) -> Result<Self, WorkspaceError> {
        let arguments = Arguments::new(values, &["pattern", "path"])?;
        let place = arguments.optional_text("path")?.map_or(Ok(Place::root()), |path| root.place(path))?;
        let text = arguments.text("pattern")?;
        if text.starts_with('/') || text.split('/').any(|part| part == "..") {
            return Err(WorkspaceError::OutsideRoot);
        }
        Ok(Self { place, pattern: pattern::glob(text)? })
    }

    pub fn run(&self, root: &Root, stop: &Stop) -> Result<Output, WorkspaceError> {
        let directory = root.open_directory(&self.place)?;
        let mut paths = Vec::new();
        let mut walk = Walk::new(stop);
        walk.run(&directory, &mut |found| {
            if !self.pattern.is_match(found.path) {
                return ControlFlow::Continue(());
            }
            if paths.len() >= MOST {
                return ControlFlow::Break(());
            }
            paths.push(shown(&self.place, found.path));
            ControlFlow::Continue(())
        })?;
        let text = if paths.is_empty() { "no files match".to_owned() } else { paths.join("\n") };
        let details = json!({ "matches": paths.len() });
        Ok(Output { text, is_error: false, truncated: walk.cut, details })
    }
}

/// The path relative to the root, in the form that every tool accepts.
pub fn shown(place: &Place, path: &Path) -> String {
    let whole = if *place == Place::root() { path.to_path_buf() } else { place.path().join(path) };
    whole.display().to_string()
}
